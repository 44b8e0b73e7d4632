//! The conformance checker: is this output permitted, by the text and by Arm's verifier? Reference: `docs/spec/tosa.md §6`.
//!
//! `cast`, `block` and `rescale` check one element, [`tensor`] a whole output. Nothing is computed here that a conversion
//! returns.

pub mod block;
pub mod cast;
mod codes;
pub mod rescale;
pub mod tensor;

use super::super::SpecError;
use super::target::Version;
use crate::words::words;

words! {
    /// By whose rules an output passes. Source: `docs/spec/tosa.md §1.3`.
    pub enum Profile {
        /// The one exact answer.
        Strict = "strict",
        /// Everything that the text of 1.0.2 permits.
        Spec1_0 = "spec-1.0",
        /// The same with the older bound of INEXACT_ROUND.
        SpecSeed202503 = "spec-seed-2025-03",
        /// The same as [`Profile::Spec1_0`], with what the 1.1 draft adds.
        Spec1_1Draft = "spec-1.1-draft",
        /// What Arm's verifier accepts as Arm's tests configure it.
        ArmVerifier2026_8 = "arm-verifier-2026.8",
    }
}

impl Profile {
    /// What a version's own text permits.
    #[must_use]
    pub const fn of_version(version: Version) -> Profile {
        match version {
            Version::V1_0 => Profile::Spec1_0,
            Version::V1_1 => Profile::Spec1_1Draft,
        }
    }

    /// One of the texts, not the exact answer and not the verifier.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Profile::Spec1_0 | Profile::SpecSeed202503 | Profile::Spec1_1Draft)
    }

    /// Source: `docs/spec/tosa.md §6.3`.
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
    /// What is to be said of one element. Source: `docs/spec/tosa.md §6.2`.
    pub enum Verdict {
        /// The exact result (any NaN where it is NaN).
        Exact = "exact",
        /// Permitted by the text and accepted by Arm's verifier.
        Allowed = "allowed",
        /// Permitted by the text, rejected by Arm's verifier.
        AllowedByTextOnly = "allowed-by-text-only",
        /// Accepted by Arm's verifier, not permitted by the text.
        AllowedByVerifierOnly = "allowed-by-verifier-only",
        /// Neither.
        Violation = "violation",
        /// The specification makes no requirement.
        Unpredictable = "unpredictable",
    }
}

impl Verdict {
    /// Of an output that is not the exact one.
    const fn of_inexact(text: bool, verifier: bool) -> Verdict {
        match (text, verifier) {
            (true, true) => Verdict::Allowed,
            (true, false) => Verdict::AllowedByTextOnly,
            (false, true) => Verdict::AllowedByVerifierOnly,
            (false, false) => Verdict::Violation,
        }
    }
}
