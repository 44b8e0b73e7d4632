//! Product, quotient and sum of numbers with at most 48 significant bits, and rounding to a format.
//!
//! Results are exact, or sticky such that one rounding to at most 53 bits is correct. NaN has no sign and no payload.
//! The caller adds the sign (§3.6).

use crate::exact::{Exact, decode_float, encode_float};
use crate::format::FloatFormat;
use crate::policy::CastPolicy;

pub(super) const NAN: Exact = Exact::Nan { neg: false, payload: None };

pub(super) const fn integer(value: i64) -> Exact {
    Exact::Finite { neg: value < 0, sig: value.unsigned_abs(), exp: 0, sticky: false }
}

/// `RN` to a format: ties to even, subnormals kept, overflow to Inf.
pub(super) fn rounded(f: &FloatFormat, value: Exact) -> Exact {
    match encode_float(f, &CastPolicy::IEEE, value).code {
        Some(code) => decode_float(f, code),
        None => NAN,
    }
}

pub(super) fn product(a: Exact, b: Exact) -> Exact {
    match (a, b) {
        (Exact::Nan { .. }, _) | (_, Exact::Nan { .. }) => NAN,
        (Exact::Inf { .. }, Exact::Finite { sig: 0, .. }) | (Exact::Finite { sig: 0, .. }, Exact::Inf { .. }) => NAN,
        (Exact::Finite { neg, sig, exp, .. }, Exact::Finite { neg: n, sig: s, exp: e, .. }) => {
            wide(neg != n, u128::from(sig) * u128::from(s), exp + e, false)
        }
        _ => Exact::Inf { neg: is_neg(a) != is_neg(b) },
    }
}

pub(super) fn quotient(a: Exact, b: Exact) -> Exact {
    let neg = is_neg(a) != is_neg(b);
    match (a, b) {
        (Exact::Nan { .. }, _) | (_, Exact::Nan { .. }) | (Exact::Inf { .. }, Exact::Inf { .. }) => NAN,
        (Exact::Finite { sig: 0, .. }, Exact::Finite { sig: 0, .. }) => NAN,
        (Exact::Inf { .. }, _) | (_, Exact::Finite { sig: 0, .. }) => Exact::Inf { neg },
        (_, Exact::Inf { .. }) => Exact::Finite { neg, sig: 0, exp: 0, sticky: false },
        (Exact::Finite { sig, exp, .. }, Exact::Finite { sig: s, exp: e, .. }) => {
            let shift = u128::from(sig).leading_zeros().min(127);
            let (n, d) = (u128::from(sig) << shift, u128::from(s));
            wide(neg, n / d, exp - e - shift as i32, n % d != 0)
        }
    }
}

pub(super) fn sum(a: Exact, b: Exact) -> Exact {
    /// Beyond this distance between the last bits, only the sign of the smaller number matters.
    const FAR: i32 = 70;
    match (a, b) {
        (Exact::Nan { .. }, _) | (_, Exact::Nan { .. }) => NAN,
        (Exact::Inf { neg }, Exact::Inf { neg: n }) => {
            if neg == n {
                a
            } else {
                NAN
            }
        }
        (Exact::Inf { .. }, _) => a,
        (_, Exact::Inf { .. }) => b,
        (Exact::Finite { sig: 0, neg, .. }, Exact::Finite { sig: 0, neg: n, .. }) => {
            Exact::Finite { neg: neg && n, sig: 0, exp: 0, sticky: false }
        }
        (Exact::Finite { sig: 0, .. }, _) => b,
        (_, Exact::Finite { sig: 0, .. }) => a,
        (Exact::Finite { neg, sig, exp, .. }, Exact::Finite { neg: n, sig: s, exp: e, .. }) => {
            if exp < e {
                return sum(b, a);
            }
            let signed = |neg: bool, n: i128| if neg { -n } else { n };
            let (high, low, grid) = if exp - e > FAR {
                (signed(neg, i128::from(sig) << FAR), signed(n, 1), exp - FAR)
            } else {
                (signed(neg, i128::from(sig) << (exp - e)), signed(n, s.into()), e)
            };
            let total = high + low;
            wide(total < 0, total.unsigned_abs(), grid, false)
        }
    }
}

pub(super) fn negated(a: Exact) -> Exact {
    match a {
        Exact::Nan { .. } => a,
        Exact::Inf { neg } => Exact::Inf { neg: !neg },
        Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg: !neg, sig, exp, sticky },
    }
}

pub(super) fn magnitude(a: Exact) -> Exact {
    if is_neg(a) { negated(a) } else { a }
}

pub(super) const fn is_neg(a: Exact) -> bool {
    match a {
        Exact::Nan { neg, .. } | Exact::Inf { neg } | Exact::Finite { neg, .. } => neg,
    }
}

/// Truncates a 128-bit significand to 64 bits; dropped bits are sticky.
fn wide(neg: bool, sig: u128, exp: i32, more: bool) -> Exact {
    let beyond = 64u32.saturating_sub(sig.leading_zeros());
    let lost = sig & ((1 << beyond) - 1) != 0;
    Exact::Finite { neg, sig: (sig >> beyond) as u64, exp: exp + beyond as i32, sticky: lost || more }
}
