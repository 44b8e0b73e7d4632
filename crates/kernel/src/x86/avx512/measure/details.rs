//! Counts of pairs with a result that is small, not finite or out of range.

use super::row::{below, bits, differ_in_sign, equal, nan, negative};
use super::{padded, padding};
use crate::level::Avx512;
use crate::measure::found::{ByteCodes, Small, Special};
use crate::measure::limits::Range;
use crate::x86::{Block, load};
use std::arch::x86_64::*;

/// Counts pairs whose result is zero or below `min_normal`. The values of a row take `X` and `Y` bytes. If not
/// `MASKED`, all values are finite.
pub(crate) fn small_results<const X: usize, const Y: usize, const MASKED: bool>(
    _: Avx512,
    x: &[u8],
    y: &[u8],
    min_normal: f64,
) -> Small {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<X>(), y.as_chunks::<Y>());
    // SAFETY: the token proves that the features were detected.
    let rows = |x, y| unsafe { small_rows::<X, Y, MASKED>(x, y, min_normal) };
    let mut small = rows(xs, ys).and(rows(&[padded(x_rest)], &[padded(y_rest)]));
    small.zeros -= padding::<X>(x_rest);
    small
}

#[target_feature(enable = "popcnt,avx512f,avx512dq")]
fn small_rows<const X: usize, const Y: usize, const MASKED: bool>(
    x: &[[u8; X]],
    y: &[[u8; Y]],
    min_normal: f64,
) -> Small {
    // Zero must be below the limit, so the limit is at least the smallest subnormal.
    let limit = bits::<Y>(min_normal).max(1);
    let mut all = Small::default();
    for (x, y) in x.iter().zip(y) {
        let small = below(y, limit);
        if small == 0 {
            continue;
        }
        let zero = below(y, 1);
        let from_number = if MASKED { zero & !nan(x) } else { zero };
        let zero_x = below(x, 1);
        all.flushed += (from_number & !zero_x).count_ones() as u64;
        all.signs += (from_number & differ_in_sign(x, y)).count_ones() as u64;
        all.subnormal += (small & !zero).count_ones() as u64;
        all.zeros += (zero & zero_x).count_ones() as u64;
    }
    all
}

/// Counts pairs whose result is zero or below the smallest normal value. Sources are codes, 64 of which take `X` bytes.
/// Results are codes of a byte.
pub(crate) fn small_codes<const X: usize>(_: Avx512, codes: &ByteCodes, x: &[u8], y: &[u8]) -> Small {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<X>(), y.as_chunks::<64>());
    // SAFETY: the token proves that the features were detected.
    let groups = |x, y| unsafe { small_groups::<X>(codes, x, y) };
    let mut small = groups(xs, ys);
    if !y_rest.is_empty() {
        small = small.and(groups(&[padded(x_rest)], &[padded(y_rest)]));
        small.zeros -= 64 - y_rest.len() as u64;
    }
    small
}

#[target_feature(enable = "popcnt,avx512f,avx512bw,avx512dq")]
fn small_groups<const X: usize>(codes: &ByteCodes, x: &[[u8; X]], y: &[Block]) -> Small {
    let (magnitude, min_normal) = (_mm512_set1_epi8(i8::MAX), _mm512_set1_epi8(codes.min_normal as i8));
    let mut all = Small::default();
    for (x, y) in x.iter().zip(y) {
        let y = load(y);
        let small = _mm512_cmplt_epu8_mask(_mm512_and_si512(y, magnitude), min_normal);
        if small == 0 {
            continue;
        }
        let zero = _mm512_testn_epi8_mask(y, magnitude);
        let (mut zero_x, mut negative_x) = (0, 0);
        for (i, part) in x.as_chunks::<64>().0.iter().enumerate() {
            let part = load(part);
            let [zeros, signs] = match X {
                128 => [_mm512_testn_epi16_mask(part, _mm512_set1_epi16(i16::MAX)), _mm512_movepi16_mask(part)]
                    .map(u64::from),
                _ => [_mm512_testn_epi32_mask(part, _mm512_set1_epi32(i32::MAX)), _mm512_movepi32_mask(part)]
                    .map(u64::from),
            };
            zero_x |= zeros << (i * 64 * 64 / X);
            negative_x |= signs << (i * 64 * 64 / X);
        }
        all.flushed += (zero & !zero_x).count_ones() as u64;
        all.signs += (zero & (negative_x ^ _mm512_movepi8_mask(y))).count_ones() as u64;
        all.subnormal += (small & !zero).count_ones() as u64;
        all.zeros += (zero & zero_x).count_ones() as u64;
    }
    all
}

/// Counts pairs with a value that is not finite or is beyond the range. The values of a row take `X` and `Y` bytes.
pub(crate) fn specials<const X: usize, const Y: usize>(_: Avx512, x: &[u8], y: &[u8], range: &Range) -> Special {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<X>(), y.as_chunks::<Y>());
    // SAFETY: the token proves that the features were detected.
    let rows = |x, y| unsafe { special_rows::<X, Y>(x, y, range) };
    rows(xs, ys).and(rows(&[padded(x_rest)], &[padded(y_rest)]))
}

#[target_feature(enable = "popcnt,avx512f,avx512dq")]
fn special_rows<const X: usize, const Y: usize>(x: &[[u8; X]], y: &[[u8; Y]], range: &Range) -> Special {
    let infinity = (bits::<X>(f64::INFINITY), bits::<Y>(f64::INFINITY));
    // If `over` is NaN, no number is out of range, and Inf is not either. The limit is then one more than the bits of
    // Inf.
    let over = range.over.map(|over| if over.is_nan() { infinity.0 + 1 } else { bits::<X>(over) });
    let usual = over[0].min(over[1]).min(infinity.0);
    let mut all = Special::default();
    let count = |mask: u16| mask.count_ones() as u64;
    for (x, y) in x.iter().zip(y) {
        let (usual_x, finite_y) = (below(x, usual), below(y, infinity.1));
        if usual_x & finite_y == u16::MAX {
            continue;
        }
        let finite_x = if usual == infinity.0 { usual_x } else { below(x, infinity.0) };
        let mut nan_x = 0;
        if finite_x & finite_y != u16::MAX {
            nan_x = nan(x);
            let nan_y = nan(y);
            let (inf_x, inf_y) = (!(finite_x | nan_x), !(finite_y | nan_y));
            let same = (nan_x & nan_y) | (inf_x & inf_y & !differ_in_sign(x, y));
            let not_finite = !(finite_x & finite_y);
            all.nan_in += count(nan_x);
            all.nan_out += count(nan_y);
            all.inf_in += count(inf_x);
            all.inf_out += count(inf_y);
            all.to_nan += count(nan_y & !nan_x);
            all.to_inf += count(inf_y & finite_x);
            all.not_finite += count(not_finite);
            all.not_finite_inexact += count(not_finite & !same);
        }
        if usual_x != u16::MAX {
            let beyond = match over {
                [same, also] if same == also && same == usual => !usual_x,
                _ => {
                    let negative = negative(x);
                    (negative & !below(x, over[1])) | (!negative & !below(x, over[0]))
                }
            } & !nan_x;
            all.beyond += count(beyond);
            all.at_an_end += count(beyond & (equal(y, range.ends[0]) | equal(y, range.ends[1])));
        }
    }
    all
}
