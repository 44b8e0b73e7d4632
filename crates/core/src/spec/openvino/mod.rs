//! OpenVINO Convert-1, by the profile `exact`: one rounding, wrap-around into integers, and saturation only in f8e8m0,
//! f4e2m1 and nf4. Reference: `docs/spec/openvino.md §6` to §9.
//!
//! Differences of released implementations are in [`differences`]. The type rule of ConvertPromoteTypes is in
//! [`crate::promote::openvino`].

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub mod differences;

use super::{Interpretation, SpecError};
use crate::dtype::{DType, Kind};
use crate::format::Specials;
use crate::policy::*;

/// Release whose rules this module implements.
pub const VERSION: &str = "2026.4";

/// Checks the version in a request.
///
/// # Errors
/// [`SpecError::Version`] for any version other than [`VERSION`].
pub fn version(version: Option<&str>) -> Result<(), SpecError> {
    match version {
        None | Some(VERSION) => Ok(()),
        Some(other) => Err(SpecError::Version { spec: "openvino", version: other.into(), known: VERSION.into() }),
    }
}

/// Source and destination types of Convert. Source: `docs/spec/openvino.md §6.2`.
pub const TYPES: [DType; 24] = {
    use DType::*;
    [
        Bool, U1, U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, F8E8M0, F4E2M1, Nf4,
        Bf16, F16, F32, F64,
    ]
};

/// Convert node.
///
/// # Examples
/// ```
/// use truecast_core::{spec::openvino::Convert, cast_one, DType, Outcome};
/// let to_u8 = Convert::to(DType::U8).resolve(DType::F32)?;
/// let outcome = cast_one(&to_u8, 300.7f32.to_bits().into());
/// assert_eq!(outcome.code(), Some(44)); // truncated, then modulo 2^8
/// assert!(matches!(outcome, Outcome::Undefined { .. })); // and flagged, because 300 is out of range
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convert {
    /// Attribute `destination_type`.
    pub to: DType,
}

impl Convert {
    /// Returns a Convert node.
    #[must_use]
    pub const fn to(to: DType) -> Self {
        Self { to }
    }

    /// Returns the value rule for a source type. Source: `docs/spec/openvino.md §6`.
    ///
    /// # Errors
    /// [`SpecError::Type`] for a type that Convert does not have, such as text.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        for dtype in [src, self.to] {
            if !TYPES.contains(&dtype) {
                let clause = "docs/spec/openvino.md §6.2";
                return Err(SpecError::Type {
                    spec: format!("openvino {VERSION} (Convert-1)"),
                    dtype,
                    clause,
                    since: None,
                });
            }
        }
        Ok(rules(src, self.to))
    }
}

const UNSPECIFIED: &str = "the operator page gives it no meaning; docs/spec/openvino.md §6.9";

const OUT_OF_RANGE: &[Undefined] = &[
    Undefined::any(Condition::Nan, UNSPECIFIED),
    Undefined::any(Condition::Infinite, UNSPECIFIED),
    Undefined::any(Condition::Overflow, UNSPECIFIED),
];
const E8M0: &[Undefined] = &[
    Undefined::any(Condition::Zero, UNSPECIFIED),
    Undefined::any(Condition::NegativeZero, UNSPECIFIED),
    Undefined::any(Condition::Negative, UNSPECIFIED),
];
const NO_NAN: &[Undefined] = &[Undefined::any(Condition::Nan, UNSPECIFIED)];

fn rules(src: DType, dst: DType) -> CastSpec {
    let ieee = CastPolicy::IEEE;
    let saturating = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..ieee };
    let (policy, undefined, clause): (_, &'static [Undefined], _) = match dst.kind() {
        _ if src == dst => (ieee, &[], "OpenVINO Convert-1; docs/spec/openvino.md §6.2"),
        Kind::Bool => (ieee, &[], "OpenVINO Convert-1; docs/spec/openvino.md §6.3"),
        Kind::Int(_) if src.is_float() => (ieee, OUT_OF_RANGE, "OpenVINO Convert-1; docs/spec/openvino.md §6.5"),
        Kind::Int(_) => (ieee, &[], "OpenVINO Convert-1; docs/spec/openvino.md §6.4"),
        Kind::Float(f) if !f.has_zero => {
            let policy =
                CastPolicy { negative: Unrepresentable::Smallest, vanishing: Unrepresentable::Smallest, ..saturating };
            (policy, E8M0, "OpenVINO Convert-1; docs/spec/openvino.md §6.7")
        }
        Kind::Float(f) if f.specials == Specials::Finite => {
            let policy = CastPolicy { nan_substitute: NanSubstitute::MaxSigned, ..saturating };
            (policy, NO_NAN, "OpenVINO Convert-1; docs/spec/openvino.md §6.8")
        }
        Kind::Book(_) => {
            let policy = CastPolicy { nan_substitute: NanSubstitute::CodeZero, ..saturating };
            (policy, NO_NAN, "OpenVINO Convert-1; docs/spec/openvino.md §6.8")
        }
        _ => (ieee, &[], "OpenVINO Convert-1; docs/spec/openvino.md §6.6"),
    };
    CastSpec { src, dst, policy, undefined, clause }
}

/// Returns the interpretation of a pair by Convert; at most one.
#[must_use]
pub fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let resolved = Convert::to(dst).resolve(src).ok();
    let answer = |cast| Interpretation { spec: "openvino", version: VERSION.into(), attributes: String::new(), cast };
    resolved.map(answer).into_iter().collect()
}
