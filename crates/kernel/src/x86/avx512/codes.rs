//! Elements of 2, 4 and 6 bits to bytes and back, which is all that becomes of them.

use super::bits::load_codes;
use super::blocks::{Blocks, Kernel, Params};
use crate::level::Avx512;
use crate::tail::{Groups, run};
use std::arch::x86_64::*;

/// Codes of a tile as they are: packed ones in a byte each, or bytes.
#[derive(Debug)]
struct Codes<const BITS: usize>;

impl<const BITS: usize> Kernel<1> for Codes<BITS> {
    const SRC_BITS: usize = BITS;
    const LOOKS_AHEAD: bool = BITS < 8;
    const PACKS: &'static [u32] = if BITS == 8 { &[2, 4, 6] } else { &[] };
    const STREAMS: bool = false;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; 1] {
        [load_codes::<BITS>(source)]
    }
}

impl<const BITS: usize> Params<1> for Codes<BITS> {
    type Kernel = Self;
    unsafe fn kernel(&self) -> Self {
        Self
    }
}

/// Unpacks `len` elements of 2, 4 or 6 bits. False, and nothing is done, for other widths.
pub(crate) fn unpack(token: Avx512, bits: u32, src: &[u8], dst: &mut [u8], len: usize) -> bool {
    let mut run = |kernel: &dyn Groups| run(kernel, (bits, src), (8, dst), len, false);
    match bits {
        2 => run(&Blocks::<_, 1>(Codes::<2>, token)),
        4 => run(&Blocks::<_, 1>(Codes::<4>, token)),
        6 => run(&Blocks::<_, 1>(Codes::<6>, token)),
        _ => false,
    }
}

/// Packs `len` elements to 2, 4 or 6 bits. False, and nothing is done, for other widths.
pub(crate) fn pack(token: Avx512, bits: u32, src: &[u8], dst: &mut [u8], len: usize) -> bool {
    matches!(bits, 2 | 4 | 6) && run(&Blocks::<_, 1>(Codes::<8>, token), (8, src), (bits, dst), len, false)
}
