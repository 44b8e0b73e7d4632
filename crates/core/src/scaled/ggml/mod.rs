//! Blocks as ggml's own rule makes them without an importance matrix (§9.8). The rule is f32 arithmetic, so that the
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

pub use arithmetic::{from_half, to_half};

use super::blocks::BlockType;
use super::gguf;
use alloc::vec::Vec;

/// Whether [`quantize`] has a rule for a block type.
#[must_use]
pub const fn is_written(block: BlockType) -> bool {
    use BlockType::{Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K};
    matches!(block, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q2_K | Q3_K | Q4_K | Q5_K | Q6_K)
}

/// Quantizes the finite values `x` to a block, with `L` groups side by side; `L` is 1, 2, 4 or 8.
///
/// # Panics
/// If the values or bytes are not those of one block, or the type is not [written](is_written).
#[inline(always)]
pub fn quantize<const L: usize>(block: BlockType, x: &[f32], bytes: &mut [u8]) {
    match block {
        BlockType::Q4_0 => small::q4_0(whole(x), bytes),
        BlockType::Q4_1 => small::q4_1(whole(x), bytes),
        BlockType::Q5_0 => small::q5_0(whole(x), bytes),
        BlockType::Q5_1 => small::q5_1(whole(x), bytes),
        BlockType::Q2_K => k_blocks::q2_k::<L>(whole(x), bytes),
        BlockType::Q3_K => k_blocks::q3_k::<L>(whole(x), bytes),
        BlockType::Q4_K => k_blocks::q4_k::<L>(whole(x), bytes),
        BlockType::Q5_K => k_blocks::q5_k::<L>(whole(x), bytes),
        BlockType::Q6_K => k_blocks::q6_k::<L>(whole(x), bytes),
        _ => unreachable!("{} has another rule", block.name()),
    }
}

/// Values of one block without what is not finite: NaN is 0, and an infinity has the largest finite magnitude.
#[must_use]
pub fn saturated(x: &[f32]) -> Vec<f32> {
    let most = x.iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
    let finite = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(-most, most) };
    x.iter().map(finite).collect()
}

/// Code of the f16 scale `d` of a block.
///
/// # Panics
/// If the bytes are not those of a block, or the type is not [written](is_written).
#[must_use]
pub fn scale(block: BlockType, bytes: &[u8]) -> u16 {
    u16::from_le_bytes(*match block {
        BlockType::Q2_K => gguf::Q2_K::of(bytes).d,
        BlockType::Q3_K => gguf::Q3_K::of(bytes).d,
        BlockType::Q6_K => gguf::Q6_K::of(bytes).d,
        _ => bytes.first_chunk().expect("a whole block, which begins with the scale"),
    })
}

#[inline(always)]
fn whole<const N: usize>(x: &[f32]) -> &[f32; N] {
    x.try_into().expect("the values of one block")
}
