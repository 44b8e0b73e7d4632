//! Loop of kernels with vectors of 256 bits. An iteration prefetches, converts a group of elements, and stores the
//! results. Results may be packed, and may go past the caches.

use super::in_order;
use crate::stream::LINE;
use crate::x86::ahead::Ahead;
use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load256, store128, store256, stream128, stream256};
use std::arch::x86_64::*;

/// Converts groups of `GROUP` elements. An element takes `src_bytes` bytes, and `convert` returns the results of a
/// group as vectors. If `BITS` is less than 8, an iteration packs the results of several groups ([`turns`]) to `BITS`
/// bits. If `STREAMS`, results go past the caches, and the destination must begin with a line.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn groups<const GROUP: usize, const VECTORS: usize, const BITS: usize, const STREAMS: bool>(
    src_bytes: usize,
    src: &[u8],
    dst: &mut [u8],
    convert: impl Fn(&[u8]) -> [__m256i; VECTORS],
) {
    assert!(!STREAMS || dst.as_ptr().addr().is_multiple_of(LINE), "past the caches go whole lines");
    // A value that is aligned to 32 bytes aligns the whole stack frame. Constants of the loop that find no register are
    // then aligned too.
    std::hint::black_box(_mm256_setzero_si256());
    let ahead = if STREAMS { Ahead::past_caches_by_parts() } else { Ahead::plain() };
    let (src_step, dst_step) = (turns(BITS) * GROUP * src_bytes, turns(BITS) * 4 * VECTORS * BITS);
    for (target, source) in dst.chunks_exact_mut(dst_step).zip(src.chunks_exact(src_step)) {
        // For less than a line, prefetches would take an eighth of the time if the data is in the caches.
        if STREAMS {
            ahead.prefetch(source, src_step);
        } else if GROUP * src_bytes >= LINE {
            ahead.prefetch_l1(source, src_step);
        }
        let mut results = [[_mm256_setzero_si256(); VECTORS]; 2];
        for (results, source) in results[..turns(BITS)].iter_mut().zip(source.chunks_exact(GROUP * src_bytes)) {
            *results = convert(source);
        }
        if STREAMS {
            // SAFETY: the first target begins with a line, and every one takes a whole number of the vectors stored.
            unsafe { stream::<VECTORS, BITS>(target, results) };
        } else {
            put::<VECTORS, BITS>(target, results);
        }
    }
}

/// Returns the number of groups in an iteration. Two groups of packed codes fill whole vectors.
pub(super) const fn turns(bits: usize) -> usize {
    if bits < 8 { 2 } else { 1 }
}

/// Stores results in a target that has exactly their size.
#[inline]
#[target_feature(enable = "avx2")]
fn put<const VECTORS: usize, const BITS: usize>(target: &mut [u8], results: [[__m256i; VECTORS]; 2]) {
    match BITS {
        4 => store256(target.first_chunk_mut().expect("64 nibbles"), packed_32([results[0][0], results[1][0]])),
        6 => {
            for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(packed_48([results[0][0], results[1][0]])) {
                store128(block, vector);
            }
        }
        _ => {
            for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(results[0]) {
                store256(block, vector);
            }
        }
    }
}

/// Stores results past the caches, in a target that has exactly their size.
///
/// # Safety
/// The target must be aligned to 32 bytes, or to 16 bytes for results of six bits.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn stream<const VECTORS: usize, const BITS: usize>(target: &mut [u8], results: [[__m256i; VECTORS]; 2]) {
    // SAFETY: the stored vector is as wide as the alignment of the target, or a multiple.
    unsafe {
        match BITS {
            4 => stream256(target.first_chunk_mut().expect("64 nibbles"), packed_32([results[0][0], results[1][0]])),
            6 => {
                let packed = packed_48([results[0][0], results[1][0]]);
                for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(packed) {
                    stream128(block, vector);
                }
            }
            _ => {
                for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(results[0]) {
                    stream256(block, vector);
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn packed_32(codes: [__m256i; 2]) -> __m256i {
    let [first, second] = both(codes, |codes| _mm256_maddubs_epi16(codes, _mm256_set1_epi16(16 << 8 | 1)));
    in_order(_mm256_packus_epi16(first, second))
}

/// Packs 64 codes of six bits. The upper two bits of each byte are zero.
#[inline]
#[target_feature(enable = "avx2")]
fn packed_48(codes: [__m256i; 2]) -> [__m128i; 3] {
    let [first, second] = both(codes, |codes| packed_24(codes));
    let (low, high) = (_mm256_castsi256_si128(second), _mm256_extracti128_si256::<1>(second));
    let middle = _mm_unpacklo_epi64(_mm256_extracti128_si256::<1>(first), low);
    [_mm256_castsi256_si128(first), middle, _mm_alignr_epi8::<8>(high, low)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn packed_24(codes: __m256i) -> __m256i {
    let pairs = _mm256_set1_epi16(64 << 8 | 1);
    let fours = _mm256_set1_epi32(4096 << 16 | 1);
    // Brings the three bytes of all dwords together in each lane, then joins both lanes.
    const TOGETHER: Block = bytes_where!(|i| if i % 16 < 12 { i % 16 / 3 * 4 + i % 16 % 3 } else { 128 });
    let together = load256(TOGETHER.first_chunk().expect("64 bytes"));
    let lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let dwords = _mm256_madd_epi16(_mm256_maddubs_epi16(codes, pairs), fours);
    _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(dwords, together), lanes)
}
