//! Blocks of GGUF files: the integer and the f32 factors of an element (§9.2 to §9.5).
//!
//! Every value is `RN32(d1 * q)`, or `RN32(RN32(d1 * q) + m1)`, with an integer `q`. The letters `d` and `m` are the
//! f16 factors of a block, `d1` and `m1` the factors of a group. `i` is the index of an element in its block.

use super::arithmetic::{integer, negated, product, rounded};
use super::codebooks;
use super::gguf::{BlockType, Numbers, joined, ternary, u32_at};
use crate::exact::{Exact, decode_float};
use crate::format::{F16, F32};

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
        let code = || joined(self.code_bits(), block, i);
        match self.numbers() {
            Numbers::Minus(zero) if self == BlockType::TQ1_0 => i64::from(ternary(block, i)) - i64::from(zero),
            Numbers::Minus(zero) => i64::from(code()) - i64::from(zero),
            Numbers::Signed if self.code_bits().is_empty() => codebooks::eight(self, block, i / 8)[i % 8].into(),
            Numbers::Signed => (code() as i8).into(),
            Numbers::Of(values) => values[code() as usize].into(),
        }
    }

    /// Returns factors `d1` and `m1` for element `i`; `None` if the scale is excluded (§9.4).
    ///
    /// # Panics
    /// If `block` is shorter than [`BlockType::bytes`], or `i` is out of bounds.
    #[must_use]
    pub fn factors(self, block: &[u8], i: usize) -> Option<(Exact, Option<Exact>)> {
        let g = i / self.group() as usize;
        let half = |code: u16| decode_float(&F16, code.into());
        let scale = match self {
            BlockType::MXFP4 if block[0] == 0xff => return None,
            BlockType::MXFP4 => Exact::Finite { neg: false, sig: 1, exp: i32::from(block[0]) - 128, sticky: false },
            BlockType::NVFP4 => half_of_ue4m3(block[g]),
            BlockType::Q8_K => decode_float(&F32, u32_at(block, 0).into()),
            _ => {
                let eighths = self.eighths(block, g);
                let number =
                    Exact::Finite { neg: eighths < 0, sig: eighths.unsigned_abs().into(), exp: -3, sticky: false };
                rounded(&F32, product(half(self.d(block)), number))
            }
        };
        let bias = match self {
            BlockType::Q4_1 | BlockType::Q5_1 => half(self.m(block)),
            _ if self.has_bias() => {
                negated(rounded(&F32, product(half(self.m(block)), integer(self.minimum(block, g).into()))))
            }
            _ => return Some((scale, None)),
        };
        Some((scale, Some(bias)))
    }
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
