//! The first pass of measuring over a tile, `crate::measure::sums`, for AVX-512: the same sums in the same order.
//!
//! Values are f32 or f64, a row of 16 of them in 64 or 128 bytes; both are f64 in a register, in two halves of a row.
//!
//! A product of two f32 values is exact in f64, so that it makes no difference whether it is fused with the addition to a
//! sum. All others are rounded before they are added, as everywhere.

use super::{Block, load, load_f64, store_f64};
use crate::level::Avx512;
use crate::measure::sums::{Seen, Sums, suspect_above};
use std::arch::x86_64::*;

/// Two halves of a row, or of 16 accumulators.
type Halves = [__m512d; 2];

/// Bytes of a row of f32 values.
const ROW_F32: usize = 64;

/// Rows between two looks at whether a relative error exceeds the largest.
const ROWS: usize = 8;

/// Adds whole rows of `n` elements whose values take `X` and `Y` bytes a row, and returns how many elements that were.
pub(crate) fn add<const X: usize, const Y: usize, const MASKED: bool>(
    _: Avx512,
    x: &[u8],
    y: &[u8],
    n: usize,
    sums: &mut Sums,
) -> (usize, Seen) {
    // SAFETY: the token proves that the features were detected.
    let seen = unsafe { rows::<X, Y, MASKED>(x.as_chunks().0, y.as_chunks().0, sums) };
    (n / 16 * 16, seen)
}

#[target_feature(enable = "avx512f,avx512dq")]
fn rows<const X: usize, const Y: usize, const MASKED: bool>(x: &[[u8; X]], y: &[[u8; Y]], sums: &mut Sums) -> Seen {
    let [mut noise, mut signal, mut image, mut product] =
        [&sums.noise, &sums.signal, &sums.image, &sums.product].map(|lanes| accumulators(lanes));
    let (mut inexact, mut max_abs) = (_mm512_setzero_si512(), [_mm512_setzero_pd(); 2]);
    let (mut smallest, mut largest) = (Magnitudes::<Y>::new(f64::INFINITY), Magnitudes::<X>::new(0.0));
    let mut limit = _mm512_set1_pd(suspect_above(sums.max_rel));
    for (x, y) in x.chunks(ROWS).zip(y.chunks(ROWS)) {
        // Bit 63 is set where an error was above the limit.
        let mut suspects = _mm512_setzero_si512();
        for (x, y) in x.iter().zip(y) {
            smallest.lower(y);
            largest.raise(x);
            let (mut xs, mut ys) = (values(x), values(y));
            if MASKED {
                mask_out(&mut xs, &mut ys);
            }
            let mut short = [_mm512_setzero_pd(); 2];
            for i in 0..2 {
                let (x, y) = (xs[i], ys[i]);
                let e = _mm512_sub_pd(y, x);
                let ee = _mm512_mul_pd(e, e);
                noise[i] = _mm512_add_pd(noise[i], ee);
                signal[i] = add_product::<X, X>(signal[i], x, x);
                image[i] = add_product::<Y, Y>(image[i], y, y);
                product[i] = add_product::<X, Y>(product[i], x, y);
                max_abs[i] = _mm512_range_pd::<LARGER_MAGNITUDE>(max_abs[i], e);
                // How far an error stays below the limit: negative above it. Of f32 values in squares, which cannot
                // overflow nor vanish.
                short[i] = if X == ROW_F32 && Y == ROW_F32 {
                    let x = _mm512_mul_pd(limit, x);
                    _mm512_fmsub_pd(x, x, ee)
                } else {
                    _mm512_fmsub_pd(limit, _mm512_abs_pd(x), _mm512_abs_pd(e))
                };
                if X != ROW_F32 || Y != ROW_F32 || MASKED {
                    let differs = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(e, _mm512_setzero_pd());
                    inexact = _mm512_mask_add_epi64(inexact, differs, inexact, _mm512_set1_epi64(1));
                }
            }
            if X == ROW_F32 && Y == ROW_F32 && !MASKED {
                let (x, y) = (_mm512_castsi512_ps(part(x, 0)), _mm512_castsi512_ps(part(y, 0)));
                let differs = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, y);
                inexact = _mm512_mask_add_epi32(inexact, differs, inexact, _mm512_set1_epi32(1));
            }
            let [low, high] = short.map(|v| _mm512_castpd_si512(v));
            suspects = _mm512_ternarylogic_epi64::<OR>(suspects, low, high);
        }
        if _mm512_movepi64_mask(suspects) != 0 {
            sums.max_rel = raised::<X, Y, MASKED>(sums.max_rel, x, y);
            limit = _mm512_set1_pd(suspect_above(sums.max_rel));
        }
    }
    keep(&mut sums.noise, noise);
    keep(&mut sums.signal, signal);
    keep(&mut sums.image, image);
    keep(&mut sums.product, product);
    let inexact = match X == ROW_F32 && Y == ROW_F32 && !MASKED {
        true => _mm512_reduce_add_epi32(inexact) as u64,
        false => _mm512_reduce_add_epi64(inexact) as u64,
    };
    let max_abs = _mm512_reduce_max_pd(_mm512_max_pd(max_abs[0], max_abs[1]));
    Seen { inexact, max_abs, smallest: smallest.least(), largest: largest.greatest() }
}

/// As [`add`], of values that stand for themselves: only the signal is added.
pub(crate) fn add_values<const V: usize, const MASKED: bool>(
    _: Avx512,
    values: &[u8],
    n: usize,
    sums: &mut Sums,
) -> (usize, Seen) {
    // SAFETY: the token proves that the features were detected.
    let seen = unsafe { value_rows::<V, MASKED>(values.as_chunks().0, sums) };
    (n / 16 * 16, seen)
}

