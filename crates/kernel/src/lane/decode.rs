//! Lanes to f32, as an intermediate for encoders or as the destination. Source: `docs/kernels.md §2.6`, §4.10 to §4.13.
//!
//! As an intermediate, an f32 is exact or rounded to odd, and NaN may be signaling. As a destination, NaN is quiet.

use super::{Lane, Reach, f64_parts};
use crate::numbers::wide::{F32ToF32, NanBits};
use crate::numbers::{F32_INF, F64_INF};
use crate::slot::Slot;
use std::marker::PhantomData;

/// f16 by arithmetic (§4.10). Levels with F16C have a kernel instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F16ToF32(pub NanBits);
impl Lane for F16ToF32 {
    const UP_TO: Reach = Reach::Baseline;
    type Src = u16;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, c: u16) -> u32 {
        const MAGIC: u32 = 0x3f00_0000; // 2^(q + 23), q = -24
        let abs = c as u32 & 0x7fff;
        let normal = (abs << 13) + (112 << 23);
        let sub = (f32::from_bits(MAGIC | abs) - f32::from_bits(MAGIC)).to_bits();
        let mut r = if abs < 0x400 { sub } else { normal };
        r = if abs >= 0x7c00 { F32_INF | (abs & 0x3ff) << 13 } else { r };
        self.0.apply(r | (c as u32 >> 15) << 31)
    }
}

/// bf16 is the upper half of an f32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bf16ToF32(pub NanBits);
impl Lane for Bf16ToF32 {
    const UP_TO: Reach = Reach::Avx2;
    type Src = u16;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, c: u16) -> u32 {
        self.0.apply((c as u32) << 16)
    }
}

impl Lane for F32ToF32 {
    type Src = u32;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, x: u32) -> u32 {
        let x = x & self.mask;
        let inf = if x >> 31 != 0 { self.inf[1] } else { self.inf[0] };
        if x & 0x7fff_ffff == F32_INF { inf } else { self.nan.apply(x) }
    }
}

/// f64 rounded to odd (§4.11). With `REDUCED`, magnitudes below 2^-126 become the smallest f32 (§4.12).
#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToF32Odd<const REDUCED: bool>;
impl<const REDUCED: bool> Lane for F64ToF32Odd<REDUCED> {
    const STREAMS: bool = false;
    const UP_TO: Reach = Reach::Avx2;
    type Src = u64;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, b: u64) -> u32 {
        let abs = b & 0x7fff_ffff_ffff_ffff;
        let e = abs >> 52;
        let normal = (abs.wrapping_sub(896 << 52) >> 29) | (abs & 0x1fff_ffff != 0) as u64;
        let sub = if REDUCED {
            (abs != 0) as u64
        } else {
            let sig = f64_parts(b).sig;
            let s = 926u64.wrapping_sub(e).min(63);
            (sig >> s) | (sig & ((1u64 << s) - 1) != 0) as u64
        };
        let mut r = if e < 897 { sub } else { normal };
        r = if e > 1150 { 0x7f7f_ffff } else { r }; // rounding to odd never makes an infinity
        // NaN keeps its leading payload bits. The quiet bit distinguishes NaN from Inf if the payload bits are zero.
        let payload = (abs >> 29) & 0x003f_ffff;
        let quiet = 0x0040_0000;
        r = if abs == F64_INF { F32_INF as u64 } else { r };
        r = if abs > F64_INF { F32_INF as u64 | quiet | payload } else { r };
        r as u32 | ((b >> 63) as u32) << 31
    }
}

/// Integers of up to 24 significant bits, exact. Wider integers are rounded to nearest even, for f32 as the
/// destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntToF32<S, const SIGNED: bool>(pub PhantomData<S>);
impl<S: Slot, const SIGNED: bool> Lane for IntToF32<S, SIGNED> {
    type Src = S;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, v: S) -> u32 {
        // Narrow integers go through i32, which every level converts in one instruction.
        let f = match (SIGNED, S::BYTES) {
            (true, 1 | 2 | 4) => v.sign_extended() as i32 as f32,
            (false, 1 | 2) => v.wide() as i32 as f32,
            (false, 4) => v.wide() as u32 as f32,
            (true, _) => v.sign_extended() as f32,
            (false, _) => v.wide() as f32,
        };
        f.to_bits()
    }
}

/// Wide integers clamped to ±2^24 (§4.13), for destinations that overflow below 2^24.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClampToF32<S, const SIGNED: bool>(pub PhantomData<S>);
impl<S: Slot, const SIGNED: bool> Lane for ClampToF32<S, SIGNED> {
    const STREAMS: bool = false;
    type Src = S;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, v: S) -> u32 {
        const LIMIT: i64 = 1 << 24;
        let clamped = if SIGNED { v.sign_extended().clamp(-LIMIT, LIMIT) } else { v.wide().min(LIMIT as u64) as i64 };
        (clamped as i32 as f32).to_bits()
    }
}

/// 32-bit integers, rounded to odd beyond 24 bits (§4.13). At least 17 bits are kept: enough for a destination of
/// precision 15 or less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int32ToF32Odd<const SIGNED: bool>;
impl<const SIGNED: bool> Lane for Int32ToF32Odd<SIGNED> {
    const STREAMS: bool = false;
    type Src = u32;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, v: u32) -> u32 {
        let fits = if SIGNED { v.wrapping_add(1 << 24) >> 25 == 0 } else { v >> 24 == 0 };
        let dropped = if fits { 0 } else { 0xff };
        // If any dropped bit is 1, the sum carries into the last kept bit. Two's complement and magnitude have the same
        // parities.
        let odd = (v | (v & dropped).wrapping_add(dropped)) & !dropped;
        let exact = if SIGNED { odd as i32 as f32 } else { odd as f32 };
        exact.to_bits()
    }
}

/// 64-bit integers rounded to odd (§4.13): first to 53 bits, which f64 holds exactly, then like the normal values in
/// §4.11.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int64ToF32Odd<const SIGNED: bool>;
impl<const SIGNED: bool> Lane for Int64ToF32Odd<SIGNED> {
    const STREAMS: bool = false;
    const UP_TO: Reach = Reach::Avx2;
    type Src = u64;
    type Dst = u32;
    #[inline(always)]
    fn convert(&self, v: u64) -> u32 {
        let neg = SIGNED && (v as i64) < 0;
        let abs = jam_to_f64::<u64, SIGNED>(v);
        let r = (abs.wrapping_sub(896 << 52) >> 29) | (abs & 0x1fff_ffff != 0) as u64;
        let r = if abs == 0 { 0 } else { r };
        r as u32 | (neg as u32) << 31
    }
}

/// f64 bits of the magnitude, rounded to odd at 53 bits.
#[inline(always)]
pub(super) fn jam_to_f64<S: Slot, const SIGNED: bool>(v: S) -> u64 {
    let m = if SIGNED { v.sign_extended().unsigned_abs() } else { v.wide() };
    let m = if m >> 53 != 0 { (m & !0x7ff) | ((m & 0x7ff != 0) as u64) << 11 } else { m };
    (m as f64).to_bits()
}
