//! Blocks of 256 elements, whose groups have scales of a few bits. First each group has its best scale, then these
//! scales are rounded, and then the codes are computed again with the rounded scales. Where a rounded scale is zero, the
//! codes of the search stay.

use super::super::gguf::mutable;
use super::arithmetic::{from_half, limited, nearest, to_half};
use super::groups::{farthest, largest, side_by_side, sum};
use super::search::{ByElement, Fit, Positive, Search, Symmetric, WithMinimum, ZERO_BELOW};

/// Weights of the elements of a block, if they are given.
type Weights<'a> = Option<&'a [f32; 256]>;

/// Scales, offsets and codes of the `G` groups of a block.
struct Fits<const G: usize> {
    scales: [f32; G],
    offsets: [f32; G],
    codes: [u8; 256],
    /// Sums of the given weights.
    sums: [f32; G],
}

/// Rounded scales or offsets.
struct Rounded<const G: usize> {
    codes: [u8; G],
    /// Factor of the codes, an f16.
    unit: u16,
}

impl<const G: usize> Fits<G> {
    #[inline(always)]
    fn new<const N: usize, const L: usize>(x: &[f32; 256], weights: Weights<'_>, search: &impl Search<N>) -> Fits<G> {
        const { assert!(N * G == 256 && G.is_multiple_of(L), "groups fill a block and lanes") };
        let mut fits = Fits { scales: [0.0; G], offsets: [0.0; G], codes: [0; 256], sums: [0.0; G] };
        for first in (0..G).step_by(L) {
            let weights = weights.map(|weights| side_by_side::<N, L>(weights, first));
            let fit = search.fit::<L>(&side_by_side(x, first), weights.as_ref());
            if let Some(weights) = weights {
                fits.sums[first..first + L].copy_from_slice(&sum(&weights));
            }
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

    /// Scale and offset of each group. `plain` is the search without weights.
    #[inline(always)]
    fn with_minimum<const N: usize, const L: usize>(x: &[f32; 256], weights: Weights<'_>, plain: &WithMinimum) -> Self {
        match weights {
            None => Fits::new::<N, L>(x, None, plain),
            Some(_) => Fits::new::<N, L>(x, weights, &WithMinimum::weighted(plain.most)),
        }
    }

    /// Rounds scales and offsets by a weighted search, to codes up to `most`. `limit`: largest code of unusual values.
    #[inline(always)]
    fn rounded_by_weights(&self, most: i32, limit: u8) -> [Rounded<G>; 2] {
        let mut pairs = [[0.0; 2]; G];
        for (pair, (scale, offset)) in pairs.iter_mut().zip(self.scales.iter().zip(&self.offsets)) {
            *pair = [*scale, *offset];
        }
        let fit = Positive { most }.fit::<2>(&pairs, Some(&self.sums.map(|sum| [sum; 2])));
        [0, 1].map(|lane| {
            let codes = fit.codes.map(|codes| codes[lane].min(limit));
            Rounded { codes, unit: to_half(fit.scale[lane]) }
        })
    }

    /// Rounds scales and offsets, each so that the largest has the code `most`. `limit`: largest code of unusual values.
    #[inline(always)]
    fn rounded_to_largest(&self, most: f32, limit: u8) -> [Rounded<G>; 2] {
        [&self.scales, &self.offsets].map(|numbers| {
            let largest = largest(numbers);
            let inverse = if largest > 0.0 { most / largest } else { 0.0 };
            let codes = numbers.map(|x| (nearest(inverse * x) as u8).min(limit));
            Rounded { codes, unit: to_half(largest / most) }
        })
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
pub(super) fn q2_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 3, first: -0.5, step: 0.1, last: 15, sums_magnitudes: true };
    let mut fits = Fits::<16>::with_minimum::<16, L>(x, weights, &SEARCH);
    let [scale_codes, minima] = match weights {
        None => fits.rounded_to_largest(15.0, u8::MAX),
        Some(_) => fits.rounded_by_weights(15, u8::MAX),
    };
    let mutable::Q2_K { scales, qs, d, dmin } = mutable::Q2_K::of(bytes);
    for ((scale, code), minimum) in scales.iter_mut().zip(scale_codes.codes).zip(minima.codes) {
        *scale = code | minimum << 4;
    }
    for (g, nibbles) in scales.iter().enumerate() {
        let scale = from_half(scale_codes.unit) * f32::from(nibbles & 15);
        let offset = from_half(minima.unit) * f32::from(nibbles >> 4);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, offset, [0, 3]);
        }
    }
    (*d, *dmin, *qs) = (scale_codes.unit.to_le_bytes(), minima.unit.to_le_bytes(), two_bits(&fits.codes));
}

/// Scales of Q3_K, rounded to codes 0 to 63 for -32 to 31 (ggml: `quantize_row_q3_K_ref`).
#[inline(always)]
fn q3_scales(fits: &Fits<16>) -> Rounded<16> {
    let end = farthest(&fits.scales);
    if end == 0.0 {
        return Rounded { codes: [0; 16], unit: to_half(0.0) };
    }
    let inverse = -32.0 / end;
    // ggml stores the nearest integer in an `int8_t` before it limits it.
    let code = |scale| (i32::from(nearest(inverse * scale) as i8).clamp(-32, 31) + 32) as u8;
    Rounded { codes: fits.scales.map(code), unit: to_half(1.0 / inverse) }
}

