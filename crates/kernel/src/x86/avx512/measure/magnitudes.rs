use super::row::{ROW_F32, part};
use std::arch::x86_64::*;

/// Operand of `vrange` that selects the larger of two magnitudes.
pub(super) const MAX_MAGNITUDE: i32 = 0b10_11;
const MIN_MAGNITUDE: i32 = 0b10_10;

/// Extreme magnitudes of rows of `N` bytes. Magnitudes are the bits of f32 or f64 without the sign. Their order as
/// integers is the order of the numbers.
pub(super) struct Magnitudes<const N: usize>([__m512i; 2]);

impl<const N: usize> Magnitudes<N> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(all: f64) -> Self {
        Magnitudes(if N == ROW_F32 {
            [_mm512_castps_si512(_mm512_set1_ps(all as f32)), _mm512_setzero_si512()]
        } else {
            [_mm512_castpd_si512(_mm512_set1_pd(all)); 2]
        })
    }

    /// Lowers each minimum to the magnitude in the row. Unless `MASKED`, a NaN may spoil a minimum. With `MASKED`, the
    /// function takes longer.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn lower<const MASKED: bool>(&mut self, row: &[u8; N]) {
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

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn plus(self, number: i32) -> Self {
        Magnitudes(self.0.map(|bits| {
            if N == ROW_F32 {
                _mm512_add_epi32(bits, _mm512_set1_epi32(number))
            } else {
                _mm512_add_epi64(bits, _mm512_set1_epi64(number.into()))
            }
        }))
    }

    /// Raises each maximum to the magnitude in the row. A NaN may spoil a maximum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn raise(&mut self, row: &[u8; N]) {
        for (i, max) in self.0.iter_mut().take(N / 64).enumerate() {
            let bits = part(row, i);
            *max = if N == ROW_F32 { max_f32(*max, bits) } else { max_f64(*max, bits) };
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn least(self) -> f64 {
        if N == ROW_F32 {
            f32::from_bits(_mm512_reduce_min_epu32(self.0[0])) as f64
        } else {
            f64::from_bits(_mm512_reduce_min_epu64(_mm512_min_epu64(self.0[0], self.0[1])))
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn greatest(self) -> f64 {
        if N == ROW_F32 {
            f32::from_bits(_mm512_reduce_max_epu32(self.0[0])) as f64
        } else {
            f64::from_bits(_mm512_reduce_max_epu64(_mm512_max_epu64(self.0[0], self.0[1])))
        }
    }
}

/// Least nonzero magnitude of rows, and the number of zeros.
pub(super) struct Nonzero<const N: usize> {
    /// Least magnitude minus 1, in bits. Zero minus 1 wraps around to the largest number, so a zero never is the least.
    pub smallest: Magnitudes<N>,
    /// Number of zeros that each element position has seen, negated.
    minus_zeros: [__m512i; 2],
}

impl<const N: usize> Nonzero<N> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new() -> Self {
        Nonzero { smallest: Magnitudes::new(f64::INFINITY).plus(-1), minus_zeros: [_mm512_setzero_si512(); 2] }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn see(&mut self, row: &[u8; N]) {
        // An index is used. A loop over zipped iterators would not be unrolled and would keep the accumulators in
        // memory.
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
    pub fn zeros(&self) -> u64 {
        if N == ROW_F32 {
            (-i64::from(_mm512_reduce_add_epi32(self.minus_zeros[0]))) as u64
        } else {
            (-_mm512_reduce_add_epi64(_mm512_add_epi64(self.minus_zeros[0], self.minus_zeros[1]))) as u64
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
