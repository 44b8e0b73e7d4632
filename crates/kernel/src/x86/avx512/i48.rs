//! i48, `docs/kernels.md §7`: eight bytes each against six packed ones, eight elements at a time.

use crate::level::Avx512;
use crate::tail::{Groups, Store};
use crate::x86::{Block, bytes_where, load, load128, load256, store};
use std::arch::x86_64::*;

/// Unpacks elements, sign-extended.
#[derive(Debug)]
pub(crate) struct Unpack(pub Avx512);

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

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack(sources: &[[u8; 48]], targets: &mut [Block]) {
    // The six bytes of an element on top of each quadword; the two below are shifted out.
    let spread = load(const { &bytes_where!(|i| i / 8 * 6 + (i % 8).saturating_sub(2)) });
    for (target, source) in targets.iter_mut().zip(sources) {
        let first = load256(source.first_chunk().expect("48 bytes"));
        let last = load128(source.last_chunk().expect("48 bytes"));
        let bytes = _mm512_inserti32x4::<2>(_mm512_castsi256_si512(first), last);
        store(target, _mm512_srai_epi64::<16>(_mm512_permutexvar_epi8(spread, bytes)));
    }
}
