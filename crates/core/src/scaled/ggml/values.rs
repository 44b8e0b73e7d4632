//! Blocks whose codes are indices of values, not numbers themselves: IQ4_NL, IQ4_XS with scales of 6 bits, and NVFP4.

use super::super::blocks::DOUBLED_E2M1;
use super::super::codebooks::IQ4_VALUES;
use super::super::gguf::mutable;
use super::arithmetic::{inverse, limited, to_half};
use super::groups::{Group, farthest, side_by_side, times};
use super::search::{Ends, Products};

/// Twice the middles of neighboring values.
const MIDDLES: [f32; 15] = {
    let (mut middles, mut i) = ([0.0; 15], 0);
    while i < 15 {
        middles[i] = (IQ4_VALUES[i] as i16 + IQ4_VALUES[i + 1] as i16) as f32;
        i += 1;
    }
    middles
};

/// Index of the nearest value, of two the larger; for NaN the last.
#[inline(always)]
fn index(x: f32) -> u8 {
    MIDDLES.iter().fold(15, |index, middle| index - u8::from(x + x < *middle))
}

/// Value of the [index] of `x`.
#[inline(always)]
fn value(x: f32) -> f32 {
    let mut value = f32::from(IQ4_VALUES[15]);
    for (middle, pair) in MIDDLES.iter().zip(IQ4_VALUES.windows(2)) {
        value -= if x + x < *middle { f32::from(pair[1]) - f32::from(pair[0]) } else { 0.0 };
    }
    value
}

/// Scales of groups: the value of the largest magnitude is put at 127 and then at -127 + k, k = -7 .. 7. For the values
/// nearest to each, weighted least squares give the scale. Without weights, the weight is the square of `x`.
#[inline(always)]
fn scales<const L: usize>(x: &[f32], weights: Option<&[f32]>, first: usize) -> [f32; L] {
    let x = &side_by_side(x, first);
    let weights = &weights.map_or_else(|| times(x, x), |weights| side_by_side(weights, first));
    let ends = Ends::of(x);
    let (farthest, mut factor, mut scale, mut best) = (ends.farthest, [0.0; L], [0.0; L], [0.0; L]);
    for l in 0..L {
        factor[l] = 1.0 / (-farthest[l] / -127.0);
    }
    let Products { xc, cc } = products(x, weights, &factor);
    for l in 0..L {
        scale[l] = if cc[l] > 0.0 { xc[l] / cc[l] } else { 0.0 };
        best[l] = scale[l] * xc[l];
    }
    for k in -7..=7i8 {
        for l in 0..L {
            factor[l] = (f32::from(k) - 127.0) / farthest[l];
        }
        products(x, weights, &factor).improve_scale(&mut scale, &mut best);
    }
    ends.scale(scale)
}

/// Products of the elements and the values nearest to `x * factor`.
#[inline(always)]
fn products<const L: usize>(x: &Group<32, L>, weights: &Group<32, L>, factor: &[f32; L]) -> Products<L> {
    let mut sums = Products { xc: [0.0; L], cc: [0.0; L] };
    for (x, w) in x.iter().zip(weights) {
        for l in 0..L {
            let value = value(factor[l] * x[l]);
            sums.xc[l] += w[l] * value * x[l];
            sums.cc[l] += w[l] * value * value;
        }
    }
    sums
}

/// Codes of a group with an inverse scale, the first half in low nibbles.
#[inline(always)]
fn nibbles(x: &[f32], inverse: f32, bytes: &mut [u8]) {
    let (low, high) = x.split_at(16);
    for ((byte, low), high) in bytes.iter_mut().zip(low).zip(high) {
        *byte = index(inverse * low) | index(inverse * high) << 4;
    }
}

