//! MLIR: the casts of the dialect `arith`. `docs/spec/mlir.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding;

const INTS: &[DType] = &[I1, U1, I2, U2, U3, I4, U4, U6, I8, U8, I16, U16, I32, U32, I48, I64, U64];
/// Signed floats of 6, 8, 16, 19, 32 and 64 bits.
#[rustfmt::skip]
const ABOVE_4: &[DType] = &[
    F64, F32, Tf32, F16, Bf16, F8E5M2, F8E5M2Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4, F6E2M3,
    F6E3M2,
];
const ABOVE_6: &[DType] =
    &[F64, F32, Tf32, F16, Bf16, F8E5M2, F8E5M2Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4];
const ABOVE_8: &[DType] = &[F64, F32, Tf32, F16, Bf16];
const ABOVE_16: &[DType] = &[F64, F32, Tf32];
const EIGHT: &[DType] = &[F8E5M2, F8E5M2Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4];
const SIX: &[DType] = &[F6E2M3, F6E3M2];
const BELOW_16: &[DType] =
    &[F8E5M2, F8E5M2Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4, F8E8M0, F6E2M3, F6E3M2, F4E2M1];
#[rustfmt::skip]
const FLOATS: &[DType] = &[
    F64, F32, Tf32, F16, Bf16, F8E5M2, F8E5M2Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4, F6E2M3,
    F6E3M2, F4E2M1,
];

/// Nearest even. Overflow gives Inf, else NaN, else the largest value.
const TO_FLOAT: CastPolicy = CastPolicy::IEEE;
/// Exponent field of the value as f32: the magnitude is truncated to a power of two.
const EXPONENT: CastPolicy = CastPolicy {
    to_float: Rounding::TowardZero,
    negative: Unrepresentable::Magnitude,
    vanishing: Unrepresentable::Smallest,
    ..CastPolicy::IEEE
};
/// Toward zero. Values out of range give the results of LLVM's software floats.
const TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
/// Low bits of a wider source; sign or zero extension of a narrower source.
const INT_TO_INT: CastPolicy = CastPolicy::IEEE;

const MODES: &[Choice] = &[Choice::Rounding(&[
    Rounding::NearestEven,
    Rounding::Down,
    Rounding::Up,
    Rounding::TowardZero,
    Rounding::NearestAway,
])];
/// Rounding of `--arith-expand`, which takes the exponent field; and the rounding of constants.
const EXPONENT_MODES: &[Choice] = &[Choice::Rounding(&[Rounding::TowardZero, Rounding::NearestEven])];

const POISON: &str = "LLVM's fptosi and fptoui give poison; software floats saturate, NaN is 0; docs/spec/mlir.md §3";
const NO_VALUE: &str = "arith does not say what a value without a code becomes; docs/spec/mlir.md §2";
const OUT_OF_RANGE: &[Undefined] = &[
    Undefined::any(Condition::Overflow, POISON),
    Undefined::any(Condition::Infinite, POISON),
    Undefined::any(Condition::Nan, POISON),
];
const NO_INF_NO_NAN: &[Undefined] = &[
    Undefined::any(Condition::Overflow, NO_VALUE),
    Undefined::any(Condition::Infinite, NO_VALUE),
    Undefined::any(Condition::Nan, NO_VALUE),
];
const NO_SIGN_NO_ZERO: &[Undefined] = &[
    Undefined::any(Condition::Infinite, NO_VALUE),
    Undefined::any(Condition::Negative, NO_VALUE),
    Undefined::any(Condition::NegativeZero, NO_VALUE),
    Undefined::any(Condition::Zero, NO_VALUE),
    Undefined::any(Condition::Underflow, NO_VALUE),
];

const TRUNCF: &str = "arith.truncf; docs/spec/mlir.md §2";
const EXTF: &str = "arith.extf; docs/spec/mlir.md §2";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "mlir",
    about: "The casts of MLIR's dialect arith",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(&[F64], &[F32], TO_FLOAT, MODES, &[], TRUNCF),
        row(&[F64, F32], &[Tf32], TO_FLOAT, MODES, &[], TRUNCF),
        row(ABOVE_16, &[F16, Bf16], TO_FLOAT, MODES, &[], TRUNCF),
        row(ABOVE_8, EIGHT, TO_FLOAT, MODES, &[], TRUNCF),
        row(ABOVE_6, SIX, TO_FLOAT, MODES, NO_INF_NO_NAN, TRUNCF),
        row(ABOVE_4, &[F4E2M1], TO_FLOAT, MODES, NO_INF_NO_NAN, TRUNCF),
        row(&[F32, Tf32, F16, Bf16], &[F8E8M0], EXPONENT, EXPONENT_MODES, NO_SIGN_NO_ZERO, "arith.truncf, as --arith-expand does it; docs/spec/mlir.md §2"),
        row(&[F4E2M1], SIX, TO_FLOAT, &[], &[], EXTF),
        row(&[F4E2M1, F6E2M3, F6E3M2], EIGHT, TO_FLOAT, &[], &[], EXTF),
        row(BELOW_16, &[F16, Bf16, Tf32, F32, F64], TO_FLOAT, &[], &[], EXTF),
        row(&[F16, Bf16], &[Tf32, F32, F64], TO_FLOAT, &[], &[], EXTF),
        row(&[Tf32], &[F32, F64], TO_FLOAT, &[], &[], EXTF),
        row(&[F32], &[F64], TO_FLOAT, &[], &[], EXTF),
        row(FLOATS, INTS, TO_INT, &[], OUT_OF_RANGE, "arith.fptosi, arith.fptoui; docs/spec/mlir.md §3"),
        row(&[Bool], FLOATS, TO_FLOAT, &[], &[], "arith.uitofp of i1; docs/spec/mlir.md §3"),
        row(INTS, FLOATS, TO_FLOAT, &[], &[], "arith.sitofp, arith.uitofp; docs/spec/mlir.md §3"),
        row(&[Bool], INTS, INT_TO_INT, &[], &[], "arith.extui of i1; docs/spec/mlir.md §4"),
        row(INTS, INTS, INT_TO_INT, &[], &[], "arith.trunci, extsi, extui; docs/spec/mlir.md §4"),
    ],
};
