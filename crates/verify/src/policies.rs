//! Policies to test: every rounding, every other field one at a time, and random combinations.
//!
//! A variant is combined with every rounding where its field has an effect; elsewhere one test shows that it has no
//! effect.

use crate::random::Random;
use truecast_core::policy::*;
use truecast_core::{CastPolicy, DType, Kind, Rounding};

/// Destinations that a variant can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matters {
    Always,
    ToFloats,
    ToIntegers,
    ToUnsignedFloats,
}

/// A named change of the IEEE policy.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    /// Policy with the default roundings.
    pub policy: CastPolicy,
    matters: Matters,
}

const BASE: CastPolicy = CastPolicy::IEEE;

/// Saturation everywhere: floats, infinities, integers, NaN to integers.
pub const SATURATE: CastPolicy = CastPolicy {
    overflow: Overflow::Saturate,
    inf: Overflow::Saturate,
    int_overflow: IntOverflow::Saturate,
    nan_to_int: NanToInt::Saturate,
    ..BASE
};

/// Number of leading [`VARIANTS`] that get the longest lists of inputs.
const MAIN: usize = 2;

/// All variants. The first two are the policies of `docs/kernels.md §11` row 3.
#[rustfmt::skip]
pub const VARIANTS: &[Variant] = {
    use Matters::*;
    &[
        Variant { name: "nonfinite", matters: Always, policy: BASE },
        Variant { name: "saturate", matters: Always, policy: SATURATE },
        Variant { name: "finite-saturate", matters: ToFloats, policy: CastPolicy { overflow: Overflow::Saturate, ..BASE } },
        Variant { name: "inf-saturate", matters: ToFloats, policy: CastPolicy { inf: Overflow::Saturate, ..BASE } },
        Variant { name: "overflow-error", matters: ToFloats, policy: CastPolicy { overflow: Overflow::Error, ..BASE } },
        Variant { name: "inf-error", matters: ToFloats, policy: CastPolicy { inf: Overflow::Error, ..BASE } },
        Variant { name: "nan-canonical", matters: ToFloats, policy: CastPolicy { nan: NanRule::Canonical, ..BASE } },
        Variant { name: "nan-error", matters: Always, policy: CastPolicy { nan: NanRule::Error, ..BASE } },
        Variant { name: "nan-max-signed", matters: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::MaxSigned, ..BASE } },
        Variant { name: "nan-max-positive", matters: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::MaxPositive, ..BASE } },
        Variant { name: "nan-code-zero", matters: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::CodeZero, ..BASE } },
        Variant { name: "int-saturate", matters: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Saturate, ..BASE } },
        Variant { name: "int-error", matters: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Error, ..BASE } },
        Variant { name: "nan-to-int-saturate", matters: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Saturate, ..BASE } },
        Variant { name: "nan-to-int-error", matters: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Error, ..BASE } },
        Variant { name: "int-indefinite", matters: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Indefinite, ..BASE } },
        Variant { name: "int-saturate-to-f32", matters: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::SaturateToF32, ..BASE } },
        Variant { name: "nan-to-int-indefinite", matters: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Indefinite, ..BASE } },
        Variant { name: "nan-to-int-top-bit", matters: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::TopBit, ..BASE } },
        Variant { name: "via-f32", matters: Always, policy: CastPolicy { via: Some(DType::F32), ..BASE } },
        Variant { name: "via-f16-saturate", matters: ToFloats, policy: CastPolicy { via: Some(DType::F16), ..SATURATE } },
        Variant { name: "relu", matters: ToFloats, policy: CastPolicy { relu: true, ..BASE } },
        Variant { name: "scaled-up", matters: Always, policy: CastPolicy { scale_exponent: 9, ..BASE } },
        Variant { name: "scaled-down-saturate", matters: ToFloats, policy: CastPolicy { scale_exponent: -7, ..SATURATE } },
        Variant { name: "flush", matters: Always, policy: CastPolicy { subnormals: Subnormals::Flush, ..BASE } },
        Variant { name: "flush-source", matters: Always, policy: CastPolicy { subnormals: Subnormals::FlushSource, ..BASE } },
        Variant { name: "flush-result", matters: Always, policy: CastPolicy { subnormals: Subnormals::FlushResult, ..BASE } },
        Variant { name: "always-nonfinite", matters: ToFloats, policy: CastPolicy { overflow: Overflow::NonfiniteAlways, ..BASE } },
        Variant { name: "range-source", matters: ToFloats, policy: CastPolicy { range: RangeTest::Source, ..BASE } },
        Variant { name: "range-source-saturate", matters: ToFloats, policy: CastPolicy { range: RangeTest::Source, ..SATURATE } },
        Variant { name: "negative-smallest", matters: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Smallest, ..BASE } },
        Variant { name: "negative-magnitude", matters: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Magnitude, ..BASE } },
        Variant { name: "negative-error", matters: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Error, ..BASE } },
        Variant { name: "vanishing-smallest", matters: ToUnsignedFloats, policy: CastPolicy { vanishing: Unrepresentable::Smallest, ..BASE } },
        Variant { name: "vanishing-error", matters: ToUnsignedFloats, policy: CastPolicy { vanishing: Unrepresentable::Error, ..BASE } },
    ]
};

