//! StableHLO: `convert`. `docs/spec/stablehlo.md`.

use super::{Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;

const INTS: &[DType] = &[I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64];
#[rustfmt::skip]
const FLOATS: &[DType] = &[
    F4E2M1, F6E2M3, F6E3M2, F8E3M4, F8E4M3Ieee, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, Bf16,
    F16, F32, F64,
];
#[rustfmt::skip]
const ALL: &[DType] = &[
    Bool, I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64, F4E2M1, F6E2M3, F6E3M2, F8E3M4, F8E4M3Ieee, F8E4M3Fn,
    F8E4M3Fnuz, F8E4M3B11Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, Bf16, F16, F32, F64,
];
const WITH_INF: &[DType] = &[F8E3M4, F8E4M3Ieee, F8E5M2, Bf16, F16, F32, F64];
const NAN_ALONE: &[DType] = &[F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E5M2Fnuz];

/// Reference interpreter: nearest even. Overflow gives Inf, else NaN, else the largest value.
const TO_FLOAT: CastPolicy = CastPolicy { vanishing: Unrepresentable::Smallest, ..CastPolicy::IEEE };
/// Reference interpreter: toward zero, clamped; NaN becomes 0.
const TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
const INT_TO_INT: CastPolicy = CastPolicy::IEEE;

const TBD: &str =
    "to be determined (stablehlo#180); the code is the reference interpreter's; docs/spec/stablehlo.md §2";
const OVERFLOW: Undefined = Undefined::any(Condition::Overflow, TBD);
const INFINITE: Undefined = Undefined::any(Condition::Infinite, TBD);
const NAN: Undefined = Undefined::any(Condition::Nan, TBD);
const NO_SIGN_NO_ZERO: &[Undefined] = &[
    OVERFLOW,
    INFINITE,
    Undefined::any(Condition::Negative, TBD),
    Undefined::any(Condition::NegativeZero, TBD),
    Undefined::any(Condition::Zero, TBD),
    Undefined::any(Condition::Underflow, TBD),
];

const CLAUSE: &str = "StableHLO, convert; docs/spec/stablehlo.md §1";
const OPEN: &str = "StableHLO, convert; docs/spec/stablehlo.md §2";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "stablehlo",
    about: "StableHLO's convert; where the text leaves a result open, the result of the reference interpreter",
    group: Group::Standard,
    versions: &[],
    rows: &[
        row(ALL, &[Bool], CastPolicy::IEEE, &[], &[], CLAUSE),
        row(FLOATS, INTS, TO_INT, &[], &[OVERFLOW, INFINITE, NAN], OPEN),
        row(&[Bool], INTS, INT_TO_INT, &[], &[OVERFLOW], CLAUSE),
        row(INTS, INTS, INT_TO_INT, &[], &[OVERFLOW], OPEN),
        row(ALL, WITH_INF, TO_FLOAT, &[], &[OVERFLOW], OPEN),
        row(ALL, NAN_ALONE, TO_FLOAT, &[], &[OVERFLOW, INFINITE], OPEN),
        row(ALL, &[F4E2M1, F6E2M3, F6E3M2], TO_FLOAT, &[], &[OVERFLOW, INFINITE, NAN], OPEN),
        row(ALL, &[F8E8M0], TO_FLOAT, &[], NO_SIGN_NO_ZERO, OPEN),
    ],
};
