//! How far values lie from each other: in steps of a format, to the middle, from what was read.

use super::element::Decoded;
use std::cmp::Ordering;
use truecast_core::Exact;

/// How many steps of the size `b - a` lie between `a` and the value.
pub(super) fn steps_between(a: Exact, b: Exact, value: Exact) -> Option<f64> {
    let steps = difference(value, a)? / difference(b, a)?;
    Some(steps.abs()).filter(|steps| steps.is_finite())
}

/// `a - b`, to the nearest f64, or nearly: exact before that where the exponents are near each other, which they are
/// wherever leading digits cancel.
fn difference(a: Exact, b: Exact) -> Option<f64> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, .. }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) = (a, b)
    else {
        return None;
    };
    let (ae, be) = (if asig == 0 { be } else { ae }, if bsig == 0 { ae } else { be });
    let signed = |neg: bool, magnitude: f64| if neg { -magnitude } else { magnitude };
    let common = ae.min(be);
    if ae.max(be) - common > 60 {
        return Some(signed(an, scaled(asig as f64, ae)) - signed(bn, scaled(bsig as f64, be)));
    }
    let on_grid = |neg: bool, sig: u64, exp: i32| {
        let magnitude = i128::from(sig) << (exp - common);
        if neg { -magnitude } else { magnitude }
    };
    Some(scaled((on_grid(an, asig, ae) - on_grid(bn, bsig, be)) as f64, common))
}

/// `x * 2^exp`, in two steps, because either alone may leave the range.
fn scaled(x: f64, exp: i32) -> f64 {
    x * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2)
}

/// By how much a number was rounded when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundingError {
    /// The number without what was read, to about three digits.
    pub value: f64,
    /// Its size in steps between values of the type at this place.
    pub ulps: f64,
}

/// By how much `typed` differs from the element that it was rounded to; `None` if that is no number, or the last one.
///
/// # Examples
/// ```
/// use truecast::{DType, decimal::parse, explain::{explain, rounding_error}};
/// let read = explain(DType::F32, 0.1f32.to_bits().into(), DType::F16).source;
/// let error = rounding_error(parse("0.1")?, &read).unwrap();
/// assert!(error.value < -1.4e-9 && error.ulps < 0.5);
/// # Ok::<(), truecast::decimal::ParseDecimalError>(())
/// ```
#[must_use]
pub fn rounding_error(typed: Exact, read: &Decoded) -> Option<RoundingError> {
    let [previous, next] = read.adjacent();
    let toward = if typed.cmp_value(read.value) == Ordering::Less { previous } else { next }?;
    let value = difference(typed, read.value)?;
    let ulps = (value / difference(toward.value, read.value)?).abs();
    (value.is_finite() && ulps.is_finite()).then_some(RoundingError { value, ulps })
}

pub(super) fn same(a: Exact, b: Exact) -> bool {
    let inexact = matches!(a, Exact::Finite { sticky: true, .. }) || matches!(b, Exact::Finite { sticky: true, .. });
    !inexact && a.cmp_value(b) == Ordering::Equal
}

/// Halfway between two neighbours of one format, which differ by one unit on the finer grid or by one on the coarser.
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
