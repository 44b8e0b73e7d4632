//! Floating-point results outside the numbers: overflow (IEEE 754-2019 §7.4), infinities (§6.1), NaN (§6.2), signs
//! (§6.3), and values that a format cannot represent.

use super::outcome::Encoded;
use crate::format::{FloatFormat, Specials};
use crate::policy::{CastPolicy, Condition, NanRule, NanSubstitute, Overflow, Unrepresentable};

/// Code of a value beyond the largest finite value after rounding. Under [`Overflow::Nonfinite`], a rounding toward
/// zero for this sign stops at the largest finite value. Source: IEEE 754-2019 §7.4.
#[inline]
pub(super) fn overflow(f: &FloatFormat, policy: &CastPolicy, neg: bool) -> Encoded {
    match policy.overflow {
        Overflow::Nonfinite | Overflow::Saturate if policy.to_float.stops_at_max(neg) => {
            Encoded::at(Condition::Overflow, Some(signed(f, f.max_code(), neg)))
        }
        rule => beyond_max(f, rule, Condition::Overflow, neg),
    }
}

pub(super) fn beyond_max(f: &FloatFormat, rule: Overflow, condition: Condition, neg: bool) -> Encoded {
    let code = match (rule, f.inf_code(), f.nan_code()) {
        (Overflow::Error, ..) => return Encoded::at(condition, None),
        (Overflow::Saturate, ..) | (_, None, None) => f.max_code(),
        (Overflow::Nonfinite | Overflow::NonfiniteAlways, Some(inf), _) => inf,
        (Overflow::Nonfinite | Overflow::NonfiniteAlways, None, Some(nan)) => nan,
    };
    Encoded::at(condition, Some(signed(f, code, neg)))
}

/// Code of zero, or of a magnitude that rounds to zero, in a format without zero. [`Unrepresentable::Magnitude`] gives
/// the smallest value.
pub(super) fn vanish(f: &FloatFormat, policy: &CastPolicy, condition: Condition) -> Encoded {
    unrepresentable(f, policy.vanishing, condition, || Encoded::at(condition, Some(0)))
}

pub(super) fn unrepresentable(
    f: &FloatFormat,
    rule: Unrepresentable,
    condition: Condition,
    magnitude: impl FnOnce() -> Encoded,
) -> Encoded {
    match rule {
        Unrepresentable::Smallest => Encoded::at(condition, Some(0)),
        Unrepresentable::Nan => Encoded::at(condition, f.nan_code()),
        Unrepresentable::Magnitude => magnitude(),
        Unrepresentable::Error => Encoded::at(condition, None),
    }
}

/// Formats without -0 lose the sign of zero.
#[inline]
pub(super) fn signed(f: &FloatFormat, magnitude: u64, neg: bool) -> u64 {
    let is_zero = f.has_zero && magnitude == 0;
    if neg && (!is_zero || f.has_negative_zero()) { magnitude | f.sign_bit() } else { magnitude }
}

/// The NaN rule (`ARCHITECTURE.md` §8). Source: IEEE 754-2019 §6.2; §6.2.3 recommends keeping the payload.
pub(super) fn nan(f: &FloatFormat, policy: &CastPolicy, neg: bool, payload: Option<u64>) -> u64 {
    let Some(canonical) = f.nan_code() else {
        return match policy.nan_substitute {
            NanSubstitute::ZeroFlipped => signed(f, 0, !neg),
            NanSubstitute::MaxSigned => signed(f, f.max_code(), neg),
            NanSubstitute::MaxPositive => f.max_code(),
            NanSubstitute::CodeZero => 0,
        };
    };
    let code = match (payload, f.specials, policy.nan) {
        (Some(bits), Specials::Ieee, NanRule::Keep) => canonical | bits >> (64 - f.man_bits),
        _ => canonical,
    };
    if neg { code | f.sign_bit() } else { code }
}
