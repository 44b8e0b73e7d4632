//! Conversion of f64 to f32 by instructions, which flush f32 subnormals in some environments (`docs/kernels.md §5.3`).
//! In vectors that have an f32 subnormal, the subnormals are therefore computed separately.

use crate::x86::{Block, load};
use std::arch::x86_64::*;

pub(super) const TRUNCATE: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
/// Operand of `vfpclass`: subnormals and zeros. In some environments a subnormal is flushed or read as zero.
pub(super) const ZERO_OR_SUBNORMAL: i32 = 0x26;
/// Bits of an f64 significand that an f32 significand lacks.
pub(super) const DROPPED: i64 = 0x1fff_ffff;
const F64_MAGNITUDE: i64 = i64::MAX;
/// 2^-126, the smallest normal f32, as an f64.
const MIN_NORMAL: i64 = 0x3810_0000_0000_0000;
const F32_SIGN: i32 = i32::MIN;

/// Eight f64 and a mask. The mask has the elements that are not zero and are smaller than any normal f32.
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

/// Returns the signs of eight f64 as the sign bits of f32.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn signs(bits: __m512i) -> __m256i {
    _mm256_and_si256(_mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(bits)), _mm256_set1_epi32(F32_SIGN))
}

/// Rounds eight f64 to odd, to f32. If `REDUCED`, values below the normal range of f32 become the smallest f32 instead.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) fn to_f32_odd_8<const REDUCED: bool>(source: &Block) -> __m256i {
    let Eight { bits, tiny } = eight(source);
    let value = _mm512_castsi512_pd(bits);
    let number = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(value, value);
    let sticky = _mm512_mask_test_epi64_mask(number, bits, _mm512_set1_epi64(DROPPED));
    let narrow = odd(_mm512_cvt_roundpd_ps::<TRUNCATE>(value), sticky);
    if tiny == 0 {
        return narrow;
    }
    let small = if REDUCED {
        _mm256_set1_epi32(1)
    } else {
        let field = _mm512_srli_epi64::<52>(_mm512_and_si512(bits, _mm512_set1_epi64(F64_MAGNITUDE)));
        let fraction = _mm512_and_si512(bits, _mm512_set1_epi64((1 << 52) - 1));
        let significand = _mm512_or_si512(fraction, _mm512_set1_epi64(1 << 52));
        // An f64 subnormal loses all bits in the shift, so the hidden bit that it gets here does not matter.
        let shift = _mm512_sub_epi64(_mm512_set1_epi64(926), field);
        let floor = _mm512_srlv_epi64(significand, shift);
        let inexact = _mm512_cmpneq_epi64_mask(_mm512_sllv_epi64(floor, shift), significand);
        _mm512_cvtepi64_epi32(_mm512_mask_or_epi64(floor, inexact, floor, _mm512_set1_epi64(1)))
    };
    _mm256_mask_or_epi32(narrow, tiny, small, signs(bits))
}

/// Sets the last bit of the truncated values that lost bits.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn odd(truncated: __m256, sticky: __mmask8) -> __m256i {
    let bits = _mm256_castps_si256(truncated);
    _mm256_mask_or_epi32(bits, sticky, bits, _mm256_set1_epi32(1))
}
