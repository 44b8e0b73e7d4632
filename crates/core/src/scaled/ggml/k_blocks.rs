//! Blocks of 256 elements, whose groups have scales of a few bits. First each group has its best scale, then these
//! scales are rounded, and then the codes are computed again with the rounded scales. Where a rounded scale is zero, the
//! codes of the search stay.

use super::super::gguf::BlockType::{self, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K};
use super::super::gguf::put_six_bits;
use super::arithmetic::{from_half, limited, nearest, to_half};
use super::groups::{Lanes, farthest, side_by_side, sum};
use super::search::{Positive, Search, Symmetric, WithMinimum, ZERO_BELOW};

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
                fits.sums[first..first + L].copy_from_slice(&sum(&weights).0);
            }
            fits.scales[first..first + L].copy_from_slice(&fit.scale.0);
            fits.offsets[first..first + L].copy_from_slice(&fit.offset.0);
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
        let mut pairs = [Lanes::ZERO; G];
        for (pair, (scale, offset)) in pairs.iter_mut().zip(self.scales.into_iter().zip(self.offsets)) {
            *pair = Lanes([scale, offset]);
        }
        let fit = Positive { most }.fit(&pairs, Some(&self.sums.map(Lanes::all)));
        [0, 1].map(|lane| {
            let codes = fit.codes.map(|codes| codes[lane].min(limit));
            Rounded { codes, unit: to_half(fit.scale.0[lane]) }
        })
    }

    /// Rounds scales and offsets, each so that the largest has the code `most`. `limit`: largest code of unusual values.
    #[inline(always)]
    fn rounded_to_largest(&self, most: f32, limit: u8) -> [Rounded<G>; 2] {
        [&self.scales, &self.offsets].map(|numbers| {
            let largest = numbers.iter().fold(0.0, |largest, x| if *x > largest { *x } else { largest });
            let inverse = if largest > 0.0 { most / largest } else { 0.0 };
            let codes = numbers.map(|x| (nearest(inverse * x) as u8).min(limit));
            Rounded { codes, unit: to_half(largest / most) }
        })
    }

    /// Computes codes again with the stored scales, and stores them: `(x + offset) / scale - least`. Where a scale is 0,
    /// the codes of the search stay.
    #[inline(always)]
    fn store(mut self, block: BlockType, x: &[f32; 256], [least, most]: [i32; 2], bytes: &mut [u8]) {
        let groups = self.codes.chunks_exact_mut(256 / G).zip(x.chunks_exact(256 / G));
        for (g, (codes, x)) in groups.enumerate() {
            let scale = from_half(block.d(bytes)) * (block.eighths(bytes, g) as f32 * 0.125);
            let minimum = || from_half(block.m(bytes)) * block.minimum(bytes, g) as f32;
            let offset = if block.has_bias() { minimum() } else { 0.0 };
            if scale != 0.0 {
                for (code, x) in codes.iter_mut().zip(x) {
                    *code = (limited((x + offset) / scale, least, most) - least) as u8;
                }
            }
        }
        block.put_codes(&self.codes, bytes);
    }
}

#[inline(always)]
pub(super) fn q2_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 3, first: -0.5, step: 0.1, last: 15, sums_magnitudes: true };
    let fits = Fits::<16>::with_minimum::<16, L>(x, weights, &SEARCH);
    let [scales, minima] = match weights {
        None => fits.rounded_to_largest(15.0, u8::MAX),
        Some(_) => fits.rounded_by_weights(15, u8::MAX),
    };
    for (byte, (scale, minimum)) in bytes.iter_mut().zip(scales.codes.into_iter().zip(minima.codes)) {
        *byte = scale | minimum << 4;
    }
    Q2_K.put_factors(&[scales.unit, minima.unit], bytes);
    fits.store(Q2_K, x, [0, 3], bytes);
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
    let [scales, sums] = [fits.scales, fits.sums].map(|numbers| numbers.map(|number| Lanes([number])));
    let fit = Symmetric::of(32).fit(&scales, Some(&sums));
    Rounded { codes: fit.codes.map(|[code]| code), unit: to_half(fit.scale.0[0]) }
}

#[inline(always)]
pub(super) fn q3_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    let search = Symmetric { half: 4, by_element: weights.is_none() };
    let fits = Fits::<16>::new::<16, L>(x, weights, &search);
    let Rounded { codes, unit } = if weights.is_none() { q3_scales(&fits) } else { q3_scales_by_weights(&fits) };
    Q3_K.put_scales(&codes, bytes);
    Q3_K.put_factors(&[unit], bytes);
    fits.store(Q3_K, x, [-4, 3], bytes);
}

/// Quantizes a block of type Q4_K or Q5_K. `plain` is the search without weights.
#[inline(always)]
fn q45_k<const L: usize>(
    block: BlockType,
    x: &[f32; 256],
    weights: Weights<'_>,
    plain: &WithMinimum,
    bytes: &mut [u8],
) {
    let fits = Fits::<8>::with_minimum::<32, L>(x, weights, plain);
    let [scales, minima] = match weights {
        None => fits.rounded_to_largest(63.0, 63),
        // ggml limits these codes for Q5_K only.
        Some(_) => fits.rounded_by_weights(63, if block == Q5_K { 63 } else { u8::MAX }),
    };
    block.put_factors(&[scales.unit, minima.unit], bytes);
    put_six_bits(scales.codes, minima.codes, &mut bytes[4..16]);
    fits.store(block, x, [0, plain.most], bytes);
}

#[inline(always)]
pub(super) fn q4_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 15, first: -1.0, step: 0.1, last: 20, sums_magnitudes: false };
    q45_k::<L>(Q4_K, x, weights, &SEARCH, bytes);
}

#[inline(always)]
pub(super) fn q5_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    const SEARCH: WithMinimum = WithMinimum { most: 31, first: -0.5, step: 0.1, last: 15, sums_magnitudes: false };
    q45_k::<L>(Q5_K, x, weights, &SEARCH, bytes);
}

#[inline(always)]
pub(super) fn q6_k<const L: usize>(x: &[f32; 256], weights: Weights<'_>, bytes: &mut [u8]) {
    let fits = Fits::<16>::new::<16, L>(x, weights, &Symmetric::of(32));
    let end = farthest(&fits.scales);
    if end.abs() < ZERO_BELOW {
        return bytes.fill(0);
    }
    let inverse = -128.0 / end;
    Q6_K.put_scales(&fits.scales.map(|scale| nearest(inverse * scale).min(127) as u8), bytes);
    Q6_K.put_factors(&[to_half(1.0 / inverse)], bytes);
    fits.store(Q6_K, x, [-32, 31], bytes);
}
