//! Into f32 and f64 by the conversion instructions (`docs/kernels.md §4.13`, §4.14), 64 elements at a time.
//!
//! The instructions flush f32 subnormals where the environment says so (§5.3) and keep NaN payloads. Elements to which
//! either may have happened are found by the class of an f32, and computed apart.

use super::blocks::{Kernel, Params};
use super::f64::ZERO_OR_SUBNORMAL;
use super::join;
use crate::x86::pairs::both;
use crate::x86::source::{self, Source, Source512};
use crate::x86::{load, load256};
use std::arch::x86_64::*;

const NEAREST_EVEN: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// The classes of NaN.
const NAN: i32 = 0x81;

const F32_NAN: i32 = 0x7fc0_0000;
const F32_SIGN: i32 = i32::MIN;
const F64_NAN: i64 = 0x7ff8_0000_0000_0000;
const F64_SIGN: i64 = i64::MIN;

/// To f32 as a kernel of 4 bytes, to f64 as one of 8. `PAYLOAD`: NaN keep theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToFloat<S, const PAYLOAD: bool>(pub S);

/// What is converted to f32 or f64 of so many bytes.
pub(crate) trait To<const BYTES: usize>: Source {
    /// 16 elements, in as many vectors as a float has fours of bytes; others are anything.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512).
    unsafe fn convert<const PAYLOAD: bool>(sixteen: &[u8]) -> [__m512i; 2];
}

impl<S: To<BYTES>, const PAYLOAD: bool, const BYTES: usize> Params<BYTES> for ToFloat<S, PAYLOAD> {
    type Kernel = Self;
    unsafe fn kernel(&self) -> Self {
        *self
    }
}

impl<S: To<BYTES>, const PAYLOAD: bool, const BYTES: usize> Kernel<BYTES> for ToFloat<S, PAYLOAD> {
    const SRC_BITS: usize = 8 * S::BYTES;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; BYTES] {
        let mut results = [_mm512_setzero_si512(); BYTES];
        for (results, sixteen) in results.chunks_exact_mut(BYTES / 4).zip(source.chunks_exact(16 * S::BYTES)) {
            // SAFETY: this function has the features.
            let floats = unsafe { S::convert::<PAYLOAD>(sixteen) };
            results.copy_from_slice(&floats[..BYTES / 4]);
        }
        results
    }
}

macro_rules! to {
    ($($bytes:literal: $($source:ident |$sixteen:ident| $floats:expr;)*)*) => {$($(
        impl To<$bytes> for source::$source {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
            unsafe fn convert<const PAYLOAD: bool>($sixteen: &[u8]) -> [__m512i; 2] {
                $floats
            }
        }
    )*)*};
}

to! {
    4:
    // SAFETY: this function has the features.
    F16 |sixteen| [quiet::<PAYLOAD>(unsafe { Self::load(sixteen) }); 2];
    // SAFETY: as above.
    Bf16 |sixteen| [quiet::<PAYLOAD>(unsafe { Self::load(sixteen) }); 2];
    F64 |sixteen| [f64_to_f32::<PAYLOAD>(sixteen); 2];
    I32 |sixteen| [bits(_mm512_cvt_roundepi32_ps::<NEAREST_EVEN>(load(sixteen.first_chunk().expect("16 elements")))); 2];
    U32 |sixteen| [bits(_mm512_cvt_roundepu32_ps::<NEAREST_EVEN>(load(sixteen.first_chunk().expect("16 elements")))); 2];
    I64 |sixteen| {
        let [low, high] = both(eights(sixteen), |eight| _mm512_cvt_roundepi64_ps::<NEAREST_EVEN>(eight));
        [join(_mm256_castps_si256(low), _mm256_castps_si256(high)); 2]
    };
    U64 |sixteen| {
        let [low, high] = both(eights(sixteen), |eight| _mm512_cvt_roundepu64_ps::<NEAREST_EVEN>(eight));
        [join(_mm256_castps_si256(low), _mm256_castps_si256(high)); 2]
    };
    8:
    F32 |sixteen| f32_to_f64::<PAYLOAD>(load(sixteen.first_chunk().expect("16 elements")));
    I32 |sixteen| both(halves(sixteen), |eight| bits_64(_mm512_cvtepi32_pd(eight)));
    U32 |sixteen| both(halves(sixteen), |eight| bits_64(_mm512_cvtepu32_pd(eight)));
    I64 |sixteen| both(eights(sixteen), |eight| bits_64(_mm512_cvt_roundepi64_pd::<NEAREST_EVEN>(eight)));
    U64 |sixteen| both(eights(sixteen), |eight| bits_64(_mm512_cvt_roundepu64_pd::<NEAREST_EVEN>(eight)));
}

/// Eight and eight elements of 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn eights(sixteen: &[u8]) -> [__m512i; 2] {
    let (eights, _) = sixteen.as_chunks();
    [load(&eights[0]), load(&eights[1])]
}

