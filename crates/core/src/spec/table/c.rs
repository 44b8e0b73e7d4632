//! C23 with Annex F: assignments and casts of numbers. `docs/spec/c.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, Bf16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use crate::policy::*;
use crate::round::Rounding;

const FLOATS: &[DType] = &[F16, F32, F64];
const WITH_BF16: &[DType] = &[F16, Bf16, F32, F64];
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const INTS_AND_BOOL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64];
const ALL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, Bf16, F32, F64];

/// One rounding in the current mode. Overflow gives infinity, or the largest finite value if the mode rounds toward
/// it.
const TO_FLOAT: CastPolicy = CastPolicy::IEEE;
/// Truncation. Values out of range give the results of AArch64.
const TO_INT: CastPolicy =
    CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Zero, ..CastPolicy::IEEE };
const INT_TO_INT: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, ..CastPolicy::IEEE };

/// Modes of `fesetround` and `FENV_ROUND`.
const MODES: &[Choice] = &[Choice::Rounding(&[
    Rounding::NearestEven,
    Rounding::NearestAway,
    Rounding::Up,
    Rounding::Down,
    Rounding::TowardZero,
])];

const OUT_OF_RANGE: &str =
    "C23 6.3.1.4 leaves it undefined, F.4 unspecified; AArch64 saturates, x86 gives 0x80..0; docs/spec/c.md §3";
const OPEN: &[Undefined] = &[
    Undefined::any(Condition::Overflow, OUT_OF_RANGE),
    Undefined::any(Condition::Infinite, OUT_OF_RANGE),
    Undefined::any(
        Condition::Nan,
        "C23 6.3.1.4 and F.4 leave it open; AArch64 gives 0, x86 0x80..0; docs/spec/c.md §3",
    ),
];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "c",
    about: "Casts of C23 with Annex F (IEC 60559), as GCC and Clang implement them",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(ALL, &[Bool], CastPolicy::IEEE, &[], &[], "C23 6.3.1.2; docs/spec/c.md §1"),
        row(FLOATS, FLOATS, TO_FLOAT, MODES, &[], "C23 6.3.1.5, F.3; docs/spec/c.md §1"),
        row(INTS_AND_BOOL, FLOATS, TO_FLOAT, MODES, &[], "C23 6.3.1.4, F.3; docs/spec/c.md §1"),
        row(WITH_BF16, INTS, TO_INT, &[], OPEN, "C23 6.3.1.4, F.4; docs/spec/c.md §3"),
        row(INTS_AND_BOOL, INTS, INT_TO_INT, &[], &[], "C23 6.3.1.3, GCC's manual; docs/spec/c.md §2"),
        // __bf16 is an extension: no clause of C defines its rounding.
        row(ALL, &[Bf16], TO_FLOAT, MODES, &[], "an extension; docs/spec/c.md §4"),
        row(&[Bf16], FLOATS, TO_FLOAT, MODES, &[], "an extension; docs/spec/c.md §4"),
    ],
};
