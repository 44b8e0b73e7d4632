//! f16 by the conversion instructions, `docs/kernels.md §7`. Their rounding comes with the instruction; they neither
//! flush an f16 subnormal nor read one as zero (§5.3), quiet NaN, and keep the leading bits of its payload.

use super::{load, load_half, store_half};
use crate::level::{Avx2, Avx512};
use std::arch::x86_64::*;

/// Nearest even, whatever MXCSR says.
const NEAREST_EVEN: i32 = _MM_FROUND_TO_NEAREST_INT;
const F16_SIGN: i16 = i16::MIN;
const F16_NAN: i16 = 0x7e00;
const F32_SIGN_AND_EXPONENT: i32 = 0xff80_0000_u32 as i32;
const F32_NAN: i32 = 0x7fc0_0000;

/// f16 to f32, 16 at a time; returns how many that were. NaN keeps its payload, or is the canonical one of its sign.
pub(crate) fn decode_avx2(_: Avx2, payload: bool, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx2,f16c")]
    fn blocks<const PAYLOAD: bool>(sources: &[[u8; 32]], targets: &mut [[[u8; 32]; 2]]) {
        for (target, source) in targets.iter_mut().zip(sources) {
            let halves = load_half(source);
            for (target, half) in
                target.iter_mut().zip([_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)])
            {
                let value = _mm256_cvtph_ps(half);
                let mut bits = _mm256_castps_si256(value);
                if !PAYLOAD {
                    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
                    let sign = _mm256_and_si256(bits, _mm256_set1_epi32(F32_SIGN_AND_EXPONENT));
                    bits = _mm256_blendv_epi8(bits, _mm256_or_si256(sign, _mm256_set1_epi32(F32_NAN)), nan);
                }
                store_half(target, bits);
            }
        }
    }
    let (sources, _) = src.as_chunks();
    let (targets, _) = dst.as_chunks_mut().0.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { if payload { blocks::<true>(sources, targets) } else { blocks::<false>(sources, targets) } };
    sources.len() * 16
}

/// f32 to f16, nearest even, overflow and Inf to Inf, 64 at a time; returns how many that were.
pub(crate) fn encode_avx512(_: Avx512, payload: bool, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn blocks<const PAYLOAD: bool>(sources: &[[[u8; 64]; 4]], targets: &mut [[[u8; 32]; 4]]) {
        for (targets, sources) in targets.iter_mut().zip(sources) {
            // All loads come before the first store, which keeps more of them in flight out of cache.
            let mut values = [_mm512_setzero_ps(); 4];
            for (value, source) in values.iter_mut().zip(sources) {
                *value = _mm512_castsi512_ps(load(source));
            }
            for (target, value) in targets.iter_mut().zip(values) {
                store_half(target, encode_16::<PAYLOAD>(value));
            }
        }
    }
    let (sources, _) = src.as_chunks().0.as_chunks();
    let (targets, _) = dst.as_chunks_mut().0.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { if payload { blocks::<true>(sources, targets) } else { blocks::<false>(sources, targets) } };
    sources.len() * 64
}

/// 16 f32 to f16, as [`encode_avx512`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn encode_16<const PAYLOAD: bool>(value: __m512) -> __m256i {
    let half = _mm512_cvtps_ph::<NEAREST_EVEN>(value);
    if PAYLOAD {
        return half;
    }
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let sign = _mm256_and_si256(half, _mm256_set1_epi16(F16_SIGN));
    _mm256_mask_blend_epi16(nan, half, _mm256_or_si256(sign, _mm256_set1_epi16(F16_NAN)))
}

/// As [`encode_avx512`], 16 at a time.
pub(crate) fn encode_avx2(_: Avx2, payload: bool, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx2,f16c")]
    fn blocks<const PAYLOAD: bool>(sources: &[[[u8; 32]; 2]], targets: &mut [[u8; 32]]) {
        for (target, [low, high]) in targets.iter_mut().zip(sources) {
            let values = [_mm256_castsi256_ps(load_half(low)), _mm256_castsi256_ps(load_half(high))];
            let [low, high] = values;
            let mut halves =
                _mm256_set_m128i(_mm256_cvtps_ph::<NEAREST_EVEN>(high), _mm256_cvtps_ph::<NEAREST_EVEN>(low));
            if !PAYLOAD {
                let low = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(low, low));
                let high = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(high, high));
                // Packing works within 128-bit lanes: its quadwords are 0 2 1 3.
                let nan = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
                let sign = _mm256_and_si256(halves, _mm256_set1_epi16(F16_SIGN));
                halves = _mm256_blendv_epi8(halves, _mm256_or_si256(sign, _mm256_set1_epi16(F16_NAN)), nan);
            }
            store_half(target, halves);
        }
    }
    let (sources, _) = src.as_chunks().0.as_chunks();
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { if payload { blocks::<true>(sources, targets) } else { blocks::<false>(sources, targets) } };
    sources.len() * 16
}
