//! f64 and 64-bit integers by the conversion instructions, which flush f32 subnormals where the environment says so
//! (`docs/kernels.md §5.3`): whatever is subnormal in f32 is computed apart, in blocks that have such an element.

use super::{Block, load, load_half, store, store_half};
use crate::level::Avx512;
use std::arch::x86_64::*;

const TRUNCATE: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
const NEAREST_EVEN: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
/// Bits of an f64 significand that f32 does not have.
const DROPPED: i64 = 0x1fff_ffff;
const F64_MAGNITUDE: i64 = i64::MAX;
/// 2^-126, the smallest normal f32, as an f64.
const MIN_NORMAL: i64 = 0x3810_0000_0000_0000;
const F32_SIGN: i32 = i32::MIN;

/// Eight f64 and where they are smaller than any normal f32, but not zero.
struct Eight {
    bits: __m512i,
    tiny: __mmask8,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn eight(source: &Block) -> Eight {
    let bits = load(source);
    let below = _mm512_sub_epi64(_mm512_and_si512(bits, _mm512_set1_epi64(F64_MAGNITUDE)), _mm512_set1_epi64(1));
    Eight { bits, tiny: _mm512_cmplt_epu64_mask(below, _mm512_set1_epi64(MIN_NORMAL - 1)) }
}

/// The signs of eight f64 as those of f32.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn signs(bits: __m512i) -> __m256i {
    _mm256_and_si256(_mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(bits)), _mm256_set1_epi32(F32_SIGN))
}

/// f64 to f32, nearest even, overflow and Inf to Inf, 8 at a time; returns how many that were.
pub(crate) fn to_f32(_: Avx512, payload: bool, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn blocks<const PAYLOAD: bool>(sources: &[Block], targets: &mut [[u8; 32]]) {
        for (target, source) in targets.iter_mut().zip(sources) {
            let Eight { bits, tiny } = eight(source);
            let value = _mm512_castsi512_pd(bits);
            let mut narrow = _mm256_castps_si256(_mm512_cvt_roundpd_ps::<NEAREST_EVEN>(value));
            if !PAYLOAD {
                let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(value, value);
                let quiet = _mm256_or_si256(signs(bits), _mm256_set1_epi32(0x7fc0_0000));
                narrow = _mm256_mask_mov_epi32(narrow, nan, quiet);
            }
            if tiny != 0 {
                // 2^-97, whose ulp is 2^-149: the addition rounds to a multiple of it, ties to even.
                let magic = _mm512_set1_epi64(0x39e0_0000_0000_0000);
                let magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(F64_MAGNITUDE));
                let sum =
                    _mm512_add_round_pd::<NEAREST_EVEN>(_mm512_castsi512_pd(magnitude), _mm512_castsi512_pd(magic));
                let small = _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_castpd_si512(sum), magic));
                narrow = _mm256_mask_or_epi32(narrow, tiny, small, signs(bits));
            }
            store_half(target, narrow);
        }
    }
    let (sources, _) = src.as_chunks();
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { if payload { blocks::<true>(sources, targets) } else { blocks::<false>(sources, targets) } };
    sources.len() * 8
}

/// f64 to f32, rounded to odd, 8 at a time; returns how many that were. Below the normal range the result is the
/// smallest f32, if that is `REDUCED`, and rounded to odd as everywhere otherwise.
pub(crate) fn to_f32_odd<const REDUCED: bool>(_: Avx512, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn blocks<const REDUCED: bool>(sources: &[Block], targets: &mut [[u8; 32]]) {
        for (target, source) in targets.iter_mut().zip(sources) {
            let Eight { bits, tiny } = eight(source);
            let value = _mm512_castsi512_pd(bits);
            let number = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(value, value);
            let sticky = _mm512_mask_test_epi64_mask(number, bits, _mm512_set1_epi64(DROPPED));
            let mut narrow = odd(_mm512_cvt_roundpd_ps::<TRUNCATE>(value), sticky);
            if tiny != 0 {
                let small = if REDUCED {
                    _mm256_set1_epi32(1)
                } else {
                    let field = _mm512_srli_epi64::<52>(_mm512_and_si512(bits, _mm512_set1_epi64(F64_MAGNITUDE)));
                    let fraction = _mm512_and_si512(bits, _mm512_set1_epi64((1 << 52) - 1));
                    let significand = _mm512_or_si512(fraction, _mm512_set1_epi64(1 << 52));
                    // An f64 subnormal is shifted out whole, whatever its hidden bit.
                    let shift = _mm512_sub_epi64(_mm512_set1_epi64(926), field);
                    let floor = _mm512_srlv_epi64(significand, shift);
                    let inexact = _mm512_cmpneq_epi64_mask(_mm512_sllv_epi64(floor, shift), significand);
                    _mm512_cvtepi64_epi32(_mm512_mask_or_epi64(floor, inexact, floor, _mm512_set1_epi64(1)))
                };
                narrow = _mm256_mask_or_epi32(narrow, tiny, small, signs(bits));
            }
            store_half(target, narrow);
        }
    }
    let (sources, _) = src.as_chunks();
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { blocks::<REDUCED>(sources, targets) };
    sources.len() * 8
}

