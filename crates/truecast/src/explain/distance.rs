//! Distances between values: in steps of a format, to the midpoint, and from a parsed text.

use super::element::Decoded;
use std::cmp::Ordering;
use truecast_core::Exact;
use truecast_core::literal::Ratio;

/// Returns `|(value - a) / (b - a)|`; `None` if the quotient is not finite.
pub(super) fn steps_between(a: Exact, b: Exact, value: Exact) -> Option<f64> {
    let steps = quotient(difference(value, a)?, difference(b, a)?)?;
    Some(steps.abs()).filter(|steps| steps.is_finite())
}

/// Nearest f64 to `a / b`. In rare cases the quotient is rounded twice.
fn quotient(a: Exact, b: Exact) -> Option<f64> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, sticky }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) =
        (a, b)
    else {
        return None;
    };
    // `sticky` sets the last bit, so that the remainder affects the rounding to f64.
    let magnitude = scaled((asig | u64::from(sticky)) as f64 / bsig as f64, ae - be);
    Some(if an == bn { magnitude } else { -magnitude })
}

/// `a - b`: exact, or the leading 64 bits with `sticky`.
fn difference(a: Exact, b: Exact) -> Option<Exact> {
    Ratio::from_exact(a)?.minus(b)
}

/// `x * 2^exp`. Two factors, because `2^exp` may overflow or underflow.
fn scaled(x: f64, exp: i32) -> f64 {
    x * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2)
}

/// Rounding error of a parsed number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundingError {
    /// Number minus element: exact, or the leading 64 bits with `sticky`.
    pub value: Exact,
    /// The error in ulps of the element, rounded to f64.
    pub ulps: f64,
}

/// Returns the rounding error of a number: `typed` minus the element `read` to which it was rounded. An ulp is the distance
/// from `read` to its neighbor on the side of `typed`. `None` if `read` is not finite or has no such neighbor.
///
/// # Examples
/// ```
/// use truecast_core::{DType, decimal::to_decimal, literal::ratio};
/// use truecast::explain::{explain, rounding_error};
/// let read = explain(DType::F32, 0.1f32.to_bits().into(), DType::F16).source;
/// let error = rounding_error(&ratio("0.1").unwrap(), &read).unwrap();
/// assert!(to_decimal(error.value).starts_with("-0.0000000014901161193847656249"));
/// assert_eq!(error.ulps, 0.2);
/// ```
#[must_use]
pub fn rounding_error(typed: &Ratio, read: &Decoded) -> Option<RoundingError> {
    let [previous, next] = read.adjacent();
    let value = typed.minus(read.value)?;
    let toward = if matches!(value, Exact::Finite { neg: true, .. }) { previous } else { next }?;
    let ulps = quotient(value, difference(toward.value, read.value)?)?.abs();
    ulps.is_finite().then_some(RoundingError { value, ulps })
}

pub(super) fn same(a: Exact, b: Exact) -> bool {
    let inexact = matches!(a, Exact::Finite { sticky: true, .. }) || matches!(b, Exact::Finite { sticky: true, .. });
    !inexact && a.cmp_value(b) == Ordering::Equal
}

/// Midpoint of two neighbors. Their distance must be one unit in the last place of `a` or of `b`.
pub(super) fn middle(a: Exact, b: Exact) -> Option<Exact> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, .. }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) = (a, b)
    else {
        return None;
    };
    // The exponent field of a zero has no meaning.
    let common = if asig == 0 {
        be
    } else if bsig == 0 {
        ae
    } else {
        ae.min(be)
    };
    let on_grid = |neg: bool, sig: u64, exp: i32| {
        let magnitude = if sig == 0 { 0 } else { (sig as i128) << (exp - common) };
        if neg { -magnitude } else { magnitude }
    };
    let sum = on_grid(an, asig, ae) + on_grid(bn, bsig, be);
    let sig = u64::try_from(sum.unsigned_abs()).ok()?;
    Some(Exact::Finite { neg: sum < 0, sig, exp: common - 1, sticky: false })
}
