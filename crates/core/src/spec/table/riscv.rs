//! `riscv`: conversion instructions of RISC-V. Source: RISC-V ISA manual, Zvfofp8min 0.2.1; `docs/spec/riscv.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding::{Down, NearestAway, NearestEven, ToOdd, TowardZero, Up};

const BYTES: &[DType] = &[I8, U8];
const SHORTS: &[DType] = &[I16, U16];
const WORDS: &[DType] = &[I32, U32];
const LONGS: &[DType] = &[I64, U64];
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const WIDE_INTS: &[DType] = &[I16, U16, I32, U32, I64, U64];
const FP8: &[DType] = &[F8E4M3Fn, F8E5M2];

/// Floats have the canonical NaN. Integers are clamped, and NaN becomes the largest integer.
const RISCV: CastPolicy = CastPolicy {
    nan: NanRule::Canonical,
    int_overflow: IntOverflow::Saturate,
    nan_to_int: NanToInt::Saturate,
    ..CastPolicy::IEEE
};

/// RNE, RTZ, RDN, RUP, RMM.
const FRM: Choice = Choice::Rounding(&[NearestEven, TowardZero, Down, Up, NearestAway]);
/// RNE, RTZ, RDN, RUP, RMM, and vfncvt.rod.
const FRM_OR_ODD: Choice = Choice::Rounding(&[NearestEven, TowardZero, Down, Up, NearestAway, ToOdd]);
/// vfncvt.sat.
const SAT: Choice = Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate]);
/// fcvtmod.w.d wraps; the other instructions saturate.
const MOD: Choice =
    Choice::IntOverflow(&[(IntOverflow::Saturate, NanToInt::Saturate), (IntOverflow::Wrap, NanToInt::Zero)]);

const TO_INT: &str = "RISC-V ISA manual, F extension, float-to-integer table; docs/spec/riscv.md §2.1";
const FROM_INT: &str = "RISC-V ISA manual, F extension; docs/spec/riscv.md §2.1";
const FLOAT: &str = "RISC-V ISA manual, F, D, Zfh, Zfbfmin, V; docs/spec/riscv.md §2.2";
const OFP8: &str = "RISC-V Zvfofp8min 0.2.1; docs/spec/riscv.md §2.3";
const OFP4: &str = "RISC-V Zvfofp4min 0.1; docs/spec/riscv.md §2.3";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "riscv",
    about: "Conversion instructions of RISC-V",
    group: Group::Chip,
    versions: &[],
    rows: &[
        row(&[F16], INTS, RISCV, &[FRM], &[], TO_INT),
        row(&[Bf16], BYTES, RISCV, &[FRM], &[], TO_INT),
        row(&[F32], WIDE_INTS, RISCV, &[FRM], &[], TO_INT),
        row(&[F64], &[I32], RISCV, &[FRM, MOD], &[], TO_INT),
        row(&[F64], &[U32, I64, U64], RISCV, &[FRM], &[], TO_INT),
        row(BYTES, &[F16, Bf16], RISCV, &[], &[], FROM_INT),
        row(SHORTS, &[F16], RISCV, &[FRM], &[], FROM_INT),
        row(SHORTS, &[F32], RISCV, &[], &[], FROM_INT),
        row(WORDS, &[F16, F32], RISCV, &[FRM], &[], FROM_INT),
        row(WORDS, &[F64], RISCV, &[], &[], FROM_INT),
        row(LONGS, &[F16, F32, F64], RISCV, &[FRM], &[], FROM_INT),
        row(&[F16], &[F32, F64], RISCV, &[], &[], FLOAT),
        row(&[Bf16], &[F32], RISCV, &[], &[], FLOAT),
        row(&[F32], &[F64], RISCV, &[], &[], FLOAT),
        row(&[F64], &[F16], RISCV, &[FRM], &[], FLOAT),
        row(&[F64], &[F32], RISCV, &[FRM_OR_ODD], &[], FLOAT),
        row(&[F32], &[F16, Bf16], RISCV, &[FRM_OR_ODD], &[], FLOAT),
        row(&[Bf16, F32], FP8, RISCV, &[FRM, SAT], &[], OFP8),
        row(FP8, &[Bf16], RISCV, &[], &[], OFP8),
        row(&[F4E2M1], &[F8E4M3Fn], RISCV, &[], &[], OFP4),
    ],
};
