//! `torch`: `Tensor.to` of PyTorch on the CPU. `docs/spec/torch.md`.

use super::{Group, Table, X86, X86_SIGNED, out_of_range_open, row};
use crate::dtype::DType::{
    self, Bf16, Bool, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32,
    U64,
};
use crate::policy::*;
use crate::round::Rounding;

const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
const INTS_AND_BOOL: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32, I64, U64];
const FLOATS: &[DType] = &[F16, Bf16, F32, F64, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0];
const ALL: &[DType] = &[
    Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, Bf16, F32, F64, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0,
];
/// Types with values outside f32.
const WIDE: &[DType] = &[I32, U32, I64, U64, F64];
const NARROW: &[DType] = &[F16, Bf16, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz];
const NAN_TO_0: &[DType] = &[F8E4M3Fnuz, F8E5M2Fnuz, F8E8M0];

const RN: CastPolicy = CastPolicy::IEEE;
const RN_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..RN };
/// Saturation of PyTorch 2.13 and later, for e4m3fn only.
const SAT: CastPolicy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..RN };
const SAT_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..SAT };
/// Exponent of the magnitude. A magnitude of 1.5 times a power of two or more is rounded up. Inf, and values that round
/// to 2^128, give NaN. Zero gives code 0.
const E8M0: CastPolicy = CastPolicy {
    to_float: Rounding::NearestAway,
    negative: Unrepresentable::Magnitude,
    vanishing: Unrepresentable::Smallest,
    ..RN
};
const E8M0_TWICE: CastPolicy = CastPolicy { via: Some(F32), ..E8M0 };
const WRAP: CastPolicy = CastPolicy { int_overflow: IntOverflow::Wrap, nan_to_int: NanToInt::Zero, ..RN };
const X86_NAN_TO_0: CastPolicy = CastPolicy { nan_to_int: NanToInt::Zero, ..X86 };

const LOW_BITS: &str = "C++ leaves it undefined; x86 keeps the low bits of a wider integer; docs/spec/torch.md §3";
const INDEFINITE: &str = "C++ leaves it undefined; x86 gives 0x80..0; docs/spec/torch.md §3";
const NAN: &str = "C++ leaves it undefined; x86 gives 0 or 0x80..0; docs/spec/torch.md §3";
const OPEN: &[Undefined] = &out_of_range_open(LOW_BITS, LOW_BITS, NAN);
const OPEN_SIGNED: &[Undefined] = &out_of_range_open(INDEFINITE, INDEFINITE, NAN);
const SMALL: &[Undefined] =
    &[Undefined::any(Condition::ABOVE_SMALLEST_E8M0, "PyTorch gives 2^-126; docs/spec/torch.md §2")];

const FLOAT: &str = "PyTorch's CPU code, observed; docs/spec/torch.md §1";
const TWICE: &str = "PyTorch's CPU code, observed; docs/spec/torch.md §1.2";
const E4M3FN: &str = "PyTorch's CPU code, observed; docs/spec/torch.md §1.1";
const EXPONENT: &str = "PyTorch's CPU code, observed; docs/spec/torch.md §2";
const INT: &str = "PyTorch's CPU code, observed; docs/spec/torch.md §3";

#[rustfmt::skip]
pub(super) static TABLE: Table = Table {
    name: "torch",
    about: "Tensor.to of PyTorch on the CPU",
    group: Group::Library,
    versions: &["2.11", "2.15"],
    rows: &[
        row(ALL, &[Bool], RN, &[], &[], INT),
        row(INTS_AND_BOOL, INTS, WRAP, &[], &[], INT),
        row(NAN_TO_0, X86_SIGNED, X86_NAN_TO_0, &[], OPEN_SIGNED, INT),
        row(FLOATS, X86_SIGNED, X86, &[], OPEN_SIGNED, INT),
        row(FLOATS, INTS, WRAP, &[], OPEN, INT),
        row(&[F8E8M0], &[F8E8M0], RN, &[], &[], FLOAT),
        row(WIDE, &[F8E8M0], E8M0_TWICE, &[], SMALL, EXPONENT),
        row(ALL, &[F8E8M0], E8M0, &[], SMALL, EXPONENT),
        row(WIDE, &[F8E4M3Fn], RN_TWICE, &[], &[], E4M3FN).at(&["2.11"]),
        row(ALL, &[F8E4M3Fn], RN, &[], &[], E4M3FN).at(&["2.11"]),
        row(WIDE, &[F8E4M3Fn], SAT_TWICE, &[], &[], E4M3FN),
        row(ALL, &[F8E4M3Fn], SAT, &[], &[], E4M3FN),
        row(WIDE, NARROW, RN_TWICE, &[], &[], TWICE),
        row(ALL, FLOATS, RN, &[], &[], FLOAT),
    ],
};
