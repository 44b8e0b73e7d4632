//! i48, `docs/kernels.md §7`: eight bytes each against six packed ones, eight elements at a time.

use crate::level::Avx2;
use crate::tail::{Groups, Store};
use crate::x86::{Block, bytes_where, load128, load256, store256};
use std::arch::x86_64::*;

/// Unpacks elements, sign-extended.
#[derive(Debug)]
pub(crate) struct Unpack(pub Avx2);

impl Groups for Unpack {
    fn group(&self) -> usize {
        8
    }
    fn widths(&self) -> (usize, usize) {
        (48, 8)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe { unpack(src.as_chunks().0, dst.as_chunks_mut().0) };
    }
}

#[target_feature(enable = "avx2")]
fn unpack(sources: &[[u8; 24]], targets: &mut [[u8; 32]]) {
    // The six bytes of an element on top of each quadword: in the first lane of bytes 0 to 15, in the second of 8 to 23.
    const SPREAD: Block = bytes_where!(|i| i / 16 % 2 * 4 + i % 16 / 8 * 6 + (i % 8).saturating_sub(2));
    let spread = load256(SPREAD.first_chunk().expect("64 bytes"));
    for (target, source) in targets.iter_mut().zip(sources) {
        let first = load128(source.first_chunk().expect("24 bytes"));
        let last = load128(source.last_chunk().expect("24 bytes"));
        let quads = _mm256_shuffle_epi8(_mm256_set_m128i(last, first), spread);
        // There is no arithmetic shift of quadwords: the upper dwords have one, the lower ones need none.
        let (low, high) = (_mm256_srli_epi64::<16>(quads), _mm256_srai_epi32::<16>(quads));
        store256(target, _mm256_blend_epi32::<0b1010_1010>(low, high));
    }
}
