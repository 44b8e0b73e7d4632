//! How floats of 16 bits become bytes: which of their codes are counted and which are upper bits (`docs/kernels.md §7.1`).
//! Numbers only: what is done with them is `fused`'s.

use crate::lane::Lane;
use crate::lane::decode::{Bf16ToF32, F16ToF32};
use crate::lane::encode::EncodeNearest;
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::wide::NanBits;
use crate::x86::source::{Bf16, F16, Source256};
use std::marker::PhantomData;

/// A float of 16 bits.
pub(crate) trait Short: Source256 {
    /// The magnitude of the smallest normal.
    const FIRST_NORMAL: u16;
    /// Fraction bits that f32 has and this has not.
    const LESS_FRACTION: u32;
    /// How many codes are counted at most: more comparisons take longer than the way through f32.
    const MOST_COUNTED: usize;
    fn to_f32(code: u16) -> u32;
}

impl Short for F16 {
    const FIRST_NORMAL: u16 = 0x0400;
    const LESS_FRACTION: u32 = 13;
    const MOST_COUNTED: usize = MOST;
    fn to_f32(code: u16) -> u32 {
        F16ToF32(NanBits::HUB).one(code)
    }
}

impl Short for Bf16 {
    const FIRST_NORMAL: u16 = 0x0080;
    const LESS_FRACTION: u32 = 16;
    /// It is the upper half of an f32, which makes that way short.
    const MOST_COUNTED: usize = 4;
    fn to_f32(code: u16) -> u32 {
        Bf16ToF32(NanBits::HUB).one(code)
    }
}

/// How elements of 16 bits become bytes, and what is worked out for it once. Their magnitudes have the order of f32, and
/// the distances of theirs within a binade, so that what the encoder does with an f32 can be done with them.
#[derive(Debug)]
pub(super) struct Method {
    /// The last magnitude, as a code, without a code of its own.
    pub last_ordinary: u16,
    pub magnitudes: Magnitudes,
}

/// How ordinary magnitudes of 16 bits become codes.
#[derive(Debug)]
pub(super) enum Magnitudes {
    /// As f32.
    F32,
    /// All codes are counted.
    Counted(Counted),
    /// Codes up to that of the smallest normal are counted; others are the upper bits, rounded.
    UpperBits { upper: Upper, counted: Counted },
}

/// Codes 1, 2 and so on are those of magnitudes above these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub above: [u16; MOST],
    pub len: usize,
}

/// Larger codes are not counted.
pub(super) const MOST: usize = 8;

/// Codes of normal magnitudes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upper {
    /// Fraction bits that are dropped.
    pub shift: u32,
    /// What is taken from the upper bits, and from smaller ones nothing is left of.
    pub rebias: u16,
    /// Larger codes are this one.
    pub max: u16,
}

// `Magnitudes` as const parameters: how many codes are counted, and whether other codes are upper bits.
pub(super) const BY_F32: u8 = 0xff;
pub(super) const UPPER: u8 = 0x10;
pub(super) const UPPER_4: u8 = UPPER | 4;
pub(super) const UPPER_8: u8 = UPPER | 8;

