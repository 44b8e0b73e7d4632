//! The passes of measuring, `crate::measure::sums` and `crate::measure::details`, for AVX-512: the same counts, and the
//! same sums in the same order.
//!
//! Values are f32 or f64, a row of 16 of them in 64 or 128 bytes; both are f64 in a register, in two halves of a row.
//!
//! A product of two f32 values is exact in f64, so that it makes no difference whether it is fused with the addition to a
//! sum. All others are rounded before they are added, as everywhere.

use crate::level::Avx512;
use crate::measure::found::{Next, Seen, Small, Special, Sums, suspect_above};
use crate::measure::limits::Range;
use crate::measure::value::Value;
use crate::x86::{Block, load, load_f64, prefetch, store_f64};
use std::arch::x86_64::*;

/// Two halves of a row, or of 16 accumulators.
type Halves = [__m512d; 2];

/// Bytes of a row of f32 values.
const ROW_F32: usize = 64;

/// Rows between two looks at whether a relative error exceeds the largest.
const ROWS: usize = 8;

/// Adds pairs whose values take `X` and `Y` bytes a row. If `MASKED`, only those that are both finite take part; else all
/// do, and the answer is `None`, with nothing added, if some value may not be finite.
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

/// As [`add`], of values that stand for themselves: only the signal is added.
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

/// A row that ends in zeros, which add nothing to sums.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut row = [0; N];
    row[..bytes.len()].copy_from_slice(bytes);
    row
}

/// The zeros that end a padded row.
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
        // Bit 63 is set where an error was above the limit.
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
                // How far an error is below the limit. Of f32 values in squares, which cannot overflow nor vanish.
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
            // Not fused: each addition would wait longer for the one before.
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

/// Counts results that are zero or below `min_normal`, of pairs whose values take `X` and `Y` bytes a row. If not
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
    // At least the smallest subnormal, so that zero is below it.
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

/// Counts what is not finite or lies beyond the range, of pairs whose values take `X` and `Y` bytes a row.
pub(crate) fn specials<const X: usize, const Y: usize>(_: Avx512, x: &[u8], y: &[u8], range: &Range) -> Special {
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<X>(), y.as_chunks::<Y>());
    // SAFETY: the token proves that the features were detected.
    let rows = |x, y| unsafe { special_rows::<X, Y>(x, y, range) };
    rows(xs, ys).and(rows(&[padded(x_rest)], &[padded(y_rest)]))
}

