//! Floats to integers that are truncated and wrap (`docs/kernels.md §4.16`), by the conversion instructions.
//!
//! They give one fixed value, a lone sign bit, for whatever they have no room for. Where that is larger than the integer
//! wanted, so are the units of what they have no room for, and both leave zeros in its bits; else elements with that result
//! are made of their significands.

use super::blocks::{Kernel, Params, streams};
use super::even_dwords;
use super::fused::low_parts;
use crate::numbers::F64_INF;
use crate::x86::load;
use crate::x86::pairs::both;
use crate::x86::source::{self, Source, Source512};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// The code of a NaN, and the bits of a code, both of the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncate {
    pub nan: u64,
    pub mask: u64,
}

/// Floats that are truncated.
pub(crate) trait Float: Source {
    /// Fewer bytes than this have no bit of what has no room in 32 bits: it has so many zeros at its end.
    const SAFE_BYTES: usize;
    /// 16 elements as f32; of f64, which is not converted through f32, anything.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512), as the next.
    unsafe fn as_f32(sixteen: &[u8]) -> __m512i;
    /// 16 elements as f64. What is subnormal in f32 truncates to 0, also if it is read as 0.
    ///
    /// # Safety
    /// As above.
    unsafe fn as_f64(sixteen: &[u8]) -> [__m512i; 2];
}

macro_rules! floats {
    ($($source:ident $safe:literal;)*) => {$(
        impl Float for source::$source {
            const SAFE_BYTES: usize = $safe;
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
            unsafe fn as_f32(sixteen: &[u8]) -> __m512i {
                // SAFETY: this function has the features.
                unsafe { Self::load(sixteen) }
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
            unsafe fn as_f64(sixteen: &[u8]) -> [__m512i; 2] {
                // SAFETY: this function has the features.
                let f32s = unsafe { Self::load(sixteen) };
                let halves = [_mm512_castsi512_si256(f32s), _mm512_extracti64x4_epi64::<1>(f32s)];
                both(halves, |eight| _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_castsi256_ps(eight))))
            }
        }
    )*};
}

floats! {
    F32 2;
    Bf16 4;
    F16 4;
}

impl Float for source::F64 {
    const SAFE_BYTES: usize = 0;
    #[inline]
    unsafe fn as_f32(_: &[u8]) -> __m512i {
        unreachable!("f64 is truncated as it is")
    }
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn as_f64(sixteen: &[u8]) -> [__m512i; 2] {
        let (eights, _) = sixteen.as_chunks();
        [load(&eights[0]), load(&eights[1])]
    }
}

/// `NAN`: that of a NaN is not 0, which is what its conversion leaves in 16 bits.
#[derive(Debug)]
pub(crate) struct Truncates<S, const NAN: bool>(pub Truncate, pub S);

impl<S: Float, const NAN: bool, const BYTES: usize> Params<BYTES> for Truncates<S, NAN> {
    type Kernel = Splat<S, BYTES, NAN>;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn kernel(&self) -> Splat<S, BYTES, NAN> {
        let Truncate { nan, mask } = self.0;
        Splat {
            source: PhantomData,
            nan_32: _mm512_set1_epi32(nan as i32),
            nan_64: _mm512_set1_epi64(nan as i64),
            mask: match BYTES {
                1 => _mm512_set1_epi8(mask as i8),
                2 => _mm512_set1_epi16(mask as i16),
                4 => _mm512_set1_epi32(mask as i32),
                _ => _mm512_set1_epi64(mask as i64),
            },
        }
    }
}

pub(crate) struct Splat<S, const BYTES: usize, const NAN: bool> {
    source: PhantomData<S>,
    nan_32: __m512i,
    nan_64: __m512i,
    mask: __m512i,
}

impl<S: Float, const BYTES: usize, const NAN: bool> Kernel<BYTES> for Splat<S, BYTES, NAN> {
    const SRC_BITS: usize = 8 * S::BYTES;
    const PACKS: &'static [u32] = if BYTES == 1 { &[2, 4] } else { &[] };
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; BYTES] {
        let mut results = [_mm512_setzero_si512(); BYTES];
        if BYTES < 8 {
            let mut wide = [_mm512_setzero_si512(); 4];
            for (wide, sixteen) in wide.iter_mut().zip(source.chunks_exact(16 * S::BYTES)) {
                *wide = if streams(STORES_AS) { self.sixteen::<false>(sixteen) } else { self.sixteen::<true>(sixteen) };
            }
            results = low_parts::<BYTES>(wide);
        } else {
            let (pairs, _) = results.as_chunks_mut::<2>();
            for (pair, sixteen) in pairs.iter_mut().zip(source.chunks_exact(16 * S::BYTES)) {
                // SAFETY: this function has the features.
                *pair = both(unsafe { S::as_f64(sixteen) }, |eight| self.eight(eight));
            }
        }
        for result in &mut results {
            *result = _mm512_and_si512(*result, self.mask);
        }
        results
    }
}

