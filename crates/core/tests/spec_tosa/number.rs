//! Values as binary64, which holds all values of these tests exactly.

use truecast_core::Exact;

pub fn number(exact: Exact) -> f64 {
    let (neg, magnitude) = match exact {
        Exact::Nan { .. } => return f64::NAN,
        Exact::Inf { neg } => (neg, f64::INFINITY),
        Exact::Finite { neg, sig, exp, .. } => (neg, sig as f64 * 2f64.powi(exp)),
    };
    if neg { -magnitude } else { magnitude }
}
