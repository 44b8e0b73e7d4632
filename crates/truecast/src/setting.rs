//! Table of the settings of specifications: names and descriptions. The command's options, help and completions are
//! generated from the table. `request` has the values of each setting.

use crate::request::{SPECS, SWITCH, values};
use std::fmt;
use truecast_core::spec::table::{INTEGER, Table};

type About = &'static [(Scope<'static>, &'static str)];

/// One setting of a [`Request`](crate::request::Request).
#[derive(Debug)]
pub struct Setting {
    name: &'static str,
    /// Placeholder of the value in help; `None` for a flag.
    pub value_name: Option<&'static str>,
    is_list: bool,
    /// Descriptions, with the default.
    about: About,
}

/// Specifications that a description covers.
#[derive(Debug, PartialEq)]
enum Scope<'a> {
    Spec(&'a str),
    Tables,
    Every,
}

const IEEE: Scope<'_> = Scope::Spec("ieee");
const ONNX: Scope<'_> = Scope::Spec("onnx");
const TILE: Scope<'_> = Scope::Spec("tile");
const TOSA: Scope<'_> = Scope::Spec("tosa");

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Spec(name) => name,
            Scope::Tables => "languages and chips",
            Scope::Every => "every specification",
        })
    }
}

const fn row(name: &'static str, value_name: &'static str, about: About) -> Setting {
    Setting { name, value_name: Some(value_name), is_list: false, about }
}

const fn list(name: &'static str, value_name: &'static str, about: About) -> Setting {
    Setting { is_list: true, ..row(name, value_name, about) }
}

const fn flag(name: &'static str, about: About) -> Setting {
    Setting { name, value_name: None, is_list: false, about }
}

/// Description that two specifications share.
const AS_TEXT: &str = "Floats as text: as ONNX's reference evaluator writes them (1e-05), or plain (0.00001) \
                       (default reference)";

static ALL: [Setting; 15] = [
    row(
        "saturate",
        "BOOL",
        &[(ONNX, "Values beyond the range of an 8-bit float type become its largest value (default true)")],
    ),
    row("round-mode", "MODE", &[(ONNX, "Rounding to f8e8m0 (default up)")]),
    row(
        "rounding",
        "MODE",
        &[
            (IEEE, "Rounding (default nearest-even to floats, toward-zero to integers)"),
            (TILE, "Rounding (default nearest_even to floats, nearest_int_to_zero to integers)"),
            (Scope::Tables, "Rounding"),
        ],
    ),
    row(
        "overflow",
        "WHAT",
        &[
            (IEEE, "Finite values beyond the largest finite value (default nonfinite)"),
            (Scope::Tables, "Values out of the range of a float, infinities included"),
        ],
    ),
    row("inf", "WHAT", &[(IEEE, "Infinities to floats (default: the value of overflow)")]),
    row(
        "int-overflow",
        "WHAT",
        &[
            (IEEE, "Values out of the range of an integer (default wrap)"),
            (Scope::Tables, "Values out of an integer's range, and NaN"),
        ],
    ),
    row("nan-to-int", "WHAT", &[(IEEE, "NaN to an integer (default zero; saturate: the largest value)")]),
    row(
        "subnormals",
        "WHAT",
        &[(IEEE, "Subnormal values (default keep)"), (Scope::Tables, "Subnormal values (default keep)")],
    ),
    flag("relu", &[(Scope::Tables, "Negative becomes +0, NaN canonical")]),
    row("scale-exponent", "N", &[(Scope::Tables, "Multiply values by 2^N before rounding")]),
    flag("saturating", &[(TILE, "Clamp in ftoi")]),
    row(
        "profile",
        "PROFILE",
        &[
            (TILE, "Follow the newest text (spec), the hardware (hw) or the 13.1 text (seed) (default spec)"),
            (TOSA, "Choices that the text leaves open, joined with + (default strict)"),
        ],
    ),
    list("tile-option", "NAME[=VALUE]", &[(TILE, "Choices where the sources of Tile IR differ")]),
    row("nan", "WHAT", &[(Scope::Every, "Sign and payload of NaN (default keep)")]),
    row("string-style", "STYLE", &[(ONNX, AS_TEXT), (IEEE, AS_TEXT)]),
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
        let mut groups: Vec<(Vec<String>, &str)> = Vec::new();
        for (scope, about) in self.about {
            match groups.iter_mut().find(|(_, known)| known == about) {
                Some((scopes, _)) => scopes.push(scope.to_string()),
                None => groups.push((vec![scope.to_string()], about)),
            }
        }
        let sentences = groups.into_iter().map(|(scopes, about)| format!("{}: {about}", scopes.join(", ")));
        sentences.collect::<Vec<_>>().join("; ")
    }

    /// Description for one specification. `None` if the specification lacks the setting, or if all specifications have
    /// it.
    #[must_use]
    pub fn about_for(&self, spec: &str) -> Option<&'static str> {
        let is_of_table = || Table::of_name(spec).is_some() && self.belongs_to(spec);
        self.find(&Scope::Spec(spec)).or_else(|| self.about_for_tables().filter(|_| is_of_table()))
    }

    /// Description of a setting that every specification has. `None` for other settings.
    #[must_use]
    pub fn about_if_universal(&self) -> Option<&'static str> {
        self.find(&Scope::Every)
    }

    /// Description for tables; `None` if no table has the setting.
    #[must_use]
    pub fn about_for_tables(&self) -> Option<&'static str> {
        self.find(&Scope::Tables)
    }

    fn find(&self, scope: &Scope<'_>) -> Option<&'static str> {
        self.about.iter().find(|(known, _)| known == scope).map(|(_, about)| *about)
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
        // `SPECS` lists ieee last; it comes first here.
        own.into_iter().rev().chain(tables).filter(|spec| self.belongs_to(spec)).collect()
    }

    /// True if the named specification has the setting.
    #[must_use]
    pub fn belongs_to(&self, spec: &str) -> bool {
        !self.values(spec).is_empty()
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
        self.is_list
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
