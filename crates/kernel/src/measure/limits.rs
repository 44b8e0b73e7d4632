//! Limits that the counts need. They are derived once per conversion, from the types, the policy and the undefined
//! conditions.

use crate::numbers::overflow_from;
use truecast_core::exact::{decode, encode};
use truecast_core::policy::{Condition, IntOverflow, NanRule, Overflow, Subnormals};
use truecast_core::{CastPolicy, CastSpec, DType, Exact, Kind, Outcome, cast_one};

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub range: Range,
    /// Results below this magnitude are zero or subnormal.
    pub min_normal: f64,
    pub has_subnormals: bool,
    /// Integer to integer without a scale, where every inexact result is out of range.
    pub between_integers: bool,
    /// Integer destination under a wrapping policy.
    pub wraps: bool,
    pub saturates: bool,
    /// Whether a zero may become another value.
    pub changes_zeros: bool,
    pub open: UndefinedConditions,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Scaled source magnitudes from which the policy overflows, for positive and for negative values. NaN if no
    /// magnitude overflows.
    pub over: [f64; 2],
    pub ends: [f64; 2],
}

/// Values that the specification leaves undefined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UndefinedConditions {
    pub nan: bool,
    pub infinite: bool,
    pub negative: bool,
    pub negative_zero: bool,
    pub zero: bool,
    /// Bound below which positive values are undefined.
    pub below: f64,
    pub overflow: bool,
    pub fraction: bool,
    /// Magnitudes strictly between these two are undefined.
    pub between: [f64; 2],
    /// Whether a condition on finite values in the destination's range exists.
    pub ordinary: bool,
    pub any: bool,
}

pub(crate) fn as_f64(dtype: DType, code: u64) -> f64 {
    match decode(dtype, code) {
        Exact::Finite { neg, sig, exp, .. } => {
            // Exact: other types have at most 53 significant bits, and the widest integers occur only as bounds.
            let magnitude = sig as f64 * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2);
            if neg { -magnitude } else { magnitude }
        }
        Exact::Inf { neg } => {
            if neg {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Exact::Nan { .. } => f64::NAN,
    }
}

impl Limits {
    pub fn of_type(dst: DType) -> Self {
        let (ends, min_normal, has_subnormals) = match dst.kind() {
            Kind::Float(f) => {
                let max = as_f64(dst, f.max_code());
                let normal = if f.has_zero { as_f64(dst, f.min_normal_code()) } else { 0.0 };
                ([max, if f.signed { -max } else { f64::NEG_INFINITY }], normal, f.has_zero)
            }
            Kind::Int(f) => ([f.max() as f64, f.min() as f64], f64::MIN_POSITIVE, false),
            Kind::Fixed(f) => {
                let unit = 2f64.powi(-(f.frac_bits as i32));
                ([f.int.max() as f64 * unit, f.int.min() as f64 * unit], f64::MIN_POSITIVE, false)
            }
            Kind::Book(book) => {
                let last = book.values.len() as u64 - 1;
                ([as_f64(dst, last), as_f64(dst, 0)], f64::MIN_POSITIVE, false)
            }
            // Nothing is out of range of bool.
            _ => ([f64::INFINITY, f64::NEG_INFINITY], f64::MIN_POSITIVE, false),
        };
        Limits {
            range: Range { over: [f64::NAN; 2], ends }, // NaN, which nothing reaches
            min_normal,
            has_subnormals,
            between_integers: false,
            wraps: false,
            saturates: false,
            changes_zeros: true,
            open: UndefinedConditions::default(),
        }
    }

    pub fn of_cast(spec: &CastSpec) -> Self {
        let CastSpec { src, dst, policy, undefined, .. } = spec;
        let integer = |t: &DType| matches!(t.kind(), Kind::Int(_));
        let leaves = |condition| undefined.iter().any(|u| u.condition == condition);
        let open = UndefinedConditions {
            nan: leaves(Condition::Nan) && !has_nan(*dst),
            infinite: leaves(Condition::Infinite),
            negative: leaves(Condition::Negative) && is_unsigned_float(*dst),
            negative_zero: leaves(Condition::NegativeZero) && is_unsigned_float(*dst),
            zero: leaves(Condition::Zero) && is_zeroless(*dst),
            below: if leaves(Condition::Underflow) && is_zeroless(*dst) { as_f64(*dst, 0) } else { 0.0 },
            overflow: leaves(Condition::Overflow),
            fraction: leaves(Condition::Fraction),
            between: undefined.iter().find_map(|u| between(u.condition)).unwrap_or_default(),
            ..UndefinedConditions::default()
        };
        let ordinary = open.negative || open.negative_zero || open.zero || open.below > 0.0;
        let ordinary = ordinary || open.fraction || open.between[0] < open.between[1];
        let any = ordinary || open.nan || open.infinite || open.overflow;
        let ends = match policy.int_overflow {
            IntOverflow::SaturateToF32 if integer(dst) => [false, true].map(|neg| {
                as_f64(*dst, encode(*dst, policy, Exact::Inf { neg }).code.expect("this policy refuses nothing"))
            }),
            _ => Limits::of_type(*dst).range.ends,
        };
        Limits {
            range: Range { over: [false, true].map(|neg| over(spec, neg)), ends },
            between_integers: integer(src) && integer(dst) && policy.scale_exponent == 0,
            wraps: integer(dst) && policy.int_overflow == IntOverflow::Wrap,
            saturates: integer(dst)
                && matches!(policy.int_overflow, IntOverflow::Saturate | IntOverflow::SaturateToF32),
            changes_zeros: is_zeroless(*dst) || policy.relu,
            open: UndefinedConditions { ordinary, any, ..open },
            ..Limits::of_type(*dst)
        }
    }
}

fn between(condition: Condition) -> Option<[f64; 2]> {
    match condition {
        Condition::Between { above, below } => Some([above, below].map(f64::from_bits)),
        _ => None,
    }
}

/// Magnitude from which scaled sources overflow. NaN if no magnitude overflows. A policy that rounds twice is evaluated
/// by the definition.
fn over(spec: &CastSpec, neg: bool) -> f64 {
    let CastSpec { dst, policy, .. } = spec;
    if policy.relu && neg {
        return f64::NAN;
    }
    if policy.via.is_none() {
        return overflow_from(*dst, policy, neg);
    }
    let strict = CastPolicy {
        overflow: Overflow::Error,
        inf: Overflow::Error,
        int_overflow: IntOverflow::Error,
        scale_exponent: 0,
        ..*policy
    };
    let strict = CastSpec { src: DType::F64, policy: strict, ..*spec };
    let sign = (neg as u64) << 63;
    let is_over = |bits: u64| match cast_one(&strict, bits | sign) {
        Outcome::Refused { condition } => matches!(condition, Condition::Overflow | Condition::Infinite),
        _ => false,
    };
    let infinity = f64::INFINITY.to_bits();
    if !is_over(infinity) {
        return f64::NAN;
    }
    let (mut below, mut over) = (0, infinity);
    while below < over {
        let middle = below + (over - below) / 2;
        (below, over) = if is_over(middle) { (below, middle) } else { (middle + 1, over) };
    }
    f64::from_bits(over)
}

/// Whether the conversion keeps each source value: NaN as NaN, each infinity and zero with its sign. `false` if not
/// known.
pub(super) fn keeps_values(spec: &CastSpec) -> bool {
    let CastSpec { src, dst, policy, .. } = spec;
    if policy.relu || policy.via.is_some() || policy.scale_exponent != 0 {
        return false;
    }
    match (src.kind(), dst.kind()) {
        (Kind::Float(s), Kind::Float(d)) => {
            s.embeds_in(&d)
                && (d.has_zero || !s.has_zero)
                && (d.has_negative_zero() || !s.has_negative_zero())
                && (s.inf_code().is_none() || (d.inf_code().is_some() && policy.inf == Overflow::Nonfinite))
                && (s.nan_code().is_none() || (d.nan_code().is_some() && policy.nan != NanRule::Error))
                && policy.subnormals == Subnormals::Keep
        }
        (Kind::Int(s), Kind::Float(d)) => {
            s.bits as u32 <= d.precision() && d.emax() > s.bits as i32 && d.signed && d.has_zero
        }
        (Kind::Int(s), Kind::Int(d)) => d.min() <= s.min() && s.max() <= d.max(),
        _ => false,
    }
}

fn has_nan(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if f.nan_code().is_some()) || dtype == DType::Bool
}

