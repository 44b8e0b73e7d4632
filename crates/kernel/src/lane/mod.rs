//! Lanes: branch-free functions of one element, compiled once per level by the loop in `stage`.
//!
//! Rules (`docs/kernels.md §4.1`): elements are unsigned integers; compare and select, wrapping arithmetic, shift counts
//! below the width; NaN bits chosen by integer selects; a float exists only around an operation that §5.2 allows. A lane
//! never names a standard: it gets numbers, and those come from the definition.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod int;
pub(crate) mod stage;
pub(crate) mod to_int;
pub(crate) mod wide;

use crate::slot::Slot;
use std::fmt::Debug;
use truecast_core::Rounding;
use truecast_core::round::Remainder;

/// A conversion of one element.
pub(crate) trait Lane: Copy + Debug + Send + Sync + 'static {
    type Src: Slot;
    type Dst: Slot;
    /// Must be `#[inline(always)]`, so that it is compiled for the level of the loop around it.
    fn one(&self, s: Self::Src) -> Self::Dst;
    /// The strongest level that it is compiled for.
    const UP_TO: Reach = Reach::All;
}

/// Levels that a lane is compiled for. At those above, a kernel written by hand stands before it; were it run there all the
/// same, the code of a lower level would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// `Level::Baseline`.
    Baseline,
    /// That and `Level::Avx2`.
    Avx2,
    /// Every level.
    All,
}

/// An f32 taken apart: `(-1)^neg * sig * 2^(exp - 150)` if it is finite.
#[derive(Clone, Copy)]
struct F32Parts {
    neg: u32,
    abs: u32,
    sig: u32,
    /// Biased; 1 for subnormals.
    exp: u32,
}

#[inline(always)]
fn f32_parts(x: u32) -> F32Parts {
    let abs = x & 0x7fff_ffff;
    let field = abs >> 23;
    let hidden = if field != 0 { 1 << 23 } else { 0 };
    F32Parts { neg: x >> 31, abs, sig: (abs & 0x007f_ffff) | hidden, exp: field.max(1) }
}

/// An f64 taken apart: `(-1)^neg * sig * 2^(exp - 1075)` if it is finite.
#[derive(Clone, Copy)]
struct F64Parts {
    neg: u64,
    abs: u64,
    sig: u64,
    /// Biased; 1 for subnormals.
    exp: u64,
}

#[inline(always)]
fn f64_parts(x: u64) -> F64Parts {
    let abs = x & 0x7fff_ffff_ffff_ffff;
    let field = abs >> 52;
    let hidden = if field != 0 { 1 << 52 } else { 0 };
    F64Parts { neg: x >> 63, abs, sig: (abs & 0x000f_ffff_ffff_ffff) | hidden, exp: field.max(1) }
}

pub(crate) const F32_INF: u32 = 0x7f80_0000;
pub(crate) const F64_INF: u64 = 0x7ff0_0000_0000_0000;

/// [`Rounding::increments`] as a truth table: bit `4 * remainder + 2 * neg + odd`, so that one lane serves every
/// rounding without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Increments(u32);

impl Increments {
    pub const fn new(rounding: Rounding) -> Self {
        const CLASSES: [Remainder; 4] = [Remainder::Zero, Remainder::BelowHalf, Remainder::Half, Remainder::AboveHalf];
        let mut table = 0;
        let mut i = 0;
        while i < 16 {
            let increments = rounding.increments(i & 2 != 0, i & 1 != 0, CLASSES[i >> 2]);
            table |= (increments as u32) << i;
            i += 1;
        }
        Self(table)
    }

    /// 1 if the magnitude grows. `rest` is what is dropped, `half` one half of a unit, both in the same grid.
    #[inline(always)]
    pub fn of_u32(self, neg: u32, odd: u32, rest: u32, half: u32) -> u32 {
        let class = (rest != 0) as u32 + (rest >= half) as u32 + (rest > half) as u32;
        (self.0 >> (4 * class + 2 * neg + odd)) & 1
    }

    #[inline(always)]
    pub fn of_u64(self, neg: u64, odd: u64, rest: u64, half: u64) -> u64 {
        let class = (rest != 0) as u64 + (rest >= half) as u64 + (rest > half) as u64;
        (self.0 as u64 >> (4 * class + 2 * neg + odd)) & 1
    }
}
