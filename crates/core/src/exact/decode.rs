//! Conversion of a code to its value (IEEE 754-2019 §3.3, §3.4).

use super::value::Exact;
use crate::dtype::{DType, Kind};
use crate::format::{F32, FloatFormat, Specials};
use crate::policy::CastPolicy;

/// Returns the exact value of a code.
///
/// # Panics
/// If `dtype` is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{exact::decode, DType, Exact};
/// assert_eq!(decode(DType::F8E8M0, 0), Exact::Finite { neg: false, sig: 1, exp: -127, sticky: false });
/// assert_eq!(decode(DType::F8E4M3Fnuz, 0x80), Exact::Nan { neg: true, payload: None });
/// ```
#[inline(always)]
#[must_use]
pub fn decode(dtype: DType, code: u64) -> Exact {
    match dtype.kind() {
        Kind::Bool => integer((code != 0) as i128, 0),
        Kind::Int(f) if f.bits == 1 && f.signed => integer(-((code != 0) as i128), 0),
        Kind::Int(f) => integer(f.value(code), 0),
        Kind::Fixed(f) => integer(f.int.value(code), -(f.frac_bits as i32)),
        Kind::Book(book) => decode_float(&F32, book.values[(code & 15) as usize] as u64),
        Kind::Float(f) => decode_float(&f, code),
        Kind::Complex(_) | Kind::String => panic!("{dtype} has no numeric value"),
    }
}

const fn integer(value: i128, exp: i32) -> Exact {
    Exact::Finite { neg: value < 0, sig: value.unsigned_abs() as u64, exp, sticky: false }
}

/// Returns the exact value of a code in any [`FloatFormat`].
///
/// A code has a sign bit `s`, an exponent field `e` and a fraction `f` of `t` bits. With `q = emin - t`:
///
/// ```text
///   s eeee ffff     with zero, e = 0      f * 2^q                       zero and the subnormals
///                   with zero, e > 0      (2^t + f) * 2^(q + e - 1)
///                   without zero          (2^t + f) * 2^(q + e)
/// ```
///
/// Source: IEEE 754-2019 §3.3 (values), §3.4 (fields), §6.2.1 (the fraction of a NaN).
///
/// Shapes: `code` is right-aligned; bits above the format's width are ignored. The format must pass
/// [`FloatFormat::check`].
///
/// # Examples
/// ```
/// use truecast_core::{Exact, FloatFormat, exact::decode_float};
/// let seven_bits = FloatFormat::ieee(3, 3)?;
/// assert_eq!(decode_float(&seven_bits, 0b0_011_100), Exact::Finite { neg: false, sig: 12, exp: -3, sticky: false }); // 1.5
/// assert_eq!(decode_float(&seven_bits, 0b1_111_000), Exact::Inf { neg: true });
/// # Ok::<(), truecast_core::format::FormatError>(())
/// ```
#[inline(always)]
#[must_use]
pub fn decode_float(f: &FloatFormat, code: u64) -> Exact {
    let neg = code & f.sign_bit() != 0;
    let magnitude = code & f.magnitude_mask();
    let fraction = magnitude & ((1 << f.man_bits) - 1);
    if neg && magnitude == 0 && matches!(f.specials, Specials::Fnuz | Specials::Extended) {
        return Exact::Nan { neg: true, payload: None };
    }
    if magnitude > f.max_code() {
        return match f.specials {
            _ if f.inf_code() == Some(magnitude) => Exact::Inf { neg },
            Specials::Ieee => Exact::Nan { neg, payload: Some(fraction << (64 - f.man_bits)) },
            _ => Exact::Nan { neg, payload: None },
        };
    }
    let field = (magnitude >> f.man_bits) as i32;
    // Exponent field of the lowest normal binade.
    let lowest = f.has_zero as i32;
    let (sig, binade) = if field < lowest { (fraction, 0) } else { (fraction | 1 << f.man_bits, field - lowest) };
    Exact::Finite { neg, sig, exp: f.quantum() + binade, sticky: false }
}

#[inline(always)]
pub(crate) fn flush_source(value: Exact, src: DType, policy: &CastPolicy) -> Exact {
    match (value, src.kind(), policy.subnormals.flushes_source()) {
        (Exact::Finite { neg, sig, exp, .. }, Kind::Float(f), true) if sig < f.min_normal_code() => {
            Exact::Finite { neg, sig: 0, exp, sticky: false }
        }
        _ => value,
    }
}
