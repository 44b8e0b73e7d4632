//! Clause for one value, where several clauses apply to a pair of types.
//!
//! A [`CastSpec`] cites the clause for most values of the pair. The table has the other clauses: rounding, range,
//! infinities, NaN.

use crate::exact::{Exact, decode, encode};
use crate::policy::{CastSpec, Condition};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matter {
    Nan,
    Infinite,
    OutOfRange,
    Rounded,
}

/// Columns: clause in a [`CastSpec`], subject, clause for that subject.
const TABLE: &[(&str, Matter, &str)] = &[
    (SATURATE, Matter::Rounded, "ONNX Cast, to nearest even; docs/spec/onnx.md §4.6"),
    (SATURATE, Matter::Nan, "ONNX Cast, NaN; docs/spec/onnx.md §4.6, §4.9"),
    (ONNX_FLOAT, Matter::Rounded, "ONNX Cast, to nearest even; docs/spec/onnx.md §4.3"),
    (ONNX_FLOAT, Matter::OutOfRange, "ONNX Cast, overflow; docs/spec/onnx.md §4.3"),
    (ONNX_FLOAT, Matter::Nan, "ONNX Cast, NaN; docs/spec/onnx.md §4.9"),
    (E8M0, Matter::Rounded, "ONNX Cast, round_mode; docs/spec/onnx.md §4.7"),
    (IEEE, Matter::Rounded, "IEEE 754-2019 §4.3, §5.4; docs/interfaces.md §2"),
    (IEEE, Matter::OutOfRange, "IEEE 754-2019 §7.4; docs/interfaces.md §2"),
    (IEEE, Matter::Infinite, "IEEE 754-2019 §6.1; docs/interfaces.md §2"),
    (IEEE, Matter::Nan, "IEEE 754-2019 §6.2; docs/interfaces.md §2"),
];

pub(super) const SATURATE: &str = "ONNX Cast, saturate table; docs/spec/onnx.md §4.6";
pub(super) const ONNX_FLOAT: &str = "ONNX Cast; docs/spec/onnx.md §4.3";
pub(super) const E8M0: &str = "ONNX Cast, float8e8m0 table; docs/spec/onnx.md §4.7";
pub(super) const IEEE: &str = "IEEE 754-2019 §5.4, §7.4; docs/interfaces.md §2";

/// Returns the clause of the specification for one value.
///
/// # Panics
/// If a type is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::{clause_of, onnx}};
/// let cast = onnx::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// let of = |value: f32| clause_of(&cast, value.to_bits().into());
/// assert!(of(465.0).contains("saturate table"));
/// assert!(of(1.03).contains("nearest even"));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn clause_of(cast: &CastSpec, code: u64) -> &'static str {
    if !TABLE.iter().any(|(clause, ..)| *clause == cast.clause) {
        return cast.clause;
    }
    let value = decode(cast.src, code);
    let matter = match value {
        Exact::Nan { .. } => Matter::Nan,
        Exact::Inf { .. } => Matter::Infinite,
        Exact::Finite { .. } => match encode(cast.dst, &cast.policy, value).condition {
            None | Some(Condition::Fraction | Condition::Any) => Matter::Rounded,
            Some(_) => Matter::OutOfRange,
        },
    };
    let row = TABLE.iter().find(|(clause, of, _)| *clause == cast.clause && *of == matter);
    row.map_or(cast.clause, |(.., clause)| clause)
}
