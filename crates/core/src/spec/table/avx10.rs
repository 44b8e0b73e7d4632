//! `avx10`: conversion instructions of x86 with AVX10.2. Source: Bochs, Intel SDM; `docs/spec/avx10.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding::{Down, NearestEven, TowardZero, Up};

const BYTES: &[DType] = &[I8, U8];
const SHORTS: &[DType] = &[I16, U16];
const WORDS: &[DType] = &[I32, U32, I64, U64];
const INTS: &[DType] = &[I16, U16, I32, U32, I64, U64];
const FP8: &[DType] = &[F8E4M3Fn, F8E5M2];

/// NaN keeps its payload; integer results saturate.
const X86: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
/// Instruction forms without saturation.
const LEGACY: CastPolicy =
    CastPolicy { int_overflow: IntOverflow::Indefinite, nan_to_int: NanToInt::Indefinite, ..CastPolicy::IEEE };
/// Behavior with MXCSR.DAZ and MXCSR.FTZ set.
const FLUSHED: CastPolicy = CastPolicy { subnormals: Subnormals::Flush, ..X86 };

/// MXCSR.RC, or the rounding in the instruction. Truncating forms are `toward-zero`.
const RC: Choice = Choice::Rounding(&[NearestEven, Down, Up, TowardZero]);
const NEAREST_OR_TRUNCATE: Choice = Choice::Rounding(&[NearestEven, TowardZero]);
/// MXCSR.DAZ.
const DAZ: Choice = Choice::Subnormals(&[Subnormals::Keep, Subnormals::FlushSource]);
/// Instruction forms whose names end in S.
const SATURATING: Choice = Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate]);

const TO_FP8: &str = "Bochs bf8.h, hf8.h; docs/spec/avx10.md §2.1";
const FROM_FP8: &str = "Bochs hf8.h; docs/spec/avx10.md §2.1";
const FLOAT: &str = "Bochs, VCVTPS2PH and others; docs/spec/avx10.md §2.2";
const BF16: &str = "Intel SDM, VCVTNEPS2BF16; docs/spec/avx10.md §2.2";
const BYTE: &str = "Bochs, VCVTPS2IBS and others; docs/spec/avx10.md §2.3";
const INT: &str = "Intel SDM, VCVTTPS2DQ and others; Bochs; docs/spec/avx10.md §2.3";
const FROM_INT: &str = "Bochs, VCVTDQ2PS and others; docs/spec/avx10.md §2.3";

/// Instruction forms that convert to integers. The plain forms are older than AVX10.2 and do not saturate. The forms
/// with names that end in S saturate.
const TO_INT: Choice =
    Choice::IntOverflow(&[(IntOverflow::Indefinite, NanToInt::Indefinite), (IntOverflow::Saturate, NanToInt::Zero)]);

/// Inf in the saturating forms: the sources disagree.
const INF: &[Undefined] = &[Undefined {
    condition: Condition::Infinite,
    reason: "Bochs saturates Inf in the S forms, GCC's tests keep it; docs/spec/avx10.md §2.1",
    accepted: Accepted::Under(&[PolicyChange::Inf(Overflow::Nonfinite)]),
}];
#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "avx10",
    about: "Conversion instructions of x86 with AVX10.2",
    group: Group::Chip,
    versions: &["10.2"],
    rows: &[
        row(&[F16], FP8, X86, &[SATURATING], INF, TO_FP8),
        row(&[F8E4M3Fn], &[F16], X86, &[], &[], FROM_FP8),
        row(&[F32], &[Bf16], FLUSHED, &[], &[], BF16),
        row(&[F16], &[F32, F64], X86, &[], &[], FLOAT),
        row(&[F32], &[F64], X86, &[DAZ], &[], FLOAT),
        row(&[F32, F64], &[F16], X86, &[RC, DAZ], &[], FLOAT),
        row(&[F64], &[F32], X86, &[RC, DAZ], &[], FLOAT),
        row(&[F16], BYTES, X86, &[RC], &[], BYTE),
        row(&[F32], BYTES, X86, &[RC, DAZ], &[], BYTE),
        row(&[Bf16], BYTES, X86, &[NEAREST_OR_TRUNCATE], &[], BYTE),
        row(&[F32, F64], WORDS, LEGACY, &[RC, DAZ, TO_INT], &[], INT),
        row(&[F16], INTS, LEGACY, &[RC], &[], INT),
        row(SHORTS, &[F16], X86, &[RC], &[], FROM_INT),
        row(WORDS, &[F16, F32, F64], X86, &[RC], &[], FROM_INT),
    ],
};
