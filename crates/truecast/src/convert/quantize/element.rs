//! Elements that are quantized, and codes, as numbers.

use std::ops::Range;
use truecast_core::{CastSpec, DType, Kind, cast_one};

/// The value of a code, by the definition.
pub(crate) fn to_f32(dtype: DType, code: u64) -> f32 {
    let widened = CastSpec { src: dtype, ..CastSpec::copy(DType::F32) };
    f32::from_bits(cast_one(&widened, code).code().unwrap_or(0x7fc0_0000) as u32)
}

/// A code of at most eight bytes.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}

/// An element of f32, f16, bf16 or f64.
pub(crate) fn element((dtype, bytes): (DType, &[u8]), index: usize) -> f64 {
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

/// Calls back with the index of each element of a range whose magnitude may be above a limit: of all above it, and of others
/// if the limit is small or negative, or the type another one than the usual.
pub(crate) fn each_above((dtype, bytes): (DType, &[u8]), range: Range<usize>, limit: f64, found: impl FnMut(usize)) {
    let format = match dtype.kind() {
        Kind::Float(f) if limit >= 0.0 && matches!(dtype, DType::Bf16 | DType::F16 | DType::F32) => f,
        _ => return range.for_each(found),
    };
    // The largest code of a magnitude up to the limit: that of f64, cut off. Below normal numbers it is too small.
    let infinity = ((1 << format.exp_bits) - 1) << format.man_bits;
    let exponents = (1023 - i64::from(format.bias)) << format.man_bits;
    let code = (limit.to_bits() >> (52 - format.man_bits)) as i64 - exponents;
    let most = code.clamp(0, infinity - 1) as u32;
    if dtype == DType::F32 {
        let magnitude = |code: &[u8; 4]| u32::from_le_bytes(*code) & 0x7fff_ffff;
        each_larger(bytes.as_chunks().0, range, most, magnitude, found);
    } else {
        let magnitude = |code: &[u8; 2]| u16::from_le_bytes(*code) & 0x7fff;
        each_larger(bytes.as_chunks().0, range, most as u16, magnitude, found);
    }
}

/// Calls back with the index of each code of a range whose magnitude is larger than one.
fn each_larger<const N: usize, M: Ord + Default>(
    codes: &[[u8; N]],
    range: Range<usize>,
    most: M,
    magnitude: impl Fn(&[u8; N]) -> M,
    mut found: impl FnMut(usize),
) {
    let all = codes[range.clone()].chunks(TOGETHER);
    for (first, codes) in range.step_by(TOGETHER).zip(all) {
        if codes.iter().map(&magnitude).fold(M::default(), M::max) > most {
            (first..).zip(codes).filter(|(_, code)| magnitude(code) > most).for_each(|(i, _)| found(i));
        }
    }
}

/// Elements whose largest magnitude is looked for first.
const TOGETHER: usize = 64;

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

    /// Every code of the two types of 16 bits with limits of every binade, and next to the values of some codes.
    #[test]
    fn all_above_a_limit_are_found() {
        let codes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let powers = (-160..140).flat_map(|e| [1.0, 1.37, 1.999_999].map(|x| x * 2f64.powi(e)));
        let special = [f64::NEG_INFINITY, -1.0, 0.0, f64::INFINITY, f64::NAN, 65504.0, 65519.0, 1e300];
        for dtype in [DType::Bf16, DType::F16] {
            let near = (0..0x7f80).step_by(331).flat_map(|i| {
                let x = element((dtype, &codes), i);
                [x, f64::from_bits(x.to_bits() + 1), f64::from_bits(x.to_bits().saturating_sub(1))]
            });
            let smallest = if dtype == DType::F16 { 2f64.powi(-14) } else { f64::from(f32::MIN_POSITIVE) };
            for limit in powers.clone().chain(special).chain(near) {
                let mut is_found = vec![false; 1 << 16];
                each_above((dtype, &codes), 0..1 << 16, limit, |i| is_found[i] = true);
                for (i, is_found) in is_found.into_iter().enumerate() {
                    let x = element((dtype, &codes), i).abs();
                    assert!(is_found || x <= limit, "{dtype} {i:#x} {limit:e}");
                    let is_exact = limit >= smallest && !x.is_nan();
                    assert!(!is_found || !is_exact || x > limit.min(f64::MAX), "{dtype} {i:#x} {limit:e}");
                }
            }
        }
    }

    #[test]
    fn all_above_a_limit_are_found_in_f32() {
        let values: Vec<f32> = (0..3000).map(|i| ((i * 7919 % 4001) as f32 - 2000.0) * 0.0113).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        for limit in [0.0113, 1.0, f64::from(values[77].abs()), 22.5, 23.0] {
            let mut found = Vec::new();
            each_above((DType::F32, &bytes), 5..2900, limit, |i| found.push(i));
            let expected: Vec<usize> = (5..2900).filter(|i| f64::from(values[*i].abs()) > limit).collect();
            assert_eq!(found, expected, "{limit}");
        }
    }

    #[test]
    fn halves_are_those_of_the_definition() {
        for code in 0..=u16::MAX {
            let (found, expected) = (half(code), f64::from(to_f32(DType::F16, code.into())));
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{code:#x}");
        }
    }
}
