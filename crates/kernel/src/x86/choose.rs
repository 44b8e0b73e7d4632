//! Macros for `choose` of both levels. They match the operations that load a source, and the shape of an encoder.

use crate::numbers::encode::shape;

// A shape with a payload also serves encoders whose mask of the payload is zero.
pub(super) const SPECIAL: u8 = shape::SUBNORMAL_PAYLOAD;
pub(super) const UNSIGNED_SPECIAL: u8 = shape::UNSIGNED_ZERO_SPECIAL | shape::PAYLOAD;
pub(super) const UPPER: u8 = shape::UPPER_PAYLOAD;

/// Makes the kernel for the source that the operations load. Three kinds of values arrive in f32. Values reduced on
/// their way go to destinations of a smaller range. Values rounded to odd go to destinations of the same range. Exact
/// values go to both.
macro_rules! with_source {
    ($load:expr, |$source:ident| $kernel:expr, $($pattern:pat => $of:ident),*) => {
        match $load {
            $($pattern => {
                let $source = source::$of;
                $kernel
            })*
            _ => None,
        }
    };
}
pub(super) use with_source;

/// Makes the kernel that encodes to `$bytes` bytes. `$to_16` and `$to_8` are expressions that make it from `$source`
/// and `$shape`.
macro_rules! fused {
    ($load:expr, $numbers:expr, $bytes:expr, |$source:ident, $shape:ident| $to_16:expr, $to_8:expr) => {
        match $bytes {
            2 if $numbers.shape & shape::UPPER_BITS != 0 => {
                const $shape: u8 = UPPER;
                with_source!(
                    $load, |$source| $to_16,
                    [] => F32,
                    [Op::F16ToF32(_)] => F16,
                    [Op::F64ToF32Odd { reduced: false }] => F64
                )
            }
            // The instruction keeps payloads, and a canonical NaN costs a comparison.
            2 if $numbers.is_ieee_f16 && $numbers.shape & shape::PAYLOAD != 0 => {
                const $shape: u8 = F16_INSTRUCTION | shape::PAYLOAD;
                fused!(to_f16: $load, |$source| $to_16)
            }
            2 if $numbers.is_ieee_f16 => {
                const $shape: u8 = F16_INSTRUCTION;
                fused!(to_f16: $load, |$source| $to_16)
            }
            1 => $to_8,
            _ => None,
        }
    };
    (to_f16: $load:expr, |$source:ident| $to_16:expr) => {
        with_source!(
            $load, |$source| $to_16,
            [] => F32,
            [Op::Bf16ToF32(_)] => Bf16,
            [Op::F16ToF32(_)] => F16,
            [Op::F64ToF32Odd { reduced: true }] => F64Reduced
        )
    };
}
pub(super) use fused;

/// Evaluates `$make` with the shape of an encoder from floats to bytes as a constant.
macro_rules! to_bytes {
    ($numbers:expr, |$shape:ident| $make:expr) => {
        match $numbers.shape {
            shape::SUBNORMAL => {
                const $shape: u8 = shape::SUBNORMAL;
                $make
            }
            shape::SUBNORMAL_SPECIAL | shape::SUBNORMAL_PAYLOAD => {
                const $shape: u8 = SPECIAL;
                $make
            }
            shape::UNSIGNED_ZERO => {
                const $shape: u8 = shape::UNSIGNED_ZERO;
                $make
            }
            shape::UNSIGNED_ZERO_SPECIAL => {
                const $shape: u8 = UNSIGNED_SPECIAL;
                $make
            }
            _ => None,
        }
    };
}
pub(super) use to_bytes;
