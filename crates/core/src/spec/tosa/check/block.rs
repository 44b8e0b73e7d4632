//! Check of one block of a block-scaled CAST. Source: `docs/spec/tosa.md §5.4`, §5.5, §6.9.

use super::super::block::{BLOCK, BlockCast, NAN_SCALE, exponent_of};
use super::Verdict;
use super::cast::{Window, is_same, max_value, ulp};
use super::codes::{all_codes, merged, nan_codes};
use crate::binary64::{exponent, pow2, value};
use crate::dtype::{DType, Kind};
use crate::exact::decode;
use crate::format::{FixedFormat, FloatFormat};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Checks a block of the output: scale and element codes.
///
/// If the scale is not permitted, every element gets the verdict of the scale.
#[must_use]
pub fn check_to_block(
    cast: &BlockCast,
    input: &[u64; BLOCK],
    scale: u8,
    actual: &[u64; BLOCK],
) -> (Verdict, [Verdict; BLOCK]) {
    let (exact_scale, exact) = cast.to_block(input);
    if exact_scale == NAN_SCALE {
        let verdict = if scale == NAN_SCALE { Verdict::Exact } else { Verdict::Allowed };
        return (verdict, [verdict; BLOCK]);
    }
    let of_scale = check_scale(exact_scale, scale);
    if of_scale == Verdict::Violation {
        return (of_scale, [of_scale; BLOCK]);
    }
    (of_scale, core::array::from_fn(|i| check_element(cast, input[i], scale, of_scale, exact[i], actual[i])))
}

/// Checks one element of a block. The scale is not NaN, and permitted with verdict `of_scale`.
fn check_element(cast: &BlockCast, input: u64, scale: u8, of_scale: Verdict, exact: u64, actual: u64) -> Verdict {
    if of_scale == Verdict::Exact && is_same(cast.element, exact, actual) {
        return Verdict::Exact;
    }
    let y = value(decode(cast.plain, input)) * pow2(-exponent_of(scale));
    match (of_scale, is_close(cast.element, y, actual)) {
        (_, false) => Verdict::Violation,
        // The element is within the draft's tolerance, but only the verifier accepts the scale.
        (Verdict::AllowedByVerifierOnly, true) => Verdict::AllowedByVerifierOnly,
        (_, true) => Verdict::Allowed,
    }
}

/// Returns the permitted codes of element `at` in the block, as ranges in ascending order.
pub fn permitted_in_block(
    cast: &BlockCast,
    input: &[u64; BLOCK],
    scale: u8,
    at: usize,
    accepts: impl Fn(Verdict) -> bool,
) -> Vec<RangeInclusive<u64>> {
    let (exact_scale, exact) = cast.to_block(input);
    let of_scale = match (exact_scale, scale) {
        (NAN_SCALE, NAN_SCALE) => Verdict::Exact,
        (NAN_SCALE, _) => Verdict::Allowed,
        _ => check_scale(exact_scale, scale),
    };
    let every = all_codes(cast.element);
    if exact_scale == NAN_SCALE || of_scale == Verdict::Violation {
        return accepts(of_scale).then_some(every).into_iter().collect();
    }
    let passes = |code: &u64| accepts(check_element(cast, input[at], scale, of_scale, exact[at], *code));
    merged(every.filter(passes).map(|code| code..=code).collect())
}

/// Checks a scale. The text permits one step of the exponent. The verifier permits one ulp, which is as large as the
/// scale: twice the exact scale, and every smaller scale.
pub(super) fn check_scale(exact: u8, actual: u8) -> Verdict {
    if actual == exact {
        return Verdict::Exact;
    }
    Verdict::of_inexact(
        actual != NAN_SCALE && actual.abs_diff(exact) <= 1,
        actual != NAN_SCALE && actual as i32 - exact as i32 <= 1,
    )
}

/// True if a code is within the draft's tolerance around `y`: one ulp, or two for e4m3. In types without Inf and NaN,
/// the bounds are clamped to the range.
fn is_close(element: DType, y: f64, actual: u64) -> bool {
    let out = value(decode(element, actual));
    match element.kind() {
        Kind::Fixed(FixedFormat { int, frac_bits }) => {
            let unit = pow2(-(frac_bits as i32));
            let (min, max) = (int.min() as f64 * unit, int.max() as f64 * unit);
            ((y - unit).clamp(min, max)..=(y + unit).clamp(min, max)).contains(&out)
        }
        Kind::Float(f) => {
            let ulps = if element == DType::F8E4M3Fn { 2.0 } else { 1.0 };
            let tolerance = ulps * ulp(&f, y);
            if f.nan_code().is_some() {
                return Window::new(&f, y, tolerance, tolerance).contains(element, actual);
            }
            let max = max_value(&f);
            ((y - tolerance).clamp(-max, max)..=(y + tolerance).clamp(-max, max)).contains(&out)
        }
        _ => unreachable!("blocks hold floats and fixed-point numbers"),
    }
}

/// Checks `actual` as the value of one element in a block.
#[must_use]
pub fn check_from_block(cast: &BlockCast, scale: u8, code: u64, actual: u64) -> Verdict {
    if is_same(cast.plain, cast.from_block(scale, code), actual) {
        return Verdict::Exact;
    }
    let Kind::Float(f) = cast.plain.kind() else { unreachable!("the plain side of a block-scaled CAST is a float") };
    let close = from_block_window(&f, cast.element, scale, code).contains(cast.plain, actual);
    Verdict::of_inexact(close, close)
}

/// Returns the permitted codes of an element's value, as ranges in ascending order.
pub fn permitted_from_block(
    cast: &BlockCast,
    scale: u8,
    code: u64,
    accepts: impl Fn(Verdict) -> bool,
) -> Vec<RangeInclusive<u64>> {
    let Kind::Float(f) = cast.plain.kind() else { unreachable!("the plain side of a block-scaled CAST is a float") };
    let exact = cast.from_block(scale, code);
    let mut all = if accepts(Verdict::Allowed) {
        from_block_window(&f, cast.element, scale, code).codes(cast.plain)
    } else {
        Vec::new()
    };
    if accepts(Verdict::Exact) {
        let is_nan = nan_codes(&f).iter().any(|range| range.contains(&exact));
        all.extend(if is_nan { nan_codes(&f) } else { vec![exact..=exact] });
    }
    merged(all)
}

fn from_block_window(f: &FloatFormat, element: DType, scale: u8, code: u64) -> Window {
    if scale == NAN_SCALE {
        return Window::new(f, f64::NAN, 0.0, 0.0);
    }
    let (element, scale) = (value(decode(element, code)), pow2(exponent_of(scale)));
    let r = element * scale;
    let error = if r == 0.0 || !r.is_finite() {
        0.0
    } else {
        let step = pow2(exponent(element).max(f.emin()) - f.man_bits as i32);
        (step * scale).max(pow2(f.emin()))
    };
    Window::new(f, r, error, error)
}
