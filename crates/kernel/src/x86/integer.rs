//! Floats to integers that are truncated and wrap (`docs/kernels.md §4.16`), by the conversion instructions.
//!
//! They give one fixed value, a lone sign bit, for whatever they have no room for. Where that is larger than the integer
//! wanted, so are the units of what they have no room for, and both leave zeros in its bits; else elements with that result
//! are made of their significands.

use super::blocks::{Blocks, Kernel, Numbers};
use super::fused::{load_hub, low_parts, source};
use super::{even_dwords, load};
use crate::lane::F64_INF;
use crate::level::Avx512;
use crate::stage::Stage;
use std::arch::x86_64::*;

/// The code of a NaN, and the bits of a code, both of the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncate {
    pub nan: u64,
    pub mask: u64,
}

/// The stage from a float (of [`source`]: exact ones and f64) to an integer of `dst_bytes`.
pub(crate) fn stage(token: Avx512, source: u8, numbers: Truncate, dst_bytes: usize) -> Option<Box<dyn Stage>> {
    macro_rules! from {
        ($($name:ident)*) => {
            match (source, dst_bytes, numbers.nan) {
                $(
                    (source::$name, 1, 0) => Box::new(Blocks::<_, 1>(Truncates::<{ source::$name }, false>(numbers), token)) as Box<dyn Stage>,
                    (source::$name, 1, _) => Box::new(Blocks::<_, 1>(Truncates::<{ source::$name }, true>(numbers), token)),
                    (source::$name, 2, 0) => Box::new(Blocks::<_, 2>(Truncates::<{ source::$name }, false>(numbers), token)),
                    (source::$name, 2, _) => Box::new(Blocks::<_, 2>(Truncates::<{ source::$name }, true>(numbers), token)),
                    (source::$name, 4, _) => Box::new(Blocks::<_, 4>(Truncates::<{ source::$name }, true>(numbers), token)),
                    (source::$name, 8, _) => Box::new(Blocks::<_, 8>(Truncates::<{ source::$name }, true>(numbers), token)),
                )*
                _ => return None,
            }
        };
    }
    Some(from!(F32 BF16 F16 F64))
}

/// `NAN`: that of a NaN is not 0, which is what its conversion leaves in 16 bits.
#[derive(Debug)]
struct Truncates<const SOURCE: u8, const NAN: bool>(Truncate);

impl<const SOURCE: u8, const NAN: bool, const BYTES: usize> Numbers<BYTES> for Truncates<SOURCE, NAN> {
    type Kernel = InRegisters<SOURCE, BYTES, NAN>;
    const PACKS: bool = BYTES == 1;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn kernel(&self) -> InRegisters<SOURCE, BYTES, NAN> {
        let Truncate { nan, mask } = self.0;
        InRegisters {
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

struct InRegisters<const SOURCE: u8, const BYTES: usize, const NAN: bool> {
    nan_32: __m512i,
    nan_64: __m512i,
    mask: __m512i,
}

impl<const SOURCE: u8, const BYTES: usize, const NAN: bool> Kernel<BYTES> for InRegisters<SOURCE, BYTES, NAN> {
    const SRC_BITS: usize = 8 * source::bytes(SOURCE);
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; BYTES] {
        let mut results = [_mm512_setzero_si512(); BYTES];
        if BYTES < 8 {
            let mut wide = [_mm512_setzero_si512(); 4];
            for (wide, sixteen) in wide.iter_mut().zip(source.chunks_exact(16 * source::bytes(SOURCE))) {
                *wide = self.sixteen(sixteen);
            }
            results = low_parts::<BYTES>(wide);
        } else {
            let (pairs, _) = results.as_chunks_mut::<2>();
            for (pair, sixteen) in pairs.iter_mut().zip(source.chunks_exact(16 * source::bytes(SOURCE))) {
                *pair = as_f64::<SOURCE>(sixteen).map(|eight| self.eight(eight));
            }
        }
        for result in &mut results {
            *result = _mm512_and_si512(*result, self.mask);
        }
        results
    }
}

impl<const SOURCE: u8, const BYTES: usize, const NAN: bool> InRegisters<SOURCE, BYTES, NAN> {
    /// 16 elements as integers of 32 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    fn sixteen(&self, source: &[u8]) -> __m512i {
        if SOURCE != source::F64 {
            let value = _mm512_castsi512_ps(load_hub::<SOURCE>(source));
            let int = _mm512_cvttps_epi32(value);
            // 16 bits of what has no room are zeros if it is a bf16, and 8 bits of any.
            if !(BYTES == 4 || BYTES == 2 && SOURCE == source::F32) {
                let nan = if NAN { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value) } else { 0 };
                return _mm512_mask_mov_epi32(int, nan, self.nan_32);
            }
            if _mm512_cmpeq_epi32_mask(int, _mm512_set1_epi32(i32::MIN)) == 0 {
                return int;
            }
        }
        let [low, high] = as_f64::<SOURCE>(source).map(|eight| self.eight(eight));
        even_dwords(low, high)
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

/// 16 elements as f64. What is subnormal in f32 truncates to 0, also if it is read as 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn as_f64<const SOURCE: u8>(source: &[u8]) -> [__m512i; 2] {
    if SOURCE == source::F64 {
        let (eights, _) = source.as_chunks();
        return [load(&eights[0]), load(&eights[1])];
    }
    let hub = load_hub::<SOURCE>(source);
    [_mm512_castsi512_si256(hub), _mm512_extracti64x4_epi64::<1>(hub)]
        .map(|eight| _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_castsi256_ps(eight))))
}