impl<S: Float, const BYTES: usize, const NAN: bool> Splat<S, BYTES, NAN> {
    /// 16 elements as integers of 32 bits. `RARELY`: what has no room is made apart, which is fast where a branch that is
    /// guessed wrong costs less than what it saves.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    fn sixteen<const RARELY: bool>(&self, source: &[u8]) -> __m512i {
        if S::BYTES < 8 {
            // SAFETY: this function has the features.
            let value = _mm512_castsi512_ps(unsafe { S::as_f32(source) });
            let int = _mm512_cvttps_epi32(value);
            if BYTES < S::SAFE_BYTES {
                let nan = if NAN { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value) } else { 0 };
                return _mm512_mask_mov_epi32(int, nan, self.nan_32);
            }
            let no_room = _mm512_cmpeq_epi32_mask(int, _mm512_set1_epi32(i32::MIN));
            if !RARELY {
                return self.with_all_bits(int, no_room, value);
            }
            if no_room == 0 {
                return int;
            }
        }
        // SAFETY: this function has the features.
        let [low, high] = both(unsafe { S::as_f64(source) }, |eight| self.eight(eight));
        even_dwords(low, high)
    }

    /// 16 integers of f32, of which those that have no room in 32 bits are made of their significands, from 2^31 on:
    ///
    /// ```text
    /// s eeeeeeee fffffffffffffffffffffff   ->   the lowest 32 bits of (-1)^s * 1f..f * 2^(e - 150)
    /// ```
    ///
    /// A shift by 32 or more leaves 0, which an infinity becomes too.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn with_all_bits(&self, int: __m512i, no_room: __mmask16, value: __m512) -> __m512i {
        let bits = _mm512_castps_si512(value);
        let exponent = _mm512_srli_epi32::<23>(_mm512_and_si512(bits, _mm512_set1_epi32(i32::MAX)));
        let fraction = _mm512_and_si512(bits, _mm512_set1_epi32((1 << 23) - 1));
        let significand = _mm512_or_si512(fraction, _mm512_set1_epi32(1 << 23));
        let shifted = _mm512_sllv_epi32(significand, _mm512_sub_epi32(exponent, _mm512_set1_epi32(150)));
        let signed = _mm512_mask_sub_epi32(shifted, _mm512_movepi32_mask(bits), _mm512_setzero_si512(), shifted);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(int, no_room, signed), nan, self.nan_32)
    }

    /// Eight f64 as integers of 64 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn eight(&self, bits: __m512i) -> __m512i {
        let value = _mm512_castsi512_pd(bits);
        let int = _mm512_cvttpd_epi64(value);
        if BYTES == 1 {
            let nan = if NAN { _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(value, value) } else { 0 };
            return _mm512_mask_mov_epi64(int, nan, self.nan_64);
        }
        let no_room = _mm512_cmpeq_epi64_mask(int, _mm512_set1_epi64(i64::MIN));
        if no_room == 0 {
            return int;
        }
        let magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(i64::MAX));
        let fraction = _mm512_and_si512(bits, _mm512_set1_epi64((1 << 52) - 1));
        let significand = _mm512_or_si512(fraction, _mm512_set1_epi64(1 << 52));
        let left = _mm512_sub_epi64(_mm512_srli_epi64::<52>(magnitude), _mm512_set1_epi64(1075));
        let shifted = _mm512_sllv_epi64(significand, left);
        let signed = _mm512_mask_sub_epi64(shifted, _mm512_movepi64_mask(bits), _mm512_setzero_si512(), shifted);
        let int = _mm512_mask_mov_epi64(int, no_room, signed);
        let special = _mm512_cmpge_epu64_mask(magnitude, _mm512_set1_epi64(F64_INF as i64));
        let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(value, value);
        _mm512_mask_mov_epi64(int, special, _mm512_maskz_mov_epi64(nan, self.nan_64))
    }
}