#[target_feature(enable = "popcnt,avx512f,avx512dq")]
fn special_rows<const X: usize, const Y: usize>(x: &[[u8; X]], y: &[[u8; Y]], range: &Range) -> Special {
    let infinity = (bits::<X>(f64::INFINITY), bits::<Y>(f64::INFINITY));
    // Without a policy nothing but NaN is above these.
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

/// The least value of a row's width that is not below a number, as bits.
fn bits<const N: usize>(number: f64) -> u64 {
    if N == ROW_F32 { u32::at_least(number).to_bits() as u64 } else { number.to_bits() }
}

/// Elements of a row whose bits without the sign are below a limit.
#[inline]
#[target_feature(enable = "avx512f")]
fn below<const N: usize>(row: &[u8; N], limit: u64) -> u16 {
    if N == ROW_F32 {
        let magnitudes = _mm512_and_si512(part(row, 0), _mm512_set1_epi32(i32::MAX));
        _mm512_cmplt_epu32_mask(magnitudes, _mm512_set1_epi32(limit as i32))
    } else {
        u16::from_le_bytes([0, 1].map(|i| {
            let magnitudes = _mm512_and_si512(part(row, i), _mm512_set1_epi64(i64::MAX));
            _mm512_cmplt_epu64_mask(magnitudes, _mm512_set1_epi64(limit as i64))
        }))
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn nan<const N: usize>(row: &[u8; N]) -> u16 {
    !below(row, bits::<N>(f64::INFINITY) + 1)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn equal<const N: usize>(row: &[u8; N], number: f64) -> u16 {
    if N == ROW_F32 {
        _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(_mm512_castsi512_ps(part(row, 0)), _mm512_set1_ps(number as f32))
    } else {
        u16::from_le_bytes(
            [0, 1].map(|i| _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(_mm512_castsi512_pd(part(row, i)), _mm512_set1_pd(number))),
        )
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn negative<const N: usize>(row: &[u8; N]) -> u16 {
    if N == ROW_F32 {
        _mm512_movepi32_mask(part(row, 0))
    } else {
        u16::from_le_bytes([0, 1].map(|i| _mm512_movepi64_mask(part(row, i))))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn differ_in_sign<const X: usize, const Y: usize>(x: &[u8; X], y: &[u8; Y]) -> u16 {
    if X == ROW_F32 && Y == ROW_F32 {
        _mm512_movepi32_mask(_mm512_xor_si512(part(x, 0), part(y, 0)))
    } else {
        negative(x) ^ negative(y)
    }
}

/// Three operands joined bit by bit.
const OR: i32 = 0b1111_1110;
/// Of `vrange`: the larger of two magnitudes, and the smaller.
const MAX_MAGNITUDE: i32 = 0b10_11;
const MIN_MAGNITUDE: i32 = 0b10_10;
/// Of `vfpclass`: a quiet NaN, an infinity of either sign, a signalling NaN.
const NOT_FINITE: i32 = 0b1001_1001;

/// The largest relative error, given that of what came before `x` and `y`.
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
fn values<const N: usize>(parts: [__m512i; 2]) -> Halves {
    if N == ROW_F32 {
        let row = _mm512_castsi512_ps(parts[0]);
        [_mm512_cvtps_pd(_mm512_castps512_ps256(row)), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(row))]
    } else {
        parts.map(|part| _mm512_castsi512_pd(part))
    }
}

/// The 64 bytes, or twice 64, of a row.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts<const N: usize>(row: &[u8; N]) -> [__m512i; 2] {
    [part(row, 0), if N == ROW_F32 { _mm512_setzero_si512() } else { part(row, 1) }]
}

/// The values of two rows.
struct Pair {
    xs: Halves,
    ys: Halves,
    /// Elements whose values differ.
    differ: u16,
}

/// The values of two rows; if `MASKED`, zeros for the pairs that are not both finite.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn pair<const X: usize, const Y: usize, const MASKED: bool>(x: &[u8; X], y: &[u8; Y]) -> Pair {
    let (mut x, mut y) = (parts(x), parts(y));
    if X == ROW_F32 && Y == ROW_F32 {
        if MASKED {
            // Zero times what is not finite is NaN.
            let [a, b] = [x[0], y[0]].map(|v| _mm512_mul_ps(_mm512_castsi512_ps(v), _mm512_setzero_ps()));
            let finite = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(a, b);
            (x[0], y[0]) = (_mm512_maskz_mov_epi32(finite, x[0]), _mm512_maskz_mov_epi32(finite, y[0]));
        }
        let [x32, y32] = [x[0], y[0]].map(|v| _mm512_castsi512_ps(v));
        let differ = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x32, y32);
        return Pair { xs: values::<X>(x), ys: values::<Y>(y), differ };
    }
    let (mut xs, mut ys) = (values::<X>(x), values::<Y>(y));
    let mut differ = [0; 2];
    for ((x, y), differ) in xs.iter_mut().zip(&mut ys).zip(&mut differ) {
        if MASKED {
            let [a, b] = [*x, *y].map(|v| _mm512_mul_pd(v, _mm512_setzero_pd()));
            let finite = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(a, b);
            (*x, *y) = (_mm512_maskz_mov_pd(finite, *x), _mm512_maskz_mov_pd(finite, *y));
        }
        *differ = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(*x, *y);
    }
    Pair { xs, ys, differ: u16::from_le_bytes(differ) }
}

/// `sum + a * b`, of values that take `A` and `B` bytes a row.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_product<const A: usize, const B: usize>(sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
    if A == ROW_F32 && B == ROW_F32 { _mm512_fmadd_pd(a, b, sum) } else { _mm512_add_pd(sum, _mm512_mul_pd(a, b)) }
}

/// Extreme magnitudes of rows of `N` bytes: the bits of f32 or f64 without the sign, whose order is that of the numbers.
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

    /// NaN may spoil the minimum unless it is `MASKED`, which takes longer.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn lower<const MASKED: bool>(&mut self, row: &[u8; N]) {
        for (i, min) in self.0.iter_mut().take(N / 64).enumerate() {
            let bits = part(row, i);
            *min = match (N == ROW_F32, MASKED) {
                (true, false) => min_f32(*min, bits),
                (true, true) => _mm512_min_epu32(*min, _mm512_and_si512(bits, _mm512_set1_epi32(i32::MAX))),
                (false, false) => min_f64(*min, bits),
                (false, true) => _mm512_min_epu64(*min, _mm512_and_si512(bits, _mm512_set1_epi64(i64::MAX))),
            };
        }
    }

    /// Each and a number, as bits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn plus(self, number: i32) -> Self {
        Magnitudes(self.0.map(|bits| match N == ROW_F32 {
            true => _mm512_add_epi32(bits, _mm512_set1_epi32(number)),
            false => _mm512_add_epi64(bits, _mm512_set1_epi64(number.into())),
        }))
    }

    /// NaN may spoil the maximum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn raise(&mut self, row: &[u8; N]) {
        for (i, max) in self.0.iter_mut().take(N / 64).enumerate() {
            let bits = part(row, i);
            *max = if N == ROW_F32 { max_f32(*max, bits) } else { max_f64(*max, bits) };
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

/// The least magnitude of rows that is not zero, and how many are zero.
struct Nonzero<const N: usize> {
    /// Less one: zero less one is the largest number of all.
    smallest: Magnitudes<N>,
    /// Zeros of each lane, negated.
    minus_zeros: [__m512i; 2],
}

impl<const N: usize> Nonzero<N> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new() -> Self {
        Nonzero { smallest: Magnitudes::new(f64::INFINITY).plus(-1), minus_zeros: [_mm512_setzero_si512(); 2] }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn see(&mut self, row: &[u8; N]) {
        // By index: iterators that end together are not unrolled, and what they go through stays in memory.
        for i in 0..const { N / 64 } {
            let (bits, min, zeros) = (part(row, i), &mut self.smallest.0[i], &mut self.minus_zeros[i]);
            if N == ROW_F32 {
                let (minus_one, sign) = (_mm512_set1_epi32(-1), _mm512_set1_epi32(i32::MAX));
                let is_zero = _mm512_testn_epi32_mask(bits, sign);
                *zeros = _mm512_mask_add_epi32(*zeros, is_zero, *zeros, minus_one);
                *min = _mm512_min_epu32(*min, _mm512_add_epi32(_mm512_and_si512(bits, sign), minus_one));
            } else {
                let (minus_one, sign) = (_mm512_set1_epi64(-1), _mm512_set1_epi64(i64::MAX));
                let is_zero = _mm512_testn_epi64_mask(bits, sign);
                *zeros = _mm512_mask_add_epi64(*zeros, is_zero, *zeros, minus_one);
                *min = _mm512_min_epu64(*min, _mm512_add_epi64(_mm512_and_si512(bits, sign), minus_one));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zeros(&self) -> u64 {
        match N == ROW_F32 {
            true => (-i64::from(_mm512_reduce_add_epi32(self.minus_zeros[0]))) as u64,
            false => (-_mm512_reduce_add_epi64(_mm512_add_epi64(self.minus_zeros[0], self.minus_zeros[1]))) as u64,
        }
    }
}

macro_rules! magnitude {
    ($($name:ident, $range:ident::<$which:ident>, $from:ident, $to:ident;)*) => {$(
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $name(a: __m512i, b: __m512i) -> __m512i {
            $to($range::<$which>($from(a), $from(b)))
        }
    )*};
}

magnitude! {
    min_f32, _mm512_range_ps::<MIN_MAGNITUDE>, _mm512_castsi512_ps, _mm512_castps_si512;
    max_f32, _mm512_range_ps::<MAX_MAGNITUDE>, _mm512_castsi512_ps, _mm512_castps_si512;
    min_f64, _mm512_range_pd::<MIN_MAGNITUDE>, _mm512_castsi512_pd, _mm512_castpd_si512;
    max_f64, _mm512_range_pd::<MAX_MAGNITUDE>, _mm512_castsi512_pd, _mm512_castpd_si512;
}
