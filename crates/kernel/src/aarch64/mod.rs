//! Kernels with NEON intrinsics, for tables and f16 (`docs/kernels.md §7.2`).
//!
//! Results equal the results of lanes and tables. Memory is accessed through references to whole arrays.

mod choose;
mod f16;
mod rows;
mod scaled;

use crate::interleave::Unpack;
use std::arch::aarch64::*;

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is to 16 readable bytes, and the load needs no alignment.
    unsafe { vld1q_u8(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(to: &mut [u8; 16], value: uint8x16_t) {
    // SAFETY: the reference is to 16 writable bytes, and the store needs no alignment.
    unsafe { vst1q_u8(to.as_mut_ptr(), value) }
}

impl Unpack for uint8x16_t {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn unpack<const UNIT: usize>(self, other: Self) -> (Self, Self) {
        match UNIT {
            1 => (vzip1q_u8(self, other), vzip2q_u8(self, other)),
            2 => {
                let (a, b) = (vreinterpretq_u16_u8(self), vreinterpretq_u16_u8(other));
                (vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b)))
            }
            _ => {
                let (a, b) = (vreinterpretq_u32_u8(self), vreinterpretq_u32_u8(other));
                (vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b)))
            }
        }
    }
}
