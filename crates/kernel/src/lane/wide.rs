//! Lanes between f32 and f64, and from integers to f64. Source: `docs/kernels.md §4.14`.

use super::decode::jam_to_f64;
use super::{F64Parts, Lane, Reach, f64_parts};
use crate::numbers::wide::{F32ToF64, F64ToF32};
use crate::numbers::{F32_INF, F64_INF};
use crate::slot::Slot;
use std::marker::PhantomData;

/// f32 to f64 by the conversion instruction, for measuring values in the default environment. In other environments,
/// the instruction may flush subnormals (§5.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32Value;

impl Lane for F32Value {
    const STREAMS: bool = false;
    type Src = u32;
    type Dst = u64;
    #[inline(always)]
    fn convert(&self, x: u32) -> u64 {
        (f32::from_bits(x) as f64).to_bits()
    }
}

impl Lane for F32ToF64 {
    type Src = u32;
    type Dst = u64;
    #[inline(always)]
    fn convert(&self, x: u32) -> u64 {
        let abs = x & 0x7fff_ffff;
        let sign = ((x >> 31) as u64) << 63;
        // An f32 subnormal must not be the operand of a conversion instruction (§5.3). The scaled integer of its bits
        // is exact.
        let sub = (abs as i32 as f64 * f64::from_bits(0x36a0_0000_0000_0000)).to_bits();
        let normal = ((abs as u64) << 29) + (896 << 52);
        let mut r = if abs < 0x0080_0000 { sub } else { normal } | sign;
        r = if abs == F32_INF { if sign != 0 { self.inf[1] } else { self.inf[0] } } else { r };
        let nan = F64_INF | 1 << 51 | (((abs & 0x007f_ffff) as u64) << 29 & self.payload_mask) | sign;
        if abs > F32_INF { nan } else { r }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToF32Nearest(pub F64ToF32);

impl Lane for F64ToF32Nearest {
    type Src = u64;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, b: u64) -> u32 {
        const MIN_NORMAL: u64 = 0x3810_0000_0000_0000; // 2^-126
        const OVERFLOW: u64 = 0x47ef_ffff_f000_0000; // 2^128 - 2^103
        const SUBNORMAL_MAGIC: u64 = 0x39e0_0000_0000_0000; // 2^-97, whose ulp is 2^-149
        let p = &self.0;
        let abs = b & 0x7fff_ffff_ffff_ffff;
        let sign = ((b >> 63) as u32) << 31;
        let parity = (abs >> 29) & 1;
        let normal = (abs.wrapping_sub(896 << 52).wrapping_add(0x0fff_ffff + parity) >> 29) as u32;
        let sum = f64::from_bits(abs) + f64::from_bits(SUBNORMAL_MAGIC);
        let sub = sum.to_bits().wrapping_sub(SUBNORMAL_MAGIC) as u32;
        let mut r = if abs < MIN_NORMAL { sub } else { normal } | sign;
        r = if abs >= OVERFLOW { if sign != 0 { p.over[1] } else { p.over[0] } } else { r };
        p.finish(b, r)
    }
}

impl Lane for F64ToF32 {
    type Src = u64;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, b: u64) -> u32 {
        let F64Parts { neg, sig, exp, .. } = f64_parts(b);
        let s = (29 + 897u64.saturating_sub(exp)).min(63);
        let up = exp.saturating_sub(897) << 23;
        let (n, rest) = (sig >> s, sig & ((1u64 << s) - 1));
        let floor = n + up;
        let code = floor + self.increments.of_u64(neg, floor & 1, rest, 1 << (s - 1));
        let sign = (neg as u32) << 31;
        let over = if neg != 0 { self.over[1] } else { self.over[0] };
        let finite = if code >= F32_INF as u64 { over } else { code as u32 | sign };
        self.finish(b, finite)
    }
}

/// Conversion of integers to f64. Integers of up to 53 bits are exact. Wider integers are rounded to nearest even, or
/// with `ODD` to odd on the way to f32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntToF64<S, const SIGNED: bool, const ODD: bool>(pub PhantomData<S>);

impl<S: Slot, const SIGNED: bool, const ODD: bool> Lane for IntToF64<S, SIGNED, ODD> {
    const STREAMS: bool = !ODD;
    const UP_TO: Reach = if S::BYTES == 2 || ODD { Reach::All } else { Reach::Avx2 };
    type Src = S;
    type Dst = u64;
    #[inline(always)]
    fn convert(&self, v: S) -> u64 {
        if ODD {
            let neg = SIGNED && v.sign_extended() < 0;
            return jam_to_f64::<S, SIGNED>(v) | (neg as u64) << 63;
        }
        // Narrow integers go through 32 bits, which every level converts in one instruction.
        let f = match (SIGNED, S::BYTES < 8) {
            (true, true) => v.sign_extended() as i32 as f64,
            (false, true) => v.wide() as u32 as f64,
            (true, false) => v.sign_extended() as f64,
            (false, false) => v.wide() as f64,
        };
        f.to_bits()
    }
}

/// Difference between a 64-bit integer and the nearest f64, as an f64. The difference is exact and at most 2^10 in
/// magnitude.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntResidual<const SIGNED: bool>;

impl<const SIGNED: bool> Lane for IntResidual<SIGNED> {
    const STREAMS: bool = false;
    type Src = u64;
    type Dst = u64;
    #[inline(always)]
    fn convert(&self, v: u64) -> u64 {
        // The nearest f64 may be 2^63 or 2^64, outside the integer type. Arithmetic modulo 2^64 still gives the
        // difference.
        let nearest = if SIGNED { (v as i64) as f64 } else { v as f64 };
        let bits = nearest.to_bits();
        let e = (bits >> 52) & 0x7ff;
        let sig = (bits & 0x000f_ffff_ffff_ffff) | 1 << 52;
        // From 2^53 on, the significand is an integer shifted left; below, the f64 is exact.
        let left = e.saturating_sub(1075).min(63);
        let magnitude = sig << left;
        let back = if bits >> 63 != 0 { magnitude.wrapping_neg() } else { magnitude };
        let rest = if e >= 1075 { v.wrapping_sub(back) as i64 } else { 0 };
        (rest as i32 as f64).to_bits()
    }
}