fn is_unsigned_float(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if !f.signed)
}

fn is_zeroless(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if !f.has_zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(spec: &CastSpec, code: u64) -> bool {
        let Outcome::Defined(result) = cast_one(spec, code) else { return false };
        match (decode(spec.src, code), decode(spec.dst, result)) {
            (Exact::Nan { .. }, Exact::Nan { .. }) => true,
            (Exact::Inf { neg: x }, Exact::Inf { neg: y }) => x == y,
            (Exact::Finite { neg: x, .. }, Exact::Finite { neg: y, .. }) => {
                x == y && as_f64(spec.src, code) == as_f64(spec.dst, result)
            }
            _ => false,
        }
    }

    #[test]
    fn kept_values_are_kept() {
        let plain = CastPolicy::IEEE;
        let policies = [
            plain,
            CastPolicy { inf: Overflow::Saturate, ..plain },
            CastPolicy { overflow: Overflow::Saturate, nan: NanRule::Canonical, ..plain },
            CastPolicy { subnormals: Subnormals::Flush, ..plain },
        ];
        let mut n_kept = 0;
        for src in DType::ALL.into_iter().filter(|src| src.is_numeric() && src.code_bits() <= 16) {
            for dst in DType::ALL.into_iter().filter(|dst| dst.is_numeric()) {
                for policy in policies {
                    let spec = CastSpec { dst, policy, ..CastSpec::copy(src) };
                    if keeps_values(&spec) {
                        n_kept += 1;
                        let changed = (0..1 << src.code_bits()).find(|&code| !keeps(&spec, code));
                        assert_eq!(changed, None, "{src} to {dst}, {policy:?}");
                    }
                }
            }
        }
        assert!(n_kept > 300, "few pairs are known to keep values: {n_kept}");
        let widening = CastSpec { dst: DType::F32, policy: plain, ..CastSpec::copy(DType::F8E4M3Fn) };
        assert!(keeps_values(&widening));
        assert!(!keeps_values(&CastSpec { src: DType::F32, dst: DType::F8E4M3Fn, ..widening }));
    }
}
