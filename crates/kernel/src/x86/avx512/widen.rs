//! Conversion of bf16 and f16 to f32, 64 elements at a time. All loads come before the first store. If the source is
//! not in the caches, more loads are then in flight.

use super::blocks::{Kernel, Params};
use crate::x86::source::Source512;
use std::arch::x86_64::*;

const NAN: i32 = 0x7fc0_0000;

/// Conversion of a source to f32. With `PAYLOAD`, a NaN keeps its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widen<S, const PAYLOAD: bool>(pub S);

impl<S: Source512, const PAYLOAD: bool> Params<4> for Widen<S, PAYLOAD> {
    type Kernel = Self;
    unsafe fn kernel(&self) -> Self {
        *self
    }
}

impl<S: Source512, const PAYLOAD: bool> Kernel<4> for Widen<S, PAYLOAD> {
    const SRC_BITS: usize = 8 * S::BYTES;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; 4] {
        let mut results = [_mm512_setzero_si512(); 4];
        for (result, sixteen) in results.iter_mut().zip(source.chunks_exact(16 * S::BYTES)) {
            // SAFETY: this function has the features.
            *result = quiet::<PAYLOAD>(unsafe { S::load(sixteen) });
        }
        results
    }
}

/// Sets the quiet bit of each NaN. Without `PAYLOAD`, drops the other bits of the fraction.
#[inline]
#[target_feature(enable = "avx512f")]
fn quiet<const PAYLOAD: bool>(bits: __m512i) -> __m512i {
    let value = _mm512_castsi512_ps(bits);
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let kept = if PAYLOAD { bits } else { _mm512_and_si512(bits, _mm512_set1_epi32(i32::MIN)) };
    _mm512_mask_or_epi32(bits, nan, kept, _mm512_set1_epi32(NAN))
}
