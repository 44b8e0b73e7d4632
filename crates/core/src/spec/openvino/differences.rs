//! Observed differences between released OpenVINO on x86-64 and [`Convert`](super::Convert), with witnesses.
//! Source: `docs/spec/openvino.md §7` to §9.

use crate::dtype::DType::{self, *};
use crate::words::words;

/// Observed release: package `openvino`, x86-64 with AVX-512, with and without AVX512-FP16.
pub const OBSERVED: &str = "2026.4.1";

words! {
    /// Implementation of Convert with different results.
    #[non_exhaustive]
    pub enum Implementation {
        /// Operator evaluator of OpenVINO: `Model.evaluate` and constant folding.
        Reference = "reference evaluator",
        /// Model compiled for the device `CPU`, with a parameter as input.
        CpuPlugin = "CPU plugin",
    }
}

/// Difference of an implementation, for every pair from `src` to `dst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Implementation with the difference.
    pub implementation: Implementation,
    /// Source types.
    pub src: &'static [DType],
    /// Destination types.
    pub dst: &'static [DType],
    /// Affected values, and the results that they get.
    pub what: &'static str,
    /// Section on the difference.
    pub clause: &'static str,
}

/// Observed result of one implementation for a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The exact result.
    Exact,
    /// Another code.
    Code(u64),
    /// Complete groups of four elements, counted from the start of the tensor, get one code. The remaining elements get
    /// another code.
    ByPosition {
        /// Code in a complete group.
        group: u64,
        /// Code in the remaining elements.
        rest: u64,
    },
}

/// Value for which an implementation gives a different result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Witness {
    /// Source type.
    pub src: DType,
    /// Destination type.
    pub dst: DType,
    /// Stored form of the source element. A boolean may be any byte.
    pub input: u64,
    /// Exact result.
    pub exact: u64,
    /// Result of the reference evaluator.
    pub reference: Given,
    /// Result of the CPU plugin.
    pub cpu: Given,
}

impl Witness {
    /// Returns the result of an implementation.
    #[must_use]
    pub const fn given(&self, by: Implementation) -> Given {
        match by {
            Implementation::Reference => self.reference,
            Implementation::CpuPlugin => self.cpu,
        }
    }
}

/// Returns the known differences for a pair.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::openvino::differences::{Implementation, known, witnesses}};
/// assert!(known(DType::F32, DType::Bf16).any(|d| d.implementation == Implementation::Reference));
/// assert!(witnesses(DType::F32, DType::Bf16).any(|w| w.input == 0x3f80ffff && w.exact == 0x3f81));
/// assert_eq!(known(DType::I8, DType::I32).count(), 0);
/// ```
pub fn known(src: DType, dst: DType) -> impl Iterator<Item = &'static Difference> {
    DIFFERENCES.iter().filter(move |d| d.src.contains(&src) && d.dst.contains(&dst))
}

/// Returns the witnesses for a pair.
pub fn witnesses(src: DType, dst: DType) -> impl Iterator<Item = &'static Witness> {
    WITNESSES.iter().filter(move |w| w.src == src && w.dst == dst)
}

const FLOATS: &[DType] = &[F64, F32, F16, Bf16, F8E4M3Fn, F8E5M2];
const UP_TO_16: &[DType] = &[U1, U2, U3, U4, U6, U8, U16, I4, I8, I16];
const WIDE: &[DType] = &[U32, U64, I64];

const fn reference(
    src: &'static [DType],
    dst: &'static [DType],
    clause: &'static str,
    what: &'static str,
) -> Difference {
    Difference { implementation: Implementation::Reference, src, dst, what, clause }
}

const fn cpu(src: &'static [DType], dst: &'static [DType], what: &'static str) -> Difference {
    Difference { implementation: Implementation::CpuPlugin, src, dst, what, clause: "docs/spec/openvino.md §8.2" }
}

