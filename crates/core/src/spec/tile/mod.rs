//! CUDA Tile IR: the nine conversion operations, with types, releases, legality and results.
//! Reference: `docs/spec/tile-ir.md`; section numbers in this folder refer to the page.
//!
//! Start with [`request`]: one conversion between two types. Crate `truecast-models` reads modules.

pub mod legality;
pub mod meaning;
pub mod op;
pub mod request;
pub mod types;

pub use legality::{Legality, Violation, rounding_modes, text_rounding_modes};
pub use meaning::{Element, Meaning};
pub use op::{Conversion, IntegerOverflow, Op, RoundingMode, Signedness};
pub use request::Cast;
pub use types::{ElementType, Number, TileType};

use super::SpecError;
use crate::words::words;

words! {
    /// Release of Tile IR, oldest first. A release is also the version of a file. Source: §2.1.
    #[allow(missing_docs)] // The variants are the version numbers.
    pub enum Release {
        V13_1 = "13.1",
        V13_2 = "13.2",
        V13_3 = "13.3",
        V13_4 = "13.4",
        V13_5 = "13.5",
    }
}

impl Release {
    /// Release that `latest` means.
    pub const NEWEST: Release = Release::V13_5;

    /// Returns the release of a version in the header of a bytecode file.
    #[must_use]
    pub fn of_numbers(major: u8, minor: u8) -> Option<Release> {
        let index = usize::from(minor).checked_sub(1).filter(|_| major == 13)?;
        Release::ALL.get(index).copied()
    }
}

/// Release whose rules apply to a file. Source: §2.2.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::{Release, Rules};
/// assert_eq!("latest".parse(), Ok(Rules::Of(Release::V13_5)));
/// assert_eq!("13.1".parse(), Ok(Rules::Of(Release::V13_1)));
/// assert!("13.9".parse::<Rules>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// This release, for files of any version.
    Of(Release),
    /// The release of the file's version.
    OfFile,
}

impl Default for Rules {
    fn default() -> Self {
        Rules::Of(Release::NEWEST)
    }
}

impl Rules {
    /// Returns the release whose rules apply to a file of version `file`.
    #[must_use]
    pub const fn release(self, file: Release) -> Release {
        match self {
            Rules::Of(release) => release,
            Rules::OfFile => file,
        }
    }
}

impl core::str::FromStr for Rules {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text {
            "latest" => Ok(Rules::default()),
            "file" => Ok(Rules::OfFile),
            _ => Release::of_name(text).map(Rules::Of).ok_or_else(|| {
                let known = Release::ALL.map(Release::name).join(", ") + ", latest, file";
                SpecError::Version { spec: "tile", version: text.into(), known: known.into() }
            }),
        }
    }
}

words! {
    /// Source that decides results where sources contradict each other. Source: §6.2.
    #[derive(Default)]
    pub enum Profile {
        /// The newest published text, with the decisions of our page where the text has gaps.
        #[default]
        Spec = "spec",
        /// The machine code of `tileiras` 13.5.37; every element is defined.
        Hw = "hw",
        /// The text of 13.1, the first release, with its rounding modes (§4.10).
        Seed = "seed",
    }
}

impl core::str::FromStr for Profile {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let names = Profile::ALL.map(Profile::name);
        Profile::of_name(text)
            .ok_or_else(|| SpecError::not_one_of("tile", "profile", text, &names, "docs/spec/tile-ir.md §6.2"))
    }
}

/// Options of §2.3, all off by default.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::Options;
/// let mut options = Options::default();
/// options.set("e4m3_nan=spec-literal")?;
/// assert!(options.e4m3_nan_spec_literal && !options.preserve_inf);
/// assert_eq!(options.names().collect::<Vec<_>>(), ["e4m3_nan=spec-literal"]);
/// assert!(options.set("e4m3_nan").is_err()); // its value is missing
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// ftof of Inf to f8e5m2 gives Inf instead of the largest finite value (U2).
    pub preserve_inf: bool,
    /// ftof of NaN to f8e4m3fn gives 448 (U3).
    pub e4m3_nan_spec_literal: bool,
    /// Every NaN that a conversion creates is canonical and positive (U6).
    pub canonical_nan: bool,
    /// ftoi to i1 truncates instead of testing for nonzero (U11).
    pub i1_ftoi_truncate: bool,
    /// bitcast counts tf32 as 32 bits, the size in memory (U15).
    pub tf32_as_32_bit: bool,
    /// Conversions round twice where `tileiras` up to 13.4 rounds twice (U17).
    pub legacy_double_rounding: bool,
    /// Any undefined element makes the run fail (§6.1).
    pub strict: bool,
}

impl Options {
    /// Spelling of each option, in the order of §2.3.
    pub const NAMES: [&'static str; 7] = [
        "preserve_inf", "e4m3_nan=spec-literal", "canonical_nan", "i1_ftoi=truncate", "tf32_as_32_bit",
        "legacy_double_rounding", "strict",
    ];

    /// In the order of [`Options::NAMES`].
    fn fields(&mut self) -> [&mut bool; 7] {
        [
            &mut self.preserve_inf, &mut self.e4m3_nan_spec_literal, &mut self.canonical_nan,
            &mut self.i1_ftoi_truncate, &mut self.tf32_as_32_bit, &mut self.legacy_double_rounding, &mut self.strict,
        ]
    }

    /// Switches an option on. `text` is `NAME` or `NAME=VALUE`, as in the table of §2.3.
    ///
    /// # Errors
    /// [`SpecError::Attribute`] for a text outside the table.
    pub fn set(&mut self, text: &str) -> Result<(), SpecError> {
        let named = Options::NAMES.into_iter().zip(self.fields()).find(|(name, _)| *name == text);
        let Some((_, field)) = named else {
            let clause = "docs/spec/tile-ir.md §2.3";
            return Err(SpecError::not_one_of("tile", "tile-option", text, &Options::NAMES, clause));
        };
        *field = true;
        Ok(())
    }

    /// Returns the names of the options that are on, in the spelling of [`set`](Options::set).
    pub fn names(mut self) -> impl Iterator<Item = &'static str> {
        let is_on = self.fields().map(|field| *field);
        Options::NAMES.into_iter().zip(is_on).filter_map(|(name, is_on)| is_on.then_some(name))
    }
}
