//! Six-bit elements, `docs/kernels.md §7`: 64 codes of a byte each against 48 packed bytes.

use super::{Block, bytes_where, load, store};
use crate::level::Avx512;
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