/// Every observed difference.
#[rustfmt::skip]
pub const DIFFERENCES: &[Difference] = &[
    reference(&[Bool], &[U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, Bf16, F16, F32, F64], "docs/spec/openvino.md §7.2 R3",
        "a byte other than 0 and 1 is read as a signed number: 2 gives 2, 255 gives -1"),
    // Values beyond i32 are multiples of 256 in f32, and of 2^24 in bf16. Only wider destinations have low bits that
    // are not zero.
    reference(&[F64], UP_TO_16, "docs/spec/openvino.md §7.2 R4", "values beyond i32 give 0 instead of the low bits"),
    reference(&[F32], &[U16, I16], "docs/spec/openvino.md §7.2 R4", "values beyond i32 give 0 instead of the low bits"),
    reference(FLOATS, &[I32], "docs/spec/openvino.md §7.2 R4", "NaN, infinities and values out of range give -2^31"),
    reference(&[F32], &[U32], "docs/spec/openvino.md §7.2 R4",
        "values out of range and NaN give one result in complete groups of four elements and another in the rest of the tensor"),
    reference(&[F64], &[U32], "docs/spec/openvino.md §7.2 R4", "values beyond i64 give 0 instead of the low bits"),
    reference(FLOATS, &[I64], "docs/spec/openvino.md §7.2 R4", "NaN, infinities and values out of range give -2^63"),
    reference(FLOATS, &[U64], "docs/spec/openvino.md §7.2 R4", "values from 2^64 on give 0; NaN, -Inf and values below -2^63 give 2^63"),
    reference(&[I32], &[F16], "docs/spec/openvino.md §7.2 R5", "values from 65520 on give 65504 instead of Inf"),
    reference(&[F64], &[F16], "docs/spec/openvino.md §7.2 R7",
        "rounded twice, through f32; just below powers of two in the subnormal range the result is twice too large"),
    reference(&[F64, F32, F16, U16, I16, U32, I32, U64, I64, Nf4], &[Bf16], "docs/spec/openvino.md §7.2 R8",
        "truncated instead of rounded where the kept last bit is 0; NaN with a payload in the low bits becomes Inf or zero"),
    reference(&[F64, F32], &[F8E4M3Fn], "docs/spec/openvino.md §7.2 R9", "rounded twice, through f16"),
    reference(&[F64, F32, U16, I16, U32, I32, U64, I64], &[F8E5M2], "docs/spec/openvino.md §7.2 R10",
        "rounded twice, through f16; just below 2^-17, 2^-16 and 2^-15 the result is too large; NaN may become Inf"),
    reference(&[F16, Bf16], &[F8E5M2], "docs/spec/openvino.md §7.2 R10", "NaN with a payload in the low bits becomes Inf"),
    reference(&[F32, F16, Bf16], &[F8E8M0], "docs/spec/openvino.md §7.2 R11", "NaN with its sign set gives the smallest value"),
    cpu(WIDE, &[I64, U64], "only the low 32 bits arrive, sign-extended: 2^31 becomes -2^31"),
    cpu(&[F32, Bf16], WIDE, "converted to i32 and then sign-extended: 3e9 becomes -2^31"),
    cpu(&[F64], &[F64], "rounded to f32; infinities and values beyond f32 become the largest f32"),
    cpu(&[F64], &[F32], "overflow and infinities give the largest f32"),
    cpu(&[F32, F16, Bf16, F8E5M2], &[F64], "infinities give the largest f32"),
    cpu(&[F64], &[U8, I8, U4, I4], "saturated to 8 bits instead of wrapped; to 4 bits the saturated byte is then wrapped"),
    cpu(&[F64], &[I32, U32, I64, U64, U16, I16], "saturated to i32, NaN to -2^31, then wrapped or sign-extended"),
    cpu(&[F32], &[U16, I16], "values beyond i32 give 0 instead of the low bits"),
    cpu(&[F32, F16, Bf16, F8E4M3Fn, F8E5M2], &[I32], "NaN, infinities and values out of range give -2^31"),
    cpu(&[F16], &[I16, U16, I32, U32, I64, U64], "infinities are clamped to 65504 first, and NaN gives -2^31 in i32"),
    cpu(&[F8E4M3Fn, F8E5M2], WIDE, "NaN and infinities give -2^31, sign-extended"),
    cpu(&[F64, F32, F16, Bf16], &[Bool], "NaN gives 0; f64 values that vanish in f32 give 0"),
    cpu(&[I32, U32, I64, U64], &[Bool], "-2^31 gives 0, and so do values whose low 32 bits are 0 or at least 2^31"),
    cpu(&[F32], &[Bf16], "subnormals give 0"),
    cpu(&[F64, U16, I16, U32, I32, U64, I64, Nf4], &[Bf16], "truncated instead of rounded where the kept last bit is 0"),
    cpu(&[F64], &[F16], "rounded twice, through f32"),
    cpu(&[I32, U32, I64, U64], &[F64], "rounded to f32 first: 16777217 becomes 16777216"),
    cpu(&[Bool], &[U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64, Bf16, F16, F32, F64, F8E4M3Fn, F8E5M2],
        "a byte other than 0 and 1 is read as a number: 255 gives 255"),
    cpu(&[F64, F32], &[F8E4M3Fn], "rounded twice, through f16, as the reference evaluator does"),
    cpu(&[F64, F32, U16, I16, U32, I32, U64, I64], &[F8E5M2], "rounded twice, through f16, as the reference evaluator does"),
    // On CPUs with AVX512-FP16, the result is NaN.
    cpu(&[Bf16], &[F8E5M2], "on CPUs without AVX512-FP16, NaN with a payload in the low bits becomes Inf"),
    cpu(&[F32, F16, Bf16], &[F8E8M0], "NaN with its sign set gives the smallest value"),
];

