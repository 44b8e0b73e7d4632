//! `numpy`: `ndarray.astype` of NumPy between its own numeric types, on x86. `docs/spec/numpy.md`.

use super::{Group, Table, X86, X86_SIGNED, out_of_range_open, row};
use crate::dtype::DType::{self, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use crate::policy::*;

const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const INTS_AND_BOOL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64];
const FLOATS: &[DType] = &[F16, F32, F64];
const ALL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64];

/// One rounding to nearest even, also from f64 and 64-bit integers.
const RN: CastPolicy = CastPolicy::IEEE;
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, nan_to_int: NanToInt::Zero, ..RN };

const LOW_BITS: &str = "C leaves it undefined; x86 keeps the low bits of a wider integer; docs/spec/numpy.md §2";
const INDEFINITE: &str = "C leaves it undefined; x86 gives 0x80..0; docs/spec/numpy.md §2";
const NAN: &str = "C leaves it undefined; x86 gives 0 or 0x80..0; docs/spec/numpy.md §2";
const OPEN: &[Undefined] = &out_of_range_open(LOW_BITS, LOW_BITS, NAN);
const OPEN_SIGNED: &[Undefined] = &out_of_range_open(INDEFINITE, INDEFINITE, NAN);

const FLOAT: &str = "NumPy's C code, observed; docs/spec/numpy.md §1";
const INT: &str = "NumPy's C code, observed; docs/spec/numpy.md §2";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "numpy",
    about: "astype of NumPy between its own types, on x86",
    group: Group::Library,
    versions: &["2"],
    rows: &[
        row(ALL, &[Bool], RN, &[], &[], FLOAT),
        row(ALL, FLOATS, RN, &[], &[], FLOAT),
        row(INTS_AND_BOOL, INTS, WRAP, &[], &[], INT),
        row(FLOATS, X86_SIGNED, X86, &[], OPEN_SIGNED, INT),
        row(FLOATS, INTS, WRAP, &[], OPEN, INT),
    ],
};
