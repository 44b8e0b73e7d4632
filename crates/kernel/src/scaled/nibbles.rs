//! Blocks of codes of four bits with their operands, as a kernel written by hand takes them: it makes the 16 results of a
//! block and looks up its elements at once (`docs/kernels.md §15`).

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "kernels of x86-64 take it"))]

use super::lookup::Sixteen;
use truecast_core::scaled::BlockType;

/// How a code `c` is combined with the operands `s` and `u` of its block, in f32.
pub(crate) mod form {
    /// `c * s`.
    pub const TIMES: u8 = 0;
    /// The same for codes of which some are NaN.
    pub const TIMES_OF_NAN: u8 = 1;
    /// `c / s`.
    pub const DIVIDE: u8 = 2;
    /// `(c - u) * s`.
    pub const MINUS_TIMES: u8 = 3;
    /// `c * s + u`, with two roundings.
    pub const TIMES_PLUS: u8 = 4;
    /// The same with both roundings to bf16.
    pub const TIMES_PLUS_BF16: u8 = 5;
}

/// Where the nibbles of 32 elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Two elements that follow each other in each byte.
    Pairs,
    /// In 16 bytes, of which the low nibbles come first, from this byte of each record of so many bytes on.
    Halves { at: usize, bytes: usize },
    /// The low or the high nibbles of 32 bytes: 64 elements, of which there are 256 from this byte of each record on.
    Quarters { at: usize, bytes: usize },
}

/// A row of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nibbles<'a> {
    pub codes: &'a [u8],
    pub order: Order,
    /// Elements that share operands, a multiple of 32.
    pub block: usize,
    /// The values of the codes.
    pub values: &'a [[u8; 4]; 16],
    /// One of [`form`].
    pub form: u8,
    pub s: &'a [[u8; 4]],
    /// As many.
    pub u: &'a [[u8; 4]],
    /// What is added before the upper half of an f32 is taken, to round it.
    pub half: u32,
    /// The result of NaN.
    pub nan: u16,
}

impl Nibbles<'_> {
    /// Elements of which there are codes and operands, in groups of 32.
    pub fn elements(&self) -> usize {
        let of_codes = match self.order {
            Order::Pairs => self.codes.len() / 16 * 32,
            Order::Halves { bytes, .. } => self.codes.len() / bytes * 32,
            Order::Quarters { bytes, .. } => self.codes.len() / bytes * 256,
        };
        of_codes.min(self.s.len().saturating_mul(self.block))
    }
}

/// Bytes of the results of 32 elements.
pub(crate) const RESULTS: usize = 2 * size_of::<Sixteen>();

/// Bytes of a block of Q4_K.
pub(crate) const Q4_K_BYTES: usize = BlockType::Q4_K.bytes() as usize;

/// What the scales and the biases of the eight groups of a block of Q4_K or Q5_K are multiples of their factors by, in a
/// byte each: six bits, as the drawing beside the definition has them, four at a time.
#[inline(always)]
pub(crate) fn sixes_of_q4_k(b: &[u8; Q4_K_BYTES]) -> [u64; 2] {
    let word = |at: usize| u64::from(u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]));
    let (first, second, low) = (word(4), word(8), word(12));
    let six = |all: u64, low: u64| all & splat(63) | (low & splat(15) | all >> 2 & splat(48)) << 32;
    [six(first & LOWER, low), six(second & LOWER, low >> 4)]
}

/// The scale of a block of MXFP4, of whose codes the values are doubled: 2^(e - 128) as f32, the first two of which are
/// subnormal. (255 is no value.)
#[inline(always)]
pub(crate) fn scale_of_mxfp4(e: u8) -> u32 {
    let e = u32::from(e);
    if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 }
}

/// The lower four bytes of a word.
const LOWER: u64 = 0xffff_ffff;

/// A byte, eight times: fields of eight bytes are taken at once.
pub(super) const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}
