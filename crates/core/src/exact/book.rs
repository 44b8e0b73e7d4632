//! Conversion of a value to fixed point and to a code book: types without infinities and NaN.

use super::decode::decode_float;
use super::int::{SplitMagnitude, int_bound};
use super::outcome::Encoded;
use super::value::Exact;
use crate::format::{CodeBook, F32, FixedFormat};
use crate::policy::{CastPolicy, Condition, NanSubstitute, Overflow};
use crate::round::Rounding;
use core::cmp::Ordering;

/// Rounds, then clamps to the range.
pub(super) fn encode_fixed(f: FixedFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { neg, .. } => {
            let code = match policy.nan_substitute {
                NanSubstitute::ZeroFlipped | NanSubstitute::CodeZero => 0,
                NanSubstitute::MaxSigned => int_bound(f.int, neg),
                NanSubstitute::MaxPositive => int_bound(f.int, false),
            };
            Encoded::at(Condition::Nan, Some(code))
        }
        Exact::Inf { neg } => end(policy.inf, Condition::Infinite, int_bound(f.int, neg)),
        Exact::Finite { neg, sig, exp, sticky } => {
            let steps = SplitMagnitude::new(sig, exp + f.frac_bits as i32, sticky).round(neg, policy.to_float);
            let limit = if neg { f.int.min().unsigned_abs() } else { f.int.max() as u128 };
            match steps.magnitude {
                Some(m) if m <= limit => Encoded::plain(f.int.code(if neg { -(m as i128) } else { m as i128 })),
                _ => end(policy.overflow, Condition::Overflow, int_bound(f.int, neg)),
            }
        }
    }
}

/// Code at the end of the range; none under [`Overflow::Error`].
fn end(rule: Overflow, condition: Condition, code: u64) -> Encoded {
    Encoded::at(condition, if rule == Overflow::Error { None } else { Some(code) })
}

/// Code of a value. Under a nearest rounding, it is the number of thresholds strictly below the value. Under any other
/// rounding, it is one of the two neighboring codes.
pub(super) fn encode_book(book: &CodeBook, policy: &CastPolicy, value: Exact) -> Encoded {
    let last = book.values.len() as u64 - 1;
    let neg = match value {
        Exact::Nan { neg, .. } => {
            let code = match policy.nan_substitute {
                NanSubstitute::ZeroFlipped => book.zero_code,
                NanSubstitute::CodeZero => 0,
                NanSubstitute::MaxSigned if neg => 0,
                NanSubstitute::MaxSigned | NanSubstitute::MaxPositive => last,
            };
            return Encoded::at(Condition::Nan, Some(code));
        }
        Exact::Inf { neg } => return end(policy.inf, Condition::Infinite, if neg { 0 } else { last }),
        Exact::Finite { neg, .. } => neg,
    };
    let against = |bits: &u32| value.cmp_value(decode_float(&F32, u64::from(*bits)));
    let exceeded = |bits: &[u32]| bits.iter().filter(|b| against(b) == Ordering::Greater).count() as u64;
    let below = exceeded(&book.values); // number of values strictly below the source
    if below > last {
        return end(policy.overflow, Condition::Overflow, last);
    }
    if against(&book.values[below as usize]) == Ordering::Equal {
        return Encoded::plain(below);
    }
    if below == 0 {
        return end(policy.overflow, Condition::Overflow, 0);
    }
    let (down, up) = (below - 1, below);
    let (toward_zero, away) = if neg { (up, down) } else { (down, up) };
    Encoded::plain(match policy.to_float {
        Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp => exceeded(&book.thresholds),
        Rounding::Down => down,
        Rounding::Up => up,
        Rounding::TowardZero => toward_zero,
        Rounding::AwayFromZero => away,
        Rounding::ToOdd => down | 1, // of two neighboring codes, the odd one
    })
}
