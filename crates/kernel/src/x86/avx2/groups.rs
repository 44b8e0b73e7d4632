//! The loop of the kernels that convert 32 elements at a time with vectors of 256 bits.

use super::f64::in_order;
use super::pack6::store_24;
use crate::x86::{AHEAD, prefetch, store128, store256};
use std::arch::x86_64::*;

/// Converts 32 elements at a time, of which the source takes `src_bytes` each, and the destination as many bytes as
/// vectors, or `BITS` bits if that is less than 8.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn groups<const BYTES: usize, const BITS: usize>(
    src_bytes: usize,
    src: &[u8],
    dst: &mut [u8],
    convert: impl Fn(&[u8]) -> [__m256i; BYTES],
) {
    for (target, source) in dst.chunks_exact_mut(4 * BYTES * BITS).zip(src.chunks_exact(32 * src_bytes)) {
        for line in (0..32 * src_bytes).step_by(64) {
            prefetch(source.as_ptr().wrapping_add(AHEAD + line));
        }
        put::<BYTES, BITS>(target, convert(source));
    }
}

/// Stores 32 codes where they fit exactly.
#[inline]
#[target_feature(enable = "avx2")]
fn put<const BYTES: usize, const BITS: usize>(target: &mut [u8], codes: [__m256i; BYTES]) {
    match BITS {
        4 => {
            let pairs = _mm256_maddubs_epi16(codes[0], _mm256_set1_epi16(16 << 8 | 1));
            let packed = in_order(_mm256_packus_epi16(pairs, pairs));
            store128(target.first_chunk_mut().expect("32 nibbles"), _mm256_castsi256_si128(packed));
        }
        6 => store_24(target.first_chunk_mut().expect("32 codes of six bits"), codes[0]),
        _ => {
            for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(codes) {
                store256(block, vector);
            }
        }
    }
}
