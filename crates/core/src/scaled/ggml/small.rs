//! Blocks of 32 elements with one scale. The formula gives the scale; codes are computed with its f32 inverse.

use super::super::gguf::mutable;
use super::arithmetic::{inverse, to_half, truncated};
use super::groups::{farthest, range};

/// Lower and upper half of a block in low and high nibbles.
#[inline(always)]
fn nibbles(codes: &[u8; 32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = codes[i] & 15 | codes[i + 16] << 4;
    }
    bytes
}

/// Bit 4 of each code.
#[inline(always)]
fn fifth_bits(codes: &[u8; 32]) -> [u8; 4] {
    let bit = |bits, (i, code): (usize, &u8)| bits | u32::from(code >> 4 & 1) << i;
    codes.iter().enumerate().fold(0, bit).to_le_bytes()
}

/// Scale that puts the value of the largest magnitude at code 0, and the codes. `half` is the code of zero.
#[inline(always)]
fn symmetric(x: &[f32; 32], half: u8) -> ([u8; 2], [u8; 32]) {
    let scale = farthest(x) / -f32::from(half);
    let (inverse, middle) = (inverse(scale), f32::from(half) + 0.5);
    let mut codes = [0; 32];
    for (code, x) in codes.iter_mut().zip(x) {
        *code = truncated(x * inverse + middle).min(2 * half as i8 - 1) as u8;
    }
    (to_half(scale).to_le_bytes(), codes)
}

/// Scale that puts the least value at code 0 and the largest at `most`; the least value; and the codes, limited to
/// `limit`.
#[inline(always)]
fn with_minimum(x: &[f32; 32], most: u8, limit: i8) -> ([u8; 2], [u8; 2], [u8; 32]) {
    let (least, largest) = range(x);
    let scale = (largest - least) / f32::from(most);
    let inverse = inverse(scale);
    let mut codes = [0; 32];
    for (code, x) in codes.iter_mut().zip(x) {
        *code = truncated((x - least) * inverse + 0.5).min(limit) as u8;
    }
    (to_half(scale).to_le_bytes(), to_half(least).to_le_bytes(), codes)
}

#[inline(always)]
pub(super) fn q4_0(x: &[f32; 32], bytes: &mut [u8]) {
    let mutable::Q4_0 { d, qs } = mutable::Q4_0::of(bytes);
    let codes;
    (*d, codes) = symmetric(x, 8);
    *qs = nibbles(&codes);
}

#[inline(always)]
pub(super) fn q4_1(x: &[f32; 32], bytes: &mut [u8]) {
    let mutable::Q4_1 { d, m, qs } = mutable::Q4_1::of(bytes);
    let codes;
    (*d, *m, codes) = with_minimum(x, 15, 15);
    *qs = nibbles(&codes);
}

#[inline(always)]
pub(super) fn q5_0(x: &[f32; 32], bytes: &mut [u8]) {
    let mutable::Q5_0 { d, qh, qs } = mutable::Q5_0::of(bytes);
    let codes;
    (*d, codes) = symmetric(x, 16);
    (*qh, *qs) = (fifth_bits(&codes), nibbles(&codes));
}

#[inline(always)]
pub(super) fn q5_1(x: &[f32; 32], bytes: &mut [u8]) {
    let mutable::Q5_1 { d, m, qh, qs } = mutable::Q5_1::of(bytes);
    let codes;
    (*d, *m, codes) = with_minimum(x, 31, i8::MAX);
    (*qh, *qs) = (fifth_bits(&codes), nibbles(&codes));
}
