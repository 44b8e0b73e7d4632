//! Lookups of codes in tables, one table for each block (`scaled::lookup`). Also the largest magnitude of each block.

use super::super::{load128, load256, prefetch, store128};
use crate::level::Avx2;
use crate::scaled::lookup::{Codes, Table16, Tables};
use crate::x86::ahead::Ahead;
use std::arch::x86_64::*;

/// Looks up whole vectors of 16 elements. `block` must be a multiple of 16, as `lookup::fits_lookup16` accepts. Returns
/// the number of elements that were looked up.
pub(crate) fn lookup16(_: Avx2, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    // SAFETY: the token proves that the features were detected.
    unsafe {
        match codes {
            Codes::Nibbles(codes) => blocks::<true>(codes, block, tables, dst),
            Codes::Bytes(codes) => blocks::<false>(codes, block, tables, dst),
        }
    }
}

#[target_feature(enable = "avx2")]
fn blocks<const NIBBLES: bool>(codes: &[u8], block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    let bytes = if NIBBLES { 8 } else { 16 };
    let (vectors, _) = dst.as_chunks_mut::<32>();
    let n = vectors.len().min(codes.len() / bytes);
    let (per_block, ahead) = (block / 16, Ahead::plain());
    let blocks = vectors[..n].chunks_mut(per_block).zip(codes.chunks(per_block * bytes));
    for (i, (vectors, codes)) in blocks.enumerate() {
        let (low, high) = split_bytes(tables.of(i));
        // One line for each block.
        ahead.prefetch_l1(codes, 1);
        for (to, codes) in vectors.iter_mut().zip(codes.chunks_exact(bytes)) {
            let codes = if NIBBLES {
                let nibbles = _mm_cvtsi64_si128(i64::from_le_bytes(*codes.first_chunk().expect("8 bytes of codes")));
                let upper = _mm_srli_epi16::<4>(nibbles);
                _mm_and_si128(_mm_unpacklo_epi8(nibbles, upper), _mm_set1_epi8(15))
            } else {
                load128(codes.first_chunk().expect("16 bytes of codes"))
            };
            let (low, high) = (_mm_shuffle_epi8(low, codes), _mm_shuffle_epi8(high, codes));
            let (halves, _) = to.as_chunks_mut::<16>();
            store128(&mut halves[0], _mm_unpacklo_epi8(low, high));
            store128(&mut halves[1], _mm_unpackhi_epi8(low, high));
        }
    }
    n * 16
}

/// Returns the low bytes of the table's 16 results, and the high bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn split_bytes(table: &Table16) -> (__m128i, __m128i) {
    let (halves, _) = table.as_chunks::<16>();
    let (first, second) = (load128(&halves[0]), load128(&halves[1]));
    let byte = _mm_set1_epi16(0xff);
    let low = _mm_packus_epi16(_mm_and_si128(first, byte), _mm_and_si128(second, byte));
    (low, _mm_packus_epi16(_mm_srli_epi16::<8>(first), _mm_srli_epi16::<8>(second)))
}

/// Finds the largest magnitude of each whole block of 16 or 32 elements of 16 bits. Returns the number of blocks.
/// Prefetches the line `ahead` bytes after the start of each block.
pub(crate) fn block_amax(_: Avx2, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
    // SAFETY: the token proves that the features were detected.
    unsafe { amax_of_blocks(block, src, ahead, magnitudes) }
}

#[target_feature(enable = "avx2")]
pub(in crate::x86) fn amax_of_blocks(block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
    match block {
        16 => of_vectors::<1>(src, ahead, magnitudes),
        32 => of_vectors::<2>(src, ahead, magnitudes),
        _ => 0,
    }
}

/// Finds the largest magnitude of each block of `N` vectors. `vphminposuw` finds the least of eight words, but no
/// instruction finds the largest. The least distance of a magnitude from `i16::MAX` gives the largest magnitude.
#[target_feature(enable = "avx2")]
fn of_vectors<const N: usize>(src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
    let blocks = src.chunks_exact(32 * N);
    let n = blocks.len().min(magnitudes.len());
    let magnitude_mask = _mm256_set1_epi16(i16::MAX);
    for (block, magnitude) in blocks.zip(&mut *magnitudes) {
        prefetch(block.as_ptr().wrapping_add(ahead));
        let mut least = magnitude_mask;
        for vector in block.as_chunks::<32>().0 {
            least = _mm256_min_epu16(least, _mm256_andnot_si256(load256(vector), magnitude_mask));
        }
        let eight = _mm_min_epu16(_mm256_castsi256_si128(least), _mm256_extracti128_si256::<1>(least));
        *magnitude = i16::MAX - _mm_cvtsi128_si32(_mm_minpos_epu16(eight)) as i16;
    }
    n
}
