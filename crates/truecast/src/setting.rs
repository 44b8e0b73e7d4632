//! The settings of specifications: one table of what they are called and what they are about. The options of the command,
//! its help and its completions, and the keywords of other languages are made from it. Who has a setting, which values it
//! takes and how it is read stands with each specification (`request`).

use crate::request::{SPECS, SWITCH, values};

/// One setting of a [`Request`](crate::request::Request).
#[derive(Debug)]
pub struct Setting {
    name: &'static str,
    /// What help calls its value; a flag has none.
    pub value_name: Option<&'static str>,
    /// What it is about, and its default.
    pub about: &'static str,
}

const fn row(name: &'static str, value_name: &'static str, about: &'static str) -> Setting {
    Setting { name, value_name: Some(value_name), about }
}

static ALL: [Setting; 13] = [
    row("saturate", "BOOL", "ONNX: saturate out-of-range values of 8-bit floats (default true)"),
    row("round-mode", "MODE", "ONNX: rounding to f8e8m0 (default up)"),
    row("rounding", "MODE", "ieee, tile: rounding (default nearest-even to floats and toward-zero to integers)"),
    row("overflow", "WHAT", "ieee: finite values beyond the largest (default nonfinite)"),
    row("inf", "WHAT", "ieee: infinities (default as --overflow)"),
    row("int-overflow", "WHAT", "ieee: integers out of range (default wrap)"),
    row("nan-to-int", "WHAT", "ieee: NaN to an integer (default zero)"),
    row("subnormals", "WHAT", "ieee: subnormals (default keep)"),
    Setting { name: "saturating", value_name: None, about: "Tile IR: clamp in ftoi" },
    row(
        "profile",
        "PROFILE",
        "Tile IR: whose values, spec (default), hw or seed. TOSA: what the implementation chooses where the text leaves a \
         choice, strict (default) or flush, toward-zero and others with + between them; in `check` whose rules (default: \
         the version's text)",
    ),
    row("tile-option", "NAME[=VALUE]", "Tile IR: choices where its sources differ"),
    row("nan", "WHAT", "Sign and payload of NaN, with every specification (default keep)"),
    row(
        "string-style",
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
    /// use truecast::setting::Setting;
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

    /// The names of the specifications that have it, that of free policies first.
    #[must_use]
    pub fn specs(&self) -> Vec<&'static str> {
        SPECS.iter().copied().rev().filter(|spec| self.is_of(spec)).collect()
    }

    /// Whether a specification has it, by the name of the specification.
    #[must_use]
    pub fn is_of(&self, spec: &str) -> bool {
        !self.values(spec).is_empty()
    }

    /// It is on or off.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.every_value() == SWITCH
    }

    /// It may be given several times.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.name == "tile-option"
    }

    /// The values that a specification knows, as words.
    #[must_use]
    pub fn values(&self, spec: &str) -> Vec<&'static str> {
        values(spec, self.name)
    }

    /// The values that any specification knows.
    #[must_use]
    pub fn every_value(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        self.specs().into_iter().flat_map(|spec| self.values(spec)).for_each(|value| match all.contains(&value) {
            true => {}
            false => all.push(value),
        });
        all
    }
}
