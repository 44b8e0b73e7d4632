//! Distances between values: in steps of a format, to the midpoint, and from the text that was read.

use super::element::Decoded;
use std::cmp::Ordering;
use truecast_core::Exact;
use truecast_core::literal::Ratio;

/// Returns `|(value - a) / (b - a)|`; `None` if it is not finite.
pub(super) fn steps_between(a: Exact, b: Exact, value: Exact) -> Option<f64> {
    let steps = quotient(difference(value, a)?, difference(b, a)?)?;
    Some(steps.abs()).filter(|steps| steps.is_finite())
}

/// `a / b`, nearly rounded to the nearest f64.
fn quotient(a: Exact, b: Exact) -> Option<f64> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, sticky }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) =
        (a, b)
    else {
        return None;
    };
    // `sticky` sets the last bit, so that the rounding to f64 takes the remainder into account.
    let magnitude = scaled((asig | u64::from(sticky)) as f64 / bsig as f64, ae - be);
    Some(if an == bn { magnitude } else { -magnitude })
}

/// `a - b`: exact, or its leading 64 bits.
fn difference(a: Exact, b: Exact) -> Option<Exact> {
    Ratio::from_exact(a)?.minus(b)
}

/// `x * 2^exp`, in two steps, because one step may leave the range.
fn scaled(x: f64, exp: i32) -> f64 {
    x * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2)
}

/// Rounding error of a number that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundingError {
    /// Number minus element: exact, or its leading 64 bits with `sticky`.
    pub value: Exact,
    /// The error in ulps at this element, to the nearest f64.
    pub ulps: f64,
}

/// Returns the difference between `typed` and the element to which it was rounded. `None` if the element is not finite,
/// or has no neighbor on the side of `typed`.
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

/// Returns the midpoint of two neighbors, which differ by one unit of the finer or of the coarser of their grids.
pub(super) fn middle(a: Exact, b: Exact) -> Option<Exact> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, .. }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) = (a, b)
    else {
        return None;
    };
    // A zero has no exponent of its own.
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
