//! Lookups with a table per block (`scaled::lookup`), 16 elements at a time.

use super::{load, store};
use crate::level::Neon;
use crate::scaled::lookup::{Codes, Tables};
use std::arch::aarch64::*;

/// Looks up whole vectors of 16 elements; returns the number of elements done.
pub(crate) fn lookup16(_: Neon, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    // SAFETY: the token proves that the feature was detected.
    unsafe {
        match codes {
            Codes::Nibbles(codes) => rows::<true>(codes, block, tables, dst),
            Codes::Bytes(codes) => rows::<false>(codes, block, tables, dst),
        }
    }
}

#[target_feature(enable = "neon")]
fn rows<const NIBBLES: bool>(codes: &[u8], block: usize, tables: Tables<'_>, dst: &mut [u8]) -> usize {
    let bytes = if NIBBLES { 8 } else { 16 };
    let (vectors, _) = dst.as_chunks_mut::<16>();
    let (targets, _) = vectors.as_chunks_mut::<2>();
    let n = targets.len().min(codes.len() / bytes);
    let per_block = block / 16;
    let blocks = targets[..n].chunks_mut(per_block).zip(codes.chunks(per_block * bytes));
    for (i, (targets, codes)) in blocks.enumerate() {
        let (halves, _) = tables.of(i).as_chunks();
        let (first, second) = (load(&halves[0]), load(&halves[1]));
        let (low, high) = (vuzp1q_u8(first, second), vuzp2q_u8(first, second));
        for ([first, second], codes) in targets.iter_mut().zip(codes.chunks_exact(bytes)) {
            let codes = if NIBBLES {
                let packed = u64::from_le_bytes(*codes.first_chunk().expect("8 bytes of codes"));
                let packed = vreinterpretq_u8_u64(vdupq_n_u64(packed));
                vzip1q_u8(vandq_u8(packed, vdupq_n_u8(15)), vshrq_n_u8::<4>(packed))
            } else {
                load(codes.first_chunk().expect("16 bytes of codes"))
            };
            let (low, high) = (vqtbl1q_u8(low, codes), vqtbl1q_u8(high, codes));
            store(first, vzip1q_u8(low, high));
            store(second, vzip2q_u8(low, high));
        }
    }
    n * 16
}
