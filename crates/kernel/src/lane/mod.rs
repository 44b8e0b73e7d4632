//! Lanes: branch-free functions of one element, compiled once per level by the loop in `stage`.
//!
//! Rules (`docs/kernels.md §4.1`): elements are unsigned integers; compare and select, wrapping arithmetic, shift
//! counts below the width; NaN bits chosen by integer selects; a float exists only around an operation that §5.2
//! allows. A lane never names a standard: it gets numbers, which come from the definition.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod int;
pub(crate) mod stage;
pub(crate) mod to_int;
pub(crate) mod wide;

use crate::slot::Slot;
use std::fmt::Debug;

/// A conversion of one element.
pub(crate) trait Lane: Copy + Debug + Send + Sync + 'static {
    type Src: Slot;
    type Dst: Slot;
    /// Converts one element. An implementation must be `#[inline(always)]`, so that it is compiled for the level of the
    /// loop around it.
    fn one(&self, s: Self::Src) -> Self::Dst;
    /// The strongest level that the lane is compiled for.
    const UP_TO: Reach = Reach::All;
    /// Whether the lane's loop may store past the caches. False if another stage follows the lane, or if the lane is
    /// slower than memory.
    const STREAMS: bool = true;
}

/// Levels that a lane is compiled for. At higher levels a hand-written kernel comes first; a lane that still runs at
/// such a level uses the code of a lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// `Level::Baseline`.
    Baseline,
    /// `Level::Baseline` and `Level::Avx2`.
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