impl Matters {
    fn to(self, dst: DType) -> bool {
        match self {
            Matters::Always => true,
            Matters::ToFloats => dst.is_float(),
            Matters::ToIntegers => matches!(dst.kind(), Kind::Int(_)),
            Matters::ToUnsignedFloats => matches!(dst.kind(), Kind::Float(f) if !f.signed),
        }
    }
}

/// The policy with the same rounding for floats and integers.
pub fn rounded(policy: CastPolicy, rounding: Rounding) -> CastPolicy {
    CastPolicy { to_float: rounding, to_int: rounding, ..policy }
}

/// The two main variants under each rounding.
pub fn main_for(roundings: &[Rounding]) -> Vec<CastPolicy> {
    VARIANTS[..MAIN].iter().flat_map(|v| roundings.iter().map(|&r| rounded(v.policy, r))).collect()
}

/// Further policies for a destination: the other variants, and `n_random` random policies.
pub fn others_for(dst: DType, roundings: &[Rounding], n_random: usize, random: &mut Random) -> Vec<CastPolicy> {
    let mut all = Vec::new();
    for variant in &VARIANTS[MAIN..] {
        if variant.matters.to(dst) {
            all.extend(roundings.iter().map(|&r| rounded(variant.policy, r)));
        } else {
            all.push(variant.policy);
        }
    }
    all.extend((0..n_random).map(|_| any(random)));
    all
}

/// Random policy; rarely with an `Error`.
fn any(random: &mut Random) -> CastPolicy {
    let range =
        |random: &mut Random| random.pick(&[Overflow::Nonfinite, Overflow::NonfiniteAlways, Overflow::Saturate]);
    let mut policy = CastPolicy {
        to_float: random.pick(&Rounding::ALL),
        to_int: random.pick(&Rounding::ALL),
        overflow: range(random),
        inf: range(random),
        nan: random.pick(&[NanRule::Keep, NanRule::Canonical]),
        nan_substitute: random.pick(&[
            NanSubstitute::ZeroFlipped,
            NanSubstitute::MaxSigned,
            NanSubstitute::MaxPositive,
            NanSubstitute::CodeZero,
        ]),
        int_overflow: random.pick(&[
            IntOverflow::Wrap,
            IntOverflow::Saturate,
            IntOverflow::Indefinite,
            IntOverflow::SaturateToF32,
        ]),
        nan_to_int: random.pick(&[NanToInt::Zero, NanToInt::Saturate, NanToInt::Indefinite, NanToInt::TopBit]),
        subnormals: random.pick(&[
            Subnormals::Keep,
            Subnormals::Flush,
            Subnormals::FlushSource,
            Subnormals::FlushResult,
        ]),
        range: random.pick(&[RangeTest::Rounded, RangeTest::Source]),
        negative: random.pick(&[Unrepresentable::Smallest, Unrepresentable::Nan, Unrepresentable::Magnitude]),
        vanishing: random.pick(&[Unrepresentable::Smallest, Unrepresentable::Nan]),
        via: random.pick(&[
            None,
            None,
            None,
            None,
            Some(DType::F32),
            Some(DType::F16),
            Some(DType::Bf16),
            Some(DType::I32),
        ]),
        relu: random.below(8) == 0,
        scale_exponent: random.pick(&[0, 0, 0, 0, 0, 1, -1, 20, -130]),
        text: BASE.text, // only for text, which is not swept
    };
    match random.below(12) {
        0 => policy.overflow = Overflow::Error,
        1 => policy.inf = Overflow::Error,
        2 => policy.nan = NanRule::Error,
        3 => policy.int_overflow = IntOverflow::Error,
        4 => policy.nan_to_int = NanToInt::Error,
        5 => policy.negative = Unrepresentable::Error,
        6 => policy.vanishing = Unrepresentable::Error,
        _ => {}
    }
    policy
}

/// Fields that differ from the IEEE policy, as text.
pub fn describe(policy: &CastPolicy) -> String {
    let mut changes = Vec::new();
    macro_rules! field {
        ($($name:ident)*) => {
            $(if policy.$name != BASE.$name {
                changes.push(format!("{}={:?}", stringify!($name), policy.$name));
            })*
        };
    }
    field!(to_float to_int overflow inf nan nan_substitute int_overflow nan_to_int subnormals range negative vanishing via relu
           scale_exponent);
    if changes.is_empty() { "ieee".into() } else { changes.join(" ") }
}
