//! Blocks as ggml's own rule makes them, with and without an importance matrix (§9.11). The rule is f32 arithmetic, so that the
//! order of operations is part of it: every operation here is one IEEE operation, rounded once to nearest even.
//!
//! A block is divided into groups with a scale each. The searches for scales treat `L` groups side by side, one in
//! each lane, and no lane affects another: `L = 1` is the definition, and kernels take as many as their registers hold.
//! The caller sees to the default floating-point environment.

mod arithmetic;
mod groups;
mod k_blocks;
mod search;
mod small;
mod values;

pub use arithmetic::{from_half, half_of_ue4m3, to_half};

use super::error::ScaledError;
use super::gguf::BlockType;
use super::quantize::NonFinite;
use alloc::vec::Vec;

/// Whether [`quantize`] has a rule for a block type.
#[must_use]
pub const fn is_written(block: BlockType) -> bool {
    matches!(block, BlockType::NVFP4) || is_weighted(block)
}

/// Whether [`quantize`] takes weights for a block type.
#[must_use]
pub const fn is_weighted(block: BlockType) -> bool {
    use BlockType::{IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K};
    matches!(block, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q2_K | Q3_K | Q4_K | Q5_K | Q6_K | IQ4_NL | IQ4_XS)
}

/// Quantizes the finite values `x` to whole blocks, with `L` groups side by side; `L` is 1 or 8. The searches count
/// errors by the [`weights`], if there are any.
///
/// # Panics
/// If the bytes do not hold as many blocks, the weights are not as many, or the type is not [written](is_written).
#[inline(always)]
pub fn quantize<const L: usize>(block: BlockType, x: &[f32], weights: Option<&[f32]>, bytes: &mut [u8]) {
    // Macros, because a function that is called through a parameter is compiled for the weakest CPU.
    macro_rules! each {
        ($one:expr) => {
            for (i, (x, bytes)) in
                x.as_chunks().0.iter().zip(bytes.chunks_exact_mut(block.bytes() as usize)).enumerate()
            {
                $one(x, weights.map(|weights| &weights.as_chunks().0[i]), bytes);
            }
        };
    }
    // A block is one group.
    macro_rules! together {
        ($($many:ident)::+ ($($block:ident)?)) => {
            let (n, blocks, mut first) = (block.bytes() as usize, x.len() / 32, 0);
            while first < blocks {
                let end = if blocks - first < L { first + 1 } else { first + L };
                let (x, bytes) = (&x[32 * first..32 * end], &mut bytes[n * first..n * end]);
                let weights = weights.map(|weights| &weights[32 * first..32 * end]);
                if end - first == L {
                    $($many)::+::<L>($($block,)? x, weights, bytes);
                } else {
                    $($many)::+::<1>($($block,)? x, weights, bytes);
                }
                first = end;
            }
        };
    }
    assert_eq!(block.bytes_of([1, x.len() as u64]), Some(bytes.len() as u64), "whole blocks");
    assert!(weights.is_none_or(|weights| weights.len() == x.len()), "a weight for each element");
    match block {
        BlockType::Q4_0 | BlockType::Q4_1 | BlockType::Q5_0 | BlockType::Q5_1 => {
            together!(small::small(block));
        }
        BlockType::Q2_K => each!(k_blocks::q2_k::<L>),
        BlockType::Q3_K => each!(k_blocks::q3_k::<L>),
        BlockType::Q4_K => each!(k_blocks::q4_k::<L>),
        BlockType::Q5_K => each!(k_blocks::q5_k::<L>),
        BlockType::Q6_K => each!(k_blocks::q6_k::<L>),
        BlockType::IQ4_XS => each!(values::iq4_xs::<L>),
        BlockType::NVFP4 => each!(values::nvfp4),
        BlockType::IQ4_NL => {
            together!(values::iq4_nl());
        }
        _ => unreachable!("{} has another rule", block.name()),
    }
}

/// Weights of the elements of a row, from the importance of its columns. `root` is the square root, rounded once.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn weights(block: BlockType, row: &[f32], importance: &[f32], root: impl Fn(f32) -> f32, to: &mut [f32]) {
    use BlockType::{IQ4_NL, IQ4_XS, Q3_K, Q4_K, Q5_K, Q6_K};
    if block == Q6_K {
        return to.copy_from_slice(importance);
    }
    // The small blocks share the mean square of the row.
    let together = if is_of_row(block) { row.len().max(1) } else { block.elements() as usize };
    for ((x, importance), to) in row.chunks(together).zip(importance.chunks(together)).zip(to.chunks_mut(together)) {
        let squares = x.iter().fold(0.0, |sum, x| sum + x * x);
        let mean = match block {
            IQ4_NL | IQ4_XS => squares * (2.0 / together as f32),
            Q3_K | Q4_K | Q5_K => 2.0 * squares / together as f32,
            _ => squares / together as f32,
        };
        for ((to, x), importance) in to.iter_mut().zip(x).zip(importance) {
            *to = importance * root(mean + x * x);
        }
    }
}

/// Whether the [`weights`] of an element depend on its whole row.
#[must_use]
pub const fn is_of_row(block: BlockType) -> bool {
    matches!(block, BlockType::Q4_0 | BlockType::Q4_1 | BlockType::Q5_0 | BlockType::Q5_1)
}

/// Quantizes whole blocks of a row, from f32 bits, with the importance of its columns. This is the definition.
///
/// # Errors
/// [`ScaledError::NotFinite`], unless `nonfinite` saturates.
///
/// # Panics
/// As [`quantize`], and if there are other columns.
pub fn quantize_row(
    block: BlockType,
    nonfinite: NonFinite,
    row: &[u32],
    importance: &[f32],
    bytes: &mut [u8],
) -> Result<(), ScaledError> {
    let x: Vec<f32> = row.iter().map(|x| f32::from_bits(*x)).collect();
    if let (NonFinite::Error, Some(index)) = (nonfinite, x.iter().position(|x| !x.is_finite())) {
        return Err(ScaledError::NotFinite { index: index as u64 });
    }
    let x: Vec<f32> = x.chunks(block.elements() as usize).flat_map(saturated).collect();
    let mut of_elements = alloc::vec![0.0; x.len()];
    weights(block, &x, importance, arithmetic::square_root, &mut of_elements);
    by_definition(block, &x, Some(&of_elements), bytes);
    Ok(())
}

/// [`quantize`], a group at a time.
pub(super) fn by_definition(block: BlockType, x: &[f32], weights: Option<&[f32]>, bytes: &mut [u8]) {
    quantize::<1>(block, x, weights, bytes);
}

/// Values of one block, made finite: NaN is 0, and an infinity has the largest finite magnitude.
#[must_use]
pub fn saturated(x: &[f32]) -> Vec<f32> {
    let most = x.iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
    let finite = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(-most, most) };
    x.iter().map(finite).collect()
}

/// Code of the f16 scale `d` of a block; of NVFP4, the code of the largest of the four scales.
///
/// # Panics
/// If the bytes do not hold a block, or the type is not [written](is_written).
#[must_use]
#[inline(always)]
pub fn scale(block: BlockType, bytes: &[u8]) -> u16 {
    match block {
        BlockType::NVFP4 => bytes[..4].iter().fold(0, |most, d| most.max(u16::from(*d))),
        _ => block.d(bytes),
    }
}
