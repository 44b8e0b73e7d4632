//! Six-bit elements, `docs/kernels.md §7`: 64 codes of a byte each against 48 packed bytes.

use super::{Block, bytes_where, load, load_half, load_quarter, store, store_half, store_quarter};
use crate::level::{Avx2, Avx512};
use std::arch::x86_64::*;

/// 64 packed elements.
type Packed = [u8; 48];

/// Unpacks whole groups of 64 elements and returns how many elements that were.
pub(crate) fn unpack(_: Avx512, src: &[u8], dst: &mut [u8], len: usize) -> usize {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn groups(sources: &[Packed], targets: &mut [Block]) {
        // Six bytes of packed codes to each quadword, then eight codes out of it.
        let spread = load(&bytes_where(|i| i / 8 * 6 + (i % 8).min(5)));
        let shifts = load(&bytes_where(|i| i % 8 * 6));
        let mask = _mm512_set1_epi8(0x3f);
        for (target, source) in targets.iter_mut().zip(sources) {
            let quads = _mm512_permutexvar_epi8(spread, load_packed(source));
            store(target, _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, quads), mask));
        }
    }
    let (targets, _) = dst[..len].as_chunks_mut::<64>();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(src.as_chunks().0, targets) };
    targets.len() * 64
}

/// Packs whole groups of 64 elements and returns how many elements that were.
pub(crate) fn pack(_: Avx512, src: &[u8], dst: &mut [u8], len: usize) -> usize {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn groups(sources: &[Block], targets: &mut [Packed]) {
        let mask = _mm512_set1_epi8(0x3f);
        // Codes to pairs of 12 bits, pairs to fours of 24, whose six bytes of each quadword are moved together.
        let pairs = load(&bytes_where(|i| if i % 2 == 0 { 1 } else { 64 }));
        let fours = _mm512_set1_epi32(4096 << 16 | 1);
        let shifts = load(&bytes_where(|i| [0, 8, 16, 32, 40, 48, 0, 0][i % 8]));
        let together = load(&bytes_where(|i| i / 6 % 8 * 8 + i % 6));
        for (target, source) in targets.iter_mut().zip(sources) {
            let codes = _mm512_and_si512(load(source), mask);
            let dwords = _mm512_madd_epi16(_mm512_maddubs_epi16(codes, pairs), fours);
            let bytes = _mm512_multishift_epi64_epi8(shifts, dwords);
            store_packed(target, _mm512_permutexvar_epi8(together, bytes));
        }
    }
    let (sources, _) = src[..len].as_chunks::<64>();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(sources, dst.as_chunks_mut().0) };
    sources.len() * 64
}

/// As [`unpack`], 32 at a time.
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

/// As [`pack`], 32 at a time.
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

const FIRST_48: u64 = (1 << 48) - 1;

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_packed(from: &Packed) -> __m512i {
    // SAFETY: the mask keeps the load within the 48 readable bytes of the reference.
    unsafe { _mm512_maskz_loadu_epi8(FIRST_48, from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_packed(to: &mut Packed, value: __m512i) {
    // SAFETY: the mask keeps the store within the 48 writable bytes of the reference.
    unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), FIRST_48, value) }
}
