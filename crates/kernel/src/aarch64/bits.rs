//! Elements of 6 bits to bytes; those of 1, 2 and 4 bits are vector loops as they are compiled.

use crate::level::Neon;
use crate::tail::{Groups, Store};
use std::arch::aarch64::*;

/// Packed elements of 6 bits to bytes, 64 at a time.
#[derive(Debug)]
pub(crate) struct Unpack6(pub Neon);

/// Bytes to packed elements of 6 bits, 64 at a time.
#[derive(Debug)]
pub(crate) struct Pack6(pub Neon);

impl Groups for Unpack6 {
    fn group(&self) -> usize {
        64
    }
    fn widths(&self) -> (usize, usize) {
        (6, 1)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the feature was detected.
        unsafe { unpack_6(src.as_chunks().0, dst.as_chunks_mut().0) };
    }
}

impl Groups for Pack6 {
    fn group(&self) -> usize {
        64
    }
    fn widths(&self) -> (usize, usize) {
        (8, 1)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the feature was detected.
        unsafe { pack_6(src.as_chunks().0, dst.as_chunks_mut().0) };
    }
}

/// Four elements in three bytes: `a` has the first and two bits of the second, `b` four and four, `c` two and the last.
#[target_feature(enable = "neon")]
fn unpack_6(sources: &[[u8; 48]], targets: &mut [[u8; 64]]) {
    let six = vdupq_n_u8(0x3f);
    for (target, source) in targets.iter_mut().zip(sources) {
        // SAFETY: the reference is to 48 readable bytes, and the load needs no alignment.
        let uint8x16x3_t(a, b, c) = unsafe { vld3q_u8(source.as_ptr()) };
        let second = vandq_u8(vsliq_n_u8::<2>(vshrq_n_u8::<6>(a), b), six);
        let third = vandq_u8(vsliq_n_u8::<4>(vshrq_n_u8::<4>(b), c), six);
        let codes = uint8x16x4_t(vandq_u8(a, six), second, third, vshrq_n_u8::<2>(c));
        // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
        unsafe { vst4q_u8(target.as_mut_ptr(), codes) }
    }
}

/// As [`unpack_6`], back. An insertion keeps as many low bits of what it is made into as it is shifted by.
#[target_feature(enable = "neon")]
fn pack_6(sources: &[[u8; 64]], targets: &mut [[u8; 48]]) {
    for (target, source) in targets.iter_mut().zip(sources) {
        // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
        let uint8x16x4_t(first, second, third, last) = unsafe { vld4q_u8(source.as_ptr()) };
        let a = vsliq_n_u8::<6>(first, second);
        let b = vsliq_n_u8::<4>(vshrq_n_u8::<2>(second), third);
        let c = vsliq_n_u8::<2>(vshrq_n_u8::<4>(third), last);
        // SAFETY: the reference is to 48 writable bytes, and the store needs no alignment.
        unsafe { vst3q_u8(target.as_mut_ptr(), uint8x16x3_t(a, b, c)) }
    }
}
