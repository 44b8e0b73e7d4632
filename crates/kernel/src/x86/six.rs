//! Six-bit elements at AVX2, `docs/kernels.md §7`: 32 codes of a byte each against 24 packed bytes.

use super::{load_half, load_quarter, store_half, store_quarter};
use crate::level::Avx2;
use std::arch::x86_64::*;

/// Unpacks whole groups of 32 elements and returns how many elements that were.
pub(crate) fn unpack_avx2(_: Avx2, src: &[u8], dst: &mut [u8], len: usize) -> usize {
    #[target_feature(enable = "avx2")]
    fn groups(sources: &[[u8; 24]], targets: &mut [[u8; 32]]) {
        // Three bytes of packed codes to each dword: in the first lane of bytes 0 to 15, in the second of 8 to 23.
        let spread = load_half(&std::array::from_fn(|i| (i / 16 * 4 + i % 16 / 4 * 3 + (i % 4).min(2)) as u8));
        for (target, source) in targets.iter_mut().zip(sources) {
            let first = load_quarter(source.first_chunk().expect("24 bytes"));
            let last = load_quarter(source.last_chunk().expect("24 bytes"));
            let dwords = _mm256_shuffle_epi8(_mm256_set_m128i(last, first), spread);
            let code = |byte: i32, moved: __m256i| _mm256_and_si256(moved, _mm256_set1_epi32(0x3f << (8 * byte)));
            let even = _mm256_or_si256(code(0, dwords), code(2, _mm256_slli_epi32::<4>(dwords)));
            let odd = _mm256_or_si256(code(1, _mm256_slli_epi32::<2>(dwords)), code(3, _mm256_slli_epi32::<6>(dwords)));
            store_half(target, _mm256_or_si256(even, odd));
        }
    }
    let (targets, _) = dst[..len].as_chunks_mut::<32>();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(src.as_chunks().0, targets) };
    targets.len() * 32
}

/// Packs whole groups of 32 elements and returns how many elements that were.
pub(crate) fn pack_avx2(_: Avx2, src: &[u8], dst: &mut [u8], len: usize) -> usize {
    #[target_feature(enable = "avx2")]
    fn groups(sources: &[[u8; 32]], targets: &mut [[u8; 24]]) {
        for (target, source) in targets.iter_mut().zip(sources) {
            store_24(target, load_half(source));
        }
    }
    let (sources, _) = src[..len].as_chunks::<32>();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(sources, dst.as_chunks_mut().0) };
    sources.len() * 32
}

/// Packs 32 codes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_24(target: &mut [u8; 24], codes: __m256i) {
    let pairs = _mm256_set1_epi16(64 << 8 | 1);
    let fours = _mm256_set1_epi32(4096 << 16 | 1);
    // The three bytes of each dword, together; then those of both lanes.
    let of_lane = |i: usize| if i < 12 { i / 3 * 4 + i % 3 } else { 128 };
    let together = load_half(&std::array::from_fn(|i| of_lane(i % 16) as u8));
    let lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let codes = _mm256_and_si256(codes, _mm256_set1_epi8(0x3f));
    let dwords = _mm256_madd_epi16(_mm256_maddubs_epi16(codes, pairs), fours);
    let packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(dwords, together), lanes);
    let (first, last) = target.split_first_chunk_mut().expect("24 bytes");
    store_quarter(first, _mm256_castsi256_si128(packed));
    last.copy_from_slice(&_mm256_extract_epi64::<2>(packed).to_le_bytes());
}
