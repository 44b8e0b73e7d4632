//! Selection of the elements to recompute: all, or a sample determined by a seed.
//!
//! A sample has the first and the last block of a tensor. The other blocks are divided into rows of equal length, and
//! one block of each row is drawn.

use crate::files::convert::planned::Planned;
use crate::files::scan::{Stretch, UNIT};

/// Elements to recompute. Structure, headers and presence of tensors are always checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Coverage {
    /// Everything up to [`Coverage::LARGE`] bytes of source tensors. For more bytes, a sample of 5 % or 256 MiB,
    /// whichever is larger.
    #[default]
    BySize,
    /// All elements.
    Full,
    /// At least this fraction of the elements, above 0 and at most 1.
    Sample(f64),
}

impl Coverage {
    /// Largest size in bytes that is verified completely by default.
    pub const LARGE: u64 = 1 << 30;
    const PART: f64 = 0.05;
    /// Smallest default sample in bytes.
    const LEAST: u64 = 256 << 20;

    /// Fraction of elements to recompute; `None` for all.
    pub(crate) fn part(self, bytes: u64) -> Option<f64> {
        match self {
            Coverage::Full => None,
            Coverage::Sample(part) if part >= 1.0 => None,
            Coverage::Sample(part) => Some(part),
            Coverage::BySize if bytes <= Self::LARGE => None,
            Coverage::BySize => Some(Self::PART.max(Self::LEAST as f64 / bytes as f64)),
        }
    }

    /// Stretches to recompute per tensor, and the seed of a sample. `bytes` is the size of all source tensors.
    pub(crate) fn stretches<'a>(
        self,
        bytes: u64,
        seed: u64,
        tensors: impl Iterator<Item = &'a Planned>,
    ) -> (Vec<Vec<Stretch>>, Option<u64>) {
        let part = self.part(bytes);
        let mut is_sample = false;
        let stretches = tensors.enumerate().map(|(at, tensor)| {
            let (len, bits) = (tensor.target.len(), tensor.from.bits_in(tensor.src_layout).unwrap_or(64) as u64);
            let some = part.map_or_else(|| Stretch::whole(len), |part| sample(part, seed, at as u64, len, bits));
            is_sample |= elements_of(&some) < len;
            some
        });
        let stretches = stretches.collect();
        (stretches, is_sample.then_some(seed))
    }
}

pub(crate) fn elements_of(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|stretch| stretch.len).sum()
}

const BLOCK_BYTES: u64 = 64 << 10;

/// Draws a sample of a tensor. The tensor has `len` elements of `bits` bits, and its index in the file is `tensor`.
fn sample(part: f64, seed: u64, tensor: u64, len: u64, bits: u64) -> Vec<Stretch> {
    let block = (BLOCK_BYTES * 8 / bits.max(1) / UNIT * UNIT).max(UNIT);
    let blocks = len.div_ceil(block);
    let inner = blocks.saturating_sub(2);
    let rows = ((inner as f64 * part).ceil() as u64).min(inner);
    let drawn = (0..rows).map(|row| {
        let start = |row: u64| (row as u128 * inner as u128 / rows as u128) as u64;
        let (from, to) = (start(row), start(row + 1));
        1 + from + random(seed, tensor, row) % (to - from)
    });
    let chosen = (0..1).chain(drawn).chain((blocks > 1).then(|| blocks - 1));
    let stretch = |b: u64| Stretch { first: b * block, len: block.min(len - b * block) };
    if blocks == 0 { Vec::new() } else { chosen.map(stretch).collect() }
}

/// Pseudo-random number for each row (SplitMix64).
fn random(seed: u64, tensor: u64, row: u64) -> u64 {
    let mix = |state: u64| {
        let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    mix(mix(mix(seed) ^ tensor) ^ row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_large_enough_and_in_order() {
        for (bits, len) in [(32, 1), (32, 16_384), (32, 16_385), (16, 10_000_000), (4, 77_777_777), (48, 1_000_003)] {
            for part in [1e-9, 0.05, 0.5, 0.999] {
                for seed in 0..5 {
                    let stretches = sample(part, seed, 3, len, bits);
                    let ends: Vec<_> = stretches.iter().map(|s| (s.first, s.first + s.len)).collect();
                    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
                    assert!(stretches.iter().all(|s| s.len > 0 && s.first % UNIT == 0));
                    assert_eq!((ends[0].0, ends[ends.len() - 1].1), (0, len), "the first and the last element");
                    let taken: u64 = stretches.iter().map(|s| s.len).sum();
                    assert!(taken as f64 >= part * len as f64, "{taken} of {len}");
                }
            }
        }
        assert_eq!(sample(0.5, 0, 0, 0, 32), []);
    }

    #[test]
    fn every_element_can_be_drawn() {
        let len = 40 * 16_384;
        let mut seen = [false; 40];
        for seed in 0..400 {
            let stretches = sample(0.05, seed, 7, len, 32);
            assert_eq!(stretches, sample(0.05, seed, 7, len, 32));
            assert_eq!(stretches.len(), 4);
            stretches.iter().for_each(|s| seen[(s.first / 16_384) as usize] = true);
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
        assert_ne!(sample(0.05, 0, 7, len, 32), sample(0.05, 0, 8, len, 32), "tensors are drawn apart");
    }

    #[test]
    fn large_files_are_sampled() {
        let gib = 1 << 30;
        assert_eq!(Coverage::BySize.part(gib), None);
        assert_eq!(Coverage::BySize.part(4 * gib), Some(0.0625)); // 256 MiB
        assert_eq!(Coverage::BySize.part(100 * gib), Some(0.05));
        assert_eq!(Coverage::Full.part(100 * gib), None);
        assert_eq!((Coverage::Sample(1.0).part(1), Coverage::Sample(0.5).part(1)), (None, Some(0.5)));
    }
}
