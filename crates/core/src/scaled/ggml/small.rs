//! Blocks of 32 elements with one scale. Without weights, a formula gives the scale, and codes are computed with its f32
//! inverse. With weights, a search gives both.

use super::super::gguf::BlockType::{self, Q4_0, Q4_1, Q5_0};
use super::arithmetic::{inverse, to_half, truncated};
use super::groups::{farthest, range, side_by_side};
use super::search::{Fit, Search, Symmetric, WithMinimum};

/// Scale, least value and codes of a block.
struct Encoded {
    scale: f32,
    least: f32,
    codes: [u8; 32],
}

/// The scale puts the value of the largest magnitude at code 0. `half` is the code of zero.
#[inline(always)]
fn symmetric(x: &[f32; 32], half: u8) -> Encoded {
    let scale = farthest(x) / -f32::from(half);
    let (inverse, middle) = (inverse(scale), f32::from(half) + 0.5);
    let codes = x.map(|x| truncated(x * inverse + middle).min(2 * half as i8 - 1) as u8);
    Encoded { scale, least: 0.0, codes }
}

/// The scale puts the least value at code 0 and the largest at `most`. Codes are limited to `limit`.
#[inline(always)]
fn with_minimum(x: &[f32; 32], most: u8, limit: i8) -> Encoded {
    let (least, largest) = range(x);
    let scale = (largest - least) / f32::from(most);
    let inverse = inverse(scale);
    Encoded { scale, least, codes: x.map(|x| truncated((x - least) * inverse + 0.5).min(limit) as u8) }
}

#[inline(always)]
fn put(block: BlockType, encoded: &Encoded, bytes: &mut [u8]) {
    let factors = [encoded.scale, encoded.least].map(to_half);
    block.put_factors(if block.has_bias() { &factors } else { &factors[..1] }, bytes);
    block.put_codes(&encoded.codes, bytes);
}

/// Quantizes `L` blocks of type Q4_0, Q4_1, Q5_0 or Q5_1.
#[inline(always)]
pub(super) fn small<const L: usize>(block: BlockType, x: &[f32], weights: Option<&[f32]>, bytes: &mut [u8]) {
    let blocks = bytes.chunks_exact_mut(block.bytes() as usize);
    let Some(weights) = weights else {
        for (x, bytes) in x.as_chunks().0.iter().zip(blocks) {
            let encoded = match block {
                Q4_0 => symmetric(x, 8),
                Q4_1 => with_minimum(x, 15, 15),
                Q5_0 => symmetric(x, 16),
                _ => with_minimum(x, 31, i8::MAX),
            };
            put(block, &encoded, bytes);
        }
        return;
    };
    let (x, weights) = (&side_by_side(x, 0), Some(&side_by_side(weights, 0)));
    let fit: Fit<32, L> = match block {
        Q4_0 => Symmetric::of(8).fit(x, weights),
        Q4_1 => const { WithMinimum::weighted(15) }.fit(x, weights),
        Q5_0 => Symmetric::of(16).fit(x, weights),
        _ => const { WithMinimum::weighted(31) }.fit(x, weights),
    };
    for (lane, bytes) in blocks.enumerate() {
        let codes = fit.codes.map(|codes| codes[lane]);
        put(block, &Encoded { scale: fit.scale.0[lane], least: -fit.offset.0[lane], codes }, bytes);
    }
}
