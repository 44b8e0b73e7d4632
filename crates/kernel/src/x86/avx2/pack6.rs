//! Six-bit elements, `docs/kernels.md §7`: codes of a byte each against three packed bytes for four.

use super::groups::packed_48;
use crate::level::Avx2;
use crate::tail::Fixed;
use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load128, load256, store128, store256};
use std::arch::x86_64::*;

/// Packed elements to bytes.
pub(crate) fn unpack_6(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the feature was detected.
    unsafe { Fixed::new(32, (6, 1), unpack, None) }
}

/// Bytes to packed elements.
pub(crate) fn pack_6(_: Avx2) -> Fixed {
    // SAFETY: the token proves that the feature was detected.
    unsafe { Fixed::new(64, (8, 1), pack, None) }
}

#[target_feature(enable = "avx2")]
fn unpack(src: &[u8], dst: &mut [u8]) {
    const SPREAD: Block = bytes_where!(|i| i / 16 % 2 * 4 + i % 16 / 4 * 3 + if i % 4 < 2 { i % 4 } else { 2 });
    // Three bytes of packed codes to each dword: in the first lane of bytes 0 to 15, in the second of 8 to 23.
    let spread = load256(SPREAD.first_chunk().expect("64 bytes"));
    let (sources, targets): (&[[u8; 24]], _) = (src.as_chunks().0, dst.as_chunks_mut().0);
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
fn pack(src: &[u8], dst: &mut [u8]) {
    let (sources, targets) = (src.as_chunks().0.as_chunks().0, dst.as_chunks_mut().0.as_chunks_mut::<3>().0);
    for (target, [first, second]) in targets.iter_mut().zip(sources) {
        let codes = both([first, second], |bytes| _mm256_and_si256(load256(bytes), _mm256_set1_epi8(0x3f)));
        for (block, vector) in target.iter_mut().zip(packed_48(codes)) {
            store128(block, vector);
        }
    }
}
