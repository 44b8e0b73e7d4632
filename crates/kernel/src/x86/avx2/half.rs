//! Conversion of f16 to f32 by the instruction (`docs/kernels.md §7`). The instruction never reads an f16 subnormal as
//! zero (§5.3). It makes NaN quiet, and keeps the leading bits of the payload.

use super::groups::groups;
use super::select;
use crate::level::Avx2;
use crate::tail::Fixed;
use crate::x86::load256;
use crate::x86::pairs::both;
use std::arch::x86_64::*;

const F32_SIGN_AND_EXPONENT: i32 = 0xff80_0000_u32 as i32;
const F32_NAN: i32 = 0x7fc0_0000;

/// Converts f16 to f32. With `PAYLOAD`, a NaN keeps its payload. Otherwise a NaN becomes the canonical NaN of its sign.
pub(crate) fn f16_to_f32<const PAYLOAD: bool>(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the features were detected.
    unsafe { Fixed::new(16, (16, 4), decode::<PAYLOAD, false>, Some(decode::<PAYLOAD, true>)) }
}

#[target_feature(enable = "avx2,f16c")]
fn decode<const PAYLOAD: bool, const STREAMS: bool>(src: &[u8], dst: &mut [u8]) {
    groups::<16, 2, 8, STREAMS>(2, src, dst, |source| {
        let halves = load256(source.first_chunk().expect("16 elements"));
        both([_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)], |half| {
            let value = _mm256_cvtph_ps(half);
            let bits = _mm256_castps_si256(value);
            if PAYLOAD {
                return bits;
            }
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
            let sign = _mm256_and_si256(bits, _mm256_set1_epi32(F32_SIGN_AND_EXPONENT));
            select(nan, _mm256_or_si256(sign, _mm256_set1_epi32(F32_NAN)), bits)
        })
    });
}
