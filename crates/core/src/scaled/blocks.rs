//! Blocks of GGUF files: the integer and the f32 factors of an element (§9.2 to §9.5).
//!
//! Every value is `RN32(d1 * q)`, or `RN32(RN32(d1 * q) + m1)`, with an integer `q`. The letters `d` and `m` are the
//! f16 factors of a block, `d1` and `m1` the factors of a group. `i` is the index of an element in its block.

use super::arithmetic::{integer, negated, product, rounded};
use super::block_type::BlockType;
use super::{codebooks, gguf};
use crate::exact::{Exact, decode_float};
use crate::format::{F16, F32};

/// Twice the values of E2M1; code 8 is +0 (§9.4).
pub const DOUBLED_E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Terms of an element's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTerms {
    /// Integer `q`.
    pub code: i64,
    /// Factor `d1`.
    pub scale: Exact,
    /// Summand `m1`, if the type has one.
    pub bias: Option<Exact>,
}

impl BlockType {
    /// Returns the terms of element `i` in a block; `None` if the scale is excluded (§9.4).
    ///
    /// # Panics
    /// If `block` is shorter than [`BlockType::bytes`], or `i` is out of bounds.
    #[must_use]
    pub fn terms(self, block: &[u8], i: usize) -> Option<BlockTerms> {
        let (scale, bias) = self.factors(block, i)?;
        Some(BlockTerms { code: self.code(block, i), scale, bias })
    }

