//! SPIR-V: the conversion instructions. `docs/spec/spirv.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{
    self, Bf16, F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32, F64, I8, I16, I32, I64, MxInt8, U8, U16,
    U32, U64,
};
use crate::policy::*;
use crate::round::Rounding;

const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const FLOATS: &[DType] = &[F8E4M3Fn, F8E5M2, F16, Bf16, F32, F64];
const NUMBERS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64, F8E4M3Fn, F8E5M2, F16, Bf16, F32, F64];
/// Sources that have values outside f32. A conversion from them to bf16 goes through f32.
const WIDE: &[DType] = &[I32, U32, I64, U64, F64];

/// Rounded once. Overflow gives Inf, else NaN.
const TO_FLOAT: CastPolicy = CastPolicy::IEEE;
/// Two roundings: first to f32, then to bf16.
const VIA_F32: CastPolicy = CastPolicy { via: Some(F32), ..CastPolicy::IEEE };
/// Toward zero. Values out of range give the results of `SaturatedConversion`.
const TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };

/// `FPRoundingMode` and the execution modes of rounding; subnormals by `DenormPreserve` and `DenormFlushToZero`.
const MODES: &[Choice] = &[
    Choice::Rounding(&[Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down]),
    Choice::Subnormals(&[Subnormals::Keep, Subnormals::Flush]),
];
/// Without and with `SaturatedToLargestFloat8NormalConversionEXT`.
const FLOAT8: &[Choice] = &[Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate])];

const UNDEFINED: &str = "SPIR-V leaves it undefined; SaturatedConversion clamps, NaN is 0; docs/spec/spirv.md §3";
const OUT_OF_RANGE: &[Undefined] = &[
    Undefined::any(Condition::Overflow, UNDEFINED),
    Undefined::any(Condition::Infinite, UNDEFINED),
    Undefined::any(Condition::Nan, UNDEFINED),
];
const EITHER: &[Undefined] = &[Undefined::any(
    Condition::Overflow,
    "Vulkan allows Inf or the largest value if no rounding mode is set; Inf is usual; docs/spec/spirv.md §1",
)];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "spirv",
    about: "The conversion instructions of SPIR-V, with float8, bfloat16 and microscaling types",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(
            NUMBERS,
            &[F8E4M3Fn, F8E5M2],
            TO_FLOAT,
            FLOAT8,
            &[],
            "SPV_EXT_float8, Conversion Instructions; docs/spec/spirv.md §2",
        ),
        row(WIDE, &[Bf16], VIA_F32, MODES, EITHER, "SPV_KHR_bfloat16, Conversion Instructions; docs/spec/spirv.md §2"),
        row(NUMBERS, &[Bf16], TO_FLOAT, MODES, EITHER, "SPV_KHR_bfloat16; docs/spec/spirv.md §2"),
        row(
            NUMBERS,
            &[F16, F32, F64],
            TO_FLOAT,
            MODES,
            EITHER,
            "OpFConvert, OpConvertSToF, OpConvertUToF; docs/spec/spirv.md §1",
        ),
        row(
            &[F4E2M1, F6E2M3, F6E3M2, F8E8M0, MxInt8],
            &[F32, F64],
            TO_FLOAT,
            &[],
            &[],
            "SPV_EXT_ocp_microscaling_types, OpFConvert; docs/spec/spirv.md §2",
        ),
        row(FLOATS, INTS, TO_INT, &[], OUT_OF_RANGE, "OpConvertFToS, OpConvertFToU; docs/spec/spirv.md §3"),
        row(INTS, INTS, CastPolicy::IEEE, &[], &[], "OpSConvert, OpUConvert; docs/spec/spirv.md §4"),
    ],
};
