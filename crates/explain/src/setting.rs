//! The settings of specifications: one table of what they are called, who has them, which values they take and what they
//! are about. The options of the command, its help and its completions, and the keywords of other languages are made from
//! it. How a value is read stands in [`crate::request`].

use crate::request::SPECS;
use truecast_core::Rounding;
use truecast_core::policy::TextStyle;
use truecast_core::spec::{onnx, tile, tosa};

/// One setting of a [`Request`](crate::request::Request).
#[derive(Debug)]
pub struct Setting {
    name: &'static str,
    specs: &'static [&'static str],
    values: fn(&str) -> Vec<&'static str>,
    /// What help calls its value; a flag has none.
    pub value_name: Option<&'static str>,
    /// What it is about, and its default.
    pub about: &'static str,
}

const fn row(
    name: &'static str,
    specs: &'static [&'static str],
    values: fn(&str) -> Vec<&'static str>,
    value_name: &'static str,
    about: &'static str,
) -> Setting {
    Setting { name, specs, values, value_name: Some(value_name), about }
}

const SWITCH: [&str; 2] = ["true", "false"];

static ALL: [Setting; 13] = [
    row(
        "saturate",
        &["onnx"],
        |_| SWITCH.into(),
        "BOOL",
        "ONNX: saturate out-of-range values of 8-bit floats (default true)",
    ),
    row(
        "round-mode",
        &["onnx"],
        |_| onnx::RoundMode::ALL.map(onnx::RoundMode::name).into(),
        "MODE",
        "ONNX: rounding to f8e8m0 (default up)",
    ),
    row(
        "rounding",
        &["ieee", "tile"],
        |spec| match spec {
            "tile" => tile::RoundingMode::ALL.iter().map(|mode| mode.name()).collect(),
            _ => Rounding::ALL.map(Rounding::name).into(),
        },
        "MODE",
        "ieee, tile: rounding (default nearest-even to floats and toward-zero to integers)",
    ),
    row(
        "overflow",
        &["ieee"],
        |_| vec!["nonfinite", "saturate", "error"],
        "WHAT",
        "ieee: finite values beyond the largest (default nonfinite)",
    ),
    row(
        "inf",
        &["ieee"],
        |_| vec!["nonfinite", "saturate", "error"],
        "WHAT",
        "ieee: infinities (default as --overflow)",
    ),
    row(
        "int-overflow",
        &["ieee"],
        |_| vec!["wrap", "saturate", "error"],
        "WHAT",
        "ieee: integers out of range (default wrap)",
    ),
    row(
        "nan-to-int",
        &["ieee"],
        |_| vec!["zero", "saturate", "error"],
        "WHAT",
        "ieee: NaN to an integer (default zero)",
    ),
    row("subnormals", &["ieee"], |_| vec!["keep", "flush"], "WHAT", "ieee: subnormals (default keep)"),
    Setting { value_name: None, ..row("saturating", &["tile"], |_| SWITCH.into(), "", "Tile IR: clamp in ftoi") },
    row(
        "profile",
        &["tile", "tosa"],
        |spec| match spec {
            "tosa" => tosa::Freedoms::words().collect(),
            _ => tile::Profile::ALL.map(tile::Profile::name).into(),
        },
        "PROFILE",
        "Tile IR: whose values, spec (default), hw or seed. TOSA: what the implementation chooses where the text leaves a \
         choice, strict (default) or flush, toward-zero and others with + between them; in `check` whose rules (default: \
         the version's text)",
    ),
    row(
        "tile-option",
        &["tile"],
        |_| tile::Options::NAMES.into(),
        "NAME[=VALUE]",
        "Tile IR: choices where its sources differ",
    ),
    row(
        "nan",
        &SPECS,
        |_| vec!["keep", "canonical", "error"],
        "WHAT",
        "Sign and payload of NaN, with every specification (default keep)",
    ),
    row(
        "string-style",
        &["onnx", "ieee"],
        |_| TextStyle::ALL.map(TextStyle::name).into(),
        "STYLE",
        "onnx, ieee: floating-point numbers as text: as the reference evaluator writes them (1e-05), or plain, without an \
         exponent (default reference)",
    ),
];

impl Setting {
    /// Every setting.
    pub fn all() -> impl Iterator<Item = &'static Setting> {
        ALL.iter()
    }

    /// Its name, wherever it is written.
    ///
    /// # Examples
    /// ```
    /// use truecast_explain::setting::Setting;
    /// assert_eq!(Setting::of_name("int_overflow").unwrap().name(), "int-overflow");
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The setting of a name; `-` and `_` are alike.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Setting> {
        let name = name.replace('_', "-");
        Setting::all().find(|setting| setting.name == name)
    }

    /// The names of the specifications that have it.
    #[must_use]
    pub const fn specs(&self) -> &'static [&'static str] {
        self.specs
    }

    /// Whether a specification has it, by the name of the specification.
    #[must_use]
    pub fn is_of(&self, spec: &str) -> bool {
        self.specs.contains(&spec)
    }

    /// It is on or off.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.values(self.specs[0]) == SWITCH
    }

    /// It may be given several times.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.name == "tile-option"
    }

    /// The values that a specification knows, as words.
    #[must_use]
    pub fn values(&self, spec: &str) -> Vec<&'static str> {
        (self.values)(spec)
    }

    /// The values that any specification knows.
    #[must_use]
    pub fn every_value(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        self.specs.iter().flat_map(|spec| self.values(spec)).for_each(|value| match all.contains(&value) {
            true => {}
            false => all.push(value),
        });
        all
    }
}
