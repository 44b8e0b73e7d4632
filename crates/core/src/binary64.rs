//! Binary64 arithmetic for real-number scales and for bounds that a standard states in binary64. Casts do not use it.
//!
//! Arguments are far from the subnormal range of binary64.

use crate::exact::Exact;

pub(crate) const fn pow2(exponent: i32) -> f64 {
    debug_assert!(-1022 <= exponent && exponent <= 1023);
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Requires `|value| < 2^62`.
pub(crate) fn ceil(value: f64) -> i64 {
    let cut = value as i64;
    cut + i64::from((cut as f64) < value)
}

/// Requires `|value| < 2^62`.
pub(crate) fn floor(value: f64) -> i64 {
    let cut = value as i64;
    cut - i64::from(cut as f64 > value)
}

/// Ties away from zero; the result is clamped to 64 bits.
pub(crate) fn round(value: f64) -> i64 {
    let cut = value as i64;
    let rest = value - cut as f64; // exact
    cut.saturating_add(i64::from(rest >= 0.5)).saturating_sub(i64::from(rest <= -0.5))
}

/// `floor(log2 |value|)`, for a normal `value`.
pub(crate) fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Requires at most 53 significant bits.
pub(crate) fn value(exact: Exact) -> f64 {
    let (neg, magnitude) = match exact {
        Exact::Nan { .. } => return f64::NAN,
        Exact::Inf { neg } => (neg, f64::INFINITY),
        Exact::Finite { neg, sig: 0, .. } => (neg, 0.0),
        Exact::Finite { neg, sig, exp, .. } => (neg, sig as f64 * pow2(exp)),
    };
    if neg { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beside_a_value() {
        let rows = [
            (0.0, 0, 0),
            (-0.0, 0, 0),
            (0.25, 0, 1),
            (-0.25, -1, 0),
            (2.0, 2, 2),
            (-2.5, -3, -2),
            (1e9 + 0.5, 1_000_000_000, 1_000_000_001),
        ];
        for (value, below, above) in rows {
            assert_eq!((floor(value), ceil(value)), (below, above), "{value}");
        }
        let rows = [(0.5, 1), (-0.5, -1), (0.5f64.next_down(), 0), (2.5, 3), (-2.25, -2), (f64::MAX, i64::MAX)];
        for (value, nearest) in rows {
            assert_eq!(round(value), nearest, "{value}");
        }
    }
}
