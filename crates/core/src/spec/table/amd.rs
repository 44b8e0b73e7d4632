//! `amd`: conversion instructions of AMD's GPUs. Source: CDNA3, CDNA4, RDNA4 ISA, rocjitsu; `docs/spec/amd.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding::{Down, NearestEven, TowardZero, Up};

const CDNA3: &[&str] = &["cdna3"];
const RDNA4: &[&str] = &["rdna4"];
const CDNA4: &[&str] = &["cdna4"];
const FP8: &[DType] = &[F8E4M3Fn, F8E5M2];
const FNUZ: &[DType] = &[F8E4M3Fnuz, F8E5M2Fnuz];
const FP6_FP4: &[DType] = &[F6E2M3, F6E3M2, F4E2M1];
const SMALL: &[DType] = &[F8E4M3Fn, F8E5M2, F6E2M3, F6E3M2, F4E2M1];
const HALVES: &[DType] = &[F16, Bf16];
const SHORTS: &[DType] = &[I16, U16];
const WORDS: &[DType] = &[I32, U32];

/// MODE.FP16_OVFL = 0. Conversions to integers truncate and saturate; NaN becomes 0.
const AMD: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
const SATURATE: CastPolicy = CastPolicy {
    overflow: Overflow::Saturate,
    inf: Overflow::Saturate,
    nan_substitute: NanSubstitute::MaxPositive,
    ..AMD
};

/// MODE.FP16_OVFL.
const OVFL: Choice = Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate]);
/// MODE.FP_ROUND.
const ROUND: Choice = Choice::Rounding(&[NearestEven, Up, Down, TowardZero]);
/// MODE.FP_DENORM for the source.
const DENORM: Choice = Choice::Subnormals(&[Subnormals::Keep, Subnormals::FlushSource]);

/// Scale of V_CVT_SCALEF32_*. Conversions to a small type divide by the scale; conversions from a small type multiply
/// by the scale.
const SCALE: Choice = Choice::ScaleExponent(-127, 127);

const BASE: &str = "CDNA3, CDNA4, RDNA4 ISA, V_CVT_*; docs/spec/amd.md §2.1";
const TO_FP8: &str = "CDNA4 ISA §7.3, RDNA4 ISA §7.6, FP16_OVFL; docs/spec/amd.md §2.2";
const TO_FP8_SCALED: &str = "CDNA4 ISA §7.3, FP16_OVFL, V_CVT_SCALEF32_*; docs/spec/amd.md §2.3";
const TO_FNUZ: &str = "CDNA3 ISA §7.2, FP16_OVFL; docs/spec/amd.md §2.2";
const SCALED: &str = "CDNA4 ISA §7.3, V_CVT_SCALEF32_*; docs/spec/amd.md §2.3";
const BF16: &str = "CDNA4 ISA, V_CVT_PK_BF16_F32; docs/spec/amd.md §2.1";
const MEASURED: &str = "rocjitsu conversion.h, measured on gfx1201; docs/spec/amd.md §2.1";

const INF: &[Undefined] = &[Undefined {
    condition: Condition::Infinite,
    reason: "with FP16_OVFL the ISA saturates Inf, gfx1201 was measured to keep it; docs/spec/amd.md §2.2",
    accepted: Accepted::Under(&[PolicyChange::Inf(Overflow::Nonfinite)]),
}];
const NAN_OPEN: &[Undefined] = &[Undefined::any(Condition::Nan, "the ISA does not say; docs/spec/amd.md §2.3")];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "amd",
    about: "Conversion instructions of AMD's GPUs",
    group: Group::Chip,
    versions: &["cdna3", "rdna4", "cdna4"],
    rows: &[
        row(&[F32, F64], WORDS, AMD, &[], &[], BASE),
        row(&[F16], SHORTS, AMD, &[], &[], BASE),
        row(&[F32], SHORTS, AMD, &[], &[], MEASURED).at(RDNA4),
        row(&[F32], &[U8], AMD, &[ROUND, DENORM], &[], MEASURED).at(RDNA4),
        row(SHORTS, &[F16], AMD, &[ROUND, OVFL], &[], BASE),
        row(WORDS, &[F32], AMD, &[ROUND], &[], BASE),
        row(WORDS, &[F64], AMD, &[], &[], BASE),
        row(&[F32], &[F16], AMD, &[ROUND, DENORM], &[], BASE),
        row(&[F16], &[F32], AMD, &[DENORM], &[], BASE),
        row(&[F32], &[F64], AMD, &[DENORM], &[], BASE),
        row(&[F64], &[F32], AMD, &[ROUND, DENORM], &[], BASE),
        row(&[F32], &[Bf16], AMD, &[], &[], BF16).at(CDNA4),
        row(&[Bf16], &[F32], AMD, &[], &[], BF16).at(CDNA4),
        row(&[F32], FNUZ, AMD, &[OVFL], &[], TO_FNUZ).at(CDNA3),
        row(FNUZ, &[F32], AMD, &[], &[], TO_FNUZ).at(CDNA3),
        row(&[F32], FP8, AMD, &[OVFL, DENORM], INF, TO_FP8).at(RDNA4),
        row(FP8, &[F32], AMD, &[], &[], TO_FP8).at(RDNA4),
        row(&[F32], FP8, AMD, &[OVFL, DENORM, SCALE], &[], TO_FP8_SCALED).at(CDNA4),
        row(HALVES, FP8, AMD, &[OVFL, SCALE], &[], SCALED).at(CDNA4),
        row(&[F32], FP6_FP4, SATURATE, &[DENORM, SCALE], NAN_OPEN, SCALED).at(CDNA4),
        row(HALVES, FP6_FP4, SATURATE, &[SCALE], NAN_OPEN, SCALED).at(CDNA4),
        row(SMALL, &[F32, F16, Bf16], AMD, &[SCALE], &[], SCALED).at(CDNA4),
    ],
};
