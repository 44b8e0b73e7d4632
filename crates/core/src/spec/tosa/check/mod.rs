//! Conformance checker: decides whether an output is permitted, by the text and by Arm's verifier. Reference:
//! `docs/spec/tosa.md §6`.
//!
//! `cast`, `block` and `rescale` check one element, [`tensor`] a whole output.

pub mod block;
pub mod cast;
mod codes;
pub mod rescale;
pub mod tensor;

use super::super::SpecError;
use super::target::Version;
use crate::words::words;

words! {
    /// Rules for passing an output. Source: `docs/spec/tosa.md §1.3`.
    pub enum Profile {
        /// Only the exact result.
        Strict = "strict",
        /// Results that the text of 1.0.2 permits.
        Spec1_0 = "spec-1.0",
        /// [`Profile::Spec1_0`] with the older bound of INEXACT_ROUND.
        SpecSeed202503 = "spec-seed-2025-03",
        /// [`Profile::Spec1_0`] with the additions of the 1.1 draft.
        Spec1_1Draft = "spec-1.1-draft",
        /// Results that Arm's verifier accepts, in the configuration of Arm's tests.
        ArmVerifier2026_8 = "arm-verifier-2026.8",
    }
}

impl Profile {
    /// Returns the profile of a version's own text.
    #[must_use]
    pub const fn of_version(version: Version) -> Profile {
        match version {
            Version::V1_0 => Profile::Spec1_0,
            Version::V1_1 => Profile::Spec1_1Draft,
        }
    }

    /// Returns whether the profile is a text of the standard. The exact result and the verifier are not texts.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Profile::Spec1_0 | Profile::SpecSeed202503 | Profile::Spec1_1Draft)
    }

    /// Returns whether an element with this verdict passes. Source: `docs/spec/tosa.md §6.3`.
    #[must_use]
    pub const fn passes(self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Exact | Verdict::Unpredictable => true,
            Verdict::Allowed => !matches!(self, Profile::Strict),
            Verdict::AllowedByTextOnly => self.is_text(),
            Verdict::AllowedByVerifierOnly => matches!(self, Profile::ArmVerifier2026_8),
            Verdict::Violation => false,
        }
    }
}

impl core::str::FromStr for Profile {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let names = Profile::ALL.map(Profile::name);
        Profile::of_name(text)
            .ok_or_else(|| SpecError::not_one_of("tosa", "profile", text, &names, "docs/spec/tosa.md §1.3"))
    }
}

words! {
    /// Verdict on one element. Source: `docs/spec/tosa.md §6.2`.
    pub enum Verdict {
        /// The exact result; any NaN if the exact result is NaN.
        Exact = "exact",
        /// Permitted by the text and accepted by Arm's verifier.
        Allowed = "allowed",
        /// Permitted by the text, rejected by Arm's verifier.
        AllowedByTextOnly = "allowed-by-text-only",
        /// Accepted by Arm's verifier, but not permitted by the text.
        AllowedByVerifierOnly = "allowed-by-verifier-only",
        /// Neither permitted by the text nor accepted by the verifier.
        Violation = "violation",
        /// The specification makes no requirement.
        Unpredictable = "unpredictable",
    }
}

impl Verdict {
    const fn of_inexact(text: bool, verifier: bool) -> Verdict {
        match (text, verifier) {
            (true, true) => Verdict::Allowed,
            (true, false) => Verdict::AllowedByTextOnly,
            (false, true) => Verdict::AllowedByVerifierOnly,
            (false, false) => Verdict::Violation,
        }
    }
}
