//! i48, `docs/kernels.md §7`: eight bytes each against six packed ones.

use super::{Block, bytes_where, load, load_half, load_quarter, store, store_half};
use crate::level::{Avx2, Avx512};
use std::arch::x86_64::*;

/// Unpacks whole groups of 8 elements, sign-extended, and returns how many elements that were.
pub(crate) fn unpack(_: Avx512, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn groups(sources: &[[u8; 48]], targets: &mut [Block]) {
        // The six bytes of an element on top of each quadword; the two below are shifted out.
        let spread = load(&bytes_where(|i| i / 8 * 6 + (i % 8).saturating_sub(2)));
        for (target, source) in targets.iter_mut().zip(sources) {
            let first = load_half(source.first_chunk().expect("48 bytes"));
            let last = load_quarter(source.last_chunk().expect("48 bytes"));
            let bytes = _mm512_inserti32x4::<2>(_mm512_castsi256_si512(first), last);
            store(target, _mm512_srai_epi64::<16>(_mm512_permutexvar_epi8(spread, bytes)));
        }
    }
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(src.as_chunks().0, targets) };
    targets.len() * 8
}

/// As [`unpack`], 4 at a time.
pub(crate) fn unpack_avx2(_: Avx2, src: &[u8], dst: &mut [u8]) -> usize {
    #[target_feature(enable = "avx2")]
    fn groups(sources: &[[u8; 24]], targets: &mut [[u8; 32]]) {
        // As above: in the first lane of bytes 0 to 15, in the second of 8 to 23.
        let spread =
            load_half(&std::array::from_fn(|i| (i / 16 * 4 + i % 16 / 8 * 6 + (i % 8).saturating_sub(2)) as u8));
        for (target, source) in targets.iter_mut().zip(sources) {
            let first = load_quarter(source.first_chunk().expect("24 bytes"));
            let last = load_quarter(source.last_chunk().expect("24 bytes"));
            let quads = _mm256_shuffle_epi8(_mm256_set_m128i(last, first), spread);
            // There is no arithmetic shift of quadwords: the upper dwords have one, the lower ones need none.
            let (low, high) = (_mm256_srli_epi64::<16>(quads), _mm256_srai_epi32::<16>(quads));
            store_half(target, _mm256_blend_epi32::<0b1010_1010>(low, high));
        }
    }
    let (targets, _) = dst.as_chunks_mut();
    // SAFETY: the token proves that the features were detected.
    unsafe { groups(src.as_chunks().0, targets) };
    targets.len() * 4
}
