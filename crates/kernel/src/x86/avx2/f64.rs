//! Conversion between f64 and f32 by instructions, which flush f32 subnormals in some environments (`docs/kernels.md
//! §5.3`). f32 subnormals are therefore computed separately. [`Words`] splits 64-bit elements into dwords, because AVX2
//! has more comparisons of dwords.

use super::groups::groups;
use super::{in_order, select};
use crate::level::Avx2;
use crate::tail::Fixed;
use crate::x86::pairs::both;
use crate::x86::{Block, load256};
use std::arch::x86_64::*;

/// Lower and upper dwords of eight 64-bit elements. Both vectors have the order of packed vectors, which [`in_order`]
/// turns into the order of elements.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub lower: __m256i,
    pub upper: __m256i,
}

/// Upper dword of an f64 with exponent field 896, which corresponds to exponent field 0 of f32.
pub(super) const FIRST: i32 = 896 << 20;
const F32_SIGN: i32 = i32::MIN;
const F64_MAGNITUDE: i64 = i64::MAX;

impl Words {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn of([low, high]: [__m256i; 2]) -> Words {
        let (low, high) = (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
        Words {
            lower: _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(low, high)),
            upper: _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(low, high)),
        }
    }

    /// Returns the upper dwords of f64. The last bit is also set if the lower dword is not zero.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn jammed(self) -> __m256i {
        _mm256_or_si256(self.upper, nonzero(self.lower))
    }

    /// Returns the mask of the f64 below the smallest normal f32, and whether one of these is not zero.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn tiny(self) -> (__m256i, bool) {
        let magnitude = _mm256_and_si256(self.jammed(), _mm256_set1_epi32(i32::MAX));
        let tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(FIRST + (1 << 20)), magnitude);
        let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
        (tiny, _mm256_movemask_epi8(_mm256_andnot_si256(zero, tiny)) != 0)
    }
}

/// Returns 1 for each dword that is not zero, and 0 for zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn nonzero(words: __m256i) -> __m256i {
    _mm256_min_epu32(words, _mm256_set1_epi32(1))
}

/// Converts f64 to f32, nearest even. Overflow gives Inf. With `PAYLOAD`, a NaN keeps its payload. Otherwise a NaN
/// becomes the canonical NaN of its sign.
pub(crate) fn f64_to_f32<const PAYLOAD: bool>(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the features were detected.
    unsafe { Fixed::new(8, (64, 4), to_f32::<PAYLOAD, false>, Some(to_f32::<PAYLOAD, true>)) }
}

/// Converts f32 to f64 exactly. With `PAYLOAD`, a NaN keeps its payload. Otherwise a NaN becomes the canonical NaN of
/// its sign.
pub(crate) fn f32_to_f64<const PAYLOAD: bool>(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the features were detected.
    unsafe { Fixed::new(8, (32, 8), from_f32::<PAYLOAD, false>, Some(from_f32::<PAYLOAD, true>)) }
}

#[target_feature(enable = "avx2,f16c")]
fn to_f32<const PAYLOAD: bool, const STREAMS: bool>(src: &[u8], dst: &mut [u8]) {
    let sign = _mm256_set1_epi32(F32_SIGN);
    groups::<8, 1, 8, STREAMS>(8, src, dst, |source| {
        let (halves, _) = source.as_chunks();
        let bits = [load256(&halves[0]), load256(&halves[1])];
        let [low, high] = both(bits, |bits| _mm256_cvtpd_ps(_mm256_castsi256_pd(bits)));
        let value = _mm256_set_m128(high, low);
        let mut narrow = _mm256_castps_si256(value);
        if !PAYLOAD {
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
            let quiet = _mm256_or_si256(_mm256_and_si256(narrow, sign), _mm256_set1_epi32(0x7fc0_0000));
            narrow = select(nan, quiet, narrow);
        }
        let words = Words::of(bits);
        let (tiny, some) = words.tiny();
        if some {
            // The number is 2^-97, and its ulp is 2^-149. An addition to 2^-97 rounds to a multiple of 2^-149, ties to
            // even.
            let magic = _mm256_set1_epi64x(0x39e0_0000_0000_0000);
            let small = Words::of(both(bits, |bits| {
                let magnitude = _mm256_and_si256(bits, _mm256_set1_epi64x(F64_MAGNITUDE));
                let sum = _mm256_add_pd(_mm256_castsi256_pd(magnitude), _mm256_castsi256_pd(magic));
                _mm256_sub_epi64(_mm256_castpd_si256(sum), magic)
            }));
            let signed = _mm256_or_si256(small.lower, _mm256_and_si256(words.upper, sign));
            narrow = select(in_order(tiny), in_order(signed), narrow);
        }
        [narrow]
    });
}

#[target_feature(enable = "avx2,f16c")]
fn from_f32<const PAYLOAD: bool, const STREAMS: bool>(src: &[u8], dst: &mut [u8]) {
    let sign = _mm256_set1_epi64x(i64::MIN);
    groups::<8, 2, 8, STREAMS>(4, src, dst, |source| {
        let bits = load256(source.first_chunk().expect("8 elements"));
        let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
        let subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x0080_0000), magnitude);
        let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
        let some = _mm256_movemask_epi8(_mm256_andnot_si256(zero, subnormal)) != 0;
        let halves = |v: __m256i| [_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)];
        let [bits, magnitude, subnormal] = [bits, magnitude, subnormal].map(halves);
        let mut results = [sign; 2];
        for i in 0..2 {
            let value = _mm256_cvtps_pd(_mm_castsi128_ps(bits[i]));
            let mut wide = _mm256_castpd_si256(value);
            if !PAYLOAD {
                let nan = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_UNORD_Q>(value, value));
                let quiet = _mm256_set1_epi64x(0x7ff8_0000_0000_0000);
                wide = select(nan, _mm256_or_si256(_mm256_and_si256(wide, sign), quiet), wide);
            }
            if some {
                // The value of an f32 subnormal is its fraction bits, as an integer, times 2^-149.
                let scale = _mm256_castsi256_pd(_mm256_set1_epi64x(0x36a0_0000_0000_0000));
                let small = _mm256_castpd_si256(_mm256_mul_pd(_mm256_cvtepi32_pd(magnitude[i]), scale));
                let signed = _mm256_or_si256(small, _mm256_and_si256(wide, sign));
                wide = select(_mm256_cvtepi32_epi64(subnormal[i]), signed, wide);
            }
            results[i] = wide;
        }
        results
    });
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_words(source: &Block) -> Words {
    let (low, high) = source.split_first_chunk().expect("64 bytes");
    Words::of([load256(low), load256(high.first_chunk().expect("64 bytes"))])
}
