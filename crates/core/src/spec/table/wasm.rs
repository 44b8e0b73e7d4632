//! WebAssembly: the conversion instructions. `docs/spec/wasm.md`.

use super::{Choice, Group, Table, row};
use crate::dtype::DType::{self, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use crate::policy::*;

const FLOATS: &[DType] = &[F32, F64];
const WIDE: &[DType] = &[I32, U32, I64, U64];
const NARROW: &[DType] = &[I8, U8, I16, U16];
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];

/// `promote`, `demote`, `convert`: nearest even, infinity on overflow.
const TO_FLOAT: CastPolicy = CastPolicy { nan: NanRule::Canonical, ..CastPolicy::IEEE };
/// `trunc`: toward zero, with a trap for values that have no result.
const TRUNC: CastPolicy =
    CastPolicy { int_overflow: IntOverflow::Error, nan_to_int: NanToInt::Error, ..CastPolicy::IEEE };
/// `wrap`, `extend`, loads and stores: the low bits.
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, ..CastPolicy::IEEE };
/// `narrow` of a vector: a signed source is clamped.
const NARROWED: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };

/// `trunc`, or `trunc_sat`.
const TRUNC_OR_SAT: &[Choice] =
    &[Choice::IntOverflow(&[(IntOverflow::Error, NanToInt::Error), (IntOverflow::Saturate, NanToInt::Zero)])];
/// A store, or `i16x8.narrow_i32x4`.
const STORE_OR_NARROW: &[Choice] =
    &[Choice::IntOverflow(&[(IntOverflow::Wrap, NanToInt::Zero), (IntOverflow::Saturate, NanToInt::Zero)])];

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "wasm",
    about: "The conversion instructions of WebAssembly",
    group: Group::Language,
    versions: &[],
    rows: &[
        row(&[F64], &[F32], TO_FLOAT, &[], &[], "WebAssembly, demote; docs/spec/wasm.md §1"),
        row(&[F32], &[F64], TO_FLOAT, &[], &[], "WebAssembly, promote; docs/spec/wasm.md §1"),
        row(WIDE, FLOATS, TO_FLOAT, &[], &[], "WebAssembly, convert_s and convert_u; docs/spec/wasm.md §1"),
        row(FLOATS, WIDE, TRUNC, TRUNC_OR_SAT, &[], "WebAssembly, trunc and trunc_sat; docs/spec/wasm.md §2"),
        row(&[I16], &[I8, U8], NARROWED, &[], &[], "WebAssembly, i8x16.narrow_i16x8; docs/spec/wasm.md §3"),
        row(&[I32], &[I16, U16], WRAP, STORE_OR_NARROW, &[], "WebAssembly, i32.store16 and i16x8.narrow_i32x4; docs/spec/wasm.md §3"),
        row(WIDE, INTS, WRAP, &[], &[], "WebAssembly, wrap, extend, store8 to store32; docs/spec/wasm.md §3"),
        row(NARROW, WIDE, WRAP, &[], &[], "WebAssembly, load8 and load16; docs/spec/wasm.md §3"),
        row(&[I8, U8], &[I16, U16], WRAP, &[], &[], "WebAssembly, i16x8.extend_i8x16; docs/spec/wasm.md §3"),
    ],
};
