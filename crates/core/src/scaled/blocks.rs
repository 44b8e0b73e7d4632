//! Blocks of GGUF files: the integer and the f32 factors of an element (§9.2 to §9.5).
//!
//! Every value is `RN32(d1 * q)`, or `RN32(RN32(d1 * q) + m1)`, with an integer `q`. Letters: `d`, `m` the f16 factors
//! of a block, `d1`, `m1` the factors of a group of elements, `i` the index of an element in its block.

use super::arithmetic::{integer, negated, product, rounded};
use crate::exact::{Exact, decode_float};
use crate::format::{F16, F32};

/// A block type of a GGUF file (§9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // The variants are the names of the table below, as the files have them.
#[allow(non_camel_case_types)]
pub enum BlockType {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Mxfp4,
    Nvfp4,
}

/// Name, number in a file, elements and bytes of a block, elements that share `d1`.
const TABLE: [(BlockType, &str, u32, u64, u64, u64); 12] = [
    (BlockType::Q4_0, "Q4_0", 2, 32, 18, 32),
    (BlockType::Q4_1, "Q4_1", 3, 32, 20, 32),
    (BlockType::Q5_0, "Q5_0", 6, 32, 22, 32),
    (BlockType::Q5_1, "Q5_1", 7, 32, 24, 32),
    (BlockType::Q8_0, "Q8_0", 8, 32, 34, 32),
    (BlockType::Q2_K, "Q2_K", 10, 256, 84, 16),
    (BlockType::Q3_K, "Q3_K", 11, 256, 110, 16),
    (BlockType::Q4_K, "Q4_K", 12, 256, 144, 32),
    (BlockType::Q5_K, "Q5_K", 13, 256, 176, 32),
    (BlockType::Q6_K, "Q6_K", 14, 256, 210, 16),
    (BlockType::Mxfp4, "MXFP4", 39, 32, 17, 32),
    (BlockType::Nvfp4, "NVFP4", 40, 64, 36, 16),
];

/// Twice the values of E2M1; code 8 is +0 (§9.4).
pub const DOUBLED_E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Terms of the value of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTerms {
    /// `q`.
    pub code: i64,
    /// `d1`.
    pub scale: Exact,
    /// `m1`, if the type has one.
    pub bias: Option<Exact>,
}

