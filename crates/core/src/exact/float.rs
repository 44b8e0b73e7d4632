//! Conversion of a value to a floating-point code: one rounding (IEEE 754-2019 §4.3, §5.4), with gradual underflow
//! (§7.5). Infinities and NaN are in `special`. Differences between standards are fields of [`CastPolicy`].
//!
//! Magnitudes are codes without their sign bit. The next code is the next value, also across binades:
//!
//! ```text
//!   with zero       code    0      1     ..     2^t          2^t + 1     ..  max_code
//!                   value   0      2^q   ..     2^emin       2^emin + 2^q ..
//!   without zero    code   (-1)    0            1            ..              max_code
//!                   value   none   2^emin       2^emin + 2^q ..
//! ```

use super::outcome::Encoded;
use super::special::{beyond_max, nan, overflow, signed, unrepresentable, vanish};
use super::value::{Exact, leading, split};
use crate::format::FloatFormat;
use crate::policy::{CastPolicy, Condition, NanRule, Overflow, RangeTest};
use crate::round::Remainder;

/// Rounds a value once into any [`FloatFormat`].
///
/// Shapes: the code is right-aligned. The format must pass [`FloatFormat::check`].
/// Source: IEEE 754-2019 §5.4.1, §5.4.2 (conversions), §6.1 (infinities), §6.3 (the sign).
///
/// # Examples
/// ```
/// use truecast_core::{CastPolicy, DType, FloatFormat, exact::{decode, encode_float}};
/// let seven_bits = FloatFormat::ieee(3, 3)?;
/// let code = |x: f32| encode_float(&seven_bits, &CastPolicy::IEEE, decode(DType::F32, x.to_bits().into())).code;
/// assert_eq!(code(-1.5), Some(0b1_011_100));
/// assert_eq!(code(15.5), Some(0b0_111_000)); // a tie between 15 and 16, which is Inf
/// # Ok::<(), truecast_core::format::FormatError>(())
/// ```
#[inline(always)]
#[must_use]
pub fn encode_float(f: &FloatFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { .. } if policy.nan == NanRule::Error => Encoded::at(Condition::Nan, None),
        Exact::Nan { neg, payload } => {
            let condition = f.nan_code().is_none().then_some(Condition::Nan);
            Encoded { code: Some(nan(f, policy, neg, payload)), condition }
        }
        Exact::Inf { neg: true } if !f.signed && policy.inf != Overflow::Error => {
            let magnitude = || beyond_max(f, policy.inf, Condition::Negative, false);
            unrepresentable(f, policy.negative, Condition::Negative, magnitude)
        }
        Exact::Inf { neg } => beyond_max(f, policy.inf, Condition::Infinite, neg),
        Exact::Finite { neg, sig: 0, sticky: false, .. } => {
            let condition = (neg && !f.signed).then_some(Condition::NegativeZero);
            if f.has_zero {
                Encoded { code: Some(signed(f, 0, neg)), condition }
            } else {
                vanish(f, policy, condition.unwrap_or(Condition::Zero))
            }
        }
        Exact::Finite { neg: true, sig, exp, sticky } if !f.signed => {
            unrepresentable(f, policy.negative, Condition::Negative, || {
                let magnitude = encode_finite(f, policy, false, sig, exp, sticky);
                Encoded { condition: Some(Condition::Negative), ..magnitude }
            })
        }
        Exact::Finite { neg, sig, exp, sticky } => encode_finite(f, policy, neg, sig, exp, sticky),
    }
}

/// `(sig, exp, sticky)` is not zero. Source: IEEE 754-2019 §4.3.
#[inline(always)]
fn encode_finite(f: &FloatFormat, policy: &CastPolicy, neg: bool, sig: u64, exp: i32, sticky: bool) -> Encoded {
    let (floor, remainder) = truncate(f, sig, exp, sticky);
    if policy.range == RangeTest::Source
        && let Some(outside) = outside_before_rounding(f, policy, neg, floor, remainder)
    {
        return outside;
    }
    let code = floor + policy.to_float.increments(neg, floor & 1 != 0, remainder) as i128;
    if code < 0 {
        return vanish(f, policy, Condition::Underflow);
    }
    if code > f.max_code() as i128 {
        return overflow(f, policy, neg);
    }
    // Underflow is gradual (§7.5) unless the policy flushes.
    let flushed = policy.subnormals.flushes_result() && (code as u64) < f.min_normal_code();
    let condition = (floor < 0).then_some(Condition::Underflow);
    Encoded { code: Some(signed(f, if flushed { 0 } else { code as u64 }, neg)), condition }
}

/// Truncates a magnitude to a code. The remainder is a fraction of the step to the next code. The exponent has no upper
/// limit, so a code may exceed the largest code of the format. In a format without zero, a magnitude less than the
/// smallest value has the code -1.
///
/// The truncated magnitude is `n` units of `2^(emin + b - t)`, in binade `b` above the lowest: `2^t <= n < 2^(t + 1)`.
/// With zero, the subnormals come first, and the code is `n + b 2^t`.
/// Without zero, the code is `n - 2^t + b 2^t`.
#[inline(always)]
fn truncate(f: &FloatFormat, sig: u64, exp: i32, sticky: bool) -> (i128, Remainder) {
    let (t, first) = (f.man_bits as i32, leading(sig, exp));
    if !f.has_zero && first < f.emin() {
        return (-1, split(sig, exp, sticky, f.emin()).1);
    }
    let unit = (first - t).max(f.quantum());
    let (n, remainder) = split(sig, exp, sticky, unit);
    let smallest = if f.has_zero { 0 } else { 1 << t };
    (n as i128 - smallest + ((unit - f.quantum()) as i128) * (1 << t), remainder)
}

/// Result for a source outside the range before rounding, under [`RangeTest::Source`]. IEEE 754 has no such test.
#[inline(always)]
fn outside_before_rounding(
    f: &FloatFormat,
    policy: &CastPolicy,
    neg: bool,
    floor: i128,
    remainder: Remainder,
) -> Option<Encoded> {
    let max = f.max_code() as i128;
    if floor > max || (floor == max && remainder != Remainder::Zero) {
        return Some(beyond_max(f, policy.overflow, Condition::Overflow, neg));
    }
    (floor < 0).then(|| vanish(f, policy, Condition::Underflow))
}