impl Method {
    /// For an encoder of a shape.
    pub fn of<S: Short, const SHAPE: u8>(numbers: &Nearest) -> Method {
        if SHAPE & shape::UPPER_BITS != 0 {
            return Method { last_ordinary: 0, magnitudes: Magnitudes::F32 };
        }
        let hub = S::to_f32;
        let last_ordinary = last(0x7fff, |magnitude| hub(magnitude) < numbers.special_from);
        let code = |magnitude: u16| {
            EncodeNearest::<u8, SHAPE>(*numbers, PhantomData).one(hub(magnitude.min(last_ordinary))) as u16
        };
        let counted = |len: usize| Counted {
            above: std::array::from_fn(|i| last(last_ordinary, |magnitude| code(magnitude) <= i as u16)),
            len,
        };
        let (max, shift) = (code(last_ordinary), numbers.shift.saturating_sub(S::LESS_FRACTION));
        let smallest_normal = last(last_ordinary, |magnitude| hub(magnitude) <= numbers.lowest_binade);
        let n_subnormal = 1 << (23 - numbers.shift);
        let rebias = (smallest_normal >> shift).wrapping_sub(n_subnormal);
        let upper = Upper { shift, rebias, max };
        let same_grid = hub(smallest_normal) == numbers.lowest_binade && smallest_normal >= S::FIRST_NORMAL;
        // Where the subnormals are those of the source, their codes are upper bits as well.
        let len = if smallest_normal == S::FIRST_NORMAL { 0 } else { n_subnormal as usize };
        let magnitudes = if max == 7 {
            Magnitudes::Counted(counted(7))
        } else if shift > 0 && same_grid && len <= S::MOST_COUNTED && upper.tells_apart(&counted(len)) {
            Magnitudes::UpperBits { upper, counted: counted(len) }
        } else {
            Magnitudes::F32
        };
        Method { last_ordinary, magnitudes }
    }
}

impl Upper {
    /// The sum of a magnitude's upper bits, rounded down and up: larger than the key of one that ends there, if it is.
    pub fn key(&self, magnitude: u16) -> i16 {
        let ceiling = (magnitude + (1 << self.shift) - 1) >> self.shift;
        ((magnitude >> self.shift) + ceiling) as i16
    }

    /// The key that others are near.
    pub fn middle_key(&self, counted: &Counted) -> i16 {
        self.key(counted.above[counted.len / 2])
    }

    /// Whether keys, less the middle one, are bytes that tell what is above a magnitude.
    fn tells_apart(&self, counted: &Counted) -> bool {
        counted.above[..counted.len].iter().all(|&magnitude| {
            let is_byte = i8::try_from(self.key(magnitude) - self.middle_key(counted)).is_ok();
            is_byte && self.key(magnitude + 1) > self.key(magnitude)
        })
    }
}

/// The last magnitude up to an end that a condition holds for, which holds for 0 and, from some magnitude on, for none.
fn last(end: u16, holds: impl Fn(u16) -> bool) -> u16 {
    if holds(end) {
        return end;
    }
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

impl Magnitudes {
    /// As a const parameter.
    pub fn method(&self) -> u8 {
        match self {
            Magnitudes::F32 => BY_F32,
            Magnitudes::Counted(counted) => counted.len as u8,
            Magnitudes::UpperBits { counted, .. } => UPPER | counted.len as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::encode::Encoder;
    use truecast_core::policy::CastPolicy;
    use truecast_core::{DType, Kind};

    fn method<S: Short>(dst: DType) -> u8 {
        const SHAPE: u8 = shape::SUBNORMALS | shape::NEGATIVE_ZERO | shape::SPECIAL | shape::PAYLOAD;
        let Kind::Float(format) = dst.kind() else { panic!("{dst} is a float") };
        let numbers = Encoder::new(dst, &format, &CastPolicy::IEEE).and_then(|numbers| numbers.nearest()).unwrap();
        Method::of::<S, SHAPE>(&numbers).magnitudes.method()
    }

    /// The hub is taken only where the grids differ or many codes are subnormal.
    #[test]
    fn elements_of_16_bits_stay_in_their_lanes() {
        assert_eq!(method::<F16>(DType::F8E5M2), UPPER);
        assert_eq!(method::<F16>(DType::F8E4M3Fn), UPPER_8);
        assert_eq!(method::<F16>(DType::F8E3M4), BY_F32);
        assert_eq!(method::<F16>(DType::F4E2M1), 7);
        assert_eq!(method::<Bf16>(DType::F8E5M2), UPPER_4);
        assert_eq!(method::<Bf16>(DType::F8E4M3Fn), BY_F32);
        assert_eq!(method::<Bf16>(DType::F4E2M1), 7);
    }
}
