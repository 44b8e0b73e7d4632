//! What settings are called and which values they take, for everybody who takes them as words: the command and other
//! languages. How a value is read stands in [`crate::request`].

use super::Setting;
use truecast_core::Rounding;
use truecast_core::policy::TextStyle;
use truecast_core::spec::{onnx, tile, tosa};

/// Every setting, the option of Tile IR once.
const ALL: [Setting; 13] = [
    Setting::Saturate,
    Setting::RoundMode,
    Setting::Rounding,
    Setting::Overflow,
    Setting::Inf,
    Setting::IntOverflow,
    Setting::NanToInt,
    Setting::Subnormals,
    Setting::Saturating,
    Setting::Profile,
    Setting::TileOption("strict"),
    Setting::Nan,
    Setting::TextStyle,
];

impl Setting {
    /// Every setting; all options of Tile IR are one.
    pub fn all() -> impl Iterator<Item = Setting> {
        ALL.into_iter()
    }

    /// Its name, wherever it is written.
    ///
    /// # Examples
    /// ```
    /// use truecast_explain::setting::Setting;
    /// assert_eq!(Setting::of_name("int_overflow").unwrap().name(), "int-overflow");
    /// assert!(Setting::all().all(|setting| Setting::of_name(setting.name()) == Some(setting)));
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Setting::Saturate => "saturate",
            Setting::RoundMode => "round-mode",
            Setting::Rounding => "rounding",
            Setting::Overflow => "overflow",
            Setting::Inf => "inf",
            Setting::IntOverflow => "int-overflow",
            Setting::NanToInt => "nan-to-int",
            Setting::Subnormals => "subnormals",
            Setting::Saturating => "saturating",
            Setting::Profile => "profile",
            Setting::TileOption(_) => "tile-option",
            Setting::Nan => "nan",
            Setting::TextStyle => "string-style",
        }
    }

    /// The setting of a name; `-` and `_` are alike.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Setting> {
        let name = name.replace('_', "-");
        ALL.into_iter().find(|setting| setting.name() == name)
    }

    /// Whether a specification has it, by the name of the specification.
    #[must_use]
    pub fn is_of(self, spec: &str) -> bool {
        match self {
            Setting::Saturate | Setting::RoundMode => spec == "onnx",
            Setting::Rounding => matches!(spec, "ieee" | "tile"),
            Setting::Overflow | Setting::Inf | Setting::IntOverflow | Setting::NanToInt | Setting::Subnormals => {
                spec == "ieee"
            }
            Setting::Saturating | Setting::TileOption(_) => spec == "tile",
            Setting::Profile => matches!(spec, "tile" | "tosa"),
            Setting::TextStyle => matches!(spec, "onnx" | "ieee"),
            Setting::Nan => true,
        }
    }

    /// It is on or off.
    #[must_use]
    pub const fn is_switch(self) -> bool {
        matches!(self, Setting::Saturate | Setting::Saturating)
    }

    /// The values that a specification knows, as words.
    #[must_use]
    pub fn values(self, spec: &str) -> Vec<&'static str> {
        match self {
            Setting::Saturate | Setting::Saturating => vec!["true", "false"],
            Setting::RoundMode => onnx::RoundMode::ALL.map(onnx::RoundMode::name).into(),
            Setting::Rounding if spec == "tile" => tile::RoundingMode::ALL.iter().map(|mode| mode.name()).collect(),
            Setting::Rounding => Rounding::ALL.map(Rounding::name).into(),
            Setting::Overflow | Setting::Inf => vec!["nonfinite", "saturate", "error"],
            Setting::IntOverflow => vec!["wrap", "saturate", "error"],
            Setting::NanToInt => vec!["zero", "saturate", "error"],
            Setting::Subnormals => vec!["keep", "flush"],
            Setting::Profile if spec == "tosa" => tosa::Freedoms::words().collect(),
            Setting::Profile => tile::Profile::ALL.map(tile::Profile::name).into(),
            Setting::TileOption(_) => tile::Options::NAMES.into(),
            Setting::Nan => vec!["keep", "canonical", "error"],
            Setting::TextStyle => TextStyle::ALL.map(TextStyle::name).into(),
        }
    }
}
