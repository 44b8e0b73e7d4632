//! Blocks whose codes are indices of values, not numbers themselves: IQ4_NL, IQ4_XS with scales of 6 bits, and NVFP4.

use super::super::gguf::BlockType::{IQ4_NL, IQ4_XS, NVFP4};
use super::super::gguf::{DOUBLED_E2M1, IQ4_VALUES};
use super::arithmetic::{half_of_ue4m3, inverse, limited, to_half};
use super::groups::{Group, Lanes, farthest, side_by_side, times};
use super::search::{Products, farthest_of_groups};

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
fn scales<const L: usize>(x: &[f32], weights: Option<&[f32]>, first: usize) -> Lanes<L> {
    let x = &side_by_side(x, first);
    let weights = &weights.map_or_else(|| times(x, x), |weights| side_by_side(weights, first));
    let (farthest, is_nonzero) = farthest_of_groups(x);
    let Products { xc, cc } = products(x, weights, Lanes::all(1.0) / (-farthest / Lanes::all(-127.0)));
    let mut scale = cc.is_above(Lanes::ZERO).pick(xc / cc, Lanes::ZERO);
    let mut best = scale * xc;
    for k in -7..=7i8 {
        let factor = Lanes::all(f32::from(k) - 127.0) / farthest;
        products(x, weights, factor).improve_scale(&mut scale, &mut best);
    }
    is_nonzero.pick(scale, Lanes::ZERO)
}

/// Products of the elements and the values nearest to `x * factor`.
#[inline(always)]
fn products<const L: usize>(x: &Group<32, L>, weights: &Group<32, L>, factor: Lanes<L>) -> Products<L> {
    let mut sums = Products { xc: Lanes::ZERO, cc: Lanes::ZERO };
    for (x, w) in x.iter().zip(weights) {
        let value = (factor * *x).map(value);
        let weighted = *w * value;
        sums.xc = sums.xc + weighted * *x;
        sums.cc = sums.cc + weighted * value;
    }
    sums
}

/// Quantizes `L` blocks.
#[inline(always)]
pub(super) fn iq4_nl<const L: usize>(x: &[f32], weights: Option<&[f32]>, bytes: &mut [u8]) {
    let blocks = x.as_chunks::<32>().0.iter().zip(bytes.chunks_exact_mut(IQ4_NL.bytes() as usize));
    for ((x, bytes), scale) in blocks.zip(scales::<L>(x, weights, 0).0) {
        let inverse = inverse(scale);
        IQ4_NL.put_factors(&[to_half(scale)], bytes);
        IQ4_NL.put_codes(&x.map(|x| index(inverse * x)), bytes);
    }
}

#[inline(always)]
pub(super) fn iq4_xs<const L: usize>(x: &[f32; 256], weights: Option<&[f32; 256]>, bytes: &mut [u8]) {
    let mut of_groups = [0.0; 8];
    for first in (0..8).step_by(L) {
        let scales = scales::<L>(x, weights.map(|weights| &weights[..]), first);
        of_groups[first..first + L].copy_from_slice(&scales.0);
    }
    let scale = -farthest(&of_groups) / 32.0;
    let of_scale = inverse(scale);
    let of_groups = of_groups.map(|of_group| limited(of_scale * of_group, -32, 31));
    let mut codes = [0; 256];
    for ((codes, x), of_group) in codes.chunks_exact_mut(32).zip(x.chunks_exact(32)).zip(of_groups) {
        // The codes of elements go by the scale before its rounding to f16.
        let inverse = inverse(scale * of_group as f32);
        codes.iter_mut().zip(x).for_each(|(code, x)| *code = index(inverse * x));
    }
    IQ4_XS.put_factors(&[to_half(scale)], bytes);
    IQ4_XS.put_scales(&of_groups.map(|of_group| (of_group + 32) as u8), bytes);
    IQ4_XS.put_codes(&codes, bytes);
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
    let (mut codes, mut scales) = ([0; 64], [0; 4]);
    for ((x, d), codes) in x.as_chunks::<16>().0.iter().zip(&mut scales).zip(codes.as_chunks_mut::<16>().0) {
        let most = x.iter().fold(0.0, |most, x| if x.abs() > most { x.abs() } else { most });
        *d = unsigned_e4m3(most / 6.0);
        // Half the scale, because values are doubled.
        let (half, mut least) = (half_of_ue4m3(*d), x.map(f32::abs));
        for (code, value) in (0..).zip(DOUBLED_E2M1).skip(1) {
            for i in 0..16 {
                let error = (f32::from(value) * half - x[i]).abs();
                codes[i] = if error < least[i] { code } else { codes[i] };
                least[i] = if error < least[i] { error } else { least[i] };
            }
        }
    }
    bytes[..4].copy_from_slice(&scales);
    NVFP4.put_codes(&codes, bytes);
}
