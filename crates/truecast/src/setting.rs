//! Table of the settings of specifications: names and descriptions. The command's options, help and completions are
//! generated from the table. `request` has the values of each setting.

use crate::request::{SPECS, SWITCH, values};
use truecast_core::spec::table::{INTEGER, Table};

/// One setting of a [`Request`](crate::request::Request).
#[derive(Debug)]
pub struct Setting {
    name: &'static str,
    /// Placeholder of the value in help; `None` for a flag.
    pub value_name: Option<&'static str>,
    /// Descriptions that include the default. A key is the name of a specification, `TABLES` or `EVERY`.
    about: &'static [(&'static str, &'static str)],
}

/// Key in `about` for all specifications.
const EVERY: &str = "every specification";

const fn row(name: &'static str, value_name: &'static str, about: &'static [(&'static str, &'static str)]) -> Setting {
    Setting { name, value_name: Some(value_name), about }
}

/// Key in `about` for all tables.
const TABLES: &str = "languages and chips";

/// Description that two specifications share.
const AS_TEXT: &str = "Floats as text: as ONNX's reference evaluator writes them (1e-05), or plain (0.00001) \
                       (default reference)";

static ALL: [Setting; 15] = [
    row(
        "saturate",
        "BOOL",
        &[("onnx", "Values beyond the range of an 8-bit float type become its largest value (default true)")],
    ),
    row("round-mode", "MODE", &[("onnx", "Rounding to f8e8m0 (default up)")]),
    row(
        "rounding",
        "MODE",
        &[
            ("ieee", "Rounding (default nearest-even to floats, toward-zero to integers)"),
            ("tile", "Rounding (default nearest_even to floats, nearest_int_to_zero to integers)"),
            (TABLES, "Rounding"),
        ],
    ),
    row(
        "overflow",
        "WHAT",
        &[
            ("ieee", "Finite values beyond the largest finite value (default nonfinite)"),
            (TABLES, "Values out of the range of a float, infinities included"),
        ],
    ),
    row("inf", "WHAT", &[("ieee", "Infinities to floats (default: the value of overflow)")]),
    row(
        "int-overflow",
        "WHAT",
        &[
            ("ieee", "Values out of the range of an integer (default wrap)"),
            (TABLES, "Values out of an integer's range, and NaN"),
        ],
    ),
    row("nan-to-int", "WHAT", &[("ieee", "NaN to an integer (default zero; saturate: the largest value)")]),
    row(
        "subnormals",
        "WHAT",
        &[("ieee", "Subnormal values (default keep)"), (TABLES, "Subnormal values (default keep)")],
    ),
    Setting { name: "relu", value_name: None, about: &[(TABLES, "Negative becomes +0, NaN canonical")] },
    row("scale-exponent", "N", &[(TABLES, "Multiply values by 2^N before rounding")]),
    Setting { name: "saturating", value_name: None, about: &[("tile", "Clamp in ftoi")] },
    row(
        "profile",
        "PROFILE",
        &[
            ("tile", "Follow the newest text (spec), the hardware (hw) or the 13.1 text (seed) (default spec)"),
            ("tosa", "Choices that the text leaves open, joined with + (default strict)"),
        ],
    ),
    row("tile-option", "NAME[=VALUE]", &[("tile", "Choices where the sources of Tile IR differ")]),
    row("nan", "WHAT", &[(EVERY, "Sign and payload of NaN (default keep)")]),
    row("string-style", "STYLE", &[("onnx", AS_TEXT), ("ieee", AS_TEXT)]),
];

impl Setting {
    /// All settings.
    pub fn all() -> impl Iterator<Item = &'static Setting> {
        ALL.iter()
    }

    /// Name in options, keywords and attributes.
    ///
    /// # Examples
    /// ```
    /// use truecast::setting::Setting;
    /// assert_eq!(Setting::of_name("int_overflow").unwrap().name(), "int-overflow");
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Description with default, and the specifications with this setting.
    ///
    /// # Examples
    /// ```
    /// let setting = truecast::setting::Setting::of_name("round-mode").unwrap();
    /// assert_eq!(setting.about(), "onnx: Rounding to f8e8m0 (default up)");
    /// ```
    #[must_use]
    pub fn about(&self) -> String {
        let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
        for (spec, about) in self.about {
            match groups.iter_mut().find(|(_, known)| known == about) {
                Some((specs, _)) => specs.push(spec),
                None => groups.push((vec![spec], about)),
            }
        }
        let said = groups.into_iter().map(|(specs, about)| format!("{}: {about}", specs.join(", ")));
        said.collect::<Vec<_>>().join("; ")
    }

    /// Description for one specification. `None` if the specification lacks the setting, or if all specifications have
    /// it.
    #[must_use]
    pub fn about_of(&self, spec: &str) -> Option<&'static str> {
        let of = |name| self.about.iter().find(|(known, _)| *known == name).map(|(_, about)| *about);
        of(spec).or_else(|| of(TABLES).filter(|_| Table::of_name(spec).is_some() && self.is_of(spec)))
    }

    /// Description of a setting that every specification has. `None` for other settings.
    #[must_use]
    pub fn about_of_every(&self) -> Option<&'static str> {
        self.about_of(EVERY)
    }

    /// Finds a setting by name; `-` and `_` are equivalent.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Setting> {
        let name = name.replace('_', "-");
        Setting::all().find(|setting| setting.name == name)
    }

    /// Specifications with the setting: free policies first, tables last.
    #[must_use]
    pub fn specs(&self) -> Vec<&'static str> {
        let (tables, own): (Vec<&str>, Vec<&str>) = SPECS.iter().partition(|spec| Table::of_name(spec).is_some());
        own.into_iter().rev().chain(tables).filter(|spec| self.is_of(spec)).collect()
    }

    /// True if the named specification has the setting.
    #[must_use]
    pub fn is_of(&self, spec: &str) -> bool {
        !self.values(spec).is_empty()
    }

    /// Description for tables; `None` if no table has the setting.
    #[must_use]
    pub fn about_of_tables(&self) -> Option<&'static str> {
        self.about_of(TABLES)
    }

    /// True if the values are `true` and `false`.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.every_value() == SWITCH
    }

    /// True if the setting takes no value.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.value_name.is_none()
    }

    /// True if the values are integers.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.every_value() == [INTEGER]
    }

    /// True if the setting may repeat.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.name == "tile-option"
    }

    /// Words that a specification accepts.
    #[must_use]
    pub fn values(&self, spec: &str) -> Vec<&'static str> {
        values(spec, self.name)
    }

    /// Words that at least one specification accepts.
    #[must_use]
    pub fn every_value(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for value in self.specs().into_iter().flat_map(|spec| self.values(spec)) {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }
}
