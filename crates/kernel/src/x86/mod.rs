//! Kernels written with x86-64 intrinsics, where they are at least twice as fast in L2 as the compiled lane, or lift a
//! pair out of cache (`docs/kernels.md §7`).
//!
//! Every kernel computes exactly what a lane, a table or a pass of measuring does, only faster, never another rule.
//! Memory is touched by the functions of this file alone, through references to whole arrays; intrinsics on values are
//! safe inside functions that have the feature.

pub(crate) mod bits;
mod blocks;
pub(crate) mod bytes256;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod double256;
pub(crate) mod e8m0;
pub(crate) mod fused;
mod fused256;
pub(crate) mod half;
pub(crate) mod int256;
pub(crate) mod integer;
pub(crate) mod measure;
pub(crate) mod narrow;
pub(crate) mod rows;
pub(crate) mod six;
pub(crate) mod six_bytes;
pub(crate) mod split;
pub(crate) mod stream;
pub(crate) mod table;

use std::arch::x86_64::*;

/// 64 bytes of memory.
type Block = [u8; 64];

#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &Block) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(to: &mut Block, value: __m512i) {
    // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
}

/// Stores past the caches.
///
/// # Safety
/// The block must be aligned to 64.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn stream(to: &mut Block, value: __m512i) {
    debug_assert!(to.as_ptr().addr().is_multiple_of(64));
    // SAFETY: the reference is to 64 writable bytes, which the caller aligned.
    unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx")]
fn load_half(from: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load_quarter(from: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn store_half(to: &mut [u8; 32], value: __m256i) {
    // SAFETY: the reference is to 32 writable bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store_quarter(to: &mut [u8; 16], value: __m128i) {
    // SAFETY: the reference is to 16 writable bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f64(from: &[f64; 8]) -> __m512d {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_pd(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_f64(to: &mut [f64; 8], value: __m512d) {
    // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_pd(to.as_mut_ptr(), value) }
}

/// The lower halves of eight and eight quadwords, in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn even_dwords(low: __m512i, high: __m512i) -> __m512i {
    _mm512_permutex2var_epi32(low, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), high)
}

/// Eight and eight dwords, in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn join(low: __m256i, high: __m256i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Asks for the line at an address, which need not be one of ours.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    // SAFETY: a prefetch is a hint that reads nothing and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

/// A vector of the bytes that a function gives for each position.
#[inline(always)]
fn bytes_where(f: impl Fn(usize) -> usize) -> Block {
    std::array::from_fn(|i| f(i) as u8)
}
