//! Conversion of a value to an integer (IEEE 754-2019 §5.8; out of range, §7.2).

use super::outcome::Encoded;
use super::value::{Exact, leading, split};
use crate::format::{F32, IntFormat};
use crate::policy::{CastPolicy, Condition, IntOverflow, NanToInt};
use crate::round::{Remainder, Rounding};

pub(super) fn encode_int(f: IntFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { .. } => Encoded::at(
            Condition::Nan,
            match policy.nan_to_int {
                NanToInt::Zero => Some(0),
                NanToInt::Saturate => Some(f.code(f.max())),
                NanToInt::Indefinite => Some(indefinite(f)),
                NanToInt::TopBit => Some(1 << (f.bits - 1)),
                NanToInt::Error => None,
            },
        ),
        Exact::Inf { neg } => Encoded::at(
            Condition::Infinite,
            match policy.int_overflow {
                IntOverflow::Wrap => Some(0),
                IntOverflow::Saturate => Some(int_bound(f, neg)),
                IntOverflow::SaturateToF32 => Some(int_bound_in_f32(f, neg)),
                IntOverflow::Indefinite => Some(indefinite(f)),
                IntOverflow::Error => None,
            },
        ),
        Exact::Finite { neg, sig, exp, sticky } => encode_whole(f, policy, neg, SplitMagnitude::new(sig, exp, sticky)),
    }
}

pub(crate) fn encode_whole(f: IntFormat, policy: &CastPolicy, neg: bool, whole: SplitMagnitude) -> Encoded {
    let Integral { low, magnitude, exact } = whole.round(neg, policy.to_int);
    let limit = if neg { f.min().unsigned_abs() } else { f.max() as u128 };
    let code = f.code(if neg { -(low as i128) } else { low as i128 });
    if magnitude.is_some_and(|m| m <= limit) {
        return Encoded { code: Some(code), condition: (!exact).then_some(Condition::Fraction) };
    }
    Encoded::at(
        Condition::Overflow,
        match policy.int_overflow {
            IntOverflow::Wrap => Some(code),
            IntOverflow::Saturate => Some(int_bound(f, neg)),
            IntOverflow::SaturateToF32 => Some(int_bound_in_f32(f, neg)),
            IntOverflow::Indefinite => Some(indefinite(f)),
            IntOverflow::Error => None,
        },
    )
}

const fn indefinite(f: IntFormat) -> u64 {
    f.code(if f.signed { f.min() } else { f.max() })
}

pub(super) const fn int_bound(f: IntFormat, neg: bool) -> u64 {
    f.code(if neg { f.min() } else { f.max() })
}

/// [`int_bound`], rounded toward zero to the precision of f32.
const fn int_bound_in_f32(f: IntFormat, neg: bool) -> u64 {
    let bound = if neg { f.min() } else { f.max() };
    let magnitude = bound.unsigned_abs();
    let dropped = (u128::BITS - magnitude.leading_zeros()).saturating_sub(F32.precision());
    let kept = (magnitude >> dropped << dropped) as i128;
    f.code(if neg { -kept } else { kept })
}

/// Magnitude split at the point.
pub(crate) struct SplitMagnitude {
    /// Part before the point, modulo 2^64.
    pub low: u64,
    /// True if the part before the point is below 2^64.
    pub fits: bool,
    /// Part after the point.
    pub remainder: Remainder,
}

impl SplitMagnitude {
    pub(super) fn new(sig: u64, exp: i32, sticky: bool) -> SplitMagnitude {
        if exp >= 0 {
            let low = if exp < 64 { sig << exp } else { 0 };
            let fits = sig == 0 || leading(sig, exp) < 64;
            return SplitMagnitude {
                low,
                fits,
                remainder: if sticky { Remainder::BelowHalf } else { Remainder::Zero },
            };
        }
        let (low, remainder) = split(sig, exp, sticky, 0);
        SplitMagnitude { low, fits: true, remainder }
    }

    /// Source: IEEE 754-2019 §4.3, §5.8.
    pub(super) fn round(self, neg: bool, rounding: Rounding) -> Integral {
        let SplitMagnitude { low, fits, remainder } = self;
        let more = rounding.increments(neg, low & 1 == 1, remainder) as u64;
        Integral {
            low: low.wrapping_add(more),
            magnitude: fits.then_some(low as u128 + more as u128),
            exact: remainder == Remainder::Zero,
        }
    }
}

pub(super) struct Integral {
    /// Magnitude modulo 2^64.
    low: u64,
    /// Magnitude; `None` above 2^64.
    pub(super) magnitude: Option<u128>,
    exact: bool,
}
