//! Methods that convert 16-bit floats to bytes: by rounding their upper bits, or as f32 (`docs/kernels.md §4.9`). This
//! module only computes numbers, and the loops of `fused` apply them.

use crate::lane::Lane;
use crate::lane::decode::{Bf16ToF32, F16ToF32};
use crate::lane::encode::EncodeNearest;
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::wide::NanBits;
use crate::x86::source::{Bf16, F16, Source256};
use std::marker::PhantomData;

pub(crate) trait Short: Source256 {
    /// Magnitude of the smallest normal value.
    const FIRST_NORMAL: u16;
    /// Number of fraction bits of f32 minus the number of fraction bits of this type.
    const LESS_FRACTION: u32;
    fn to_f32(code: u16) -> u32;
}

impl Short for F16 {
    const FIRST_NORMAL: u16 = 0x0400;
    const LESS_FRACTION: u32 = 13;
    fn to_f32(code: u16) -> u32 {
        F16ToF32(NanBits::INTERMEDIATE).convert(code)
    }
}

impl Short for Bf16 {
    const FIRST_NORMAL: u16 = 0x0080;
    const LESS_FRACTION: u32 = 16;
    fn to_f32(code: u16) -> u32 {
        Bf16ToF32(NanBits::INTERMEDIATE).convert(code)
    }
}

/// Conversion of 16-bit elements to bytes. Magnitudes of 16 bits have the order of f32 magnitudes and are evenly spaced
/// within a binade. The steps of the encoder on f32 therefore work on 16-bit magnitudes too.
#[derive(Debug)]
pub(super) struct Method {
    /// The last magnitude that is not special.
    pub last_ordinary: u16,
    /// Conversion by upper bits. `None` if elements are converted as f32.
    pub upper: Option<Upper>,
}

/// Conversion of magnitudes that are not special to codes. The origin is subtracted from a magnitude, and the upper
/// bits of the difference are rounded. A magnitude below the origin has the code of the origin.
///
/// ```text
///   magnitude - origin   |  exponent  |  fraction  |   rest    |
///                        |<--------- upper ------->|<- shift ->|
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Upper {
    /// Whether magnitudes first lose [`JAMMED_BITS`] bits by rounding to odd.
    pub jammed: bool,
    pub origin: u16,
    /// Bias that is subtracted from the rounded upper bits. A negative difference becomes 0.
    pub rebias: u8,
    /// Largest code. Larger codes become this code.
    pub max: u8,
    /// Number of used [`Self::cells`]. 0 if the source has the subnormals of the destination.
    pub n_cells: usize,
    /// Codes by upper bits, where codes may be subnormal. A cell is `2n` if a rest of zero has the code n and other
    /// rests have n + 1. A cell is `2n - 1` if every rest has the code n. Where there is a cell, the rounded upper bits
    /// never give a larger code than the cell. Where there is no cell, they never give a smaller code than a lookup.
    pub cells: [u8; MOST_CELLS],
}

/// Number of entries of two tables for `vpshufb`.
pub(super) const MOST_CELLS: usize = 32;

/// Number of bits dropped by rounding to odd. The rest of an f16 is then below 128.
pub(super) const JAMMED_BITS: u32 = 2;

// Methods as const parameters: conversion as f32, or by upper bits and this number of cells. `JAMMED_16` has 16 cells,
// of magnitudes rounded to odd.
pub(super) const BY_F32: u8 = 0xff;
pub(super) const UPPER: u8 = 0;
pub(super) const UPPER_16: u8 = 16;
pub(super) const UPPER_32: u8 = 32;
pub(super) const JAMMED_16: u8 = UPPER_16 | 1;

/// Whether conversions from a type to codes of `bits` bits can take a method in a shape. Only the loops of these
/// methods are compiled.
pub(super) const fn is_taken<S: Short>(shape: u8, bits: usize, method: u8) -> bool {
    let is_f16 = S::LESS_FRACTION == F16::LESS_FRACTION;
    // A destination with one or two fraction bits drops 9 or 8 of f16's fraction bits. A rest has at most 7 bits.
    let few_cells = method == if is_f16 { JAMMED_16 } else { UPPER_16 };
    // Subnormals of f8e5m2 are subnormals of f16 too. The smallest subnormal of f8e5m2fnuz is half of that of f8e5m2.
    let five_exponent_bits = method == if is_f16 { UPPER } else { UPPER_16 };
    match bits {
        4 => few_cells,
        6 => few_cells || method == UPPER_32,
        _ if shape & shape::NEGATIVE_ZERO == 0 => {
            method == UPPER_32 || method == if is_f16 { BY_F32 } else { UPPER_16 }
        }
        _ if shape & shape::SPECIAL == 0 => few_cells || method == UPPER_32,
        _ => five_exponent_bits || method == UPPER_32 || method == BY_F32 || few_cells,
    }
}

