//! The binary64 arithmetic that the text and Arm's verifier prescribe for bounds. Never for results.
//!
//! Everything that is put in is exact, and far from binary64's own subnormals: values of 32 bits or fewer, and such values
//! times a block scale.

use crate::exact::Exact;

/// `2^exponent`, for an exponent of a normal number.
pub(super) const fn pow2(exponent: i32) -> f64 {
    debug_assert!(-1022 <= exponent && exponent <= 1023);
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `floor(log2 |value|)` of a normal number.
pub(super) fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The value, which has at most 53 significant bits.
pub(super) fn value(exact: Exact) -> f64 {
    let (neg, magnitude) = match exact {
        Exact::Nan { .. } => return f64::NAN,
        Exact::Inf { neg } => (neg, f64::INFINITY),
        Exact::Finite { neg, sig: 0, .. } => (neg, 0.0),
        Exact::Finite { neg, sig, exp, .. } => (neg, sig as f64 * pow2(exp)),
    };
    if neg { -magnitude } else { magnitude }
}
