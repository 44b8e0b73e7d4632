//! Conversion between 64-bit integers and f32. AVX2 has no instruction for either direction. f32 takes the instruction
//! for 32-bit integers; values that do not fit in 32 bits are detected and computed separately. Integers go through
//! f64.

use super::groups::groups;
use crate::level::Avx2;
use crate::tail::Fixed;
use crate::x86::load256;
use crate::x86::pairs::both;
use std::arch::x86_64::*;

const F32_INF: i32 = crate::numbers::F32_INF as i32;

/// Converts f32 to 64-bit integers, truncated and wrapped. NaN and Inf give 0.
pub(crate) fn f32_to_i64(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the features were detected.
    unsafe { Fixed::new(8, (32, 8), truncate::<false>, Some(truncate::<true>)) }
}

#[target_feature(enable = "avx2,f16c")]
fn truncate<const STREAMS: bool>(src: &[u8], dst: &mut [u8]) {
    groups::<8, 2, 8, STREAMS>(4, src, dst, |source| {
        let bits = load256(source.first_chunk().expect("8 elements"));
        let abs = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
        let finite = _mm256_and_si256(bits, _mm256_cmpgt_epi32(_mm256_set1_epi32(F32_INF), abs));
        let int = _mm256_cvttps_epi32(_mm256_castsi256_ps(finite));
        let beyond = _mm256_cmpeq_epi32(int, _mm256_set1_epi32(i32::MIN));
        if _mm256_testz_si256(beyond, beyond) != 0 {
            both([_mm256_castsi256_si128(int), _mm256_extracti128_si256::<1>(int)], |half| _mm256_cvtepi32_epi64(half))
        } else {
            // Taking the array apart keeps the compiler from storing the other branch's results to memory too.
            let [low, high] = any(finite);
            [low, high]
        }
    });
}

/// Converts u64 to f32, nearest even.
pub(crate) fn u64_to_f32(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the features were detected.
    unsafe { Fixed::new(8, (64, 4), unsigned::<false>, Some(unsigned::<true>)) }
}

#[target_feature(enable = "avx2,f16c")]
fn unsigned<const STREAMS: bool>(src: &[u8], dst: &mut [u8]) {
    groups::<8, 1, 8, STREAMS>(8, src, dst, |source| {
        let (halves, _) = source.as_chunks();
        let [low, high] =
            both([load256(&halves[0]), load256(&halves[1])], |int| _mm256_cvtpd_ps(int_to_f64::<false>(int)));
        [_mm256_castps_si256(_mm256_set_m128(high, low))]
    });
}

/// Converts four integers to f64. The result is exact for magnitudes below 2^39. Other integers are first rounded to
/// odd, to a multiple of 2^11, and so keep 28 to 53 bits. f64 holds 53 bits, and for f32 28 bits are enough
/// (`docs/kernels.md §3.1`).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn int_to_f64<const SIGNED: bool>(int: __m256i) -> __m256d {
    let quad = |bits: i64| _mm256_set1_epi64x(bits);
    let above = if SIGNED { _mm256_add_epi64(int, quad(1 << 39)) } else { int };
    let small = _mm256_cmpeq_epi64(_mm256_srli_epi64::<40>(above), _mm256_setzero_si256());
    let dropped = _mm256_andnot_si256(small, quad(0x7ff));
    // The sum carries into the last kept bit if any dropped bit is set.
    let carry = _mm256_add_epi64(_mm256_and_si256(int, dropped), dropped);
    let odd = _mm256_andnot_si256(dropped, _mm256_or_si256(int, carry));
    // The lower dword is placed in the fraction of 2^52, and the upper dword in the fraction of 2^84. Then both are
    // added. A signed upper dword is biased by 2^31.
    let sign = if SIGNED { 1 << 31 } else { 0 };
    let lower = _mm256_blend_epi32::<0b1010_1010>(odd, quad(0x4330_0000_0000_0000));
    let upper = _mm256_xor_si256(_mm256_srli_epi64::<32>(odd), quad(0x4530_0000_0000_0000 | sign));
    let upper = _mm256_sub_pd(_mm256_castsi256_pd(upper), _mm256_castsi256_pd(quad(0x4530_0000_0010_0000 | sign)));
    _mm256_add_pd(upper, _mm256_castsi256_pd(lower))
}

/// Computes the lane `F32ToIntTrunc` for finite values.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn any(bits: __m256i) -> [__m256i; 2] {
    let word = |value: i32| _mm256_set1_epi32(value);
    let abs = _mm256_and_si256(bits, word(i32::MAX));
    let exponent = _mm256_srli_epi32::<23>(abs);
    let significand = _mm256_or_si256(_mm256_and_si256(abs, word(0x007f_ffff)), word(0x0080_0000));
    let left = _mm256_sub_epi32(exponent, word(150));
    let right = _mm256_sub_epi32(word(150), exponent);
    let negative = _mm256_srai_epi32::<31>(bits);
    let halves = |v: __m256i| [_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)];
    let [significand, left, right, negative] = [significand, left, right, negative].map(halves);
    let mut wide = [_mm256_setzero_si256(); 2];
    for i in 0..2 {
        let significand = _mm256_cvtepu32_epi64(significand[i]);
        // A shift by 64 or more shifts everything out. A negative difference is a shift by more than 64 too.
        let above = _mm256_sllv_epi64(significand, _mm256_cvtepu32_epi64(left[i]));
        let below = _mm256_srlv_epi64(significand, _mm256_cvtepu32_epi64(right[i]));
        let negative = _mm256_cvtepi32_epi64(negative[i]);
        wide[i] = _mm256_sub_epi64(_mm256_xor_si256(_mm256_or_si256(above, below), negative), negative);
    }
    wide
}
