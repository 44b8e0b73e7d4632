//! Set of results that a standard permits, for checks of other implementations.
//!
//! The open cases come from [`crate::policy::Undefined`]. No standard is named here.

use crate::dtype::DType;
use crate::exact::{Exact, Outcome, cast_one, decode};
use crate::policy::{Accepted, CastPolicy, CastSpec, Condition};
use crate::spec::clause_of;
use crate::text::{encode_number, parse_one, print_one, read};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Permitted results for one source code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permitted {
    /// Every code.
    Any,
    /// The listed codes, the documented code first; empty if an `error` policy refuses the value.
    Codes(Vec<u64>),
    /// Every text that reads back to the source under nearest even. The field is the documented text; `None` if an
    /// `error` policy refuses the value.
    ReadsBack(Option<String>),
}

/// Comparison of NaN codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum NanComparison {
    /// If one NaN code is permitted, every NaN code is permitted: no specification fixes sign or payload.
    #[default]
    Class,
    /// Bit for bit, by the NaN rule (`ARCHITECTURE.md §8`).
    Bits,
}

impl NanComparison {
    /// True if two codes are equal.
    #[must_use]
    pub fn are_equal(self, dtype: DType, a: u64, b: u64) -> bool {
        a == b || self == NanComparison::Class && is_nan(dtype, a) && is_nan(dtype, b)
    }
}

/// Judgment of a result: right, open or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The result is the only permitted one.
    Right,
    /// The standard leaves the result open, and this result is accepted.
    Open {
        /// The clause that leaves the result open.
        reason: &'static str,
    },
    /// The result is not permitted.
    Wrong {
        /// The permitted results.
        permitted: Permitted,
        /// Clause of the specification.
        clause: &'static str,
    },
}

/// Returns the permitted results for a code, and the clause that leaves the result open, if any.
///
/// # Panics
/// Where [`cast_one`] panics.
///
/// # Examples
/// ```
/// use truecast_core::{permitted::{Permitted, permitted}, spec::onnx::Cast, DType};
/// let cast = Cast::to(DType::I4).resolve(DType::F32)?;
/// // 2.5 is cut off, rounded to the even neighbor, or away from zero: the specification does not say.
/// assert_eq!(permitted(&cast, 2.5f32.to_bits().into()).0, Permitted::Codes(vec![2, 3]));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn permitted(spec: &CastSpec, code: u64) -> (Permitted, Option<&'static str>) {
    match cast_one(spec, code) {
        Outcome::Defined(right) => (Permitted::Codes(vec![right]), None),
        Outcome::Refused { .. } => (Permitted::Codes(Vec::new()), None),
        Outcome::Undefined { code: documented, reason } => {
            // Rows with the same reason accept the same results.
            let set = match spec.undefined.iter().find(|row| row.reason == reason).map(|row| row.accepted) {
                Some(Accepted::Under(changes)) => {
                    let mut codes = vec![documented];
                    for &change in changes {
                        let other = CastSpec { policy: spec.policy.with(change), ..*spec };
                        codes.extend(cast_one(&other, code).code().filter(|c| !codes.contains(c)));
                    }
                    Permitted::Codes(codes)
                }
                _ => Permitted::Any,
            };
            (set, Some(reason))
        }
    }
}

/// Checks whether one result is permitted.
///
/// # Panics
/// Where [`cast_one`] panics.
///
/// # Examples
/// ```
/// use truecast_core::{permitted::{check_code, NanComparison, Verdict}, spec::onnx::Cast, DType};
/// let cast = Cast::to(DType::F8E5M2).resolve(DType::F32)?;
/// let nan = f32::NAN.to_bits().into();
/// assert_eq!(check_code(&cast, nan, 0x7f, NanComparison::Class), Verdict::Right);
/// assert!(matches!(check_code(&cast, nan, 0x7f, NanComparison::Bits), Verdict::Wrong { .. })); // 7e by the NaN rule
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn check_code(spec: &CastSpec, input: u64, actual: u64, nan: NanComparison) -> Verdict {
    let (permitted, open) = permitted(spec, input);
    match compare(spec, permitted, open, actual, nan) {
        Verdict::Wrong { permitted, .. } if open.is_none() => {
            Verdict::Wrong { permitted, clause: clause_of(spec, input) }
        }
        verdict => verdict,
    }
}