const fn row(src: DType, dst: DType, input: u64, exact: u64, reference: Given, cpu: Given) -> Witness {
    Witness { src, dst, input, exact, reference, cpu }
}

use Given::{ByPosition, Code, Exact};

/// Values with results that differ from the exact results. Source: `docs/spec/openvino.md §9`.
#[rustfmt::skip]
pub const WITNESSES: &[Witness] = &[
    row(I64, I64, 0x80000000, 0x80000000, Exact, Code(0xffffffff80000000)),
    row(I64, I64, 0x100000000, 0x100000000, Exact, Code(0x0)),
    row(U32, I64, 0x80000000, 0x80000000, Exact, Code(0xffffffff80000000)),
    row(U64, U64, 0x8000000000000000, 0x8000000000000000, Exact, Code(0x0)),
    row(F32, U16, 0x4f32d05e, 0x5e00, Code(0x0), Code(0x0)),
    row(F32, I32, 0x4f32d05e, 0xb2d05e00, Code(0x80000000), Code(0x80000000)),
    row(F32, U32, 0x4f32d05e, 0xb2d05e00, Exact, Code(0x80000000)),
    row(F32, U32, 0x4f9502f9, 0x2a05f200, ByPosition { group: 0x0, rest: 0x2a05f200 }, Code(0x80000000)),
    row(F32, U32, 0xcf32d05e, 0x4d2fa200, ByPosition { group: 0x80000000, rest: 0x4d2fa200 }, Code(0x80000000)),
    row(F32, U32, 0x7fc00000, 0x0, ByPosition { group: 0x80000000, rest: 0x0 }, Code(0x80000000)),
    row(F32, I32, 0x7fc00000, 0x0, Code(0x80000000), Code(0x80000000)),
    row(F32, I64, 0x4f000000, 0x80000000, Exact, Code(0xffffffff80000000)),
    row(F32, I64, 0x4f9502f9, 0x12a05f200, Exact, Code(0xffffffff80000000)),
    row(F32, I64, 0x5f0ac723, 0x8ac7230000000000, Code(0x8000000000000000), Code(0xffffffff80000000)),
    row(F32, U64, 0x5f8ac723, 0x158e460000000000, Code(0x0), Code(0xffffffff80000000)),
    row(F32, U64, 0xff800000, 0x0, Code(0x8000000000000000), Code(0xffffffff80000000)),
    row(F32, I64, 0x7fc00000, 0x0, Code(0x8000000000000000), Code(0xffffffff80000000)),
    row(F64, U8, 0x4070000000000000, 0x0, Exact, Code(0xff)),
    row(F64, U8, 0xbff0000000000000, 0xff, Exact, Code(0x0)),
    row(F64, I8, 0x4069000000000000, 0xc8, Exact, Code(0x7f)),
    row(F64, U16, 0x41e65a0bc0000000, 0x5e00, Code(0x0), Code(0xffff)),
    row(F64, I16, 0x41e65a0bc0000000, 0x5e00, Code(0x0), Code(0xffff)),
    row(F64, I32, 0x41e65a0bc0000000, 0xb2d05e00, Code(0x80000000), Code(0x7fffffff)),
    row(F64, U32, 0x41e65a0bc0000000, 0xb2d05e00, Exact, Code(0x7fffffff)),
    row(F64, U32, 0x43e158e460913d00, 0x89e80000, Code(0x0), Code(0x7fffffff)),
    row(F64, I64, 0x41e0000000000000, 0x80000000, Exact, Code(0x7fffffff)),
    row(F64, I64, 0x41f2a05f20000000, 0x12a05f200, Exact, Code(0x7fffffff)),
    row(F16, I16, 0x7c00, 0x0, Exact, Code(0xffe0)),
    row(F16, U16, 0xfc00, 0x0, Exact, Code(0x20)),
    row(F16, I32, 0x7c00, 0x0, Code(0x80000000), Code(0xffe0)),
    row(F16, I32, 0x7e00, 0x0, Code(0x80000000), Code(0x80000000)),
    row(Bf16, U32, 0x4f33, 0xb3000000, Exact, Code(0x80000000)),
    row(F8E4M3Fn, I32, 0x7f, 0x0, Code(0x80000000), Code(0x80000000)),
    row(F8E5M2, U64, 0xfc, 0x0, Code(0x8000000000000000), Code(0xffffffff80000000)),
    row(F32, Bool, 0x7fc00000, 0x1, Exact, Code(0x0)),
    row(I32, Bool, 0x80000000, 0x1, Exact, Code(0x0)),
    row(I64, Bool, 0x100000000, 0x1, Exact, Code(0x0)),
    row(F64, Bool, 0x1a56e1fc2f8f359, 0x1, Exact, Code(0x0)),
    row(F32, Bf16, 0x3f80ffff, 0x3f81, Code(0x3f80), Exact),
    row(F32, Bf16, 0x4788b800, 0x4789, Code(0x4788), Exact),
    row(F32, Bf16, 0x4f32d05e, 0x4f33, Code(0x4f32), Exact),
    row(F32, Bf16, 0x400000, 0x40, Exact, Code(0x0)),
    row(F32, Bf16, 0x7f800001, 0x7fc0, Code(0x7f80), Exact),
    row(F32, Bf16, 0x7fffffff, 0x7fff, Code(0x8000), Exact),
    row(F64, Bf16, 0x40f1170000000000, 0x4789, Code(0x4788), Code(0x4788)),
    row(F64, Bf16, 0x3ff0100000001000, 0x3f81, Code(0x3f80), Code(0x3f80)),
    row(I32, Bf16, 0x11170, 0x4789, Code(0x4788), Code(0x4788)),
    row(I64, Bf16, 0x1010001, 0x4b81, Code(0x4b80), Code(0x4b80)),
    row(F64, F16, 0x40effdffffffca50, 0x7bff, Code(0x7c00), Code(0x7c00)),
    row(F64, F16, 0x3ff0020000001000, 0x3c01, Code(0x3c00), Code(0x3c00)),
    row(F64, F16, 0x3e7ffe54b196912b, 0x2, Code(0x4), Exact),
    row(I32, F16, 0x11170, 0x7c00, Code(0x7bff), Exact),
    row(F64, F32, 0x7e37e43c8800759c, 0x7f800000, Exact, Code(0x7f7fffff)),
    row(F32, F64, 0x7f800000, 0x7ff0000000000000, Exact, Code(0x47efffffe0000000)),
    row(F64, F64, 0x3fb999999999999a, 0x3fb999999999999a, Exact, Code(0x3fb99999a0000000)),
    row(F64, F64, 0x7ff0000000000000, 0x7ff0000000000000, Exact, Code(0x47efffffe0000000)),
    row(I32, F64, 0x1000001, 0x4170000010000000, Exact, Code(0x4170000000000000)),
    row(U32, F64, 0xffffffff, 0x41efffffffe00000, Exact, Code(0x41f0000000000000)),
    row(F32, F8E4M3Fn, 0x3f080001, 0x31, Code(0x30), Code(0x30)),
    row(F32, F8E4M3Fn, 0x43e80ccd, 0x7f, Code(0x7e), Code(0x7e)),
    row(F64, F8E4M3Fn, 0x3ff1000000001000, 0x39, Code(0x38), Code(0x38)),
    row(F32, F8E5M2, 0x476fff00, 0x7b, Code(0x7c), Code(0x7c)),
    row(F32, F8E5M2, 0x36fff000, 0x0, Code(0x1), Code(0x1)),
    row(F32, F8E5M2, 0x37fff000, 0x2, Code(0x4), Code(0x4)),
    row(F32, F8E5M2, 0x7f800001, 0x7e, Code(0x7c), Code(0x7c)),
    row(F16, F8E5M2, 0x7c01, 0x7e, Code(0x7c), Exact),
    row(I32, F8E5M2, 0x1201, 0x6d, Code(0x6c), Code(0x6c)),
    row(I32, F8E5M2, 0xefff, 0x7b, Code(0x7c), Code(0x7c)),
    row(F32, F8E8M0, 0xffc00000, 0xff, Code(0x0), Code(0x0)),
    row(Bool, U8, 0x2, 0x1, Code(0x2), Code(0x2)),
    row(Bool, I32, 0xff, 0x1, Code(0xffffffff), Code(0xff)),
    row(Bool, F32, 0xff, 0x3f800000, Code(0xbf800000), Code(0x437f0000)),
];
