//! Elements that are quantised, and codes, as numbers.

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
    let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
    let code = little_endian(&bytes[index * size..][..size]);
    match dtype {
        DType::F64 => f64::from_bits(code),
        DType::Bf16 => f32::from_bits((code as u32) << 16).into(),
        DType::F32 => f32::from_bits(code as u32).into(),
        DType::F16 => half(code as u16),
        dtype => to_f32(dtype, code).into(),
    }
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
