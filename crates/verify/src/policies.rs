//! Policies to test: every rounding, every other field one at a time, and random combinations.
//!
//! A variant is combined with every rounding where its field has an effect; elsewhere one test shows that it has no
//! effect.

use crate::random::Random;
use truecast_core::policy::*;
use truecast_core::{CastPolicy, DType, Kind, Rounding};

/// Destinations that a variant affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Affects {
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
    affects: Affects,
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

/// Variants that get the longest lists of inputs. Source: `docs/kernels.md §11` row 3.
const MAIN: &[Variant] = &[
    Variant { name: "nonfinite", affects: Affects::Always, policy: BASE },
    Variant { name: "saturate", affects: Affects::Always, policy: SATURATE },
];

/// All other variants.
#[rustfmt::skip]
const OTHERS: &[Variant] = {
    use Affects::*;
    &[
        Variant { name: "finite-saturate", affects: ToFloats, policy: CastPolicy { overflow: Overflow::Saturate, ..BASE } },
        Variant { name: "inf-saturate", affects: ToFloats, policy: CastPolicy { inf: Overflow::Saturate, ..BASE } },
        Variant { name: "overflow-error", affects: ToFloats, policy: CastPolicy { overflow: Overflow::Error, ..BASE } },
        Variant { name: "inf-error", affects: ToFloats, policy: CastPolicy { inf: Overflow::Error, ..BASE } },
        Variant { name: "nan-canonical", affects: ToFloats, policy: CastPolicy { nan: NanRule::Canonical, ..BASE } },
        Variant { name: "nan-error", affects: Always, policy: CastPolicy { nan: NanRule::Error, ..BASE } },
        Variant { name: "nan-max-signed", affects: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::MaxSigned, ..BASE } },
        Variant { name: "nan-max-positive", affects: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::MaxPositive, ..BASE } },
        Variant { name: "nan-code-zero", affects: ToFloats, policy: CastPolicy { nan_substitute: NanSubstitute::CodeZero, ..BASE } },
        Variant { name: "int-saturate", affects: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Saturate, ..BASE } },
        Variant { name: "int-error", affects: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Error, ..BASE } },
        Variant { name: "nan-to-int-saturate", affects: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Saturate, ..BASE } },
        Variant { name: "nan-to-int-error", affects: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Error, ..BASE } },
        Variant { name: "int-indefinite", affects: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::Indefinite, ..BASE } },
        Variant { name: "int-saturate-to-f32", affects: ToIntegers, policy: CastPolicy { int_overflow: IntOverflow::SaturateToF32, ..BASE } },
        Variant { name: "nan-to-int-indefinite", affects: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::Indefinite, ..BASE } },
        Variant { name: "nan-to-int-top-bit", affects: ToIntegers, policy: CastPolicy { nan_to_int: NanToInt::TopBit, ..BASE } },
        Variant { name: "via-f32", affects: Always, policy: CastPolicy { via: Some(DType::F32), ..BASE } },
        Variant { name: "via-f16-saturate", affects: ToFloats, policy: CastPolicy { via: Some(DType::F16), ..SATURATE } },
        Variant { name: "relu", affects: ToFloats, policy: CastPolicy { relu: true, ..BASE } },
        Variant { name: "scaled-up", affects: Always, policy: CastPolicy { scale_exponent: 9, ..BASE } },
        Variant { name: "scaled-down-saturate", affects: ToFloats, policy: CastPolicy { scale_exponent: -7, ..SATURATE } },
        Variant { name: "flush", affects: Always, policy: CastPolicy { subnormals: Subnormals::Flush, ..BASE } },
        Variant { name: "flush-source", affects: Always, policy: CastPolicy { subnormals: Subnormals::FlushSource, ..BASE } },
        Variant { name: "flush-result", affects: Always, policy: CastPolicy { subnormals: Subnormals::FlushResult, ..BASE } },
        Variant { name: "always-nonfinite", affects: ToFloats, policy: CastPolicy { overflow: Overflow::NonfiniteAlways, ..BASE } },
        Variant { name: "range-source", affects: ToFloats, policy: CastPolicy { range: RangeTest::Source, ..BASE } },
        Variant { name: "range-source-saturate", affects: ToFloats, policy: CastPolicy { range: RangeTest::Source, ..SATURATE } },
        Variant { name: "negative-smallest", affects: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Smallest, ..BASE } },
        Variant { name: "negative-magnitude", affects: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Magnitude, ..BASE } },
        Variant { name: "negative-error", affects: ToUnsignedFloats, policy: CastPolicy { negative: Unrepresentable::Error, ..BASE } },
        Variant { name: "vanishing-smallest", affects: ToUnsignedFloats, policy: CastPolicy { vanishing: Unrepresentable::Smallest, ..BASE } },
        Variant { name: "vanishing-error", affects: ToUnsignedFloats, policy: CastPolicy { vanishing: Unrepresentable::Error, ..BASE } },
    ]
};

