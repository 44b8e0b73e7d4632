//! `jax`: `jax.lax.convert_element_type` of JAX with 64-bit types, on an x86 CPU. `docs/spec/jax.md`.

use super::{Group, Table, row};
use crate::dtype::DType::{
    self, Bf16, Bool, F4E2M1, F8E3M4, F8E4M3B11Fnuz, F8E4M3Fn, F8E4M3Fnuz, F8E4M3Ieee, F8E5M2, F8E5M2Fnuz, F8E8M0, F16,
    F32, F64, I2, I4, I8, I16, I32, I64, U2, U4, U8, U16, U32, U64,
};
use crate::policy::*;
use crate::round::Rounding;

const INTS: &[DType] = &[I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64];
const INTS_AND_BOOL: &[DType] = &[Bool, I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64];
/// Integer types with values outside f32.
const WIDE_INTS: &[DType] = &[I32, U32, I64, U64];
const F8: &[DType] = &[F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz];
const FLOATS: &[DType] =
    &[F4E2M1, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz, F8E8M0, F16, Bf16, F32, F64];
#[rustfmt::skip]
const ALL: &[DType] = &[
    Bool, I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64,
    F4E2M1, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E3M4, F8E4M3Ieee, F8E4M3B11Fnuz, F8E8M0, F16, Bf16, F32, F64,
];

const RN: CastPolicy = CastPolicy::IEEE;
const FLUSH_SOURCE: CastPolicy = CastPolicy { subnormals: Subnormals::FlushSource, ..RN };
const FLUSH_RESULT: CastPolicy = CastPolicy { subnormals: Subnormals::FlushResult, ..RN };
const TWICE: CastPolicy = CastPolicy { via: Some(F32), ..RN };
const FLUSH_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..FLUSH_RESULT };
/// Rounded up from 1.5 times a power of two. NaN for zero, negative values, Inf, and values that round to 2^128.
const E8M0: CastPolicy = CastPolicy { to_float: Rounding::NearestAway, ..RN };
const E8M0_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..E8M0 };
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, ..RN };
const CLAMP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Zero, ..RN };

const NORMAL: f64 = f32::MIN_POSITIVE as f64;
/// Magnitudes in the half-open interval from 2^-126 - 2^-150 to 2^-126 - 2^-151.
const NEARLY_NORMAL: Condition = Condition::Between {
    above: (NORMAL - NORMAL / (1 << 24) as f64).to_bits() - 1,
    below: (NORMAL - NORMAL / (1 << 25) as f64).to_bits(),
};

const SIX: &[Undefined] =
    &[Undefined::any(Condition::between(4.0, f64::INFINITY), "JAX gives the bound for 6; docs/spec/jax.md §3")];
const NAN: &[Undefined] = &[Undefined::any(Condition::Nan, "JAX gives -0 for either sign; docs/spec/jax.md §1")];
const FLUSHED: &[Undefined] = &[Undefined::any(NEARLY_NORMAL, "JAX gives 0; docs/spec/jax.md §1.2")];
const SMALL: &[Undefined] = &[
    Undefined::any(Condition::ABOVE_SMALLEST_E8M0, "JAX gives 2^-126; docs/spec/jax.md §2"),
    Undefined::any(Condition::Underflow, "JAX gives code 0, and NaN from f64; docs/spec/jax.md §2"),
];

const FLOAT: &str = "XLA's CPU code, observed; docs/spec/jax.md §1";
const ROUNDED_TWICE: &str = "XLA's CPU code, observed; docs/spec/jax.md §1.1";
const SUBNORMALS: &str = "XLA's CPU code, observed; docs/spec/jax.md §1.2";
const EXPONENT: &str = "XLA's CPU code, observed; docs/spec/jax.md §2";
const INT: &str = "XLA's CPU code, observed; docs/spec/jax.md §3";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "jax",
    about: "convert_element_type of JAX on the CPU, with 64-bit types",
    group: Group::Library,
    versions: &["0.10"],
    rows: &[
        row(&[F32, F64], &[Bool], FLUSH_SOURCE, &[], &[], SUBNORMALS),
        row(ALL, &[Bool], RN, &[], &[], INT),
        row(INTS_AND_BOOL, INTS, WRAP, &[], &[], INT),
        row(&[F4E2M1], INTS, CLAMP, &[], SIX, INT),
        row(FLOATS, INTS, CLAMP, &[], &[], INT),
        row(&[F8E8M0], &[F8E8M0], RN, &[], &[], FLOAT),
        row(WIDE_INTS, &[F8E8M0], E8M0_TWICE, &[], &[], EXPONENT),
        row(&[Bf16, F32, F64], &[F8E8M0], E8M0, &[], SMALL, EXPONENT),
        row(ALL, &[F8E8M0], E8M0, &[], &[], EXPONENT),
        row(INTS_AND_BOOL, &[F4E2M1], RN, &[], &[], FLOAT),
        row(&[F4E2M1], &[F4E2M1], RN, &[], &[], FLOAT),
        row(FLOATS, &[F4E2M1], RN, &[], NAN, FLOAT),
        row(ALL, F8, RN, &[], &[], FLOAT),
        row(&[F64], &[F16], TWICE, &[], &[], ROUNDED_TWICE),
        row(&[F64], &[Bf16], FLUSH_TWICE, &[], FLUSHED, SUBNORMALS),
        row(WIDE_INTS, &[Bf16], TWICE, &[], &[], ROUNDED_TWICE),
        row(&[F64], &[F32], FLUSH_RESULT, &[], FLUSHED, SUBNORMALS),
        row(&[Bf16, F32], &[F64], FLUSH_SOURCE, &[], &[], SUBNORMALS),
        row(ALL, FLOATS, RN, &[], &[], FLOAT),
    ],
};
