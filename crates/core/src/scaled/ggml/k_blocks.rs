//! Blocks of 256 elements, whose groups have scales of a few bits. First each group has its best scale, then these
//! scales are rounded, and then the codes are computed again with the rounded scales. Where a rounded scale is zero, the
//! codes of the search stay.

use super::super::gguf::mutable;
use super::arithmetic::{from_half, limited, nearest, to_half};
use super::groups::{farthest, largest, side_by_side};
use super::search::{ByElement, NOTHING, Search, Symmetric, WithMinimum};

/// Scales, offsets and codes of the `G` groups of a block.
struct Fits<const G: usize> {
    scales: [f32; G],
    offsets: [f32; G],
    codes: [u8; 256],
}

impl<const G: usize> Fits<G> {
    #[inline(always)]
    fn new<const N: usize, const L: usize>(x: &[f32; 256], search: &impl Search<N>) -> Fits<G> {
        const { assert!(N * G == 256 && G.is_multiple_of(L), "groups fill a block and lanes") };
        let mut fits = Fits { scales: [0.0; G], offsets: [0.0; G], codes: [0; 256] };
        for first in (0..G).step_by(L) {
            let fit = search.fit::<L>(&side_by_side(x, first));
            fits.scales[first..first + L].copy_from_slice(&fit.scale);
            fits.offsets[first..first + L].copy_from_slice(&fit.offset);
            for (i, codes) in fit.codes.iter().enumerate() {
                for (lane, code) in codes.iter().enumerate() {
                    fits.codes[(first + lane) * N + i] = *code;
                }
            }
        }
        fits
    }

    /// Computes the codes of a group again with its rounded scale, which is not 0: `(x + offset) / scale - least`.
    #[inline(always)]
    fn recode<const N: usize>(&mut self, x: &[f32; 256], group: usize, scale: f32, offset: f32, limits: [i32; 2]) {
        let [least, most] = limits;
        let x = &x[group * N..][..N];
        for (code, x) in self.codes[group * N..][..N].iter_mut().zip(x) {
            *code = (limited((x + offset) / scale, least, most) - least) as u8;
        }
    }
}

/// Bits 0 and 1 of codes: element `i` in bits 2k, 2k + 1 of byte `32 * (i / 128) + i % 32`, k = `i % 128 / 32`.
#[inline(always)]
fn two_bits(codes: &[u8; 256]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (bytes, codes) in bytes.chunks_exact_mut(32).zip(codes.chunks_exact(128)) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = codes[i] & 3 | (codes[i + 32] & 3) << 2 | (codes[i + 64] & 3) << 4 | codes[i + 96] << 6;
        }
    }
    bytes
}

/// Low nibbles of codes, where `distance` elements come in low nibbles, then as many in high nibbles.
#[inline(always)]
fn nibbles(codes: &[u8; 256], distance: usize) -> [u8; 128] {
    let mut bytes = [0; 128];
    for (bytes, codes) in bytes.chunks_exact_mut(distance).zip(codes.chunks_exact(2 * distance)) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = codes[i] & 15 | codes[i + distance] << 4;
        }
    }
    bytes
}

/// Bit `bit` of codes: element `i` in bit `i / 32` of byte `i % 32`.
#[inline(always)]
fn one_bit(codes: &[u8; 256], bit: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (at, codes) in codes.chunks_exact(32).enumerate() {
        for (byte, code) in bytes.iter_mut().zip(codes) {
            *byte |= (code >> bit & 1) << at;
        }
    }
    bytes
}

/// Scales and minima of Q4_K and Q5_K, 6 bits each, in 12 bytes (§9.7).
#[inline(always)]
fn six_bits(scales: [u8; 8], minima: [u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for g in 0..4 {
        bytes[g] = scales[g] | scales[g + 4] >> 4 << 6;
        bytes[g + 4] = minima[g] | minima[g + 4] >> 4 << 6;
        bytes[g + 8] = scales[g + 4] & 15 | minima[g + 4] << 4;
    }
    bytes
}

#[inline(always)]
pub(super) fn q2_k<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 3, first: -0.5, step: 0.1, last: 15, sums_magnitudes: true };
    let mut fits = Fits::<16>::new::<16, L>(x, &SEARCH);
    let rounded = |scales: &[f32; 16]| {
        let most = largest(scales);
        let inverse = 15.0 / most;
        let codes = if most > 0.0 { scales.map(|scale| nearest(inverse * scale) as u8) } else { [0; 16] };
        (codes, to_half(if most > 0.0 { most / 15.0 } else { 0.0 }))
    };
    let ((codes, d_code), (minima, dmin_code)) = (rounded(&fits.scales), rounded(&fits.offsets));
    let mutable::Q2_K { scales, qs, d, dmin } = mutable::Q2_K::of(bytes);
    for ((scale, code), minimum) in scales.iter_mut().zip(codes).zip(minima) {
        *scale = code | minimum << 4;
    }
    for (g, nibbles) in scales.iter().enumerate() {
        let scale = from_half(d_code) * f32::from(nibbles & 15);
        let offset = from_half(dmin_code) * f32::from(nibbles >> 4);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, offset, [0, 3]);
        }
    }
    (*d, *dmin, *qs) = (d_code.to_le_bytes(), dmin_code.to_le_bytes(), two_bits(&fits.codes));
}

