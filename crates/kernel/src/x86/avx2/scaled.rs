//! Lookups with a table for each block (`scaled::lookup`), 16 elements at a time.

use super::super::{AHEAD, load128, prefetch, store128};
use crate::level::Avx2;
use crate::scaled::lookup::{Codes, Sixteen, Tables};
use std::arch::x86_64::*;

/// Looks up whole vectors of 16 elements and returns how many elements that were.
pub(crate) fn sixteen(_: Avx2, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    // SAFETY: the token proves that the features were detected.
    unsafe {
        match codes {
            Codes::Nibbles(codes) => rows::<true>(codes, block, tables, dst),
            Codes::Bytes(codes) => rows::<false>(codes, block, tables, dst),
        }
    }
}

#[target_feature(enable = "avx2")]
fn rows<const NIBBLES: bool>(codes: &[u8], block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    let bytes = if NIBBLES { 8 } else { 16 };
    let (vectors, _) = dst.as_chunks_mut::<32>();
    let n = vectors.len().min(codes.len() / bytes);
    let per_block = block / 16;
    let blocks = vectors[..n].chunks_mut(per_block).zip(codes.chunks(per_block * bytes));
    for (i, (vectors, codes)) in blocks.enumerate() {
        let (low, high) = planes(tables.of(i));
        prefetch(codes.as_ptr().wrapping_add(AHEAD));
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

/// The low bytes of 16 results, and the high ones.
#[inline]
#[target_feature(enable = "avx2")]
fn planes(table: &Sixteen) -> (__m128i, __m128i) {
    let (halves, _) = table.as_chunks::<16>();
    let (first, second) = (load128(&halves[0]), load128(&halves[1]));
    let byte = _mm_set1_epi16(0xff);
    let low = _mm_packus_epi16(_mm_and_si128(first, byte), _mm_and_si128(second, byte));
    (low, _mm_packus_epi16(_mm_srli_epi16::<8>(first), _mm_srli_epi16::<8>(second)))
}
