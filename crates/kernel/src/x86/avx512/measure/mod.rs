//! The passes of `crate::measure::sums` and `crate::measure::details` for AVX-512. Counts equal those of the other
//! levels, and sums add the same terms in the same order. Sums are in this file, and counts of special values are in
//! `details`.
//!
//! A product of two f32 values is exact in f64, so it may be fused with the addition to a sum. All other products are
//! rounded before they are added, as at every level.

mod details;
mod magnitudes;
mod row;

pub(crate) use details::{small_codes, small_results, specials};

use crate::level::Avx512;
use crate::measure::found::{Next, Seen, Sums, suspect_above};
use crate::x86::{load_f64, prefetch, store_f64};
use magnitudes::{MAX_MAGNITUDE, Magnitudes, Nonzero};
use row::{Halves, Pair, ROW_F32, pair};
use std::arch::x86_64::*;

/// Number of rows between two checks for a relative error above the largest so far.
const ROWS: usize = 8;

/// Adds the pairs of rows to the sums. The values of a row take `X` and `Y` bytes. With `MASKED`, only pairs of two
/// finite values take part. Without `MASKED`, all pairs take part. If some value may then not be finite, the sums stay,
/// and the result is `None`.
pub(crate) fn add<const X: usize, const Y: usize, const MASKED: bool>(
    _: Avx512,
    x: &[u8],
    y: &[u8],
    next: [Next; 2],
    sums: &mut Sums,
) -> Option<Seen> {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks(), y.as_chunks());
    // SAFETY: the token proves that the features were detected.
    let rows = |x, y, sums: &mut Sums| unsafe { pair_rows::<X, Y, MASKED>(x, y, next, sums) };
    if x_rest.is_empty() {
        return rows(xs, ys, sums);
    }
    let mut all = *sums;
    let seen = rows(xs, ys, &mut all)?.and(rows(&[padded(x_rest)], &[padded(y_rest)], &mut all)?);
    *sums = all;
    Some(seen)
}

/// Adds only the signal, for values that the conversion keeps. `MASKED` means what it means in [`add`].
pub(crate) fn add_values<const V: usize, const MASKED: bool>(
    _: Avx512,
    values: &[u8],
    next: [Next; 2],
    sums: &mut Sums,
) -> Option<Seen> {
    let (whole, rest) = values.as_chunks();
    // SAFETY: the token proves that the features were detected.
    let rows = |values, sums: &mut Sums| unsafe { value_rows::<V, MASKED>(values, next, sums) };
    if rest.is_empty() {
        return rows(whole, sums);
    }
    let mut all = *sums;
    let mut seen = rows(whole, &mut all)?.and(rows(&[padded(rest)], &mut all)?);
    seen.zeros -= padding::<V>(rest);
    *sums = all;
    Some(seen)
}

/// Pads a row with zeros, which add nothing to sums.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut row = [0; N];
    row[..bytes.len()].copy_from_slice(bytes);
    row
}

/// Returns the number of zeros that [`padded`] appends.
fn padding<const N: usize>(bytes: &[u8]) -> u64 {
    16 - (bytes.len() * 16 / N) as u64
}

#[target_feature(enable = "popcnt,avx512f,avx512dq")]
fn pair_rows<const X: usize, const Y: usize, const MASKED: bool>(
    x: &[[u8; X]],
    y: &[[u8; Y]],
    mut next: [Next; 2],
    sums: &mut Sums,
) -> Option<Seen> {
    let [mut noise, mut signal, mut image, mut product] =
        [&sums.noise, &sums.signal, &sums.image, &sums.product].map(|lanes| halves(lanes));
    let mut max_rel = sums.max_rel;
    let (mut inexact, mut max_abs) = (0, [_mm512_setzero_pd(); 2]);
    let (mut smallest, mut largest) = (Magnitudes::<Y>::new(f64::INFINITY), Magnitudes::<X>::new(0.0));
    let mut limit = _mm512_set1_pd(suspect_above(max_rel));
    for (x, y) in x.chunks(ROWS).zip(y.chunks(ROWS)) {
        // Bit 63 of an element is set if an error of its column was above the limit.
        let mut suspects = _mm512_setzero_si512();
        for (x, y) in x.iter().zip(y) {
            next.iter_mut().for_each(|next| prefetch(next.row()));
            smallest.lower::<MASKED>(y);
            largest.raise(x);
            let Pair { xs, ys, differ } = pair::<X, Y, MASKED>(x, y);
            inexact += differ.count_ones();
            let mut below = [_mm512_setzero_pd(); 2];
            for i in 0..2 {
                let (x, y) = (xs[i], ys[i]);
                let e = _mm512_sub_pd(y, x);
                let ee = _mm512_mul_pd(e, e);
                noise[i] = _mm512_add_pd(noise[i], ee);
                signal[i] = add_product::<X, X>(signal[i], x, x);
                image[i] = add_product::<Y, Y>(image[i], y, y);
                product[i] = add_product::<X, Y>(product[i], x, y);
                max_abs[i] = _mm512_range_pd::<MAX_MAGNITUDE>(max_abs[i], e);
                // `below` is the limit minus the error. For f32, it is the difference of the squares, which can neither
                // overflow nor vanish.
                below[i] = if X == ROW_F32 && Y == ROW_F32 {
                    let x = _mm512_mul_pd(limit, x);
                    _mm512_fmsub_pd(x, x, ee)
                } else {
                    _mm512_fmsub_pd(limit, _mm512_abs_pd(x), _mm512_abs_pd(e))
                };
            }
            let [low, high] = below.map(|v| _mm512_castpd_si512(v));
            suspects = _mm512_ternarylogic_epi64::<OR>(suspects, low, high);
        }
        if _mm512_movepi64_mask(suspects) != 0 {
            max_rel = raised::<X, Y, MASKED>(max_rel, x, y);
            limit = _mm512_set1_pd(suspect_above(max_rel));
        }
    }
    let finite = are_finite(signal) && are_finite(image);
    if !MASKED && !finite {
        return None;
    }
    let all = [&mut sums.noise, &mut sums.signal, &mut sums.image, &mut sums.product];
    all.into_iter().zip([noise, signal, image, product]).for_each(|(lanes, sum)| keep(lanes, sum));
    sums.max_rel = max_rel;
    let max_abs = _mm512_reduce_max_pd(_mm512_max_pd(max_abs[0], max_abs[1]));
    let (inexact, smallest, largest) = (inexact as u64, smallest.least(), largest.greatest());
    Some(Seen { inexact, max_abs, smallest, largest, zeros: 0 })
}

