//! Features of a graph: version, profiles, extensions, level. Source: `docs/spec/tosa.md §1.2`, §2.4, §3.2.

use super::super::SpecError;
use crate::rescale::Requirement;
use crate::words::words;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

words! {
    /// Version of the text, oldest first.
    #[derive(Default)]
    pub enum Version {
        /// Versions 1.0.0 to 1.0.2, with the same rules for these operators.
        #[default]
        V1_0 = "1.0",
        /// The 1.1.0 draft.
        V1_1 = "1.1",
    }
}

impl core::str::FromStr for Version {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let same_rules = |v: &&Version| text == v.name() || text.strip_prefix(v.name()).is_some_and(is_patch);
        Version::ALL.iter().find(same_rules).copied().ok_or_else(|| SpecError::Version {
            spec: "tosa",
            version: text.into(),
            known: "1.0 (1.0.0 to 1.0.2) and 1.1 (draft)".into(),
        })
    }
}

/// True for the end of a version number: `.0` to `.2`, or the suffix of the draft.
fn is_patch(rest: &str) -> bool {
    matches!(rest, ".0" | ".1" | ".2" | "-draft" | ".0-draft")
}

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident $name:literal $since:ident;)*) => {
        /// Profile or extension that a pair or a rounding mode needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature { $($(#[$doc])* $variant),* }

        impl Feature {
            /// Every profile and extension.
            pub const ALL: &[Feature] = &[$(Feature::$variant),*];

            /// Returns the name in the text.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name),* }
            }

            /// Returns the version that introduced the feature.
            pub const fn since(self) -> Version {
                match self { $(Feature::$variant => Version::$since),* }
            }
        }
    };
}

features! {
    /// Profile for integers.
    ProInt "PRO-INT" V1_0;
    /// Profile for floating point.
    ProFp "PRO-FP" V1_0;
    /// 48-bit accumulators.
    ExtInt16 "EXT-INT16" V1_0;
    /// 64-bit integers.
    ExtInt64 "EXT-INT64" V1_1;
    /// bfloat16.
    ExtBf16 "EXT-BF16" V1_0;
    /// OCP E4M3.
    ExtFp8E4M3 "EXT-FP8E4M3" V1_0;
    /// OCP E5M2.
    ExtFp8E5M2 "EXT-FP8E5M2" V1_0;
    /// RESCALE with DOUBLE_ROUND.
    ExtDoubleRound "EXT-DOUBLEROUND" V1_0;
    /// RESCALE with INEXACT_ROUND.
    ExtInexactRound "EXT-INEXACTROUND" V1_0;
    /// Operands other than constants.
    ExtDynamic "EXT-DYNAMIC" V1_0;
    /// Block-scaled tensors.
    ExtMxCommon "EXT-MX-COMMON" V1_1;
    /// Blocks of E4M3.
    ExtMxFp8E4M3 "EXT-MX-FP8E4M3" V1_1;
    /// Blocks of E5M2.
    ExtMxFp8E5M2 "EXT-MX-FP8E5M2" V1_1;
    /// Blocks of E3M2.
    ExtMxFp6E3M2 "EXT-MX-FP6E3M2" V1_1;
    /// Blocks of E2M3.
    ExtMxFp6E2M3 "EXT-MX-FP6E2M3" V1_1;
    /// Blocks of E2M1.
    ExtMxFp4E2M1 "EXT-MX-FP4E2M1" V1_1;
    /// Blocks of 8-bit fixed point.
    ExtMxInt8 "EXT-MX-INT8" V1_1;
}

impl core::str::FromStr for Feature {
    type Err = SpecError;
    /// Reads `EXT-BF16`, `ext-bf16`, or `tosa-ext-bf16` as in test descriptions.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let name = text.strip_prefix("tosa-").unwrap_or(text);
        Feature::ALL.iter().copied().find(|f| f.name().eq_ignore_ascii_case(name)).ok_or_else(|| SpecError::Attribute {
            spec: "tosa".into(),
            name: "profile or extension",
            why: format!("unknown name {text:?}; known names are {}", Features::of(Feature::ALL)),
            clause: "docs/spec/tosa.md §3.2",
        })
    }
}

