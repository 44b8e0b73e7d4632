//! Blocks as ggml's own rule makes them without an importance matrix (§9.11). The rule is f32 arithmetic, so that the
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

pub use arithmetic::{from_half, to_half};

use super::block_type::BlockType;
use super::gguf;
use alloc::vec::Vec;

/// Whether [`quantize`] has a rule for a block type.
#[must_use]
pub const fn is_written(block: BlockType) -> bool {
    use BlockType::{IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K};
    matches!(block, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q2_K | Q3_K | Q4_K | Q5_K | Q6_K | IQ4_NL | IQ4_XS)
}

/// Quantizes the finite values `x` to whole blocks, with `L` groups side by side; `L` is 1, 2, 4 or 8.
///
/// # Panics
/// If the bytes do not hold as many blocks, or the type is not [written](is_written).
#[inline(always)]
pub fn quantize<const L: usize>(block: BlockType, x: &[f32], bytes: &mut [u8]) {
    // A macro, because a function that is called through a parameter is compiled for the weakest CPU.
    macro_rules! each {
        ($x:ident, $bytes:ident, $block:ident, $one:expr) => {
            for (x, bytes) in $x.as_chunks().0.iter().zip($bytes.chunks_exact_mut($block.bytes() as usize)) {
                $one(x, bytes);
            }
        };
    }
    assert_eq!(block.bytes_of([1, x.len() as u64]), Some(bytes.len() as u64), "whole blocks");
    match block {
        BlockType::Q4_0 => each!(x, bytes, block, small::q4_0),
        BlockType::Q4_1 => each!(x, bytes, block, small::q4_1),
        BlockType::Q5_0 => each!(x, bytes, block, small::q5_0),
        BlockType::Q5_1 => each!(x, bytes, block, small::q5_1),
        BlockType::Q2_K => each!(x, bytes, block, k_blocks::q2_k::<L>),
        BlockType::Q3_K => each!(x, bytes, block, k_blocks::q3_k::<L>),
        BlockType::Q4_K => each!(x, bytes, block, k_blocks::q4_k::<L>),
        BlockType::Q5_K => each!(x, bytes, block, k_blocks::q5_k::<L>),
        BlockType::Q6_K => each!(x, bytes, block, k_blocks::q6_k::<L>),
        BlockType::IQ4_XS => each!(x, bytes, block, values::iq4_xs::<L>),
        BlockType::IQ4_NL => {
            // A block is one group.
            let together = x.len() / (32 * L) * L;
            let (first, rest) = x.split_at(together * 32);
            let (first_bytes, rest_bytes) = bytes.split_at_mut(together * 18);
            let blocks = first.chunks_exact(32 * L).zip(first_bytes.chunks_exact_mut(18 * L));
            for (x, bytes) in blocks {
                values::iq4_nl::<L>(x, bytes);
            }
            let blocks = rest.chunks_exact(32).zip(rest_bytes.chunks_exact_mut(18));
            for (x, bytes) in blocks {
                values::iq4_nl::<1>(x, bytes);
            }
        }
        _ => unreachable!("{} has another rule", block.name()),
    }
}

/// Values of one block, made finite: NaN is 0, and an infinity has the largest finite magnitude.
#[must_use]
pub fn saturated(x: &[f32]) -> Vec<f32> {
    let most = x.iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
    let finite = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(-most, most) };
    x.iter().map(finite).collect()
}

/// Code of the f16 scale `d` of a block.
///
/// # Panics
/// If the bytes do not hold a block, or the type is not [written](is_written).
#[must_use]
pub fn scale(block: BlockType, bytes: &[u8]) -> u16 {
    u16::from_le_bytes(*match block {
        BlockType::Q2_K => gguf::Q2_K::of(bytes).d,
        BlockType::Q3_K => gguf::Q3_K::of(bytes).d,
        BlockType::Q6_K => gguf::Q6_K::of(bytes).d,
        _ => bytes.first_chunk().expect("a whole block, which begins with the scale"),
    })
}
