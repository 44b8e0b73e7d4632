//! Between f16 and f32 by the conversion instructions. They flush subnormals, drop payloads or know no Inf where the
//! control register says so, so that each conversion sets it to its default first (`docs/kernels.md §5`).

use super::{load, store};
use crate::environment;
use crate::level::Neon;
use crate::tail::{Groups, Store};
use std::arch::aarch64::*;
use std::arch::asm;
use std::fmt::Debug;

/// A conversion of eight elements.
pub(crate) trait Conversion: Copy + Debug + Send + Sync + 'static {
    /// Bytes of an element of the source and of a result.
    const BYTES: (usize, usize);
    /// Converts eight elements.
    ///
    /// # Safety
    /// Needs NEON.
    unsafe fn eight(source: &[[u8; 16]], target: &mut [[u8; 16]]);
}

/// The loop of a conversion.
#[derive(Debug)]
pub(crate) struct Converts<C>(pub C, pub Neon);

impl<C: Conversion> Groups for Converts<C> {
    fn group(&self) -> usize {
        8
    }
    fn widths(&self) -> (usize, usize) {
        (8 * C::BYTES.0, C::BYTES.1)
    }
    fn convert(&self, _: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        let (sources, targets) = (src.as_chunks().0, dst.as_chunks_mut().0);
        let (src_vectors, dst_vectors) = const { (C::BYTES.0 / 2, C::BYTES.1 / 2) };
        environment::default(|| {
            for (target, source) in targets.chunks_exact_mut(dst_vectors).zip(sources.chunks_exact(src_vectors)) {
                // SAFETY: the token proves that the feature was detected.
                unsafe { C::eight(source, target) };
            }
        });
    }
}

/// f16 to f32. NaN keeps its `PAYLOAD`, or is the canonical one of its sign; either way it is quiet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F16ToF32<const PAYLOAD: bool>;

/// f32 to f16, nearest even, overflow and Inf to Inf; NaN as of [`F16ToF32`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToF16<const PAYLOAD: bool>;

impl<const PAYLOAD: bool> Conversion for F16ToF32<PAYLOAD> {
    const BYTES: (usize, usize) = (2, 4);
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn eight(source: &[[u8; 16]], target: &mut [[u8; 16]]) {
        let halves = load(&source[0]);
        let (low, high): (float32x4_t, float32x4_t);
        // The intrinsics are younger than the compilers that this is for.
        // SAFETY: NEON, which this architecture has; only registers are touched.
        unsafe {
            asm!("fcvtl {0:v}.4s, {1:v}.4h", out(vreg) low, in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
            asm!("fcvtl2 {0:v}.4s, {1:v}.8h", out(vreg) high, in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
        }
        store_f32::<PAYLOAD>(&mut target[0], low);
        store_f32::<PAYLOAD>(&mut target[1], high);
    }
}

impl<const PAYLOAD: bool> Conversion for F32ToF16<PAYLOAD> {
    const BYTES: (usize, usize) = (4, 2);
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn eight(source: &[[u8; 16]], target: &mut [[u8; 16]]) {
        let (low, high) = (load(&source[0]), load(&source[1]));
        let mut halves: uint16x8_t;
        // SAFETY: as in the other direction.
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
        store(&mut target[0], vreinterpretq_u8_u16(halves));
    }
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
