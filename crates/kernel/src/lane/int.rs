//! Integer to integer, and anything to bool. Source: `docs/kernels.md §4.18`.

use super::{Lane, Reach};
use crate::numbers::int::IntRange;
use crate::slot::Slot;
use std::marker::PhantomData;
use std::ops::BitAnd;

/// Integer to integer: clamped to the destination if saturating, then truncated to the low bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntToInt<S, D, const SIGNED: bool> {
    /// Bounds in the signedness of the source.
    lo: u64,
    hi: u64,
    mask: u64,
    pair: PhantomData<(S, D)>,
}

impl<S, D, const SIGNED: bool> IntToInt<S, D, SIGNED> {
    pub fn new(range: IntRange) -> Self {
        let all = if SIGNED { (i64::MIN as u64, i64::MAX as u64) } else { (0, u64::MAX) };
        let (lo, hi) = range.bounds.unwrap_or(all);
        Self { lo, hi, mask: range.mask, pair: PhantomData }
    }
}

impl<S: Slot, D: Slot, const SIGNED: bool> Lane for IntToInt<S, D, SIGNED> {
    const UP_TO: Reach = match (S::BYTES, D::BYTES) {
        (4, 1) => Reach::Baseline,
        _ => Reach::All,
    };
    type Src = S;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, v: S) -> D {
        let clamped = if SIGNED {
            v.sign_extended().clamp(self.lo as i64, self.hi as i64) as u64
        } else {
            v.wide().min(self.hi).max(self.lo)
        };
        D::low(clamped & self.mask)
    }
}

/// Any type to bool: 1 unless all bits of the value are zero. The test is on integers, not `x != 0.0` (`docs/kernels.md
/// §5.3`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonZero<S> {
    /// All bits except the sign of a zero.
    pub mask: S,
}

impl<S: Slot + BitAnd<Output = S> + PartialEq> Lane for NonZero<S> {
    type Src = S;
    type Dst = u8;
    #[inline(always)]
    fn convert(&self, v: S) -> u8 {
        // Values are not widened: AVX2 has twice as many lanes of 32 bits as of 64 bits.
        (v & self.mask != S::low(0)) as u8
    }
}