/// As [`q3_scales`], by a weighted search (ggml: `quantize_row_q3_K_impl`).
#[inline(always)]
fn q3_scales_by_weights(fits: &Fits<16>) -> Rounded<16> {
    let scales = fits.scales.map(|scale| [scale]);
    let fit: Fit<16, 1> = Symmetric { half: 32 }.fit(&scales, Some(&fits.sums.map(|sum| [sum])));
    Rounded { codes: fit.codes.map(|[code]| code), unit: to_half(fit.scale[0]) }
}

#[inline(always)]
pub(super) fn q3_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    let mut fits = match weights {
        None => Fits::<16>::new::<16, L>(x, None, &ByElement { half: 4 }),
        Some(_) => Fits::<16>::new::<16, L>(x, weights, &Symmetric { half: 4 }),
    };
    let Rounded { codes, unit } = if weights.is_none() { q3_scales(&fits) } else { q3_scales_by_weights(&fits) };
    let mutable::Q3_K { hmask, qs, scales, d } = mutable::Q3_K::of(bytes);
    for g in 0..4 {
        scales[g] = codes[g] & 15 | codes[g + 8] << 4;
        scales[g + 4] = codes[g + 4] & 15 | codes[g + 12] << 4;
        scales[g + 8] = codes[g] >> 4 | codes[g + 4] >> 4 << 2 | codes[g + 8] >> 4 << 4 | codes[g + 12] >> 4 << 6;
    }
    for (g, code) in codes.into_iter().enumerate() {
        let scale = from_half(unit) * (f32::from(code) - 32.0);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, 0.0, [-4, 3]);
        }
    }
    (*hmask, *qs, *d) = (one_bit(&fits.codes, 2), two_bits(&fits.codes), unit.to_le_bytes());
}

/// Common fields of Q4_K and Q5_K.
struct Q45 {
    d: [u8; 2],
    dmin: [u8; 2],
    /// Scales and minima.
    scales: [u8; 12],
    codes: [u8; 256],
}

/// Fields of Q4_K or Q5_K. `plain` is the search without weights.
#[inline(always)]
fn q45_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, plain: &WithMinimum) -> Q45 {
    let mut fits = Fits::<8>::with_minimum::<32, L>(x, weights, plain);
    let [scales, minima] = match weights {
        None => fits.rounded_to_largest(63.0, 63),
        // ggml limits these codes for Q5_K only.
        Some(_) => fits.rounded_by_weights(63, if plain.most == 31 { 63 } else { u8::MAX }),
    };
    let six = six_bits(scales.codes, minima.codes);
    for g in 0..8 {
        // ggml reads the stored bits again (`get_scale_min_k4`). Codes of a weighted search may have more than six bits.
        let [scale, minimum] = [0, 4].map(|at| match g {
            0..4 => six[at + g] & 63,
            _ => six[4 + g] >> at & 15 | six[at + g - 4] >> 6 << 4,
        });
        let scale = from_half(scales.unit) * f32::from(scale);
        let offset = from_half(minima.unit) * f32::from(minimum);
        if scale != 0.0 {
            fits.recode::<32>(x, g, scale, offset, [0, plain.most]);
        }
    }
    Q45 { d: scales.unit.to_le_bytes(), dmin: minima.unit.to_le_bytes(), scales: six, codes: fits.codes }
}

#[inline(always)]
pub(super) fn q4_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 15, first: -1.0, step: 0.1, last: 20, sums_magnitudes: false };
    let mutable::Q4_K { d, dmin, scales, qs } = mutable::Q4_K::of(bytes);
    let fields = q45_k::<L>(x, weights, &SEARCH);
    (*d, *dmin, *scales, *qs) = (fields.d, fields.dmin, fields.scales, nibbles(&fields.codes, 32));
}

#[inline(always)]
pub(super) fn q5_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 31, first: -0.5, step: 0.1, last: 15, sums_magnitudes: false };
    let mutable::Q5_K { d, dmin, scales, qh, qs } = mutable::Q5_K::of(bytes);
    let fields = q45_k::<L>(x, weights, &SEARCH);
    (*d, *dmin, *scales) = (fields.d, fields.dmin, fields.scales);
    (*qh, *qs) = (one_bit(&fields.codes, 4), nibbles(&fields.codes, 32));
}

#[inline(always)]
pub(super) fn q6_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    let mut fits = Fits::<16>::new::<16, L>(x, weights, &Symmetric { half: 32 });
    let end = farthest(&fits.scales);
    if end.abs() < ZERO_BELOW {
        return bytes.fill(0);
    }
    let inverse = -128.0 / end;
    let unit = to_half(1.0 / inverse);
    let codes = fits.scales.map(|scale| nearest(inverse * scale).min(127) as i8);
    for (g, code) in codes.into_iter().enumerate() {
        let scale = from_half(unit) * f32::from(code);
        if scale != 0.0 {
            fits.recode::<16>(x, g, scale, 0.0, [-32, 31]);
        }
    }
    let mutable::Q6_K { ql, qh, scales, d } = mutable::Q6_K::of(bytes);
    *scales = codes.map(|code| code as u8);
    (*ql, *qh, *d) = (nibbles(&fits.codes, 64), two_bits(&fits.codes.map(|code| code >> 4)), unit.to_le_bytes());
}
