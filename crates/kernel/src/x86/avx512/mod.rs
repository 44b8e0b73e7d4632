//! Kernels with vectors of 512 bits. Most of them run in the loop of `blocks`, 64 elements at a time.

mod bits;
mod blocks;
mod choose;
mod f64;
mod fused;
mod load;
mod measure;
mod quantize;
mod scaled;
mod split;
mod table;
mod threshold_table;
mod transpose;
mod widen;

use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
fn join(low: __m256i, high: __m256i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Converts 16 f32 to f16, nearest even. With `PAYLOAD`, a NaN keeps the leading bits of its payload. Otherwise a NaN
/// becomes the canonical NaN of its sign.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn to_half<const PAYLOAD: bool>(value: __m512) -> __m256i {
    let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value);
    if PAYLOAD {
        return half;
    }
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let sign = _mm256_and_si256(half, _mm256_set1_epi16(i16::MIN));
    _mm256_mask_blend_epi16(nan, half, _mm256_or_si256(sign, _mm256_set1_epi16(0x7e00)))
}