impl Affects {
    fn includes(self, dst: DType) -> bool {
        match self {
            Affects::Always => true,
            Affects::ToFloats => dst.is_float(),
            Affects::ToIntegers => matches!(dst.kind(), Kind::Int(_)),
            Affects::ToUnsignedFloats => matches!(dst.kind(), Kind::Float(f) if !f.signed),
        }
    }
}

/// All variants.
pub fn variants() -> impl Iterator<Item = &'static Variant> {
    MAIN.iter().chain(OTHERS)
}

/// The policy with the same rounding for floats and integers.
pub fn rounded(policy: CastPolicy, rounding: Rounding) -> CastPolicy {
    CastPolicy { to_float: rounding, to_int: rounding, ..policy }
}

/// The two main variants under each rounding.
pub fn main_for(roundings: &[Rounding]) -> Vec<CastPolicy> {
    MAIN.iter().flat_map(|v| roundings.iter().map(|&r| rounded(v.policy, r))).collect()
}

/// Further policies for a destination: the other variants, and `n_random` random policies.
pub fn others_for(dst: DType, roundings: &[Rounding], n_random: usize, random: &mut Random) -> Vec<CastPolicy> {
    let mut all = Vec::new();
    for variant in OTHERS {
        if variant.affects.includes(dst) {
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
        nan_substitute: random.pick(&{
            use NanSubstitute::*;
            [ZeroFlipped, MaxSigned, MaxPositive, CodeZero]
        }),
        int_overflow: random.pick(&{
            use IntOverflow::*;
            [Wrap, Saturate, Indefinite, SaturateToF32]
        }),
        nan_to_int: random.pick(&[NanToInt::Zero, NanToInt::Saturate, NanToInt::Indefinite, NanToInt::TopBit]),
        subnormals: random.pick(&Subnormals::ALL),
        range: random.pick(&[RangeTest::Rounded, RangeTest::Source]),
        negative: random.pick(&[Unrepresentable::Smallest, Unrepresentable::Nan, Unrepresentable::Magnitude]),
        vanishing: random.pick(&[Unrepresentable::Smallest, Unrepresentable::Nan]),
        via: (random.below(2) == 0).then(|| random.pick(&[DType::F32, DType::F16, DType::Bf16, DType::I32])),
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
    // The pattern has every field, so that a new field cannot be left out.
    macro_rules! fields {
        ($($name:ident)*) => {
            let CastPolicy { $($name),* } = policy;
            $(if *$name != BASE.$name {
                changes.push(format!("{}={:?}", stringify!($name), $name));
            })*
        };
    }
    fields!(to_float to_int overflow inf nan nan_substitute int_overflow nan_to_int subnormals range negative vanishing via relu
           scale_exponent text);
    if changes.is_empty() { "ieee".into() } else { changes.join(" ") }
}