impl BlockType {
    /// Every type, in ascending order of numbers.
    pub const ALL: [BlockType; TABLE.len()] = {
        let mut all = [BlockType::Q4_0; TABLE.len()];
        let mut i = 0;
        while i < all.len() {
            assert!(TABLE[i].0 as usize == i, "rows stand in the order of the enum");
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Number in files.
    #[must_use]
    pub const fn id(self) -> u32 {
        TABLE[self as usize].2
    }

    /// Elements of a block.
    #[must_use]
    pub const fn elements(self) -> u64 {
        TABLE[self as usize].3
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        TABLE[self as usize].4
    }

    /// Consecutive elements that share a scale and a bias.
    #[must_use]
    pub const fn group(self) -> u64 {
        TABLE[self as usize].5
    }

    /// The type with a number in a file.
    #[must_use]
    pub fn of_id(id: u32) -> Option<BlockType> {
        BlockType::ALL.into_iter().find(|block| block.id() == id)
    }

    /// Bytes of a matrix; `None` if its columns are not a whole number of blocks.
    #[must_use]
    pub fn bytes_of(self, [rows, cols]: [u64; 2]) -> Option<u64> {
        let blocks = cols.is_multiple_of(self.elements()).then(|| (cols / self.elements()).checked_mul(rows))??;
        blocks.checked_mul(self.bytes()).filter(|bytes| *bytes <= 1 << 60)
    }

    /// Terms of element `i` of a block. `None` if the scale of the block is not a value (§9.4).
    ///
    /// # Panics
    /// If the block has too few bytes, or there is no such element.
    #[must_use]
    pub fn terms(self, block: &[u8], i: usize) -> Option<BlockTerms> {
        let (scale, bias) = self.factors(block, i)?;
        Some(BlockTerms { code: self.code(block, i), scale, bias })
    }

    /// `q` of element `i` of a block.
    ///
    /// # Panics
    /// As [`BlockType::terms`].
    #[must_use]
    #[inline]
    pub fn code(self, block: &[u8], i: usize) -> i64 {
        let byte = |at: usize| u32::from(block[at]);
        // The first half of 32 elements is in low nibbles, the second in high ones.
        let nibble = |at: usize| byte(at + i % 16) >> (i / 16 * 4) & 15;
        let bit = |at: usize| byte(at + i / 8) >> (i % 8) & 1;
        // Field `i / 32` (`bits` wide) of bytes shared by 32 elements.
        let plane = |at: usize, bits: usize| byte(at + i % 32) >> (i / 32 * bits) & ((1 << bits) - 1);
        // Two-bit fields: 128 elements in 32 bytes.
        let two_bits = |at: usize| byte(at + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
        match self {
            BlockType::Q4_0 => i64::from(nibble(2)) - 8,
            BlockType::Q4_1 => nibble(4).into(),
            BlockType::Q5_0 => i64::from(nibble(6) | bit(2) << 4) - 16,
            BlockType::Q5_1 => (nibble(8) | bit(4) << 4).into(),
            BlockType::Q8_0 => i64::from(block[2 + i] as i8),
            BlockType::Q2_K => two_bits(16).into(),
            BlockType::Q3_K => i64::from(two_bits(32) | plane(0, 1) << 2) - 4,
            BlockType::Q4_K | BlockType::Q5_K => {
                let nibbles = if self == BlockType::Q4_K { 16 } else { 48 };
                let low = byte(nibbles + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
                let high = if self == BlockType::Q4_K { 0 } else { plane(16, 1) << 4 };
                (low | high).into()
            }
            BlockType::Q6_K => {
                let low = byte(i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4) & 15;
                i64::from(low | two_bits(128) << 4) - 32
            }
            BlockType::Mxfp4 => DOUBLED_E2M1[nibble(1) as usize].into(),
            BlockType::Nvfp4 => {
                let (at, shift) = nvfp4_nibble(i);
                DOUBLED_E2M1[(byte(at) >> shift & 15) as usize].into()
            }
        }
    }

    /// `d1` and `m1` of the group that contains element `i`. `None` if the scale is not a value (§9.4).
    ///
    /// # Panics
    /// As [`BlockType::terms`].
    #[must_use]
    pub fn factors(self, block: &[u8], i: usize) -> Option<(Exact, Option<Exact>)> {
        let byte = |at: usize| u32::from(block[at]);
        let half = |at: usize| decode_float(&F16, u64::from(byte(at) | byte(at + 1) << 8));
        let scaled = |at: usize, n: u32| rounded(&F32, product(half(at), integer(n.into())));
        Some(match self {
            BlockType::Q4_0 | BlockType::Q5_0 | BlockType::Q8_0 => (half(0), None),
            BlockType::Q4_1 | BlockType::Q5_1 => (half(0), Some(half(2))),
            BlockType::Q2_K => {
                let both = byte(i / 16);
                (scaled(80, both & 15), Some(negated(scaled(82, both >> 4))))
            }
            BlockType::Q3_K => {
                let group = i / 16;
                let low = byte(96 + group % 8) >> (group / 8 * 4) & 15;
                let high = byte(104 + group % 4) >> (group / 4 * 2) & 3;
                let scale = integer(i64::from(low | high << 4) - 32);
                (rounded(&F32, product(half(108), scale)), None)
            }
            BlockType::Q4_K | BlockType::Q5_K => {
                let (scale, bias) = six_bits(&block[4..16], i / 32);
                (scaled(0, scale), Some(negated(scaled(2, bias))))
            }
            BlockType::Q6_K => {
                let scale = integer(i64::from(block[192 + i / 16] as i8));
                (rounded(&F32, product(half(208), scale)), None)
            }
            BlockType::Mxfp4 if block[0] == 0xff => return None,
            BlockType::Mxfp4 => {
                (Exact::Finite { neg: false, sig: 1, exp: i32::from(block[0]) - 128, sticky: false }, None)
            }
            BlockType::Nvfp4 => (half_of_ue4m3(block[i / 16]), None),
        })
    }
}

/// Scale and minimum of group `g`, six bits each, in the twelve bytes of Q4_K and Q5_K:
///
/// ```text
///   bytes 0 .. 3    scale 0..3 in bits 0..5    bits 4..5 of scale 4..7 in bits 6..7
///   bytes 4 .. 7    minimum 0..3               bits 4..5 of minimum 4..7
///   bytes 8 .. 11   bits 0..3 of scale 4..7 in bits 0..3, of minimum 4..7 in bits 4..7
/// ```
fn six_bits(bytes: &[u8], g: usize) -> (u32, u32) {
    let byte = |at: usize| u32::from(bytes[at]);
    match g {
        0..4 => (byte(g) & 63, byte(4 + g) & 63),
        _ => (byte(4 + g) & 15 | byte(g - 4) >> 6 << 4, byte(4 + g) >> 4 | byte(g) >> 6 << 4),
    }
}

/// Byte in an NVFP4 block that holds element `i`, and its first bit: after four scales, 16 elements in 8 bytes, the
/// first half in low nibbles.
const fn nvfp4_nibble(i: usize) -> (usize, u32) {
    let (group, j) = (i / 16, i % 16);
    (4 + group * 8 + j % 8, j as u32 / 8 * 4)
}

/// Half of an unsigned E4M3 with bias 7: 00 and 7F are 0, the sign bit is ignored (§9.5), so that FF is 480.
fn half_of_ue4m3(byte: u8) -> Exact {
    let (field, fraction) = (i32::from(byte >> 3 & 15), u64::from(byte & 7));
    let (sig, exp) = match (byte, field) {
        (0x7f, _) => (0, 0),
        (_, 0) => (fraction, -9),
        _ => (fraction | 8, field - 10),
    };
    Exact::Finite { neg: false, sig, exp: exp - 1, sticky: false }
}
