//! `tflite`: the operator CAST of TensorFlow Lite (LiteRT) on an x86 CPU. `docs/spec/tflite.md`.

use super::{Group, Table, X86, X86_SIGNED, out_of_range_open, row};
use crate::dtype::DType::{self, Bf16, Bool, F16, F32, F64, I2, I4, I8, I16, I32, I64, U4, U8, U16, U32};
use crate::policy::*;

const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64];
const INTS_AND_BOOL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64];
const FLOATS: &[DType] = &[F16, Bf16, F32, F64];
const ALL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, F16, Bf16, F32, F64];
const PACKED: &[DType] = &[I2, I4, U4];
/// Types with values outside f32.
const WIDE: &[DType] = &[I32, U32, I64, F64];

const RN: CastPolicy = CastPolicy::IEEE;
const TWICE: CastPolicy = CastPolicy { via: Some(F32), ..RN };
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, nan_to_int: NanToInt::Zero, ..RN };
/// Values out of range are clamped; NaN becomes the largest value.
const CLAMP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Saturate, ..RN };
const CLAMP_NAN_TO_0: CastPolicy = CastPolicy { nan_to_int: NanToInt::Zero, ..CLAMP };

const LOW_BITS: &str = "C++ leaves it undefined; x86 gives low bits or a bound; docs/spec/tflite.md §2.1";
const INDEFINITE: &str = "C++ leaves it undefined; x86 gives 0x80..0; docs/spec/tflite.md §2.1";
const NAN: &str = "C++ leaves it undefined; x86 gives 0 or 0x80..0; docs/spec/tflite.md §2.1";
const OPEN: &[Undefined] = &out_of_range_open(LOW_BITS, LOW_BITS, NAN);
const OPEN_SIGNED: &[Undefined] = &out_of_range_open(INDEFINITE, INDEFINITE, INDEFINITE);
const OPEN_NAN: &[Undefined] = &[Undefined::any(Condition::Nan, NAN)];

const FLOAT: &str = "LiteRT's cast.cc; docs/spec/tflite.md §1";
const INT: &str = "LiteRT's cast.cc; docs/spec/tflite.md §2";
const UNDEFINED: &str = "LiteRT's cast.cc; docs/spec/tflite.md §2.1";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "tflite",
    about: "CAST of TensorFlow Lite (LiteRT) on the CPU",
    group: Group::Library,
    versions: &["2.1", "2.3"],
    rows: &[
        row(ALL, &[Bool], RN, &[], &[], INT),
        row(INTS_AND_BOOL, INTS, WRAP, &[], &[], INT),
        row(&[F32], &[I32], CLAMP, &[], &[], INT),
        row(&[F32], &[U8, I16], CLAMP_NAN_TO_0, &[], OPEN_NAN, UNDEFINED).at(&["2.1"]),
        row(FLOATS, X86_SIGNED, X86, &[], OPEN_SIGNED, UNDEFINED).at(&["2.1"]),
        row(FLOATS, INTS, WRAP, &[], OPEN, UNDEFINED).at(&["2.1"]),
        row(FLOATS, INTS, CLAMP, &[], &[], INT),
        row(&[F32], PACKED, CLAMP, &[], &[], INT),
        row(PACKED, &[F32], RN, &[], &[], FLOAT),
        row(WIDE, &[F16, Bf16], TWICE, &[], &[], FLOAT),
        row(ALL, FLOATS, RN, &[], &[], FLOAT),
    ],
};
