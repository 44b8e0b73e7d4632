//! Sets of codes as ranges: neighbors, NaN, and values between two bounds.

use crate::dtype::DType;
use crate::format::FloatFormat;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Distance between codes that count as neighbors. An output within one unit in the last place is at most three codes
/// away.
const REACH: i64 = 4;

pub(super) fn all_codes(dtype: DType) -> RangeInclusive<u64> {
    0..=u64::MAX >> (64 - dtype.code_bits())
}

/// Codes and the codes next to them. All are wrapped to the width of the type.
pub(super) fn neighbors(dtype: DType, centers: impl IntoIterator<Item = u64>) -> impl Iterator<Item = u64> {
    let mask = *all_codes(dtype).end();
    centers.into_iter().flat_map(move |c| (-REACH..=REACH).map(move |d| c.wrapping_add_signed(d) & mask))
}

pub(super) fn nan_codes(f: &FloatFormat) -> Vec<RangeInclusive<u64>> {
    if f.nan_code().is_none() {
        return Vec::new();
    }
    let first = f.inf_code().unwrap_or(f.max_code()) + 1;
    [0, f.sign_bit()].map(|sign| first | sign..=f.magnitude_mask() | sign).into()
}

/// Arguments from 0 to `last` at which a monotone function has values between two bounds. The bounds are included.
pub(super) fn where_monotone(last: u64, f: impl Fn(u64) -> f64, low: f64, high: f64) -> Option<RangeInclusive<u64>> {
    let rises = f(0) <= f(last);
    let start = first(last, |at| if rises { f(at) >= low } else { f(at) <= high });
    let end = first(last, |at| if rises { f(at) > high } else { f(at) < low });
    (start < end).then(|| start..=end - 1)
}

/// First argument from which `holds` stays true; `last + 1` if there is no such argument.
fn first(last: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Joins ranges. The result has the fewest ranges with the same codes, in ascending order.
pub(super) fn merged(mut ranges: Vec<RangeInclusive<u64>>) -> Vec<RangeInclusive<u64>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut all: Vec<RangeInclusive<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => all.push(range),
        }
    }
    all
}
