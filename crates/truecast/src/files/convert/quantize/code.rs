//! Codes as numbers, by the reference definition.

use truecast_core::{CastSpec, DType, cast_one};

pub(crate) fn to_f32(dtype: DType, code: u64) -> f32 {
    let widened = CastSpec { src: dtype, ..CastSpec::copy(DType::F32) };
    f32::from_bits(cast_one(&widened, code).code().unwrap_or(0x7fc0_0000) as u32)
}

pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}
