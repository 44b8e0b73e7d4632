//! Conversions between f16 and f32 by instructions. The control register can make the instructions flush subnormals,
//! drop payloads or have no Inf. Each conversion therefore first sets the default (`docs/kernels.md §5`).

use super::{load, store};
use crate::environment;
use crate::level::Neon;
use crate::tail::Fixed;
use std::arch::aarch64::*;
use std::arch::asm;

/// Converts f16 to f32. NaN becomes quiet. With `PAYLOAD`, a NaN keeps its payload. Otherwise a NaN becomes the
/// canonical NaN of its sign.
pub(crate) fn f16_to_f32<const PAYLOAD: bool>(_: Neon) -> Fixed {
    // SAFETY: the token proves that the feature was detected.
    unsafe { Fixed::new(8, (16, 4), widen::<PAYLOAD>, None) }
}

/// f32 to f16: nearest even, overflow to Inf, NaN as in [`f16_to_f32`].
pub(crate) fn f32_to_f16<const PAYLOAD: bool>(_: Neon) -> Fixed {
    // SAFETY: the token proves that the feature was detected.
    unsafe { Fixed::new(8, (32, 2), narrow::<PAYLOAD>, None) }
}

#[target_feature(enable = "neon")]
fn widen<const PAYLOAD: bool>(src: &[u8], dst: &mut [u8]) {
    let targets: &mut [[[u8; 16]; 2]] = dst.as_chunks_mut().0.as_chunks_mut().0;
    environment::default(|| {
        for ([first, second], source) in targets.iter_mut().zip(src.as_chunks().0) {
            let halves = load(source);
            let (low, high): (float32x4_t, float32x4_t);
            // Assembly, because some supported compilers lack the intrinsics. SAFETY: every CPU of this architecture
            // has NEON; only registers are touched.
            unsafe {
                asm!("fcvtl {0:v}.4s, {1:v}.4h", out(vreg) low, in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
                asm!("fcvtl2 {0:v}.4s, {1:v}.8h", out(vreg) high, in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
            }
            store_f32::<PAYLOAD>(first, low);
            store_f32::<PAYLOAD>(second, high);
        }
    });
}

#[target_feature(enable = "neon")]
fn narrow<const PAYLOAD: bool>(src: &[u8], dst: &mut [u8]) {
    let sources: &[[[u8; 16]; 2]] = src.as_chunks().0.as_chunks().0;
    environment::default(|| {
        for (target, [first, second]) in dst.as_chunks_mut().0.iter_mut().zip(sources) {
            let (low, high) = (load(first), load(second));
            let mut halves: uint16x8_t;
            // SAFETY: every CPU of this architecture has NEON; only registers are touched.
            unsafe {
                asm!("fcvtn {0:v}.4h, {1:v}.4s", out(vreg) halves, in(vreg) low, options(pure, nomem, nostack, preserves_flags));
                asm!("fcvtn2 {0:v}.8h, {1:v}.4s", inlateout(vreg) halves, in(vreg) high, options(pure, nomem, nostack, preserves_flags));
            }
            if !PAYLOAD {
                let magnitude = vandq_u16(halves, vdupq_n_u16(0x7fff));
                let nan = vcgtq_u16(magnitude, vdupq_n_u16(0x7c00));
                let canonical = vorrq_u16(vandq_u16(halves, vdupq_n_u16(0x8000)), vdupq_n_u16(0x7e00));
                halves = vbslq_u16(nan, canonical, halves);
            }
            store(target, vreinterpretq_u8_u16(halves));
        }
    });
}

#[inline]
#[target_feature(enable = "neon")]
fn store_f32<const PAYLOAD: bool>(target: &mut [u8; 16], value: float32x4_t) {
    let mut bits = vreinterpretq_u32_f32(value);
    if !PAYLOAD {
        let canonical = vorrq_u32(vandq_u32(bits, vdupq_n_u32(1 << 31)), vdupq_n_u32(0x7fc0_0000));
        bits = vbslq_u32(vceqq_f32(value, value), bits, canonical);
    }
    store(target, vreinterpretq_u8_u32(bits));
}
