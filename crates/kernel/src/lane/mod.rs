//! Lanes: branch-free functions of one element, compiled once per level by the loop in `stage`.
//!
//! Rules (`docs/kernels.md §4.1`): Elements are unsigned integers. Lanes use selects, wrapping arithmetic, and shifts
//! by less than the width. Integer selects make NaN bits. Floats occur only around an operation that §5.2 allows. Lanes
//! name no standard.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod int;
pub(crate) mod stage;
pub(crate) mod to_int;
pub(crate) mod wide;

use crate::slot::Slot;
use std::fmt::Debug;

pub(crate) trait Lane: Copy + Debug + Send + Sync + 'static {
    type Src: Slot;
    type Dst: Slot;
    /// Converts one element. Implementations must be `#[inline(always)]`, so that the level of the enclosing loop
    /// applies.
    fn convert(&self, s: Self::Src) -> Self::Dst;
    /// Strongest level for which the lane is compiled.
    const UP_TO: Reach = Reach::All;
    /// Whether the loop may store past the caches. False if another stage follows, and for a lane that is slower than
    /// memory.
    const STREAMS: bool = true;
}

/// Levels for which a lane is compiled. A higher level tries a hand-written kernel first, then runs the lane's code for
/// a lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Baseline,
    Avx2,
    All,
}

/// Parts of an f32. A finite value is `(-1)^neg * sig * 2^(exp - 150)`.
#[derive(Clone, Copy)]
struct F32Parts {
    neg: u32,
    abs: u32,
    sig: u32,
    /// Biased exponent; 1 for subnormals.
    exp: u32,
}

#[inline(always)]
fn f32_parts(x: u32) -> F32Parts {
    let abs = x & 0x7fff_ffff;
    let field = abs >> 23;
    let hidden = if field != 0 { 1 << 23 } else { 0 };
    F32Parts { neg: x >> 31, abs, sig: (abs & 0x007f_ffff) | hidden, exp: field.max(1) }
}

/// Parts of an f64. A finite value is `(-1)^neg * sig * 2^(exp - 1075)`.
#[derive(Clone, Copy)]
struct F64Parts {
    neg: u64,
    abs: u64,
    sig: u64,
    /// Biased exponent; 1 for subnormals.
    exp: u64,
}

#[inline(always)]
fn f64_parts(x: u64) -> F64Parts {
    let abs = x & 0x7fff_ffff_ffff_ffff;
    let field = abs >> 52;
    let hidden = if field != 0 { 1 << 52 } else { 0 };
    F64Parts { neg: x >> 63, abs, sig: (abs & 0x000f_ffff_ffff_ffff) | hidden, exp: field.max(1) }
}
