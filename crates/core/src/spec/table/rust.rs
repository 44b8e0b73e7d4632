//! Rust: `as` between numbers. `docs/spec/rust.md`.

use super::{Group, Table, row};
use crate::dtype::DType::{self, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use crate::policy::*;

const FLOATS: &[DType] = &[F16, F32, F64];
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const INTS_AND_BOOL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64];

/// Nearest even; infinity on overflow.
const TO_FLOAT: CastPolicy = CastPolicy::IEEE;
/// Toward zero, clamped; NaN becomes 0.
const TO_INT: CastPolicy =
    CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Zero, ..CastPolicy::IEEE };
const INT_TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, ..CastPolicy::IEEE };

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "rust",
    about: "The operator `as` of Rust between numbers, since 1.45",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(FLOATS, FLOATS, TO_FLOAT, &[], &[], "Rust Reference, expr.as.numeric.float-narrowing; docs/spec/rust.md §1"),
        row(INTS, FLOATS, TO_FLOAT, &[], &[], "Rust Reference, expr.as.numeric.int-as-float; docs/spec/rust.md §1"),
        row(FLOATS, INTS, TO_INT, &[], &[], "Rust Reference, expr.as.numeric.float-as-int; docs/spec/rust.md §1"),
        row(INTS_AND_BOOL, INTS, INT_TO_INT, &[], &[], "Rust Reference, expr.as.numeric.int-truncation; docs/spec/rust.md §1"),
    ],
};
