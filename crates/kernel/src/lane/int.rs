//! Integer to integer, and anything to bool. Source: `docs/kernels.md §4.18`.

use super::Lane;
use crate::slot::Slot;
#[cfg(target_arch = "x86_64")]
use crate::{level::Level, x86::bytes256};
use std::marker::PhantomData;
use truecast_core::IntFormat;
use truecast_core::policy::IntOverflow;

/// The range of an integer, as far as 64 bits of a signedness have it, in that signedness.
pub(crate) fn int_bounds(signed: bool, dst: IntFormat) -> (u64, u64) {
    let (min, max) = if signed { (i64::MIN as i128, i64::MAX as i128) } else { (0, u64::MAX as i128) };
    (dst.min().max(min) as u64, dst.max().min(max) as u64)
}

/// Clamp to the destination (saturating) or to nothing (wrapping), then keep the low bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntToInt<S, D, const SIGNED: bool> {
    /// Bounds, in the source's signedness.
    lo: u64,
    hi: u64,
    mask: u64,
    pair: PhantomData<(S, D)>,
}

impl<S, D, const SIGNED: bool> IntToInt<S, D, SIGNED> {
    pub fn new(dst: IntFormat, overflow: IntOverflow) -> Self {
        let (lo, hi) = match overflow {
            IntOverflow::Saturate => int_bounds(SIGNED, dst),
            _ if SIGNED => (i64::MIN as u64, i64::MAX as u64),
            _ => (0, u64::MAX),
        };
        Self { lo, hi, mask: dst.mask(), pair: PhantomData }
    }
}

impl<S: Slot, D: Slot, const SIGNED: bool> Lane for IntToInt<S, D, SIGNED> {
    type Src = S;
    type Dst = D;
    #[inline(always)]
    fn one(&self, v: S) -> D {
        let clamped = if SIGNED {
            v.sign_extended().clamp(self.lo as i64, self.hi as i64) as u64
        } else {
            v.wide().min(self.hi).max(self.lo)
        };
        D::low(clamped & self.mask)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn by_hand(&self, level: Level, src: &[u8], dst: &mut [u8]) -> usize {
        let mask = self.mask as u8;
        match (level, S::BYTES, D::BYTES) {
            (Level::Avx2(token), 4, 1) if SIGNED => {
                let end = |bound: u64| (bound as i64).clamp(i32::MIN as i64, i32::MAX as i64) as u32;
                bytes256::clamped::<true>(token, [end(self.lo), end(self.hi)], mask, src, dst)
            }
            (Level::Avx2(token), 4, 1) => {
                let end = |bound: u64| bound.min(u32::MAX as u64) as u32;
                bytes256::clamped::<false>(token, [end(self.lo), end(self.hi)], mask, src, dst)
            }
            _ => 0,
        }
    }
}

/// 1 unless the bits that make the value are all zero. An integer test, never `x != 0.0` (`docs/kernels.md §5.3`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonZero<S> {
    /// All bits but the sign of a zero.
    pub mask: u64,
    pub src: PhantomData<S>,
}

impl<S: Slot> Lane for NonZero<S> {
    type Src = S;
    type Dst = u8;
    #[inline(always)]
    fn one(&self, v: S) -> u8 {
        (v.wide() & self.mask != 0) as u8
    }
}