/// Eight and eight elements of 32 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(sixteen: &[u8]) -> [__m256i; 2] {
    let (halves, _) = sixteen.as_chunks();
    [load256(&halves[0]), load256(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bits(floats: __m512) -> __m512i {
    _mm512_castps_si512(floats)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bits_64(floats: __m512d) -> __m512i {
    _mm512_castpd_si512(floats)
}

/// NaN of f32 with the quiet bit, with or without their payloads.
#[inline]
#[target_feature(enable = "avx512f")]
fn quiet<const PAYLOAD: bool>(bits: __m512i) -> __m512i {
    let value = _mm512_castsi512_ps(bits);
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    if PAYLOAD {
        return _mm512_mask_or_epi32(bits, nan, bits, _mm512_set1_epi32(F32_NAN));
    }
    let sign = _mm512_and_si512(bits, _mm512_set1_epi32(F32_SIGN));
    _mm512_mask_or_epi32(bits, nan, sign, _mm512_set1_epi32(F32_NAN))
}

/// Which of 16 f32 an instruction may have flushed, or, unless NaN keep their `PAYLOAD`, are NaN.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn unusual<const PAYLOAD: bool>(bits: __m512i) -> __mmask16 {
    let value = _mm512_castsi512_ps(bits);
    match PAYLOAD {
        true => _mm512_fpclass_ps_mask::<ZERO_OR_SUBNORMAL>(value),
        false => _mm512_fpclass_ps_mask::<{ NAN | ZERO_OR_SUBNORMAL }>(value),
    }
}

/// 16 f64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn f64_to_f32<const PAYLOAD: bool>(source: &[u8]) -> __m512i {
    let halves = eights(source);
    let [low, high] =
        both(halves, |eight| _mm256_castps_si256(_mm512_cvt_roundpd_ps::<NEAREST_EVEN>(_mm512_castsi512_pd(eight))));
    let narrow = join(low, high);
    let unusual = unusual::<PAYLOAD>(narrow);
    if unusual == 0 {
        return narrow;
    }
    let [low, high] = both(halves, |eight| small_to_f32(eight));
    let (small, sign) = (join(low, high), signs(halves));
    let magnitude = _mm512_and_si512(narrow, _mm512_set1_epi32(i32::MAX));
    let is_small = _mm512_mask_cmplt_epu32_mask(unusual, magnitude, _mm512_set1_epi32(0x0080_0000));
    let mut bits = _mm512_mask_or_epi32(narrow, is_small, small, sign);
    if !PAYLOAD {
        bits = _mm512_mask_or_epi32(bits, unusual & !is_small, sign, _mm512_set1_epi32(F32_NAN));
    }
    bits
}

/// Magnitudes of eight f64 that are below the normal range of f32, rounded: others give anything.
#[inline]
#[target_feature(enable = "avx512f")]
fn small_to_f32(bits: __m512i) -> __m256i {
    // 2^-97, whose ulp is 2^-149: the addition rounds to a multiple of it, ties to even.
    let magic = _mm512_set1_epi64(0x39e0_0000_0000_0000);
    let magnitude = _mm512_castsi512_pd(_mm512_and_si512(bits, _mm512_set1_epi64(i64::MAX)));
    let sum = _mm512_add_round_pd::<NEAREST_EVEN>(magnitude, _mm512_castsi512_pd(magic));
    _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_castpd_si512(sum), magic))
}

/// The signs of eight and eight f64 as those of f32.
#[inline]
#[target_feature(enable = "avx512f")]
fn signs([low, high]: [__m512i; 2]) -> __m512i {
    let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    _mm512_and_si512(_mm512_permutex2var_epi32(low, odd, high), _mm512_set1_epi32(F32_SIGN))
}

/// 16 f32: exact.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn f32_to_f64<const PAYLOAD: bool>(source: __m512i) -> [__m512i; 2] {
    let eights = [_mm512_castsi512_si256(source), _mm512_extracti64x4_epi64::<1>(source)];
    let wide = both(eights, |eight| _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_castsi256_ps(eight))));
    let unusual = unusual::<PAYLOAD>(source);
    if unusual == 0 {
        return wide;
    }
    let [low, high] = unusual.to_le_bytes();
    [unusual_to_f64::<PAYLOAD>(eights[0], wide[0], low), unusual_to_f64::<PAYLOAD>(eights[1], wide[1], high)]
}

/// Eight f32 of which some are NaN, zero or subnormal, given what the instruction made of them.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn unusual_to_f64<const PAYLOAD: bool>(source: __m256i, wide: __m512i, unusual: __mmask8) -> __m512i {
    let magnitude = _mm256_and_si256(source, _mm256_set1_epi32(i32::MAX));
    let is_small = _mm256_mask_cmplt_epu32_mask(unusual, magnitude, _mm256_set1_epi32(0x0080_0000));
    let sign = _mm512_and_si512(wide, _mm512_set1_epi64(F64_SIGN));
    // The integer of its fraction, scaled by 2^-149.
    let scale = _mm512_castsi512_pd(_mm512_set1_epi64(0x36a0_0000_0000_0000));
    let small = _mm512_castpd_si512(_mm512_mul_pd(_mm512_cvtepi32_pd(magnitude), scale));
    let mut bits = _mm512_mask_or_epi64(wide, is_small, small, sign);
    if !PAYLOAD {
        bits = _mm512_mask_or_epi64(bits, unusual & !is_small, sign, _mm512_set1_epi64(F64_NAN));
    }
    bits
}
