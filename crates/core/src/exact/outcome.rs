//! The result of a conversion: a code, a code that a standard leaves open, or a refusal.

use super::decode::decode_float;
use super::value::Exact;
use crate::format::F64;
use crate::policy::{Condition, Undefined};
use core::cmp::Ordering;

/// Result of one conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The one right code.
    Defined(u64),
    /// The specification leaves the result open; `code` is the documented choice.
    Undefined {
        /// The documented code.
        code: u64,
        /// The clause that leaves the result open.
        reason: &'static str,
    },
    /// An `error` policy refuses the value.
    Refused {
        /// Property of the value that the policy refuses.
        condition: Condition,
    },
}

impl Outcome {
    /// Returns the code, unless the cast was refused.
    #[must_use]
    pub const fn code(self) -> Option<u64> {
        match self {
            Outcome::Defined(code) | Outcome::Undefined { code, .. } => Some(code),
            Outcome::Refused { .. } => None,
        }
    }
}

/// Result of encoding a value: code or refusal, and the condition that a standard may leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The code; `None` if an `error` policy refuses the value. A refused value always has a condition.
    pub code: Option<u64>,
    /// Special property of the value for this destination, such as overflow.
    pub condition: Option<Condition>,
}

impl Encoded {
    pub(super) const fn plain(code: u64) -> Self {
        Self { code: Some(code), condition: None }
    }

    pub(super) const fn at(condition: Condition, code: Option<u64>) -> Self {
        Self { code, condition: Some(condition) }
    }

    /// Returns the outcome under a standard that leaves the conditions in `undefined` open.
    #[inline]
    #[must_use]
    pub fn outcome(self, undefined: &[Undefined]) -> Outcome {
        let Some(code) = self.code else {
            return Outcome::Refused { condition: self.condition.expect("what is refused has a reason") };
        };
        match undefined.iter().find(|u| u.condition == Condition::Any || self.condition == Some(u.condition)) {
            Some(u) => Outcome::Undefined { code, reason: u.reason },
            None => Outcome::Defined(code),
        }
    }
}

/// Reason of the [`Condition::Between`] whose interval contains the source's magnitude.
#[inline]
pub(super) fn open_between(undefined: &[Undefined], source: impl Fn() -> Exact) -> Option<&'static str> {
    undefined.iter().find_map(|open| match open.condition {
        Condition::Between { above, below } => {
            let magnitude = match source() {
                Exact::Nan { .. } => return None,
                Exact::Inf { .. } => Exact::Inf { neg: false },
                Exact::Finite { sig, exp, sticky, .. } => Exact::Finite { neg: false, sig, exp, sticky },
            };
            let is = |order, bound| magnitude.cmp_value(decode_float(&F64, bound)) == order;
            (is(Ordering::Greater, above) && is(Ordering::Less, below)).then_some(open.reason)
        }
        _ => None,
    })
}
