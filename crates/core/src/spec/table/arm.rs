//! `arm`: conversion instructions of Arm's A64. Source: Arm ARM DDI 0487 M.a.a; `docs/spec/arm.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, *};
use crate::policy::*;
use crate::round::Rounding::{Down, NearestAway, NearestEven, ToOdd, TowardZero, Up};

const FP8: &[DType] = &[F8E4M3Fn, F8E5M2];
const SHORTS: &[DType] = &[I16, U16];
const WORDS: &[DType] = &[I32, U32, I64, U64];
const INTS: &[DType] = &[I16, U16, I32, U32, I64, U64];

/// FPCR.DN = 0, FPCR.AHP = 0. Conversions to integers saturate; NaN becomes 0.
const ARM: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
/// FP8 instructions with FPMR.OSC = 0: default NaN, no flushing, nearest even.
const FP8_RULE: CastPolicy = CastPolicy { nan: NanRule::Canonical, ..ARM };

/// FPCR.RMode: rounding.
const RMODE: Choice = Choice::Rounding(&[NearestEven, Up, Down, TowardZero]);
/// FPCR.RMode, and FCVTXN.
const RMODE_OR_ODD: Choice = Choice::Rounding(&[NearestEven, Up, Down, TowardZero, ToOdd]);
/// FCVTZ, FCVTN, FCVTP, FCVTM, FCVTA.
const TO_INT: Choice = Choice::Rounding(&[TowardZero, NearestEven, Up, Down, NearestAway]);
/// FPMR.OSC: overflow of conversions to FP8.
const OSC: Choice = Choice::Overflow(&[Overflow::Nonfinite, Overflow::Saturate]);
/// FPMR.NSCALE: scale of conversions to FP8.
const NSCALE: Choice = Choice::ScaleExponent(-128, 127);
const NSCALE_F16: Choice = Choice::ScaleExponent(-16, 15);
/// FPMR.LSCALE, LSCALE2: scale of conversions from FP8.
const LSCALE: Choice = Choice::ScaleExponent(-63, 0);
const LSCALE_F16: Choice = Choice::ScaleExponent(-15, 0);
/// FPCR.FZ for pairs in which only the source can be subnormal, or only the source is flushed.
const FZ: Choice = Choice::Subnormals(&[Subnormals::Keep, Subnormals::FlushSource]);
/// FJCVTZS wraps; the other instructions saturate.
const JS: Choice = Choice::IntOverflow(&[(IntOverflow::Saturate, NanToInt::Zero), (IntOverflow::Wrap, NanToInt::Zero)]);

const NARROW: &str = "Arm ARM A1.5.5, FPConvertFP8(); docs/spec/arm.md §2.1";
const WIDEN: &str = "Arm ARM A1.5.5, FP8ConvertFP(); docs/spec/arm.md §2.1";
const FLOAT: &str = "Arm ARM J1.3.3, FPConvert(); docs/spec/arm.md §2.2";
const BF16: &str = "Arm ARM J1.3.3, FPConvertBF(); docs/spec/arm.md §2.2";
const INT: &str = "Arm ARM J1.3.3, FPToFixed(); docs/spec/arm.md §2.3";
const FROM_INT: &str = "Arm ARM J1.3.3, FixedToFP(); docs/spec/arm.md §2.3";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "arm",
    about: "Conversion instructions of Arm's A64",
    group: Group::Chip,
    versions: &[],
    rows: &[
        row(&[F16], FP8, FP8_RULE, &[OSC, NSCALE_F16], &[], NARROW),
        row(&[Bf16, F32], FP8, FP8_RULE, &[OSC, NSCALE], &[], NARROW),
        row(FP8, &[F16], FP8_RULE, &[LSCALE_F16], &[], WIDEN),
        row(FP8, &[Bf16], FP8_RULE, &[LSCALE], &[], WIDEN),
        row(&[F16], &[F32, F64], ARM, &[], &[], FLOAT),
        row(&[F32], &[F64], ARM, &[FZ], &[], FLOAT),
        row(&[F32, F64], &[F16], ARM, &[RMODE, FZ], &[], FLOAT),
        row(&[F64], &[F32], ARM, &[RMODE_OR_ODD], &[], FLOAT),
        row(&[F32], &[Bf16], ARM, &[RMODE], &[], BF16),
        row(&[F16], INTS, ARM, &[TO_INT], &[], INT),
        row(&[F64], &[I32], ARM, &[TO_INT, FZ, JS], &[], INT),
        row(&[F32, F64], WORDS, ARM, &[TO_INT, FZ], &[], INT),
        row(SHORTS, &[F16], ARM, &[RMODE], &[], FROM_INT),
        row(WORDS, &[F16, F32, F64], ARM, &[RMODE], &[], FROM_INT),
    ],
};