#[inline(always)]
pub(super) fn q3_k<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    let mut fits = Fits::<16>::new::<16, L>(x, &ByElement { half: 4 });
    let end = farthest(&fits.scales);
    let inverse = -32.0 / end;
    let (codes, half) = if end == 0.0 {
        ([0; 16], to_half(0.0))
    } else {
        // The nearest integer goes through a signed byte.
        let code = |scale| (i32::from(nearest(inverse * scale) as i8).clamp(-32, 31) + 32) as u8;
        (fits.scales.map(code), to_half(1.0 / inverse))
    };
    let mutable::Q3_K { hmask, qs, scales, d } = mutable::Q3_K::of(bytes);
    for g in 0..4 {
        scales[g] = codes[g] & 15 | codes[g + 8] << 4;
        scales[g + 4] = codes[g + 4] & 15 | codes[g + 12] << 4;
        scales[g + 8] = codes[g] >> 4 | codes[g + 4] >> 4 << 2 | codes[g + 8] >> 4 << 4 | codes[g + 12] >> 4 << 6;
    }
    for (g, code) in codes.into_iter().enumerate() {
        let scale = from_half(half) * (f32::from(code) - 32.0);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, 0.0, [-4, 3]);
        }
    }
    (*hmask, *qs, *d) = (one_bit(&fits.codes, 2), two_bits(&fits.codes), half.to_le_bytes());
}

/// Fields of Q4_K and Q5_K: `d`, `dmin`, scales and minima, and codes up to `most`.
#[inline(always)]
fn q45_k<const L: usize>(x: &[f32; 256], search: &WithMinimum) -> ([u8; 2], [u8; 2], [u8; 12], [u8; 256]) {
    let mut fits = Fits::<8>::new::<32, L>(x, search);
    let rounded = |scales: &[f32; 8]| {
        let most = largest(scales);
        let inverse = if most > 0.0 { 63.0 / most } else { 0.0 };
        (scales.map(|scale| (nearest(inverse * scale) as u8).min(63)), to_half(most / 63.0))
    };
    let ((scales, d), (minima, dmin)) = (rounded(&fits.scales), rounded(&fits.offsets));
    for (g, (scale, minimum)) in scales.into_iter().zip(minima).enumerate() {
        let (scale, offset) = (from_half(d) * f32::from(scale), from_half(dmin) * f32::from(minimum));
        if scale != 0.0 {
            fits.recode::<32>(x, g, scale, offset, [0, search.most]);
        }
    }
    (d.to_le_bytes(), dmin.to_le_bytes(), six_bits(scales, minima), fits.codes)
}

#[inline(always)]
pub(super) fn q4_k<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 15, first: -1.0, step: 0.1, last: 20, sums_magnitudes: false };
    let mutable::Q4_K { d, dmin, scales, qs } = mutable::Q4_K::of(bytes);
    let codes;
    (*d, *dmin, *scales, codes) = q45_k::<L>(x, &SEARCH);
    *qs = nibbles(&codes, 32);
}

#[inline(always)]
pub(super) fn q5_k<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 31, first: -0.5, step: 0.1, last: 15, sums_magnitudes: false };
    let mutable::Q5_K { d, dmin, scales, qh, qs } = mutable::Q5_K::of(bytes);
    let codes;
    (*d, *dmin, *scales, codes) = q45_k::<L>(x, &SEARCH);
    (*qh, *qs) = (one_bit(&codes, 4), nibbles(&codes, 32));
}

#[inline(always)]
pub(super) fn q6_k<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    let mut fits = Fits::<16>::new::<16, L>(x, &Symmetric { half: 32 });
    let end = farthest(&fits.scales);
    if end.abs() < NOTHING {
        return bytes.fill(0);
    }
    let inverse = -128.0 / end;
    let half = to_half(1.0 / inverse);
    let codes = fits.scales.map(|scale| nearest(inverse * scale).min(127) as i8);
    for (g, code) in codes.into_iter().enumerate() {
        let scale = from_half(half) * f32::from(code);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, 0.0, [-32, 31]);
        }
    }
    let mutable::Q6_K { ql, qh, scales, d } = mutable::Q6_K::of(bytes);
    *scales = codes.map(|code| code as u8);
    (*ql, *qh, *d) = (nibbles(&fits.codes, 64), two_bits(&fits.codes.map(|code| code >> 4)), half.to_le_bytes());
}