/// Set of profiles and extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Features(u32);

impl Features {
    /// Set without profiles and extensions.
    pub const NONE: Features = Features(0);

    /// Returns the set of the listed features.
    #[must_use]
    pub const fn of(all: &[Feature]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < all.len() {
            set |= 1 << all[i] as u32;
            i += 1;
        }
        Features(set)
    }

    /// Returns all features of a version.
    #[must_use]
    pub fn in_version(version: Version) -> Self {
        Feature::ALL.iter().filter(|f| f.since() <= version).copied().collect()
    }

    /// Returns the union.
    #[must_use]
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Returns the members of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members, in the order of [`Feature::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&f| self.0 & (1 << f as u32) != 0)
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(all: I) -> Self {
        all.into_iter().fold(Features::NONE, |set, f| set.union(Features::of(&[f])))
    }
}

impl core::fmt::Display for Features {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.iter().map(Feature::name).collect::<Vec<_>>().join(" and "))
    }
}

words! {
    /// Level, as the limit on the rank of a tensor. Source: `docs/spec/tosa.md §2.4`.
    #[derive(Default)]
    pub enum LevelLimit {
        /// 8K: rank 6 at most.
        #[default]
        EightK = "eightk",
        /// No level: rank 32 at most.
        None = "none",
    }
}

impl LevelLimit {
    /// Returns MAX_RANK, the maximum rank of a tensor.
    #[must_use]
    pub const fn max_rank(self) -> usize {
        match self {
            LevelLimit::EightK => 6,
            LevelLimit::None => 32,
        }
    }
}

/// Features that an implementation supports.
///
/// # Examples
/// ```
/// use truecast_core::spec::tosa::{Feature, Target, Version};
/// assert!(Target::of(Version::V1_0).allows(Feature::ExtBf16));
/// assert!(!Target::of(Version::V1_0).allows(Feature::ExtInt64)); // of the 1.1 draft
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Version of the text.
    pub version: Version,
    /// Enabled profiles and extensions.
    pub enabled: Features,
    /// Level.
    pub level: LevelLimit,
}

impl Default for Target {
    fn default() -> Self {
        Target::of(Version::default())
    }
}

impl Target {
    /// Returns a target with all features of a version, at level 8K.
    #[must_use]
    pub fn of(version: Version) -> Self {
        Self { version, enabled: Features::in_version(version), level: LevelLimit::default() }
    }

    /// Returns whether the feature is enabled and in the version.
    #[must_use]
    pub fn allows(&self, feature: Feature) -> bool {
        self.missing(Features::of(&[feature])).is_empty()
    }

    /// Returns the features of `needed` that the target lacks.
    #[must_use]
    pub fn missing(&self, needed: Features) -> Features {
        needed.without(Features(self.enabled.0 & Features::in_version(self.version).0))
    }

    pub(super) fn require(&self, what: String, needs: Features, clause: &'static str) -> Result<(), SpecError> {
        match self.missing(needs) {
            missing if missing.is_empty() => Ok(()),
            missing => Err(SpecError::Missing { spec: self.spec(), what, needs: missing.to_string(), clause }),
        }
    }

    /// Checks that the rank is within the level.
    ///
    /// # Errors
    /// [`Requirement::Rank`]: the result of the graph is unpredictable.
    pub const fn check_rank(&self, rank: usize) -> Result<(), Requirement> {
        if rank > self.level.max_rank() { Err(Requirement::Rank) } else { Ok(()) }
    }

    /// Returns the standard and the version, for messages.
    #[must_use]
    pub fn spec(&self) -> String {
        format!("tosa {}", self.version.name())
    }
}
