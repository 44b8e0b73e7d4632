//! Lanes from f32 and f64 to integers. Source: `docs/kernels.md §4.15` to §4.17.
//!
//! Integer arithmetic only: the floating-point environment does not matter.

use super::{F32Parts, F64Parts, Lane, f32_parts, f64_parts};
use crate::numbers::int::ToInt;
use crate::numbers::{F32_INF, F64_INF};
use crate::slot::Slot;
use std::marker::PhantomData;

/// f32 bits to an integer, truncated and wrapped (§4.16). All bits of Inf and huge values are shifted out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToIntTrunc<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F32ToIntTrunc<D> {
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u32) -> D {
        let p = &self.0;
        let abs = x & 0x7fff_ffff;
        let e = abs >> 23;
        // A subnormal gets a wrong hidden bit, which is shifted out.
        let sig = (abs & 0x007f_ffff) | 1 << 23;
        let (left, right) = (e.wrapping_sub(150), 150u32.wrapping_sub(e));
        let neg = (x as i32) >> 31;
        if D::BYTES == 8 {
            let (sig, left, right) = (sig as u64, left as u64, right as u64);
            let above = if left < 64 { sig << left } else { 0 };
            let below = if right < 64 { sig >> right } else { 0 };
            let m = ((above | below) ^ neg as u64).wrapping_sub(neg as u64);
            D::low(if abs > F32_INF { p.nan } else { m })
        } else {
            let above = if left < 32 { sig << left } else { 0 };
            let below = if right < 32 { sig >> right } else { 0 };
            let m = ((above | below) ^ neg as u32).wrapping_sub(neg as u32) & p.mask as u32;
            D::low(if abs > F32_INF { p.nan as u32 } else { m } as u64)
        }
    }
}

/// f64 bits to an integer, truncated and wrapped (§4.16).
#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToIntTrunc<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F64ToIntTrunc<D> {
    type Src = u64;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u64) -> D {
        let p = &self.0;
        let abs = x & 0x7fff_ffff_ffff_ffff;
        let e = abs >> 52;
        let sig = (abs & 0x000f_ffff_ffff_ffff) | 1 << 52;
        let (left, right) = (e.wrapping_sub(1075), 1075u64.wrapping_sub(e));
        let above = if left < 64 { sig << left } else { 0 };
        let below = if right < 64 { sig >> right } else { 0 };
        let neg = if x >> 63 != 0 { u64::MAX } else { 0 };
        let m = ((above | below) ^ neg).wrapping_sub(neg) & p.mask;
        D::low(if abs > F64_INF { p.nan } else { m })
    }
}

/// Conversion of f32 bits to an integer of at most 32 bits. Magnitudes stay in 32-bit lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToInt32<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F32ToInt32<D> {
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u32) -> D {
        let p = &self.0;
        let F32Parts { neg, abs, sig, exp } = f32_parts(x);
        let by_sign = |codes: [u64; 2]| if neg != 0 { codes[1] as u32 } else { codes[0] as u32 };
        // Number of fraction bits that are dropped. At the maximum of 31, no bit is kept, and the fraction is below one
        // half.
        let right = 150u32.saturating_sub(exp).min(31);
        let left = exp.saturating_sub(150);
        let (n, rest) = (sig >> (right & 31), sig & ((1u32 << (right & 31)) - 1));
        let half = ((1u32 << (right & 31)) >> 1).max(1);
        let rounded = n + p.increments.of_u32(neg, n & 1, rest, half);
        let m = if left < 32 { rounded << (left & 31) } else { 0 };
        let low = if neg != 0 { m.wrapping_neg() } else { m } & p.mask as u32;
        let huge = if left > 8 { p.huge_is_over as u32 } else { 0 };
        let over = (huge != 0) | (m > by_sign(p.limit));
        let mut r = if over { by_sign(p.over) } else { low };
        r = if abs == F32_INF { by_sign(p.inf) } else { r };
        r = if abs > F32_INF { p.nan as u32 } else { r };
        D::low(r as u64)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToInt64(pub ToInt);

impl Lane for F32ToInt64 {
    type Src = u32;
    type Dst = u64;
    #[inline(always)]
    fn convert(&self, x: u32) -> u64 {
        let F32Parts { neg, abs, sig, exp } = f32_parts(x);
        to_int64::<150, 40>(&self.0, neg as u64, sig as u64, exp as u64, abs == F32_INF, abs > F32_INF)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToInt<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F64ToInt<D> {
    type Src = u64;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u64) -> D {
        let F64Parts { neg, abs, sig, exp } = f64_parts(x);
        D::low(to_int64::<1075, 11>(&self.0, neg, sig, exp, abs == F64_INF, abs > F64_INF))
    }
}

/// Converts a float in parts to an integer of at most 64 bits. At biased exponent `UNIT`, the significand is an
/// integer. A left shift up to `ROOM` fits in 64 bits.
#[inline(always)]
fn to_int64<const UNIT: u64, const ROOM: u64>(
    p: &ToInt,
    neg: u64,
    sig: u64,
    exp: u64,
    is_inf: bool,
    is_nan: bool,
) -> u64 {
    let right = UNIT.saturating_sub(exp).min(63);
    let left = exp.saturating_sub(UNIT);
    let (n, rest) = (sig >> right, sig & ((1u64 << right) - 1));
    let half = (1u64 << right) >> 1;
    let rounded = n + p.increments.of_u64(neg, n & 1, rest, half.max(1));
    let m = if left < 64 { rounded << (left & 63) } else { 0 };
    let by_sign = |codes: [u64; 2]| if neg != 0 { codes[1] } else { codes[0] };
    let low = if neg != 0 { m.wrapping_neg() } else { m } & p.mask;
    let huge = if left > ROOM { p.huge_is_over } else { 0 };
    let over = (huge != 0) | (m > by_sign(p.limit));
    let mut r = if over { by_sign(p.over) } else { low };
    r = if is_inf { by_sign(p.inf) } else { r };
    if is_nan { p.nan } else { r }
}
