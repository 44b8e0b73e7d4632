//! Elements that are quantised, and codes, as numbers.

use std::ops::Range;
use truecast_core::{CastSpec, DType, cast_one};

/// The value of a code, by the definition.
pub(super) fn to_f32(dtype: DType, code: u64) -> f32 {
    let widened = CastSpec { src: dtype, ..CastSpec::copy(DType::F32) };
    f32::from_bits(cast_one(&widened, code).code().unwrap_or(0x7fc0_0000) as u32)
}

/// A code of at most eight bytes.
pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}

/// An element of f32, f16, bf16 or f64.
pub(super) fn element((dtype, bytes): (DType, &[u8]), index: usize) -> f64 {
    match dtype {
        DType::F64 => f64::from_le_bytes(bytes.as_chunks().0[index]),
        DType::F32 => f32::from_le_bytes(bytes.as_chunks().0[index]).into(),
        DType::Bf16 => bfloat(u16::from_le_bytes(bytes.as_chunks().0[index])),
        DType::F16 => half(u16::from_le_bytes(bytes.as_chunks().0[index])),
        dtype => {
            let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
            to_f32(dtype, little_endian(&bytes[index * size..][..size])).into()
        }
    }
}

/// The largest magnitude of some elements; infinite or NaN if one is NaN, or of another type.
pub(super) fn largest((dtype, bytes): (DType, &[u8]), range: Range<usize>) -> f64 {
    let halves = || {
        let magnitude = |code: &[u8; 2]| u16::from_le_bytes(*code) & 0x7fff;
        bytes.as_chunks().0[range.clone()].iter().map(magnitude).fold(0, u16::max)
    };
    match dtype {
        DType::Bf16 => bfloat(halves()),
        DType::F16 => half(halves()),
        DType::F32 => {
            let magnitude = |code: &[u8; 4]| u32::from_le_bytes(*code) & 0x7fff_ffff;
            f32::from_bits(bytes.as_chunks().0[range].iter().map(magnitude).fold(0, u32::max)).into()
        }
        _ => f64::INFINITY,
    }
}

/// The value of a code of bf16.
fn bfloat(code: u16) -> f64 {
    f32::from_bits(u32::from(code) << 16).into()
}

/// The value of a code of f16.
fn half(code: u16) -> f64 {
    let (sign, field, fraction) = (u64::from(code >> 15) << 63, u64::from(code >> 10 & 31), u64::from(code & 0x3ff));
    let magnitude = match field {
        0 => fraction as f64 / f64::from(1 << 24),
        31 => f64::from_bits(0x7ff << 52 | fraction << 42),
        _ => f64::from_bits((field + 1008) << 52 | fraction << 42),
    };
    f64::from_bits(magnitude.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_the_definition() {
        for code in 0..=u16::MAX {
            let (found, expected) = (half(code), f64::from(to_f32(DType::F16, code.into())));
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{code:#x}");
        }
    }
}
