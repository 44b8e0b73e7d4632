//! WGSL: conversions between scalars at run time. `docs/spec/wgsl.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, Bool, F16, F32, I32, U32};
use crate::policy::*;
use crate::round::Rounding;

const ALL: &[DType] = &[Bool, I32, U32, F16, F32];

/// Nearest even, and Inf beyond the range: the documented choice. WGSL permits either neighbor, and any value beyond
/// the range.
const TO_FLOAT: CastPolicy = CastPolicy::IEEE;

/// Toward zero, clamped to the nearest bound that f32 can represent.
const TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::SaturateToF32, ..CastPolicy::IEEE };

/// An implementation may round up or down.
const MODES: &[Choice] =
    &[Choice::Rounding(&[Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down])];

const FINITE: &str = "WGSL lets an implementation assume finite values; Inf is usual; docs/spec/wgsl.md §2";
const ASSUMED_FINITE: &[Undefined] =
    &[Undefined::any(Condition::Overflow, FINITE), Undefined::any(Condition::Infinite, FINITE)];

const INF: &str = "WGSL lets an implementation assume finite values; docs/spec/wgsl.md §3";
const NAN: &str = "WGSL: any value; docs/spec/wgsl.md §3";
const ASSUMED_NUMBERS: &[Undefined] = &[Undefined::any(Condition::Nan, NAN), Undefined::any(Condition::Infinite, INF)];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "wgsl",
    about: "Scalar conversions of WGSL at run time",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(ALL, &[Bool], CastPolicy::IEEE, &[], &[], "WGSL, bool(); docs/spec/wgsl.md §1"),
        row(&[Bool, I32, U32], &[I32, U32], CastPolicy::IEEE, &[], &[], "WGSL, i32() and u32(); docs/spec/wgsl.md §1"),
        row(&[F16, F32], &[I32, U32], TO_INT, &[], ASSUMED_NUMBERS, "WGSL, Floating Point to Integer; docs/spec/wgsl.md §3"),
        row(ALL, &[F16, F32], TO_FLOAT, MODES, ASSUMED_FINITE, "WGSL, Floating Point Conversion; docs/spec/wgsl.md §2"),
    ],
};
