//! Operations of a conversion, in the order of application. Each operation is a function of one element.

use super::e8m0::{ClampToE8m0, EncodeE8m0};
use super::encode::{Encoder, Nearest};
use super::int::{IntRange, ToInt};
use super::wide::{F32ToF32, F32ToF64, F64ToF32, NanBits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    pub bytes: usize,
    pub signed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// f16 to f32.
    F16ToF32(NanBits),
    /// bf16 to f32.
    Bf16ToF32(NanBits),
    /// f32, or tf32, to f32.
    F32ToF32(F32ToF32),
    /// f64 to f32, rounded to odd; values below f32's normal range may be reduced to the smallest f32.
    F64ToF32Odd { reduced: bool },
    /// Integer to f32, nearest even.
    IntToF32(Int),
    /// Integer to f32, clamped to ±2^24.
    IntToF32Clamped(Int),
    /// Integer to f32, rounded to odd.
    IntToF32Odd(Int),
    /// f32 to a narrower float of `bytes` bytes, nearest even.
    Nearest { numbers: Nearest, bytes: usize },
    /// f32 to a narrower float of `bytes` bytes, any rounding and policy.
    Encode { numbers: Encoder, bytes: usize },
    /// f32 to bf16, rounded to odd.
    F32ToBf16Odd,
    /// bf16, exact or rounded to odd, to E8M0.
    E8m0(EncodeE8m0),
    /// f32, exact or rounded to odd, to E8M0 by clamping.
    ClampToE8m0(ClampToE8m0),
    /// f64 to f32, nearest even.
    F64ToF32Nearest(F64ToF32),
    /// f64 to f32, any rounding.
    F64ToF32(F64ToF32),
    /// f32 to f64.
    F32ToF64(F32ToF64),
    /// f32 to f64, only for measuring values.
    F32Value,
    /// Integer to f64, nearest even, or rounded to odd.
    IntToF64 { from: Int, odd: bool },
    /// Difference between a 64-bit integer and its nearest f64, as an f64.
    IntResidual { signed: bool },
    /// f32 to an integer of `bytes` bytes.
    F32ToInt { numbers: ToInt, bytes: usize },
    /// f64 to an integer of `bytes` bytes.
    F64ToInt { numbers: ToInt, bytes: usize },
    /// Integer to an integer of `bytes` bytes.
    IntToInt { from: Int, range: IntRange, bytes: usize },
    /// 1 if an element of `bytes` bytes has any bit of `mask`, else 0.
    NonZero { bytes: usize, mask: u64 },
}