#[target_feature(enable = "avx512f,avx512dq")]
fn value_rows<const V: usize, const MASKED: bool>(rows: &[[u8; V]], sums: &mut Sums) -> Seen {
    let mut signal = accumulators(&sums.signal);
    let mut smallest = Magnitudes::<V>::new(f64::INFINITY);
    for row in rows {
        smallest.lower(row);
        let (mut x, mut y) = (values(row), values(row));
        if MASKED {
            mask_out(&mut x, &mut y);
        }
        for i in 0..2 {
            signal[i] = add_product::<V, V>(signal[i], x[i], x[i]);
        }
    }
    keep(&mut sums.signal, signal);
    Seen { smallest: smallest.least(), ..Seen::NOTHING }
}

/// Three operands joined bit by bit.
const OR: i32 = 0b1111_1110;
/// Of `vrange`: the operand of the larger magnitude, without its sign.
const LARGER_MAGNITUDE: i32 = 0b10_11;

/// The largest relative error, given that of what came before `x` and `y`.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq")]
fn raised<const X: usize, const Y: usize, const MASKED: bool>(max: f64, x: &[[u8; X]], y: &[[u8; Y]]) -> f64 {
    let mut max = max;
    for (x, y) in x.iter().zip(y) {
        let (mut xs, mut ys) = (values(x), values(y));
        if MASKED {
            mask_out(&mut xs, &mut ys);
        }
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
fn accumulators(lanes: &[f64; 16]) -> Halves {
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

/// The f32 or f64 in the `i`-th 64 bytes of a row.
#[inline]
#[target_feature(enable = "avx512f")]
fn part<const N: usize>(row: &[u8; N], i: usize) -> __m512i {
    let parts: &[Block] = row.as_chunks().0;
    load(&parts[i])
}

/// The values of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn values<const N: usize>(row: &[u8; N]) -> Halves {
    if N == ROW_F32 {
        let row = _mm512_castsi512_ps(part(row, 0));
        [_mm512_cvtps_pd(_mm512_castps512_ps256(row)), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(row))]
    } else {
        [_mm512_castsi512_pd(part(row, 0)), _mm512_castsi512_pd(part(row, 1))]
    }
}

/// Zeros for the pairs that are not both finite.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mask_out(xs: &mut Halves, ys: &mut Halves) {
    /// Of `vfpclass`: a quiet NaN, an infinity, a signalling NaN.
    const NOT_FINITE: i32 = 0b1001_1001;
    for (x, y) in xs.iter_mut().zip(ys) {
        let out = _mm512_fpclass_pd_mask::<NOT_FINITE>(*x) | _mm512_fpclass_pd_mask::<NOT_FINITE>(*y);
        (*x, *y) = (_mm512_maskz_mov_pd(!out, *x), _mm512_maskz_mov_pd(!out, *y));
    }
}

/// `sum + a * b`, of values that take `A` and `B` bytes a row.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_product<const A: usize, const B: usize>(sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
    if A == ROW_F32 && B == ROW_F32 { _mm512_fmadd_pd(a, b, sum) } else { _mm512_add_pd(sum, _mm512_mul_pd(a, b)) }
}

/// Extreme magnitudes of rows of `N` bytes, in the bits of f32 or f64 without the sign, whose order is that of the
/// numbers; NaN is above all of them.
struct Magnitudes<const N: usize>([__m512i; 2]);

impl<const N: usize> Magnitudes<N> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(all: f64) -> Self {
        Magnitudes(match N == ROW_F32 {
            true => [_mm512_castps_si512(_mm512_set1_ps(all as f32)), _mm512_setzero_si512()],
            false => [_mm512_castpd_si512(_mm512_set1_pd(all)); 2],
        })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lower(&mut self, row: &[u8; N]) {
        let (f32_bits, f64_bits) = (_mm512_set1_epi32(i32::MAX), _mm512_set1_epi64(i64::MAX));
        let [low, high] = &mut self.0;
        if N == ROW_F32 {
            *low = _mm512_min_epu32(*low, _mm512_and_si512(part(row, 0), f32_bits));
        } else {
            *low = _mm512_min_epu64(*low, _mm512_and_si512(part(row, 0), f64_bits));
            *high = _mm512_min_epu64(*high, _mm512_and_si512(part(row, 1), f64_bits));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn raise(&mut self, row: &[u8; N]) {
        let (f32_bits, f64_bits) = (_mm512_set1_epi32(i32::MAX), _mm512_set1_epi64(i64::MAX));
        let [low, high] = &mut self.0;
        if N == ROW_F32 {
            *low = _mm512_max_epu32(*low, _mm512_and_si512(part(row, 0), f32_bits));
        } else {
            *low = _mm512_max_epu64(*low, _mm512_and_si512(part(row, 0), f64_bits));
            *high = _mm512_max_epu64(*high, _mm512_and_si512(part(row, 1), f64_bits));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn least(self) -> f64 {
        match N == ROW_F32 {
            true => f32::from_bits(_mm512_reduce_min_epu32(self.0[0])) as f64,
            false => f64::from_bits(_mm512_reduce_min_epu64(_mm512_min_epu64(self.0[0], self.0[1]))),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn greatest(self) -> f64 {
        match N == ROW_F32 {
            true => f32::from_bits(_mm512_reduce_max_epu32(self.0[0])) as f64,
            false => f64::from_bits(_mm512_reduce_max_epu64(_mm512_max_epu64(self.0[0], self.0[1]))),
        }
    }
}
