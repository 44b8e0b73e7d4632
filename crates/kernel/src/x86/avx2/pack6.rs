//! Six-bit elements, `docs/kernels.md §7`: codes of a byte each against three packed bytes for four.

use super::groups::packed_48;
use crate::level::Avx2;
use crate::tail::{Groups, Store};
use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load128, load256, store128, store256};
use std::arch::x86_64::*;

/// Packed elements to bytes.
#[derive(Debug)]
pub(crate) struct Unpack(pub Avx2);

/// Bytes to packed elements.
#[derive(Debug)]
pub(crate) struct Pack(pub Avx2);

impl Groups for Unpack {
    fn group(&self) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (6, 1)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the feature was detected.
        unsafe { unpack(src.as_chunks().0, dst.as_chunks_mut().0) };
    }
}

impl Groups for Pack {
    fn group(&self) -> usize {
        64
    }
    fn widths(&self) -> (usize, usize) {
        (8, 1)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the feature was detected.
        unsafe { pack(src.as_chunks().0.as_chunks().0, dst.as_chunks_mut().0.as_chunks_mut().0) };
    }
}

#[target_feature(enable = "avx2")]
fn unpack(sources: &[[u8; 24]], targets: &mut [[u8; 32]]) {
    const SPREAD: Block = bytes_where!(|i| i / 16 % 2 * 4 + i % 16 / 4 * 3 + if i % 4 < 2 { i % 4 } else { 2 });
    // Three bytes of packed codes to each dword: in the first lane of bytes 0 to 15, in the second of 8 to 23.
    let spread = load256(SPREAD.first_chunk().expect("64 bytes"));
    for (target, source) in targets.iter_mut().zip(sources) {
        let first = load128(source.first_chunk().expect("24 bytes"));
        let last = load128(source.last_chunk().expect("24 bytes"));
        let dwords = _mm256_shuffle_epi8(_mm256_set_m128i(last, first), spread);
        let code = |byte: i32, moved: __m256i| _mm256_and_si256(moved, _mm256_set1_epi32(0x3f << (8 * byte)));
        let even = _mm256_or_si256(code(0, dwords), code(2, _mm256_slli_epi32::<4>(dwords)));
        let odd = _mm256_or_si256(code(1, _mm256_slli_epi32::<2>(dwords)), code(3, _mm256_slli_epi32::<6>(dwords)));
        store256(target, _mm256_or_si256(even, odd));
    }
}

#[target_feature(enable = "avx2")]
fn pack(sources: &[[[u8; 32]; 2]], targets: &mut [[[u8; 16]; 3]]) {
    for (target, [first, second]) in targets.iter_mut().zip(sources) {
        let codes = both([first, second], |bytes| _mm256_and_si256(load256(bytes), _mm256_set1_epi8(0x3f)));
        for (block, vector) in target.iter_mut().zip(packed_48(codes)) {
            store128(block, vector);
        }
    }
}
