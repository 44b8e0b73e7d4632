//! Kernels with vectors of 256 bits. Most of them convert 32 elements at a time.

mod bytes;
mod choose;
mod encoder;
mod f64;
mod fused;
mod groups;
mod half;
mod i64;
mod load;
mod method;
mod rows;
pub(super) mod scaled;
mod shorts;
mod threshold_table;

use std::arch::x86_64::*;

/// Computes `mask ? yes : no`. All bits of a byte in `mask` are equal.
#[inline]
#[target_feature(enable = "avx2")]
fn select(mask: __m256i, yes: __m256i, no: __m256i) -> __m256i {
    _mm256_blendv_epi8(no, yes, mask)
}

/// Restores the order of quadwords after two vectors were packed. Packing works within 128 bits, and its result has the
/// quadwords in the order 0 2 1 3.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(packed: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
}
