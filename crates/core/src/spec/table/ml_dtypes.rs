//! `ml_dtypes`: `ndarray.astype` to and from the types of the package ml_dtypes, on x86. `docs/spec/ml_dtypes.md`.

use super::{Group, Table, X86, X86_SIGNED, out_of_range_open, row};
use crate::dtype::DType::{
    self, Bf16, Bool, F4E2M1, F6E2M3, F6E3M2, F8E3M4, F8E4M3B11Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3Ieee, F8E5M2,
    F8E5M2Fnuz, F8E8M0, F16, F32, F64, I1, I2, I4, I8, I16, I32, I64, U1, U2, U4, U8, U16, U32, U64,
};
use crate::policy::*;
use crate::round::Rounding;

/// NumPy's own types. A pair of two of these types is in `numpy`.
const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const FLOATS: &[DType] = &[F16, F32, F64];
/// `FIT`: types with all values in f32. `WIDE`: types with values outside f32.
const FIT: &[DType] = &[Bool, I8, U8, I16, U16, F16, F32];
const WIDE: &[DType] = &[I32, U32, I64, U64, F64];
const OWN: &[DType] =
    &[Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz, F6E2M3, F6E3M2, F4E2M1];
const OWN_LESS_E2M3: &[DType] =
    &[Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz, F6E3M2, F4E2M1];
#[rustfmt::skip]
const OWN_AND_E8M0: &[DType] = &[
    F8E8M0,
    Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz, F6E2M3, F6E3M2, F4E2M1,
];
const TINY: &[DType] = &[I1, U1, I2, U2];
const NIBBLES: &[DType] = &[I4, U4];
const SMALL_INTS: &[DType] = &[I1, U1, I2, U2, I4, U4];

/// Nearest even. Overflow gives Inf; NaN in a format without Inf; the largest value in a format without Inf and NaN.
/// NaN in a format without NaN becomes a zero with the opposite sign.
const RN: CastPolicy = CastPolicy::IEEE;
const RN_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..RN };
/// Rounded up from 1.5 times a power of two. NaN for zero, negative values, Inf, and values that round to 2^128.
const E8M0: CastPolicy = CastPolicy { to_float: Rounding::NearestAway, ..RN };
const E8M0_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..E8M0 };
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, nan_to_int: NanToInt::Zero, ..RN };
const CLAMP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, ..WRAP };
const X86_NAN_TO_0: CastPolicy = CastPolicy { nan_to_int: NanToInt::Zero, ..X86 };

const LOW_BITS: &str = "C++ leaves it undefined; x86 keeps the low bits of a wider integer; docs/spec/ml_dtypes.md §3";
const INDEFINITE: &str = "C++ leaves it undefined; x86 gives 0x80..0; docs/spec/ml_dtypes.md §3";
const INF: &str = "x86 gives 0 or 0x80..0 from bf16, and the nearest bound from 8 bits; docs/spec/ml_dtypes.md §3";
const NAN: &str = "x86 gives 0x80..0 or 0 from bf16, and 0 from 8 bits or fewer; docs/spec/ml_dtypes.md §3";
const OPEN: &[Undefined] = &out_of_range_open(LOW_BITS, INF, NAN);
const OPEN_SIGNED: &[Undefined] = &out_of_range_open(INDEFINITE, INF, NAN);
const SMALL: &[Undefined] = &[
    Undefined::any(Condition::ABOVE_SMALLEST_E8M0, "ml_dtypes gives 2^-126; docs/spec/ml_dtypes.md §2"),
    Undefined::any(Condition::Underflow, "ml_dtypes gives code 0, truecast NaN as for zero; docs/spec/ml_dtypes.md §2"),
];

const FLOAT: &str = "ml_dtypes' C++ code, observed; docs/spec/ml_dtypes.md §1";
const EXPONENT: &str = "ml_dtypes' C++ code, observed; docs/spec/ml_dtypes.md §2";
const INT: &str = "ml_dtypes' C++ code, observed; docs/spec/ml_dtypes.md §3";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "ml_dtypes",
    about: "astype of NumPy to and from the types of ml_dtypes, on x86",
    group: Group::Library,
    versions: &["0.6"],
    rows: &[
        row(FIT, OWN, RN, &[], &[], FLOAT),
        row(WIDE, OWN, RN_TWICE, &[], &[], FLOAT),
        row(OWN, OWN, RN, &[], &[], FLOAT),
        row(OWN_AND_E8M0, FLOATS, RN, &[], &[], FLOAT),
        row(&[F8E8M0], &[Bf16, F8E8M0], RN, &[], &[], FLOAT),
        row(FIT, &[F8E8M0], E8M0, &[], SMALL, EXPONENT),
        row(&[Bf16], &[F8E8M0], E8M0, &[], SMALL, EXPONENT),
        row(WIDE, &[F8E8M0], E8M0_TWICE, &[], SMALL, EXPONENT),
        row(OWN_AND_E8M0, &[Bool], RN, &[], &[], INT),
        row(&[Bf16], X86_SIGNED, X86, &[], OPEN_SIGNED, INT),
        row(&[F8E8M0], X86_SIGNED, X86_NAN_TO_0, &[], OPEN_SIGNED, INT),
        row(OWN_AND_E8M0, X86_SIGNED, CLAMP, &[], OPEN_SIGNED, INT),
        row(OWN_AND_E8M0, INTS, WRAP, &[], OPEN, INT),
        row(OWN, TINY, WRAP, &[], OPEN, INT),
        row(OWN_LESS_E2M3, NIBBLES, WRAP, &[], OPEN, INT),
        row(FLOATS, SMALL_INTS, WRAP, &[], OPEN, INT),
        row(TINY, OWN, RN, &[], &[], INT),
        row(NIBBLES, OWN_LESS_E2M3, RN, &[], &[], INT),
        row(SMALL_INTS, FLOATS, RN, &[], &[], INT),
        row(SMALL_INTS, &[Bool], RN, &[], &[], INT),
        row(SMALL_INTS, INTS, WRAP, &[], &[], INT),
        row(INTS, SMALL_INTS, WRAP, &[], &[], INT),
        row(&[Bool], SMALL_INTS, WRAP, &[], &[], INT),
        row(&[I1], &[I1, I2, I4], WRAP, &[], &[], INT),
        row(&[U1], &[U1, U2, U4], WRAP, &[], &[], INT),
        row(&[I2], &[I2, I4], WRAP, &[], &[], INT),
        row(&[U2], &[U2, U4], WRAP, &[], &[], INT),
        row(&[I4], &[I4], WRAP, &[], &[], INT),
        row(&[U4], &[U4], WRAP, &[], &[], INT),
    ],
};
