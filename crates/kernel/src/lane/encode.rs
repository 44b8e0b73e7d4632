//! Lanes from f32 to narrower floats: nearest even, any rounding, and E8M0. Source: `docs/kernels.md §4.2` to §4.8.
//!
//! The f32 source is exact or rounded to odd (§3).

use super::{F32Parts, Lane, Reach, f32_parts};
use crate::numbers::e8m0::{ClampToE8m0, EncodeE8m0};
use crate::numbers::encode::{Encoder, Nearest, shape};
use crate::numbers::{BF16_INF, F32_INF};
use crate::slot::Slot;
use std::marker::PhantomData;

/// Nearest even, §4.3. `SHAPE` is the shape of the numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeNearest<D, const SHAPE: u8>(pub Nearest, pub PhantomData<D>);

impl<D: Slot, const SHAPE: u8> Lane for EncodeNearest<D, SHAPE> {
    const UP_TO: Reach = match D::BYTES {
        1 => Reach::Baseline,
        2 if SHAPE & shape::UPPER_BITS != 0 => Reach::Baseline,
        _ => Reach::All,
    };
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u32) -> D {
        let has = |flag: u8| SHAPE & flag != 0;
        let p = &self.0;
        if has(shape::UPPER_BITS) {
            let upper = x >> p.shift;
            let rounded = x.wrapping_add(p.half).wrapping_add(upper & 1) >> p.shift;
            let nan = (upper & (p.sign | p.payload_mask)) | p.special;
            let r = if f32::from_bits(x).is_nan() { nan } else { rounded };
            return D::low(if D::BYTES == 4 { r << p.place } else { r } as u64);
        }
        let abs = x & 0x7fff_ffff;
        let capped = abs.min(p.cap);
        let mut r = if has(shape::SUBNORMALS) {
            // The ulp of the magic number is the ulp of the result. The addition therefore rounds to the result, ties
            // to even. The sum keeps bits above the code, which the store drops.
            let binade = (capped & F32_INF).max(p.lowest_binade);
            let sum = f32::from_bits(capped) + f32::from_bits(binade.wrapping_add(p.magic));
            sum.to_bits().wrapping_add(binade >> p.shift)
        } else {
            capped.wrapping_add(p.half).wrapping_add((capped >> p.shift) & 1) >> p.shift
        };
        let sign = (x >> p.sign_shift) & p.sign;
        r |= if has(shape::NEGATIVE_ZERO) || r & (p.sign - 1) != 0 { sign } else { 0 };
        if has(shape::SPECIAL) {
            let payload = if has(shape::PAYLOAD) { (abs >> p.shift) & p.payload_mask } else { 0 };
            let special = (p.special | payload) ^ (sign & p.special_sign);
            r = if abs >= p.special_from { special } else { r };
        }
        if D::BYTES == 4 {
            r = (r & (2 * p.sign - 1)) << p.place;
        }
        D::low(r as u64)
    }
}

/// Any rounding and any policy of an [`Encoder`], §4.5. `NEGATIVE`: [`Encoder::replaces_negative`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeAny<D, const NEGATIVE: bool>(pub Encoder, pub PhantomData<D>);

impl<D: Slot, const NEGATIVE: bool> Lane for EncodeAny<D, NEGATIVE> {
    const STREAMS: bool = false;
    type Src = u32;
    type Dst = D;
    #[inline(always)]
    fn convert(&self, x: u32) -> D {
        let p = &self.0;
        let F32Parts { neg, abs, sig, exp } = f32_parts(x);
        let by_sign = |codes: [u32; 2]| if neg != 0 { codes[1] } else { codes[0] };
        let s = (p.shift + p.base.saturating_sub(exp)).min(31);
        let up = exp.saturating_sub(p.base) << p.man_bits;
        // `n` has the hidden bit, and `up` is the biased exponent minus one, so a carry needs no special case.
        let (n, rest) = (sig >> s, sig & ((1u32 << s) - 1));
        let floor = n.wrapping_add(up);
        let code = floor.wrapping_add(p.increments.of_u32(neg & p.signed, floor & 1, rest, 1 << (s - 1)));
        let sign = if p.zero_sign != 0 || code != 0 { (neg & p.signed) << p.sign_pos } else { 0 };
        let mut r = if code > p.max_code { by_sign(p.over) } else { code | sign };
        if NEGATIVE {
            r = if neg != 0 && abs != 0 { p.negative.unwrap_or(r) } else { r };
        }
        r = if abs == F32_INF { by_sign(p.inf) } else { r };
        let payload = (abs >> p.shift) & p.payload_mask;
        r = if abs > F32_INF { by_sign(p.nan) | payload } else { r };
        D::low((r << p.place) as u64)
    }
}

/// f32 rounded to odd, to bf16: the source of [`EncodeE8m0`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToBf16Odd;
impl Lane for F32ToBf16Odd {
    type Src = u32;
    type Dst = u16;
    #[inline(always)]
    fn convert(&self, x: u32) -> u16 {
        (x >> 16) as u16 | (x as u16).min(1)
    }
}

/// f32 to E8M0 by clamping. `TIES`: the parity of the kept code decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToE8m0<const TIES: bool>(pub ClampToE8m0);
impl<const TIES: bool> Lane for F32ToE8m0<TIES> {
    type Src = u32;
    type Dst = u8;
    #[inline(always)]
    fn convert(&self, x: u32) -> u8 {
        let p = &self.0;
        let clamped = ((x & p.mask) as i32).min(p.max).max(0x0040_0000) as u32;
        // As for `EncodeE8m0`, with the fraction of f32.
        let v = clamped.min((clamped << 1).wrapping_sub(0x0080_0000));
        let odd = if TIES { ((v << 8) as i32 >> 31) as u32 & p.odd_addend } else { 0 };
        let code = v.wrapping_add(p.addend).wrapping_add(odd) >> 23;
        (if f32::from_bits(x).is_nan() { p.nan } else { code }) as u8
    }
}

impl Lane for EncodeE8m0 {
    type Src = u16;
    type Dst = u8;
    #[inline(always)]
    fn convert(&self, x: u16) -> u8 {
        let (neg, b) = (x >> 15, x & 0x7fff);
        // Below 2^-126 the exponent field is 0 and the leading bit is part of the fraction. All values from 0 to 2^-127
        // round as 2^-127 does, unless they vanish.
        let least = b.max(0x0040);
        let v = least.min((least << 1).wrapping_sub(0x0080));
        let odd = ((v << 8) as i16 >> 15) as u16;
        let mut r = v.wrapping_add(self.addend).wrapping_add(odd & self.odd_addend) >> 7;
        r = if b < self.vanish_below { self.vanish } else { r };
        r = if b >= self.over_from { self.over } else { r };
        r = if neg & self.replaces_negative[0] != 0 { self.replaces_negative[1] } else { r };
        r = if b == 0 { self.zero } else { r };
        r = if b == BF16_INF { if neg != 0 { self.inf[1] } else { self.inf[0] } } else { r };
        r = if b > BF16_INF { self.nan } else { r };
        r as u8
    }
}