#[target_feature(enable = "avx512f,avx512dq")]
fn value_rows<const V: usize, const MASKED: bool>(
    rows: &[[u8; V]],
    mut next: [Next; 2],
    sums: &mut Sums,
) -> Option<Seen> {
    let mut signal = halves(&sums.signal);
    let mut values = Nonzero::<V>::new();
    for row in rows {
        next.iter_mut().for_each(|next| prefetch(next.row()));
        values.see(row);
        let Pair { xs, .. } = pair::<V, V, MASKED>(row, row);
        for i in 0..2 {
            // Product and addition are not fused, because each addition would then wait longer for the addition before
            // it.
            signal[i] = _mm512_add_pd(signal[i], _mm512_mul_pd(xs[i], xs[i]));
        }
    }
    let finite = are_finite(signal);
    if !MASKED && !finite {
        return None;
    }
    keep(&mut sums.signal, signal);
    let (zeros, smallest) = (values.zeros(), values.smallest.plus(1).least());
    Some(Seen { smallest, zeros, ..Seen::NOTHING })
}

/// Operand of `vpternlog` that computes the OR of three vectors.
const OR: i32 = 0b1111_1110;
/// Operand of `vfpclass` that selects quiet NaN, signaling NaN and infinities of either sign.
const NOT_FINITE: i32 = 0b1001_1001;

/// Returns the largest relative error of `x`, `y` and all pairs before them. `max` is the largest relative error of the
/// pairs before.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq")]
fn raised<const X: usize, const Y: usize, const MASKED: bool>(max: f64, x: &[[u8; X]], y: &[[u8; Y]]) -> f64 {
    let mut max = max;
    for (x, y) in x.iter().zip(y) {
        let Pair { xs, ys, .. } = pair::<X, Y, MASKED>(x, y);
        for (x, y) in xs.into_iter().zip(ys) {
            let (e, x) = (_mm512_abs_pd(_mm512_sub_pd(y, x)), _mm512_abs_pd(x));
            let short = _mm512_fmsub_pd(_mm512_set1_pd(suspect_above(max)), x, e);
            let nonzero = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_pd());
            let suspects = _mm512_movepi64_mask(_mm512_castpd_si512(short)) & nonzero;
            if suspects != 0 {
                let relative = _mm512_maskz_div_pd(suspects, e, x);
                max = max.max(_mm512_reduce_max_pd(relative));
            }
        }
    }
    max
}

#[inline]
#[target_feature(enable = "avx512f")]
fn halves(lanes: &[f64; 16]) -> Halves {
    let (halves, _) = lanes.as_chunks();
    [load_f64(&halves[0]), load_f64(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn keep(lanes: &mut [f64; 16], halves: Halves) {
    for (lanes, half) in lanes.as_chunks_mut().0.iter_mut().zip(halves) {
        store_f64(lanes, half);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn are_finite([low, high]: Halves) -> bool {
    _mm512_fpclass_pd_mask::<NOT_FINITE>(low) | _mm512_fpclass_pd_mask::<NOT_FINITE>(high) == 0
}

/// Returns `sum + a * b`. The rows of `a` and `b` take `A` and `B` bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_product<const A: usize, const B: usize>(sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
    if A == ROW_F32 && B == ROW_F32 { _mm512_fmadd_pd(a, b, sum) } else { _mm512_add_pd(sum, _mm512_mul_pd(a, b)) }
}
