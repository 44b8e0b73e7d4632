//! The loop of the kernels that convert groups of elements with vectors of 256 bits: it looks ahead, and stores results, past
//! the caches or packed where that is asked for.

use super::in_order;
use crate::stream::LINE;
use crate::x86::ahead::Ahead;
use crate::x86::{Block, bytes_where, load256, store128, store256, stream64, stream128, stream256};
use std::arch::x86_64::*;

/// Converts `GROUP` elements at a time, of which the source takes `src_bytes` each, and the destination as many vectors as
/// `convert` gives; 32 bytes of results may be packed to `BITS` if that is less than 8. Results go past the caches if it
/// `streams`; the destination begins with a line then.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn groups<const GROUP: usize, const VECTORS: usize, const BITS: usize>(
    src_bytes: usize,
    src: &[u8],
    streams: bool,
    dst: &mut [u8],
    convert: impl Fn(&[u8]) -> [__m256i; VECTORS],
) {
    assert!(!streams || dst.as_ptr().addr().is_multiple_of(LINE), "past the caches go whole lines");
    let ahead = if streams { Ahead::NOTHING } else { Ahead::of_this_cpu() };
    for (target, source) in dst.chunks_exact_mut(4 * VECTORS * BITS).zip(src.chunks_exact(GROUP * src_bytes)) {
        // Where groups are small, it would take an eighth of the loop.
        if GROUP == 32 {
            ahead.ask(source, GROUP * src_bytes);
        }
        let results = convert(source);
        // A branch, which the compiler takes out of short loops: two loops would have a call each.
        if streams {
            // SAFETY: the first target begins with a line, and every one takes a whole number of its vectors.
            unsafe { stream::<VECTORS, BITS>(target, results) };
        } else {
            put::<VECTORS, BITS>(target, results);
        }
    }
}

/// Stores results where they fit exactly.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn put<const VECTORS: usize, const BITS: usize>(target: &mut [u8], results: [__m256i; VECTORS]) {
    match BITS {
        4 => store128(target.first_chunk_mut().expect("32 nibbles"), packed_16(results[0])),
        6 => {
            let packed = packed_24(results[0]);
            let (first, last) = target.split_first_chunk_mut().expect("32 codes of six bits");
            store128(first, _mm256_castsi256_si128(packed));
            last.copy_from_slice(&_mm256_extract_epi64::<2>(packed).to_le_bytes());
        }
        _ => {
            for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(results) {
                store256(block, vector);
            }
        }
    }
}

/// As [`put`], past the caches.
///
/// # Safety
/// The target must be aligned to 32, for four bits to 16.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn stream<const VECTORS: usize, const BITS: usize>(target: &mut [u8], results: [__m256i; VECTORS]) {
    // SAFETY: what is stored is as wide as the target is aligned, or a vector of several.
    unsafe {
        match BITS {
            4 => stream128(target.first_chunk_mut().expect("32 nibbles"), packed_16(results[0])),
            6 => {
                let packed = packed_24(results[0]);
                let quads: &mut [[u8; 8]; 3] = target.as_chunks_mut().0.first_chunk_mut().expect("24 bytes");
                stream64(&mut quads[0], _mm256_extract_epi64::<0>(packed));
                stream64(&mut quads[1], _mm256_extract_epi64::<1>(packed));
                stream64(&mut quads[2], _mm256_extract_epi64::<2>(packed));
            }
            _ => {
                for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(results) {
                    stream256(block, vector);
                }
            }
        }
    }
}

/// 32 nibbles.
#[inline]
#[target_feature(enable = "avx2")]
fn packed_16(codes: __m256i) -> __m128i {
    let pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(16 << 8 | 1));
    _mm256_castsi256_si128(in_order(_mm256_packus_epi16(pairs, pairs)))
}

/// 32 codes, packed into the lower 24 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn packed_24(codes: __m256i) -> __m256i {
    let pairs = _mm256_set1_epi16(64 << 8 | 1);
    let fours = _mm256_set1_epi32(4096 << 16 | 1);
    // The three bytes of each dword, together; then those of both lanes.
    const TOGETHER: Block = bytes_where!(|i| if i % 16 < 12 { i % 16 / 3 * 4 + i % 16 % 3 } else { 128 });
    let together = load256(TOGETHER.first_chunk().expect("64 bytes"));
    let lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let codes = _mm256_and_si256(codes, _mm256_set1_epi8(0x3f));
    let dwords = _mm256_madd_epi16(_mm256_maddubs_epi16(codes, pairs), fours);
    _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(dwords, together), lanes)
}
