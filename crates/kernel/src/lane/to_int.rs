//! Float to integer, every rounding, wrapping or saturating. Source: `docs/kernels.md §4.15` to §4.17.
//!
//! Integer arithmetic only, so that no environment flag matters. The source is f32 (or reached f32 exactly) or f64.

use super::{F32_INF, F64_INF, Increments, Lane};
use crate::slot::Slot;
use std::marker::PhantomData;
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, IntOverflow};
use truecast_core::{DType, Exact, IntFormat};

/// Numbers of a conversion to an integer, asked of the definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToInt {
    increments: Increments,
    /// Largest magnitude in range, by sign; larger ones take `over` if `saturate`.
    limit: [u64; 2],
    over: [u64; 2],
    saturate: bool,
    inf: [u64; 2],
    nan: u64,
    mask: u64,
}

impl ToInt {
    /// `None` if the policy refuses values.
    pub fn new(dst: DType, f: &IntFormat, policy: &CastPolicy) -> Option<Self> {
        let code = |value| encode(dst, policy, value).code;
        let both = |value: fn(bool) -> Exact| -> Option<[u64; 2]> { Some([code(value(false))?, code(value(true))?]) };
        Some(Self {
            increments: Increments::new(policy.to_int),
            limit: [f.max() as u64, f.min().unsigned_abs() as u64],
            over: both(|neg| Exact::Finite { neg, sig: 1, exp: 4096, sticky: false })?,
            saturate: policy.int_overflow == IntOverflow::Saturate,
            inf: both(|neg| Exact::Inf { neg })?,
            nan: code(Exact::Nan { neg: false, payload: None })?,
            mask: f.mask(),
        })
    }

    /// `m` is the magnitude modulo 2^64 and `huge` says that it is not the whole of it.
    #[inline(always)]
    fn finish(&self, neg: bool, m: u64, huge: bool) -> u64 {
        let by_sign = |codes: [u64; 2]| if neg { codes[1] } else { codes[0] };
        let low = if neg { m.wrapping_neg() } else { m } & self.mask;
        let over = huge || m > by_sign(self.limit);
        if over && self.saturate { by_sign(self.over) } else { low }
    }
}

/// f32 bits to an integer of at most 32 bits; magnitudes stay in 32-bit lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToInt32<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F32ToInt32<D> {
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn one(&self, x: u32) -> D {
        let p = &self.0;
        let (neg, abs) = (x >> 31, x & 0x7fff_ffff);
        let by_sign = |codes: [u64; 2]| if neg != 0 { codes[1] as u32 } else { codes[0] as u32 };
        let field = abs >> 23;
        let sig = (abs & 0x007f_ffff) | if field != 0 { 1 << 23 } else { 0 };
        let e = field.max(1);
        // Fraction bits to drop (at most 31: then nothing is kept and less than half is lost), or to make.
        let right = 150u32.saturating_sub(e).min(31);
        let left = e.saturating_sub(150);
        let (n, rest) = (sig >> right, sig & ((1u32 << right) - 1));
        let half = (1u32 << right) >> 1;
        let rounded = n + p.increments.of_u32(neg, n & 1, rest, half.max(1));
        let m = if left < 32 { rounded.wrapping_shl(left) } else { 0 };
        let over = left > 8 || m > by_sign(p.limit);
        let low = if neg != 0 { m.wrapping_neg() } else { m } & p.mask as u32;
        let mut r = if over && p.saturate { by_sign(p.over) } else { low };
        r = if abs == F32_INF { by_sign(p.inf) } else { r };
        r = if abs > F32_INF { p.nan as u32 } else { r };
        D::low(r as u64)
    }
}

/// f32 bits to a 64-bit integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToInt64(pub ToInt);

impl Lane for F32ToInt64 {
    type Src = u32;
    type Dst = u64;
    #[inline(always)]
    fn one(&self, x: u32) -> u64 {
        let abs = x & 0x7fff_ffff;
        let field = (abs >> 23) as u64;
        let sig = (abs & 0x007f_ffff) as u64 | if field != 0 { 1 << 23 } else { 0 };
        let class = (abs == F32_INF, abs > F32_INF);
        to_int64::<150, 40>(&self.0, (x >> 31) as u64, sig, field.max(1), class)
    }
}

/// f64 bits to any integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToInt<D>(pub ToInt, pub PhantomData<D>);

impl<D: Slot> Lane for F64ToInt<D> {
    type Src = u64;
    type Dst = D;
    #[inline(always)]
    fn one(&self, x: u64) -> D {
        let abs = x & 0x7fff_ffff_ffff_ffff;
        let field = abs >> 52;
        let sig = (abs & 0x000f_ffff_ffff_ffff) | if field != 0 { 1 << 52 } else { 0 };
        let class = (abs == F64_INF, abs > F64_INF);
        D::low(to_int64::<1075, 11>(&self.0, x >> 63, sig, field.max(1), class))
    }
}

/// `UNIT` is the biased exponent at which the significand is an integer; `ROOM` the left shift that still fits 64 bits.
#[inline(always)]
fn to_int64<const UNIT: u64, const ROOM: u64>(
    p: &ToInt,
    neg: u64,
    sig: u64,
    e: u64,
    (is_inf, is_nan): (bool, bool),
) -> u64 {
    let right = UNIT.saturating_sub(e).min(63);
    let left = e.saturating_sub(UNIT);
    let (n, rest) = (sig >> right, sig & ((1u64 << right) - 1));
    let half = (1u64 << right) >> 1;
    let rounded = n + p.increments.of_u64(neg, n & 1, rest, half.max(1));
    let m = if left < 64 { rounded << left } else { 0 };
    let mut r = p.finish(neg != 0, m, left > ROOM);
    let inf = if neg != 0 { p.inf[1] } else { p.inf[0] };
    r = if is_inf { inf } else { r };
    if is_nan { p.nan } else { r }
}