/// 64-bit integers to f32, rounded to odd, 8 at a time; returns how many that were.
pub(crate) fn int_to_f32_odd<const SIGNED: bool>(_: Avx512, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn blocks<const SIGNED: bool>(sources: &[Block], targets: &mut [[u8; 32]]) {
        for (target, source) in targets.iter_mut().zip(sources) {
            let int = load(source);
            let (value, back) = if SIGNED {
                let value = _mm512_cvt_roundepi64_pd::<TRUNCATE>(int);
                (value, _mm512_cvttpd_epi64(value))
            } else {
                let value = _mm512_cvt_roundepu64_pd::<TRUNCATE>(int);
                (value, _mm512_cvttpd_epu64(value))
            };
            let dropped = _mm512_test_epi64_mask(_mm512_castpd_si512(value), _mm512_set1_epi64(DROPPED));
            let sticky = dropped | _mm512_cmpneq_epi64_mask(back, int);
            store_half(target, odd(_mm512_cvt_roundpd_ps::<TRUNCATE>(value), sticky));
        }
    }
    let (sources, _) = src.as_chunks();
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { blocks::<SIGNED>(sources, targets) };
    sources.len() * 8
}

/// What was truncated becomes odd where something was lost.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn odd(truncated: __m256, sticky: __mmask8) -> __m256i {
    let bits = _mm256_castps_si256(truncated);
    _mm256_mask_or_epi32(bits, sticky, bits, _mm256_set1_epi32(1))
}

/// f32 to f64, exact, Inf to Inf, 8 at a time; returns how many that were.
pub(crate) fn from_f32(_: Avx512, payload: bool, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn blocks<const PAYLOAD: bool>(sources: &[[u8; 32]], targets: &mut [Block]) {
        let sign = _mm512_set1_epi64(i64::MIN);
        for (target, source) in targets.iter_mut().zip(sources) {
            let bits = load_half(source);
            let value = _mm512_cvtps_pd(_mm256_castsi256_ps(bits));
            let mut wide = _mm512_castpd_si512(value);
            if !PAYLOAD {
                let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(value, value);
                let quiet = _mm512_or_si512(_mm512_and_si512(wide, sign), _mm512_set1_epi64(0x7ff8_0000_0000_0000));
                wide = _mm512_mask_mov_epi64(wide, nan, quiet);
            }
            let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
            let below = _mm256_sub_epi32(magnitude, _mm256_set1_epi32(1));
            let subnormal = _mm256_cmplt_epu32_mask(below, _mm256_set1_epi32(0x007f_ffff));
            if subnormal != 0 {
                // The integer of its fraction, scaled by 2^-149.
                let scale = _mm512_castsi512_pd(_mm512_set1_epi64(0x36a0_0000_0000_0000));
                let small = _mm512_castpd_si512(_mm512_mul_pd(_mm512_cvtepi32_pd(magnitude), scale));
                wide = _mm512_mask_or_epi64(wide, subnormal, small, _mm512_and_si512(wide, sign));
            }
            store(target, wide);
        }
    }
    let (sources, _) = src.as_chunks();
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { if payload { blocks::<true>(sources, targets) } else { blocks::<false>(sources, targets) } };
    sources.len() * 8
}