impl Method {
    pub fn of<S: Short, const SHAPE: u8>(numbers: &Nearest) -> Method {
        if SHAPE & shape::UPPER_BITS != 0 {
            return Method { last_ordinary: 0, upper: None };
        }
        let to_f32 = S::to_f32;
        let last_ordinary = last(0x7fff, &|magnitude| to_f32(magnitude) < numbers.special_from);
        let code = |magnitude: u16| {
            EncodeNearest::<u8, SHAPE>(*numbers, PhantomData).convert(to_f32(magnitude.min(last_ordinary)))
        };
        Method { last_ordinary, upper: Upper::of::<S>(numbers, last_ordinary, &code) }
    }

    /// Returns the method as a const parameter.
    pub fn number(&self) -> u8 {
        match self.upper {
            None => BY_F32,
            Some(Upper { n_cells: 0, .. }) => UPPER,
            Some(Upper { jammed: true, .. }) => JAMMED_16,
            Some(Upper { n_cells: ..=16, .. }) => UPPER_16,
            Some(_) => UPPER_32,
        }
    }
}

impl Upper {
    /// Returns `None` if the two types have different grids, or if many codes are subnormal.
    fn of<S: Short>(numbers: &Nearest, last_ordinary: u16, code: &dyn Fn(u16) -> u8) -> Option<Upper> {
        let dropped = numbers.shift.checked_sub(S::LESS_FRACTION)?;
        let fraction_bits = 23 - numbers.shift;
        let smallest_normal = last(last_ordinary, &|magnitude| S::to_f32(magnitude) <= numbers.lowest_binade);
        if S::to_f32(smallest_normal) != numbers.lowest_binade || smallest_normal < S::FIRST_NORMAL {
            return None;
        }
        // Magnitudes from half of the smallest subnormal on, which is a tie, may have other codes than 0.
        let binades = if smallest_normal == S::FIRST_NORMAL { 0 } else { fraction_bits + 1 };
        let n_cells = (binades << fraction_bits) as usize;
        let (jammed, most) = if n_cells == 0 { (false, 8) } else { (dropped > 7, 7) };
        let jam = if jammed { JAMMED_BITS } else { 0 };
        let shift = dropped - jam;
        if !(2..=most).contains(&shift) || n_cells > if jammed { 16 } else { MOST_CELLS } {
            return None;
        }
        let code = |magnitude: u16| code(magnitude << jam);
        let (smallest_normal, first_normal) = (smallest_normal >> jam, S::FIRST_NORMAL >> jam);
        let origin = if n_cells == 0 { 0 } else { smallest_normal.checked_sub((n_cells as u16) << shift)? };
        if n_cells > 0 && origin < first_normal {
            return None;
        }
        let mut cells = [0; MOST_CELLS];
        for (i, cell) in cells[..n_cells].iter_mut().enumerate() {
            let exact = origin + ((i as u16) << shift);
            let [first, next, last] = [exact, exact + 1, exact + (1 << shift) - 1].map(&code);
            assert!(next == last && (next == first || next == first + 1), "docs/kernels.md §4.9: codes of a cell");
            *cell = if next > first { 2 * first } else { 2 * first - 1 };
        }
        let normal = (smallest_normal - origin) >> shift;
        let (rebias, max) = ((normal - (1 << fraction_bits)) as u8, code(last_ordinary >> jam));
        // The upper bits of the largest code must fit in a byte.
        let reaches = max <= u8::MAX - rebias;
        reaches.then_some(Upper { jammed, origin, rebias, max, n_cells, cells })
    }
}

/// Finds the largest magnitude up to `end` that meets a condition. The condition must hold for 0, and for every
/// magnitude below one that meets it.
fn last(end: u16, holds: &dyn Fn(u16) -> bool) -> u16 {
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
        Method::of::<S, SHAPE>(&numbers).number()
    }

    /// Elements become f32 only if the grids differ or if many codes are subnormal.
    #[test]
    fn elements_of_16_bits_stay_in_their_lanes() {
        assert_eq!(method::<F16>(DType::F8E5M2), UPPER);
        assert_eq!(method::<F16>(DType::F8E4M3Fn), UPPER_32);
        assert_eq!(method::<F16>(DType::F8E3M4), BY_F32);
        assert_eq!(method::<F16>(DType::F4E2M1), JAMMED_16);
        assert_eq!(method::<Bf16>(DType::F8E5M2), UPPER_16);
        assert_eq!(method::<Bf16>(DType::F8E4M3Fn), UPPER_32);
        assert_eq!(method::<Bf16>(DType::F6E2M3), UPPER_32);
        assert_eq!(method::<Bf16>(DType::F4E2M1), UPPER_16);
    }
}