    /// Returns integer `q` of element `i` in a block.
    ///
    /// # Panics
    /// If `block` is shorter than [`BlockType::bytes`], or `i` is out of bounds.
    #[must_use]
    #[inline]
    pub fn code(self, block: &[u8], i: usize) -> i64 {
        let field = |byte: u8, at: usize, bits: u32| u32::from(byte) >> at & ((1 << bits) - 1);
        // Among 32 elements, the first half is in low nibbles, the second half in high nibbles.
        let nibble = |qs: &[u8]| field(qs[i % 16], i / 16 * 4, 4);
        let fifth = |qh: &[u8]| field(qh[i / 8], i % 8, 1) << 4;
        // 32 bytes hold the 2-bit fields of 128 elements.
        let two_bits = |qs: &[u8]| field(qs[i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2);
        // Nibbles: 64 elements in 32 bytes.
        let of_64 = |qs: &[u8]| field(qs[i / 64 * 32 + i % 32], i / 32 % 2 * 4, 4);
        match self {
            BlockType::Q4_0 => i64::from(nibble(gguf::Q4_0::of(block).qs)) - 8,
            BlockType::Q4_1 => nibble(gguf::Q4_1::of(block).qs).into(),
            BlockType::Q5_0 => {
                let gguf::Q5_0 { qh, qs, .. } = gguf::Q5_0::of(block);
                i64::from(nibble(qs) | fifth(qh)) - 16
            }
            BlockType::Q5_1 => {
                let gguf::Q5_1 { qh, qs, .. } = gguf::Q5_1::of(block);
                (nibble(qs) | fifth(qh)).into()
            }
            BlockType::Q8_0 => i64::from(gguf::Q8_0::of(block).qs[i] as i8),
            BlockType::Q2_K => two_bits(gguf::Q2_K::of(block).qs).into(),
            BlockType::Q3_K => {
                let gguf::Q3_K { hmask, qs, .. } = gguf::Q3_K::of(block);
                i64::from(two_bits(qs) | field(hmask[i % 32], i / 32, 1) << 2) - 4
            }
            BlockType::Q4_K => of_64(gguf::Q4_K::of(block).qs).into(),
            BlockType::Q5_K => {
                let gguf::Q5_K { qh, qs, .. } = gguf::Q5_K::of(block);
                (of_64(qs) | field(qh[i % 32], i / 32, 1) << 4).into()
            }
            BlockType::Q6_K => {
                let gguf::Q6_K { ql, qh, .. } = gguf::Q6_K::of(block);
                i64::from(field(ql[i / 128 * 64 + i % 64], i % 128 / 64 * 4, 4) | two_bits(qh) << 4) - 32
            }
            BlockType::Mxfp4 => DOUBLED_E2M1[nibble(gguf::Mxfp4::of(block).qs) as usize].into(),
            // Nibbles: 16 elements in 8 bytes, the first half in low nibbles.
            BlockType::Nvfp4 => {
                let byte = gguf::Nvfp4::of(block).qs[i / 16 * 8 + i % 8];
                DOUBLED_E2M1[field(byte, i % 16 / 8 * 4, 4) as usize].into()
            }
            BlockType::Q8_1 => i64::from(gguf::Q8_1::of(block).qs[i] as i8),
            BlockType::Q8_K => i64::from(gguf::Q8_K::of(block).qs[i] as i8),
            BlockType::TQ1_0 => ternary(gguf::TQ1_0::of(block), i),
            BlockType::TQ2_0 => i64::from(two_bits(gguf::TQ2_0::of(block).qs)) - 1,
            BlockType::Q1_0 => i64::from(field(gguf::Q1_0::of(block).qs[i / 8], i % 8, 1)) * 2 - 1,
            BlockType::Q2_0 => i64::from(field(gguf::Q2_0::of(block).qs[i / 4], i % 4 * 2, 2)) - 1,
            _ => codebooks::code(self, block, i),
        }
    }

    /// Returns factors `d1` and `m1` for element `i`; `None` if the scale is excluded (§9.4).
    ///
    /// # Panics
    /// If `block` is shorter than [`BlockType::bytes`], or `i` is out of bounds.
    #[must_use]
    pub fn factors(self, block: &[u8], i: usize) -> Option<(Exact, Option<Exact>)> {
        let half = |d: &[u8; 2]| decode_float(&F16, u64::from(u16::from_le_bytes(*d)));
        let scaled = |d: &[u8; 2], n: i64| rounded(&F32, product(half(d), integer(n)));
        let of_six_bits = |d: &[u8; 2], dmin: &[u8; 2], scales: &[u8; 12]| {
            let (scale, bias) = six_bits(scales, i / 32);
            (scaled(d, scale.into()), Some(negated(scaled(dmin, bias.into()))))
        };
        Some(match self {
            BlockType::Q4_0 => (half(gguf::Q4_0::of(block).d), None),
            BlockType::Q4_1 => {
                let gguf::Q4_1 { d, m, .. } = gguf::Q4_1::of(block);
                (half(d), Some(half(m)))
            }
            BlockType::Q5_0 => (half(gguf::Q5_0::of(block).d), None),
            BlockType::Q5_1 => {
                let gguf::Q5_1 { d, m, .. } = gguf::Q5_1::of(block);
                (half(d), Some(half(m)))
            }
            BlockType::Q8_0 => (half(gguf::Q8_0::of(block).d), None),
            BlockType::Q2_K => {
                let gguf::Q2_K { scales, d, dmin, .. } = gguf::Q2_K::of(block);
                let both = i64::from(scales[i / 16]);
                (scaled(d, both & 15), Some(negated(scaled(dmin, both >> 4))))
            }
            BlockType::Q3_K => {
                let gguf::Q3_K { scales, d, .. } = gguf::Q3_K::of(block);
                let group = i / 16;
                let low = scales[group % 8] >> (group / 8 * 4) & 15;
                let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
                (scaled(d, i64::from(low | high << 4) - 32), None)
            }
            BlockType::Q4_K => {
                let gguf::Q4_K { d, dmin, scales, .. } = gguf::Q4_K::of(block);
                of_six_bits(d, dmin, scales)
            }
            BlockType::Q5_K => {
                let gguf::Q5_K { d, dmin, scales, .. } = gguf::Q5_K::of(block);
                of_six_bits(d, dmin, scales)
            }
            BlockType::Q6_K => {
                let gguf::Q6_K { scales, d, .. } = gguf::Q6_K::of(block);
                (scaled(d, i64::from(scales[i / 16] as i8)), None)
            }
            BlockType::Mxfp4 => match gguf::Mxfp4::of(block).e {
                [0xff] => return None,
                [e] => (Exact::Finite { neg: false, sig: 1, exp: i32::from(*e) - 128, sticky: false }, None),
            },
            BlockType::Nvfp4 => (half_of_ue4m3(gguf::Nvfp4::of(block).d[i / 16]), None),
            BlockType::Q8_1 => (half(gguf::Q8_1::of(block).d), None),
            BlockType::Q8_K => {
                let d = u32::from_le_bytes(*gguf::Q8_K::of(block).d);
                (decode_float(&F32, d.into()), None)
            }
            BlockType::TQ1_0 => (half(gguf::TQ1_0::of(block).d), None),
            BlockType::TQ2_0 => (half(gguf::TQ2_0::of(block).d), None),
            BlockType::Q1_0 => (half(gguf::Q1_0::of(block).d), None),
            BlockType::Q2_0 => (half(gguf::Q2_0::of(block).d), None),
            _ => {
                let (d, eighths) = codebooks::scale(self, block, i);
                let neg = eighths < 0;
                let number = Exact::Finite { neg, sig: eighths.unsigned_abs(), exp: -3, sticky: false };
                (rounded(&F32, product(half(&d.to_le_bytes()), number)), None)
            }
        })
    }
}

/// Scale and minimum of group `g`, 6 bits each, in the 12 bytes of Q4_K and Q5_K:
///
/// ```text
///   bytes 0 .. 3    scale 0..3 in bits 0..5    bits 4..5 of scale 4..7 in bits 6..7
///   bytes 4 .. 7    minimum 0..3               bits 4..5 of minimum 4..7
///   bytes 8 .. 11   bits 0..3 of scale 4..7 in bits 0..3, of minimum 4..7 in bits 4..7
/// ```
fn six_bits(bytes: &[u8; 12], g: usize) -> (u32, u32) {
    let byte = |at: usize| u32::from(bytes[at]);
    match g {
        0..4 => (byte(g) & 63, byte(4 + g) & 63),
        _ => (byte(4 + g) & 15 | byte(g - 4) >> 6 << 4, byte(4 + g) >> 4 | byte(g) >> 6 << 4),
    }
}

/// Integer of an element of TQ1_0. A byte is 256/243 of a number with five digits to base 3; the highest is the digit of
/// the first of five elements at equal distances. The last four bytes have four digits each.
fn ternary(block: gguf::TQ1_0<'_>, i: usize) -> i64 {
    let (byte, digit) = match i {
        0..160 => (block.qs[i % 32], i / 32),
        160..240 => (block.qs[32 + i % 16], (i - 160) / 16),
        _ => (block.qh[i % 4], (i - 240) / 4),
    };
    let below = byte.wrapping_mul([1, 3, 9, 27, 81][digit]);
    ((i64::from(below) * 3) >> 8) - 1
}

/// Half the value of an unsigned E4M3 code with bias 7 (§9.5). The sign bit is ignored. FF means 480; 00 and 7F mean 0.
fn half_of_ue4m3(byte: u8) -> Exact {
    let (field, fraction) = (i32::from(byte >> 3 & 15), u64::from(byte & 7));
    let (sig, exp) = match (byte, field) {
        (0x7f, _) => (0, 0),
        (_, 0) => (fraction, -9),
        _ => (fraction | 8, field - 10),
    };
    Exact::Finite { neg: false, sig, exp: exp - 1, sticky: false }
}
