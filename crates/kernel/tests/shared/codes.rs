//! Codes of every type for tests, and buffers of codes.

use truecast_core::spec::ieee;
use truecast_core::{DType, cast_one};
use truecast_testkit::random::Random;

pub fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|t| t.is_numeric())
}

pub fn packed(dtype: DType, elements: &[u64]) -> Vec<u8> {
    truecast_testkit::elements::packed(dtype.storage_bits().unwrap() as usize, elements)
}

/// Storage element `i` of a packed buffer.
pub fn unpacked(dtype: DType, bytes: &[u8], i: usize) -> u64 {
    let bits = dtype.storage_bits().unwrap() as usize;
    (0..bits).fold(0, |v, bit| v | ((bytes[(i * bits + bit) / 8] >> ((i * bits + bit) % 8) & 1) as u64) << bit)
}

/// Bits of the elements as f32.
pub fn as_f32(src: DType, bytes: &[u8]) -> Vec<u32> {
    let spec = ieee::Cast::to(DType::F32).resolve(src).unwrap();
    let code = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
    let size = src.storage_bits().unwrap() as usize / 8;
    bytes.chunks(size).map(|bytes| cast_one(&spec, code(bytes)).code().unwrap() as u32).collect()
}

/// All codes of a narrow type; powers of two, their neighbors, few-bit patterns and random bits of a wide type.
pub fn elements(src: DType) -> Vec<u64> {
    let bits = src.storage_bits().unwrap();
    if bits <= 8 {
        return (0..1 << bits).collect();
    }
    let mask = u64::MAX >> (64 - bits);
    let mut all = vec![0, 1, mask, mask - 1, mask >> 1, (mask >> 1) + 1];
    for i in 0..bits {
        for j in 0..=i {
            let (a, b) = (1u64 << i, 1u64 << j);
            all.extend([a | b, a - b, (a | b).wrapping_sub(1), mask ^ a ^ b, mask ^ a, a]);
        }
    }
    let mut random = Random::seeded(bits as u64);
    // Just above the largest f32, and around the overflow threshold of f32, as f64.
    if bits == 64 {
        all.extend([0x47ef_ffff_e000_0000, 0x47ef_ffff_f000_0000].iter().flat_map(|b: &u64| [b - 1, *b, b + 1]));
    }
    // Exponents in the whole field, and more often near one.
    for i in 0..3000u64 {
        let r = random.next();
        all.push(r);
        all.push(match bits {
            64 => (1023 - 40 + i % 80) << 52 | r >> 12 | r << 63,
            32 => (127 - 40 + i % 80) << 23 | (r & 0x807f_ffff),
            _ => r ^ i,
        });
    }
    // Near boundaries of narrow destinations: short significands plus one bit far below.
    for exponent in -160i32..140 {
        for top in 0..32u64 {
            let value = (1.0 + top as f64 / 32.0) * 2f64.powi(exponent);
            for delta in [-1i64, 0, 1] {
                match bits {
                    64 => all.push(value.to_bits().wrapping_add_signed(delta)),
                    32 => all.push((value as f32).to_bits().wrapping_add_signed(delta as i32) as u64),
                    _ => {}
                }
            }
        }
    }
    all.iter_mut().for_each(|e| *e &= mask);
    all
}
