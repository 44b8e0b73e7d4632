//! Types and policies of the engine, converted to those of the oracle by name.

use crate::oracle;
use truecast_core::policy::*;
use truecast_core::{CastPolicy, DType, Rounding};

/// All types with numeric values: neither text nor complex.
pub fn numeric() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_numeric()).collect()
}

/// The oracle's type with the same name.
///
/// # Panics
/// If the oracle lacks the type.
pub fn oracle_type(dtype: DType) -> oracle::Type {
    oracle::Type::from_name(dtype.name()).unwrap_or_else(|| panic!("the oracle has no type {dtype}"))
}

/// The oracle's variant with the same name.
macro_rules! same {
    ($value:expr, $from:ident => $to:ident: $($name:ident)*) => {
        match $value {
            $($from::$name => oracle::$to::$name,)*
        }
    };
}

/// The oracle's rounding with the same name.
pub const fn oracle_rounding(rounding: Rounding) -> oracle::Rounding {
    same!(rounding, Rounding => Rounding: NearestEven NearestAway NearestUp TowardZero AwayFromZero Up Down ToOdd)
}

/// The same policy for the oracle.
///
/// # Panics
/// If `vanishing` is `Magnitude`, which the oracle lacks.
pub fn oracle_policy(policy: &CastPolicy) -> oracle::Policy {
    let range = |rule| same!(rule, Overflow => OnRange: Nonfinite NonfiniteAlways Saturate Error);
    oracle::Policy {
        to_float: oracle_rounding(policy.to_float),
        to_int: oracle_rounding(policy.to_int),
        overflow: range(policy.overflow),
        inf: range(policy.inf),
        nan: same!(policy.nan, NanRule => Nan: Keep Canonical Error),
        nan_substitute: same!(
            policy.nan_substitute, NanSubstitute => NanSubstitute: ZeroFlipped MaxSigned MaxPositive CodeZero),
        int_overflow: same!(policy.int_overflow, IntOverflow => IntOverflow: Wrap Saturate Indefinite SaturateToF32 Error),
        nan_to_int: same!(policy.nan_to_int, NanToInt => NanToInt: Zero Saturate Indefinite TopBit Error),
        subnormals: same!(policy.subnormals, Subnormals => Subnormals: Keep Flush FlushSource FlushResult),
        range: same!(policy.range, RangeTest => Range: Rounded Source),
        negative: same!(policy.negative, Unrepresentable => Negative: Smallest Nan Magnitude Error),
        vanishing: match policy.vanishing {
            Unrepresentable::Smallest => oracle::Vanishing::Smallest,
            Unrepresentable::Nan => oracle::Vanishing::Nan,
            Unrepresentable::Magnitude => panic!("what vanishes has no magnitude to convert"),
            Unrepresentable::Error => oracle::Vanishing::Error,
        },
        via: policy.via.map(oracle_type),
        relu: policy.relu,
        scale_exponent: policy.scale_exponent.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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
