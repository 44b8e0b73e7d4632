//! Kernels written with x86-64 intrinsics. Each makes a common pair or a whole job measurably faster (`docs/kernels.md
//! §7`).
//!
//! Every kernel computes exactly the results of a lane, a table or a pass of measuring. Only the functions of this file
//! touch memory, through references to whole arrays. Intrinsics on values are safe inside functions that have the
//! feature.

pub(crate) mod ahead;
mod avx2;
mod avx512;
mod choose;
mod interleave;
mod pairs;
mod source;
pub(crate) mod stream;

use std::arch::x86_64::*;

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

/// Stores 32 bytes past the caches.
///
/// # Safety
/// The bytes must be aligned to 32.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn stream256(to: &mut [u8; 32], value: __m256i) {
    debug_assert!(to.as_ptr().addr().is_multiple_of(32));
    // SAFETY: the reference is to 32 writable bytes, which the caller aligned.
    unsafe { _mm256_stream_si256(to.as_mut_ptr().cast(), value) }
}

/// Stores 16 bytes past the caches.
///
/// # Safety
/// The bytes must be aligned to 16.
#[inline]
#[target_feature(enable = "sse2")]
unsafe fn stream128(to: &mut [u8; 16], value: __m128i) {
    debug_assert!(to.as_ptr().addr().is_multiple_of(16));
    // SAFETY: the reference is to 16 writable bytes, which the caller aligned.
    unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx")]
fn load256(from: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load128(from: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn store256(to: &mut [u8; 32], value: __m256i) {
    // SAFETY: the reference is to 32 writable bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store128(to: &mut [u8; 16], value: __m128i) {
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

/// Shape of the encoder that is a conversion instruction to f16. Other encoders have a
/// [`shape`](crate::numbers::encode::shape).
const F16_INSTRUCTION: u8 = 1 << 7;

/// Distance of prefetches in bytes. The distance is two pages, because a CPU's own prefetches end with a page.
pub(crate) const AHEAD: usize = 8192;

/// Prefetches the line at an address to L1. The address need not belong to this program.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    // SAFETY: a prefetch is a hint that reads nothing and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

/// Prefetches the line at an address to L2. The address need not belong to this program.
#[inline(always)]
pub(crate) fn prefetch_l2(at: *const u8) {
    // SAFETY: a prefetch is a hint that reads nothing and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
}

/// Makes a block at compile time. The expression gives the byte at each position.
macro_rules! bytes_where {
    (|$i:ident| $byte:expr) => {{
        let (mut bytes, mut $i) = ([0u8; 64], 0usize);
        while $i < 64 {
            bytes[$i] = ($byte) as u8;
            $i += 1;
        }
        bytes
    }};
}
use bytes_where;
