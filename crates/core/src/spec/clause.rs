//! Clause for one value. A [`CastSpec`] cites one clause for a pair of types; the table has the clauses for rounding,
//! range, infinities and NaN, where the specification has separate ones.

use crate::exact::{Exact, decode, encode};
use crate::policy::{CastSpec, Condition};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Nan,
    Infinite,
    OutOfRange,
    Rounded,
}

struct Detail {
    /// [`CastSpec::clause`] of the pair.
    cited: &'static str,
    subject: Subject,
    clause: &'static str,
}

const fn detail(cited: &'static str, subject: Subject, clause: &'static str) -> Detail {
    Detail { cited, subject, clause }
}

const DETAILS: &[Detail] = &[
    detail(SATURATE, Subject::Rounded, "ONNX Cast, to nearest even; docs/spec/onnx.md §4.6"),
    detail(SATURATE, Subject::Nan, "ONNX Cast, NaN; docs/spec/onnx.md §4.6, §4.9"),
    detail(ONNX_FLOAT, Subject::Rounded, "ONNX Cast, to nearest even; docs/spec/onnx.md §4.3"),
    detail(ONNX_FLOAT, Subject::OutOfRange, "ONNX Cast, overflow; docs/spec/onnx.md §4.3"),
    detail(ONNX_FLOAT, Subject::Nan, "ONNX Cast, NaN; docs/spec/onnx.md §4.9"),
    detail(E8M0, Subject::Rounded, "ONNX Cast, round_mode; docs/spec/onnx.md §4.7"),
    detail(IEEE, Subject::Rounded, "IEEE 754-2019 §4.3, §5.4; docs/interfaces.md §2"),
    detail(IEEE, Subject::OutOfRange, "IEEE 754-2019 §7.4; docs/interfaces.md §2"),
    detail(IEEE, Subject::Infinite, "IEEE 754-2019 §6.1; docs/interfaces.md §2"),
    detail(IEEE, Subject::Nan, "IEEE 754-2019 §6.2; docs/interfaces.md §2"),
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
/// let clause = |value: f32| clause_of(&cast, value.to_bits().into());
/// assert!(clause(465.0).contains("saturate table"));
/// assert!(clause(1.03).contains("nearest even"));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn clause_of(cast: &CastSpec, code: u64) -> &'static str {
    if !DETAILS.iter().any(|detail| detail.cited == cast.clause) {
        return cast.clause;
    }
    let value = decode(cast.src, code);
    let subject = match value {
        Exact::Nan { .. } => Subject::Nan,
        Exact::Inf { .. } => Subject::Infinite,
        Exact::Finite { .. } => match encode(cast.dst, &cast.policy, value).condition {
            None | Some(Condition::Fraction | Condition::Any) => Subject::Rounded,
            // Also a sign or a zero that f8e8m0 lacks.
            Some(_) => Subject::OutOfRange,
        },
    };
    let found = DETAILS.iter().find(|detail| detail.cited == cast.clause && detail.subject == subject);
    found.map_or(cast.clause, |detail| detail.clause)
}
