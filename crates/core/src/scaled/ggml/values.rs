//! Blocks whose codes are indices of values, not numbers themselves: IQ4_NL, and IQ4_XS with scales of 6 bits.

use super::super::codebooks::IQ4_VALUES;
use super::super::gguf::mutable;
use super::arithmetic::{inverse, limited, to_half};
use super::groups::{Group, farthest, side_by_side};
use super::search::ends;

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
/// nearest to each, least squares weighted by the square of `x` give the scale.
#[inline(always)]
fn scales<const L: usize>(x: &Group<32, L>) -> [f32; L] {
    let (end, is_something) = ends(x);
    let (mut factor, mut scale, mut best) = ([0.0; L], [0.0; L], [0.0; L]);
    for l in 0..L {
        factor[l] = 1.0 / (-end[l] / -127.0);
    }
    let (sum_xv, sum_vv) = products(x, &factor);
    for l in 0..L {
        scale[l] = if sum_vv[l] > 0.0 { sum_xv[l] / sum_vv[l] } else { 0.0 };
        best[l] = scale[l] * sum_xv[l];
    }
    for k in -7..=7i8 {
        for l in 0..L {
            factor[l] = (f32::from(k) - 127.0) / end[l];
        }
        let (sum_xv, sum_vv) = products(x, &factor);
        for l in 0..L {
            let takes = (sum_vv[l] > 0.0) & (sum_xv[l] * sum_xv[l] > best[l] * sum_vv[l]);
            scale[l] = if takes { sum_xv[l] / sum_vv[l] } else { scale[l] };
            best[l] = if takes { scale[l] * sum_xv[l] } else { best[l] };
        }
    }
    for l in 0..L {
        scale[l] = if is_something[l] { scale[l] } else { 0.0 };
    }
    scale
}

/// Weighted sums of `x * v` and `v * v`, where `v` is the value nearest to `x * factor`.
#[inline(always)]
fn products<const L: usize>(x: &Group<32, L>, factor: &[f32; L]) -> ([f32; L], [f32; L]) {
    let (mut sum_xv, mut sum_vv) = ([0.0; L], [0.0; L]);
    for x in x {
        for l in 0..L {
            let (w, v) = (x[l] * x[l], value(factor[l] * x[l]));
            sum_xv[l] += w * v * x[l];
            sum_vv[l] += w * v * v;
        }
    }
    (sum_xv, sum_vv)
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
pub(super) fn iq4_nl<const L: usize>(x: &[f32], bytes: &mut [u8]) {
    let scales = scales::<L>(&side_by_side(x, 0));
    let blocks = x.chunks_exact(32).zip(bytes.chunks_exact_mut(18));
    for ((x, bytes), scale) in blocks.zip(scales) {
        let mutable::IQ4_NL { d, qs } = mutable::IQ4_NL::of(bytes);
        *d = to_half(scale).to_le_bytes();
        nibbles(x, inverse(scale), qs);
    }
}

#[inline(always)]
pub(super) fn iq4_xs<const L: usize>(x: &[f32; 256], bytes: &mut [u8]) {
    let mut of_groups = [0.0; 8];
    for first in (0..8).step_by(L) {
        of_groups[first..first + L].copy_from_slice(&scales::<L>(&side_by_side(x, first)));
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
