//! Rows of 16 values. A row in memory is f32 in 64 bytes or f64 in 128 bytes; in registers it is f64 in two halves. A
//! condition on a row returns a mask with a bit for each element.

use crate::measure::value::Value;
use crate::x86::{Block, load};
use std::arch::x86_64::*;

/// The two halves of a row, or of 16 accumulators.
pub(super) type Halves = [__m512d; 2];

/// Number of bytes that 16 f32 values take.
pub(super) const ROW_F32: usize = 64;

/// Returns the bits of the least f32 or f64 that is at least `number`. A row of `N` bytes has this type.
pub(super) fn bits<const N: usize>(number: f64) -> u64 {
    if N == ROW_F32 { u32::at_least(number).to_bits() as u64 } else { number.to_bits() }
}

/// Returns the mask of the elements whose magnitude bits are below a limit.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn below<const N: usize>(row: &[u8; N], limit: u64) -> u16 {
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
pub(super) fn nan<const N: usize>(row: &[u8; N]) -> u16 {
    !below(row, bits::<N>(f64::INFINITY) + 1)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn equal<const N: usize>(row: &[u8; N], number: f64) -> u16 {
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
pub(super) fn negative<const N: usize>(row: &[u8; N]) -> u16 {
    if N == ROW_F32 {
        _mm512_movepi32_mask(part(row, 0))
    } else {
        u16::from_le_bytes([0, 1].map(|i| _mm512_movepi64_mask(part(row, i))))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn differ_in_sign<const X: usize, const Y: usize>(x: &[u8; X], y: &[u8; Y]) -> u16 {
    if X == ROW_F32 && Y == ROW_F32 {
        _mm512_movepi32_mask(_mm512_xor_si512(part(x, 0), part(y, 0)))
    } else {
        negative(x) ^ negative(y)
    }
}

/// Loads the part of a row that begins at byte `64 * i`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn part<const N: usize>(row: &[u8; N], i: usize) -> __m512i {
    let parts: &[Block] = row.as_chunks().0;
    load(&parts[i])
}

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

#[inline]
#[target_feature(enable = "avx512f")]
fn parts<const N: usize>(row: &[u8; N]) -> [__m512i; 2] {
    [part(row, 0), if N == ROW_F32 { _mm512_setzero_si512() } else { part(row, 1) }]
}

pub(super) struct Pair {
    pub xs: Halves,
    pub ys: Halves,
    /// Mask of the elements whose values differ.
    pub differ: u16,
}

/// Loads the values of two rows. With `MASKED`, a pair becomes zeros unless both values are finite.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn pair<const X: usize, const Y: usize, const MASKED: bool>(x: &[u8; X], y: &[u8; Y]) -> Pair {
    let (mut x, mut y) = (parts(x), parts(y));
    if X == ROW_F32 && Y == ROW_F32 {
        if MASKED {
            // An infinity or NaN times zero is NaN.
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
