//! The one place that knows both vocabularies: the engine's types and policies in the oracle's words.
//!
//! Types are matched by name, choices one by one. No behaviour lives here.

use crate::oracle;
use truecast_core::policy::*;
use truecast_core::{CastPolicy, DType, Rounding};

/// Every type that has a value: not text, not complex.
pub fn numeric() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_numeric()).collect()
}

/// The oracle's type of the same name.
///
/// # Panics
/// If the oracle lacks it: every numeric type owes one.
pub fn oracle_type(dtype: DType) -> oracle::Type {
    oracle::Type::from_name(dtype.name()).unwrap_or_else(|| panic!("the oracle has no type {dtype}"))
}

/// The oracle's rounding of the same meaning.
pub const fn oracle_rounding(rounding: Rounding) -> oracle::Rounding {
    match rounding {
        Rounding::NearestEven => oracle::Rounding::NearestEven,
        Rounding::NearestAway => oracle::Rounding::NearestAway,
        Rounding::NearestUp => oracle::Rounding::NearestUp,
        Rounding::TowardZero => oracle::Rounding::TowardZero,
        Rounding::AwayFromZero => oracle::Rounding::AwayFromZero,
        Rounding::Up => oracle::Rounding::Up,
        Rounding::Down => oracle::Rounding::Down,
        Rounding::ToOdd => oracle::Rounding::ToOdd,
    }
}

/// The same policy for the oracle.
///
/// # Panics
/// If `vanishing` asks for a magnitude, which nothing that vanishes has.
pub fn oracle_policy(policy: &CastPolicy) -> oracle::Policy {
    let range = |rule: Overflow| match rule {
        Overflow::Nonfinite => oracle::OnRange::Nonfinite,
        Overflow::NonfiniteAlways => oracle::OnRange::NonfiniteAlways,
        Overflow::Saturate => oracle::OnRange::Saturate,
        Overflow::Error => oracle::OnRange::Error,
    };
    oracle::Policy {
        to_float: oracle_rounding(policy.to_float),
        to_int: oracle_rounding(policy.to_int),
        overflow: range(policy.overflow),
        inf: range(policy.inf),
        nan: match policy.nan {
            NanRule::Keep => oracle::Nan::Keep,
            NanRule::Canonical => oracle::Nan::Canonical,
            NanRule::Error => oracle::Nan::Error,
        },
        nan_substitute: match policy.nan_substitute {
            NanSubstitute::ZeroFlipped => oracle::NanSubstitute::ZeroFlipped,
            NanSubstitute::MaxSigned => oracle::NanSubstitute::MaxSigned,
            NanSubstitute::MaxPositive => oracle::NanSubstitute::MaxPositive,
            NanSubstitute::CodeZero => oracle::NanSubstitute::CodeZero,
        },
        int_overflow: match policy.int_overflow {
            IntOverflow::Wrap => oracle::IntOverflow::Wrap,
            IntOverflow::Saturate => oracle::IntOverflow::Saturate,
            IntOverflow::Error => oracle::IntOverflow::Error,
        },
        nan_to_int: match policy.nan_to_int {
            NanToInt::Zero => oracle::NanToInt::Zero,
            NanToInt::Saturate => oracle::NanToInt::Saturate,
            NanToInt::Error => oracle::NanToInt::Error,
        },
        subnormals: match policy.subnormals {
            Subnormals::Keep => oracle::Subnormals::Keep,
            Subnormals::Flush => oracle::Subnormals::Flush,
            Subnormals::FlushSource => oracle::Subnormals::FlushSource,
            Subnormals::FlushResult => oracle::Subnormals::FlushResult,
        },
        range: match policy.range {
            RangeTest::Rounded => oracle::Range::Rounded,
            RangeTest::Source => oracle::Range::Source,
        },
        negative: match policy.negative {
            Unrepresentable::Smallest => oracle::Negative::Smallest,
            Unrepresentable::Nan => oracle::Negative::Nan,
            Unrepresentable::Magnitude => oracle::Negative::Magnitude,
            Unrepresentable::Error => oracle::Negative::Error,
        },
        vanishing: match policy.vanishing {
            Unrepresentable::Smallest => oracle::Vanishing::Smallest,
            Unrepresentable::Nan => oracle::Vanishing::Nan,
            Unrepresentable::Magnitude => panic!("what vanishes has no magnitude to convert"),
            Unrepresentable::Error => oracle::Vanishing::Error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Each numeric type has one of its own in the oracle, and no choice of the oracle is out of reach.
    #[test]
    fn one_to_one() {
        let types: HashSet<oracle::Type> = numeric().into_iter().map(oracle_type).collect();
        assert_eq!(types.len(), oracle::Type::ALL.len());
        assert_eq!(numeric().len(), types.len());
        let roundings: HashSet<oracle::Rounding> = Rounding::ALL.into_iter().map(oracle_rounding).collect();
        assert_eq!(roundings.len(), oracle::Rounding::ALL.len());
        assert_eq!(oracle_policy(&CastPolicy::IEEE), oracle::Policy::default());
        for rounding in Rounding::ALL {
            assert_eq!(format!("{rounding:?}"), format!("{:?}", oracle_rounding(rounding)));
        }
    }
}