fn compare(
    spec: &CastSpec,
    permitted: Permitted,
    open: Option<&'static str>,
    actual: u64,
    nan: NanComparison,
) -> Verdict {
    let fits = match &permitted {
        Permitted::Any => true,
        Permitted::ReadsBack(_) => false, // applies to texts, not to codes
        Permitted::Codes(codes) => codes.iter().any(|&code| nan.are_equal(spec.dst, code, actual)),
    };
    match (fits, open) {
        (true, None) => Verdict::Right,
        (true, Some(reason)) => Verdict::Open { reason },
        (false, reason) => Verdict::Wrong { permitted, clause: reason.unwrap_or(spec.clause) },
    }
}

/// Checks whether the result of reading a text is permitted. If the text is not a number, every result is permitted.
///
/// Source: `docs/spec/onnx.md §4.11` U7.
///
/// # Panics
/// If the destination is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{permitted::{check_parsed, NanComparison, Verdict}, spec::onnx::Cast, DType};
/// let cast = Cast::to(DType::F16).resolve(DType::String)?;
/// assert_eq!(check_parsed(&cast, b"65519.99", 0x7bff, NanComparison::Class), Verdict::Right);
/// assert!(matches!(check_parsed(&cast, b"sixteen", 0, NanComparison::Class), Verdict::Open { .. }));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn check_parsed(spec: &CastSpec, text: &[u8], actual: u64, nan: NanComparison) -> Verdict {
    match parse_one(spec, text) {
        Err(_) => Verdict::Open { reason: NOT_A_NUMBER },
        // The standard leaves the case open, so every result is permitted (U8, U10).
        Ok(Outcome::Undefined { reason, .. }) => Verdict::Open { reason },
        Ok(outcome) => compare(spec, Permitted::Codes(outcome.code().into_iter().collect()), None, actual, nan),
    }
}

const NOT_A_NUMBER: &str = "text that is not a number; docs/spec/onnx.md §4.11 U7";

/// Checks whether a text of an element is permitted. The standard leaves the text open, but reading the text must give
/// the element.
///
/// Source: `docs/spec/onnx.md §4.11` U9.
///
/// # Panics
/// If the source is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{permitted::{check_printed, Verdict}, spec::onnx::Cast, DType};
/// let cast = Cast::to(DType::String).resolve(DType::F32)?;
/// let third = (1f32 / 3.0).to_bits().into();
/// assert!(matches!(check_printed(&cast, third, b"0.333333343"), Verdict::Open { .. }));
/// assert!(matches!(check_printed(&cast, third, b"0.333333"), Verdict::Wrong { .. }));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn check_printed(spec: &CastSpec, code: u64, actual: &[u8]) -> Verdict {
    let documented = print_one(spec, code).ok();
    let reason = spec.undefined.iter().find(|row| row.condition == Condition::Any).map(|row| row.reason);
    if documented.as_deref().is_some_and(|text| text.as_bytes() == actual) {
        return reason.map_or(Verdict::Right, |reason| Verdict::Open { reason });
    }
    let reads =
        |back: Option<u64>| back == Some(code) || back.is_some_and(|b| is_nan(spec.src, b) && is_nan(spec.src, code));
    let back = read(spec.src, actual).ok().and_then(|n| encode_number(spec.src, &CastPolicy::IEEE, &n).code);
    match reason.filter(|_| documented.is_some() && reads(back)) {
        Some(reason) => Verdict::Open { reason },
        None => Verdict::Wrong { permitted: Permitted::ReadsBack(documented), clause: reason.unwrap_or(spec.clause) },
    }
}

fn is_nan(dtype: DType, code: u64) -> bool {
    dtype.is_numeric() && matches!(decode(dtype, code), Exact::Nan { .. })
}
