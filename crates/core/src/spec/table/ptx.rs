//! `ptx`: the instruction `cvt` of NVIDIA's PTX. Source: PTX ISA 9.1; `docs/spec/ptx.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding::{Down, NearestAway, NearestEven, TowardZero, Up};

const NARROW_INTS: &[DType] = &[I8, U8, I16, U16, I32, U32];
const WIDE_INTS: &[DType] = &[I64, U64];
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const HALVES: &[DType] = &[F16, Bf16];
const FLOATS: &[DType] = &[F16, Bf16, F32, F64];
const NARROW: &[DType] = &[F8E4M3Fn, F8E5M2, F6E2M3, F6E3M2, F4E2M1];

/// Rule without `.satfinite`. A conversion to a float rounds to nearest even. A conversion to an integer rounds toward
/// zero and clamps.
const RN: CastPolicy = CastPolicy {
    nan: NanRule::Canonical,
    nan_substitute: NanSubstitute::MaxPositive,
    int_overflow: IntOverflow::Saturate,
    negative: Unrepresentable::Magnitude,
    vanishing: Unrepresentable::Smallest,
    ..CastPolicy::IEEE
};
const SATFINITE: CastPolicy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..RN };
/// Rule for conversions to 64-bit integers, and for conversions of f64 to any integer.
const NAN_TO_TOP_BIT: CastPolicy = CastPolicy { nan_to_int: NanToInt::TopBit, ..RN };
const CHOP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, ..RN };
const RNA: CastPolicy = CastPolicy { to_float: NearestAway, ..RN };
const RP_SATFINITE: CastPolicy = CastPolicy { to_float: Up, ..SATFINITE };

/// `.rn .rz .rm .rp`, and `.rni .rzi .rmi .rpi` to integers.
const ROUND: Choice = Choice::Rounding(&[NearestEven, TowardZero, Down, Up]);
const ROUND_TF32: Choice = Choice::Rounding(&[NearestAway, NearestEven, TowardZero]);
const ROUND_E8M0: Choice = Choice::Rounding(&[TowardZero, Up]);
const SAT: Choice =
    Choice::IntOverflow(&[(IntOverflow::Wrap, NanToInt::Zero), (IntOverflow::Saturate, NanToInt::Zero)]);
const FINITE: Choice = Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate]);
/// Scale of `.scaled::n2::ue8m0`, from 2^-127 to 2^127. Conversions to s2f6 divide by the scale; conversions to bf16
/// multiply by the scale.
const SCALE: Choice = Choice::ScaleExponent(-127, 127);
/// `.ftz` flushes f32 only: `FTZ_FROM` is for f32 sources, `FTZ_TO` for f32 results.
const FTZ_FROM: Choice = Choice::Subnormals(&[Subnormals::Keep, Subnormals::FlushSource]);
const FTZ_TO: Choice = Choice::Subnormals(&[Subnormals::Keep, Subnormals::FlushResult]);

const INT: &str = "PTX ISA 9.1, cvt, Integer Notes; docs/spec/ptx.md §2.1";
const FLOAT: &str = "PTX ISA 9.1, cvt, Floating Point Notes; docs/spec/ptx.md §2.2";
const SMALL: &str = "PTX ISA 9.1, cvt, .satfinite; docs/spec/ptx.md §2.3";
const SMALL_9_2: &str = "PTX ISA 9.2, cvt; docs/spec/ptx.md §2.3";
const E8M0: &str = "PTX ISA 9.1, cvt, .satfinite; docs/spec/ptx.md §2.4";

const E8M0_OPEN: &[Undefined] = &[
    Undefined::any(Condition::Negative, "PTX ISA 9.1 does not say; CUDA takes the magnitude; docs/spec/ptx.md §2.4"),
    Undefined::any(Condition::NegativeZero, "PTX ISA 9.1 does not say; CUDA gives code 0; docs/spec/ptx.md §2.4"),
    Undefined::any(Condition::Zero, "PTX ISA 9.1 does not say; CUDA gives code 0; docs/spec/ptx.md §2.4"),
    Undefined::any(Condition::Underflow, "PTX ISA 9.1 does not say; CUDA gives code 0; docs/spec/ptx.md §2.4"),
];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "ptx",
    about: "cvt of NVIDIA's PTX",
    group: Group::Chip,
    versions: &["9"],
    rows: &[
        row(INTS, INTS, CHOP, &[SAT], &[], INT),
        row(INTS, FLOATS, RN, &[ROUND], &[], FLOAT),
        row(HALVES, NARROW_INTS, RN, &[ROUND], &[], INT),
        row(&[F32], NARROW_INTS, RN, &[ROUND, FTZ_FROM], &[], INT),
        row(&[F32], WIDE_INTS, NAN_TO_TOP_BIT, &[ROUND, FTZ_FROM], &[], INT),
        row(HALVES, WIDE_INTS, NAN_TO_TOP_BIT, &[ROUND], &[], INT),
        row(&[F64], INTS, NAN_TO_TOP_BIT, &[ROUND], &[], INT),
        row(&[F32], &[F16], RN, &[ROUND, FINITE, FTZ_FROM, Choice::Relu], &[], FLOAT),
        row(&[F32], &[Bf16], RN, &[ROUND, FINITE, FTZ_FROM, Choice::Relu], &[], FLOAT),
        row(&[F32], &[Tf32], RNA, &[ROUND_TF32, FINITE, Choice::Relu], &[], FLOAT),
        row(&[F32], &[F64], RN, &[FTZ_FROM], &[], FLOAT),
        row(&[F64], &[F32], RN, &[ROUND, FTZ_TO], &[], FLOAT),
        row(&[F64], HALVES, RN, &[ROUND], &[], FLOAT),
        row(&[F16], &[Bf16], RN, &[ROUND], &[], FLOAT),
        row(&[Bf16], &[F16], RN, &[ROUND], &[], FLOAT),
        row(HALVES, &[F32], RN, &[FTZ_TO], &[], FLOAT),
        row(HALVES, &[F64], RN, &[], &[], FLOAT),
        row(&[F32, F16, Bf16], NARROW, SATFINITE, &[Choice::Relu], &[], SMALL),
        row(NARROW, &[F16], RN, &[Choice::Relu], &[], SMALL),
        row(NARROW, &[Bf16], RN, &[FINITE, Choice::Relu, SCALE], &[], SMALL_9_2),
        row(&[F32, Bf16], &[F8E8M0], RP_SATFINITE, &[ROUND_E8M0, FINITE], E8M0_OPEN, E8M0),
        row(&[F8E8M0], &[Bf16], RN, &[], &[], E8M0),
        row(&[F32, Bf16], &[MxInt8], SATFINITE, &[Choice::Relu, SCALE], &[], SMALL),
        row(&[MxInt8], &[Bf16], RN, &[FINITE, Choice::Relu, SCALE], &[], SMALL),
    ],
};