/// Quantizes `L` blocks.
#[inline(always)]
pub(super) fn iq4_nl<const L: usize>(x: &[f32], weights: Option<&[f32]>, bytes: &mut [u8]) {
    let scales = scales::<L>(x, weights, 0);
    let blocks = x.chunks_exact(32).zip(bytes.chunks_exact_mut(18));
    for ((x, bytes), scale) in blocks.zip(scales) {
        let mutable::IQ4_NL { d, qs } = mutable::IQ4_NL::of(bytes);
        *d = to_half(scale).to_le_bytes();
        nibbles(x, inverse(scale), qs);
    }
}

#[inline(always)]
pub(super) fn iq4_xs<const L: usize>(x: &[f32; 256], weights: Option<&[f32; 256]>, bytes: &mut [u8]) {
    let mut of_groups = [0.0; 8];
    for first in (0..8).step_by(L) {
        of_groups[first..first + L].copy_from_slice(&scales::<L>(x, weights.map(|weights| &weights[..]), first));
    }
    let scale = -farthest(&of_groups) / 32.0;
    let of_scale = inverse(scale);
    let mutable::IQ4_XS { d, scales_h, scales_l, qs } = mutable::IQ4_XS::of(bytes);
    let mut high = 0;
    scales_l.fill(0);
    for (g, (x, bytes)) in x.chunks_exact(32).zip(qs.chunks_exact_mut(16)).enumerate() {
        let code = limited(of_scale * of_groups[g], -32, 31);
        // The codes of elements go by the scale before its rounding to f16.
        nibbles(x, inverse(scale * code as f32), bytes);
        let six = (code + 32) as u16;
        scales_l[g / 2] |= (six as u8 & 15) << (g % 2 * 4);
        high |= six >> 4 << (2 * g);
    }
    (*d, *scales_h) = (to_half(scale).to_le_bytes(), high.to_le_bytes());
}

/// Code of an f8e4m3fn without sign, as ggml rounds to it: ties away from zero, and everything from 248 on is 448.
#[inline(always)]
fn unsigned_e4m3(x: f32) -> u8 {
    // Between 2^-6 and 248, 3 bits of the significand stay.
    let normal = ((x.to_bits() + (1 << 19)) >> 20).wrapping_sub(120 << 3) as u8;
    let subnormal = ((x * 512.0 + 0.5) as i32).min(7) as u8;
    if x < 0.015625 {
        subnormal
    } else if x < 248.0 {
        normal
    } else {
        0x7e
    }
}

/// Each group of 16 has the scale that puts its largest magnitude at 6, the largest value of E2M1. If rounded errors are
/// equal, the first code is taken.
#[inline(always)]
pub(super) fn nvfp4(x: &[f32; 64], _: Option<&[f32; 64]>, bytes: &mut [u8]) {
    let mutable::Nvfp4 { d, qs } = mutable::Nvfp4::of(bytes);
    for ((x, d), qs) in x.as_chunks::<16>().0.iter().zip(d).zip(qs.as_chunks_mut::<8>().0) {
        let most = x.iter().fold(0.0, |most, x| if x.abs() > most { x.abs() } else { most });
        *d = unsigned_e4m3(most / 6.0);
        let (exponent, fraction) = (u32::from(*d >> 3), *d & 7);
        let significand = if exponent == 0 { fraction } else { fraction | 8 };
        // Half the scale, because values are doubled. The significand counts eighths.
        let half = f32::from(significand) * f32::from_bits((exponent.max(1) + 127 - 11) << 23);
        let (mut codes, mut least) = ([0; 16], x.map(f32::abs));
        for (code, value) in (0..).zip(DOUBLED_E2M1).skip(1) {
            for i in 0..16 {
                let error = (f32::from(value) * half - x[i]).abs();
                codes[i] = if error < least[i] { code } else { codes[i] };
                least[i] = if error < least[i] { error } else { least[i] };
            }
        }
        for (i, byte) in qs.iter_mut().enumerate() {
            *byte = codes[i] | codes[i + 8] << 4;
        }
    }
}
