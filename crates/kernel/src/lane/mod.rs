//! Lanes: branch-free functions of one element, compiled once per level by the loop in `stage`.
//!
//! Rules (`docs/kernels.md §4.1`): elements are unsigned integers; compare and select, wrapping arithmetic, shift counts
//! below the width; NaN bits chosen by integer selects; a float exists only around an operation that §5.2 allows. A lane
//! never names a standard: it gets numbers, and those come from the definition.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod int;
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
