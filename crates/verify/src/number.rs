//! Exact finite values as real numbers: order, and the difference rounded once.

use std::cmp::Ordering;
use truecast_core::exact::decode;
use truecast_core::{DType, Exact};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Nan,
    /// Infinity.
    Inf {
        /// True for negative infinity.
        neg: bool,
    },
    Finite(Number),
}

/// Real number of at most 64 significant bits. Comparisons ignore the sign of zero.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    neg: bool,
    /// floor(log2(magnitude)); 0 for zero.
    top: i32,
    /// Significand with the highest bit set; 0 for zero.
    sig: u64,
}

impl Value {
    /// Returns the value of a storage element.
    pub fn decode(dtype: DType, element: u64) -> Value {
        match decode(dtype, dtype.code_of_storage(element)) {
            Exact::Nan { .. } => Value::Nan,
            Exact::Inf { neg } => Value::Inf { neg },
            Exact::Finite { neg, sig, exp, .. } => Value::Finite(Number::new(neg, sig, exp)),
        }
    }

    /// `None` for NaN and infinities.
    pub fn number(self) -> Option<Number> {
        match self {
            Value::Finite(number) => Some(number),
            _ => None,
        }
    }

    /// True if the sign is negative; `None` for NaN.
    pub fn is_negative(self) -> Option<bool> {
        match self {
            Value::Nan => None,
            Value::Inf { neg } => Some(neg),
            Value::Finite(number) => Some(number.neg),
        }
    }
}

impl Number {
    /// The number `(-1)^neg * sig * 2^exp`.
    pub fn new(neg: bool, sig: u64, exp: i32) -> Number {
        if sig == 0 {
            return Number { neg, top: 0, sig };
        }
        let zeros = sig.leading_zeros();
        Number { neg, top: exp + 63 - zeros as i32, sig: sig << zeros }
    }

    /// Value of a finite f64; `None` for other values.
    pub fn from_f64(value: f64) -> Option<Number> {
        Value::decode(DType::F64, value.to_bits()).number()
    }

    /// True for +0 and -0.
    pub fn is_zero(self) -> bool {
        self.sig == 0
    }

    /// True if the sign bit is set, also of a zero.
    pub fn is_negative(self) -> bool {
        self.neg
    }

    /// True for an integer.
    pub fn is_integer(self) -> bool {
        self.sig == 0 || self.top - 63 + self.sig.trailing_zeros() as i32 >= 0
    }

    /// Nearest f64, ties to even; exact except for 64-bit integers.
    pub fn to_f64(self) -> f64 {
        let magnitude = scaled(self.sig as f64, self.top - 63);
        if self.neg { -magnitude } else { magnitude }
    }

    /// `self - other`, rounded once to f64.
    pub fn minus(self, other: Number) -> f64 {
        let other = Number { neg: !other.neg, ..other };
        if other.is_zero() {
            return if self.is_zero() { 0.0 } else { self.to_f64() };
        }
        if self.is_zero() {
            return other.to_f64();
        }
        let (large, small) = if self.top >= other.top { (self, other) } else { (other, self) };
        // In units of 2^unit, the larger number is an integer whose highest bit is bit 124. The smaller number is an
        // integer too, or so small that a sticky bit is enough.
        let unit = large.top - 124;
        let signed = |magnitude: i128, neg: bool| if neg { -magnitude } else { magnitude };
        let shift = small.top - 63 - unit;
        let small_units = match shift {
            0.. => (small.sig as i128) << shift,
            -63..0 => (small.sig >> -shift) as i128 | (small.sig << (64 + shift) != 0) as i128,
            _ => 1,
        };
        let sum = signed((large.sig as i128) << 61, large.neg) + signed(small_units, small.neg);
        scaled(sum as f64, unit)
    }
}

/// `v * 2^k` for an integer `v`, in two exact steps.
fn scaled(v: f64, k: i32) -> f64 {
    v * 2f64.powi(k / 2) * 2f64.powi(k - k / 2)
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let sign = |n: &Number| if n.sig == 0 { 0 } else { 1 - 2 * n.neg as i32 };
        let magnitudes = || self.top.cmp(&other.top).then(self.sig.cmp(&other.sig));
        match (sign(self), sign(other)) {
            (1, 1) => magnitudes(),
            (-1, -1) => magnitudes().reverse(),
            (a, b) => a.cmp(&b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    /// All pairs of small multiples of powers of two, compared with f64, which is exact here.
    #[test]
    fn order_and_difference() {
        let all: Vec<(Number, f64)> = (-20i32..=20)
            .flat_map(|n| {
                let one = move |e: i32| (Number::new(n < 0, n.unsigned_abs() as u64, e), n as f64 * 2f64.powi(e));
                (-9..=9).map(one)
            })
            .collect();
        for (a, a_f64) in &all {
            assert_eq!(a.to_f64(), *a_f64);
            assert_eq!(a.is_integer(), a_f64.trunc() == *a_f64);
            for (b, b_f64) in &all {
                assert_eq!(Some(a.cmp(b)), a_f64.partial_cmp(b_f64));
                assert_eq!(a.minus(*b), a_f64 - b_f64);
            }
        }
    }

    /// Differences that must be rounded, compared with i128 and with f64 subtraction.
    #[test]
    fn difference_rounds_once() {
        for a in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) + 1, (1 << 53) + 1, 3, 1] {
            for b in [u64::MAX, u64::MAX - 1025, 1 << 63, (1 << 53) - 1, 2049, 1, 0] {
                for neg in [false, true] {
                    let b_signed = if neg { -(b as i128) } else { b as i128 };
                    let got = Number::new(false, a, 0).minus(Number::new(neg, b, 0));
                    assert_eq!(got, (a as i128 - b_signed) as f64, "{a} - {b_signed}");
                }
            }
        }
        for a in [1.0, 1.0 + f64::EPSILON, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310, 3e200] {
            for b in [1.5, -1.0, f64::MAX, -f64::MAX, 5e-324, -1e-310, 1e184, 2f64.powi(-53), 0.0] {
                let number = |v| Number::from_f64(v).expect("finite");
                assert_eq!(number(a).minus(number(b)), a - b, "{a} - {b}");
            }
        }
    }
}
