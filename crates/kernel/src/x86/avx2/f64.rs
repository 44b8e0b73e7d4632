//! Between f64 and f32 by the conversion instructions, which flush f32 subnormals where the environment says so
//! (`docs/kernels.md §5.3`): whatever is subnormal in f32 is computed apart. Also elements of 64 bits as their words, which
//! AVX2 compares where it cannot compare the elements.

use crate::drive::{Groups, Store};
use crate::level::Avx2;
use crate::x86::{Block, load256, store256};
use std::arch::x86_64::*;

/// Eight elements of 64 bits as their lower and upper words, both in the order of packed vectors ([`in_order`]).
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub lower: __m256i,
    pub upper: __m256i,
}

/// f32's exponents begin here, as the upper word of an f64.
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

    /// The upper words of f64, whose last bit is set if any of the lower ones is.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn jammed(self) -> __m256i {
        _mm256_or_si256(self.upper, nonzero(self.lower))
    }

    /// Which f64 are smaller than any normal f32, and whether one of them is not zero.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn tiny(self) -> (__m256i, bool) {
        let magnitude = _mm256_and_si256(self.jammed(), _mm256_set1_epi32(i32::MAX));
        let tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(FIRST + (1 << 20)), magnitude);
        let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
        (tiny, _mm256_movemask_epi8(_mm256_andnot_si256(zero, tiny)) != 0)
    }
}

/// 1 where a word is not zero.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn nonzero(words: __m256i) -> __m256i {
    _mm256_min_epu32(words, _mm256_set1_epi32(1))
}

/// `mask ? yes : no`, for masks of whole bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn select(mask: __m256i, yes: __m256i, no: __m256i) -> __m256i {
    _mm256_blendv_epi8(no, yes, mask)
}

/// Packing works within 128-bit lanes: the quadwords of two packed vectors are 0 2 1 3.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_order(packed: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
}

/// f64 to f32, nearest even, overflow and Inf to Inf; NaN keeps its `PAYLOAD`, or is the canonical one of its sign.
#[derive(Debug)]
pub(crate) struct ToF32<const PAYLOAD: bool>(pub Avx2);

/// f32 to f64, exact; NaN as of [`ToF32`].
#[derive(Debug)]
pub(crate) struct FromF32<const PAYLOAD: bool>(pub Avx2);

impl<const PAYLOAD: bool> Groups for ToF32<PAYLOAD> {
    fn group(&self) -> usize {
        8
    }
    fn widths(&self) -> (usize, usize) {
        (64, 4)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe { to_f32::<PAYLOAD>(src.as_chunks().0.as_chunks().0, dst.as_chunks_mut().0) };
    }
}

impl<const PAYLOAD: bool> Groups for FromF32<PAYLOAD> {
    fn group(&self) -> usize {
        8
    }
    fn widths(&self) -> (usize, usize) {
        (32, 8)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe { from_f32::<PAYLOAD>(src.as_chunks().0, dst.as_chunks_mut().0.as_chunks_mut().0) };
    }
}

#[target_feature(enable = "avx2")]
fn to_f32<const PAYLOAD: bool>(sources: &[[[u8; 32]; 2]], targets: &mut [[u8; 32]]) {
    let sign = _mm256_set1_epi32(F32_SIGN);
    for (target, [low, high]) in targets.iter_mut().zip(sources) {
        let bits = [load256(low), load256(high)];
        let [low, high] = bits.map(|bits| _mm256_cvtpd_ps(_mm256_castsi256_pd(bits)));
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
            // 2^-97, whose ulp is 2^-149: the addition rounds to a multiple of it, ties to even.
            let magic = _mm256_set1_epi64x(0x39e0_0000_0000_0000);
            let small = Words::of(bits.map(|bits| {
                let magnitude = _mm256_and_si256(bits, _mm256_set1_epi64x(F64_MAGNITUDE));
                let sum = _mm256_add_pd(_mm256_castsi256_pd(magnitude), _mm256_castsi256_pd(magic));
                _mm256_sub_epi64(_mm256_castpd_si256(sum), magic)
            }));
            let signed = _mm256_or_si256(small.lower, _mm256_and_si256(words.upper, sign));
            narrow = select(in_order(tiny), in_order(signed), narrow);
        }
        store256(target, narrow);
    }
}

#[target_feature(enable = "avx2")]
fn from_f32<const PAYLOAD: bool>(sources: &[[u8; 32]], targets: &mut [[[u8; 32]; 2]]) {
    let sign = _mm256_set1_epi64x(i64::MIN);
    for (targets, source) in targets.iter_mut().zip(sources) {
        let bits = load256(source);
        let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
        let subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x0080_0000), magnitude);
        let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
        let some = _mm256_movemask_epi8(_mm256_andnot_si256(zero, subnormal)) != 0;
        let halves = |v: __m256i| [_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)];
        let [bits, magnitude, subnormal] = [bits, magnitude, subnormal].map(halves);
        for i in 0..2 {
            let value = _mm256_cvtps_pd(_mm_castsi128_ps(bits[i]));
            let mut wide = _mm256_castpd_si256(value);
            if !PAYLOAD {
                let nan = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_UNORD_Q>(value, value));
                let quiet = _mm256_set1_epi64x(0x7ff8_0000_0000_0000);
                wide = select(nan, _mm256_or_si256(_mm256_and_si256(wide, sign), quiet), wide);
            }
            if some {
                // The integer of its fraction, scaled by 2^-149.
                let scale = _mm256_castsi256_pd(_mm256_set1_epi64x(0x36a0_0000_0000_0000));
                let small = _mm256_castpd_si256(_mm256_mul_pd(_mm256_cvtepi32_pd(magnitude[i]), scale));
                let signed = _mm256_or_si256(small, _mm256_and_si256(wide, sign));
                wide = select(_mm256_cvtepi32_epi64(subnormal[i]), signed, wide);
            }
            store256(&mut targets[i], wide);
        }
    }
}

/// Eight elements.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_words(source: &Block) -> Words {
    let (low, high) = source.split_first_chunk().expect("64 bytes");
    Words::of([load256(low), load256(high.first_chunk().expect("64 bytes"))])
}
