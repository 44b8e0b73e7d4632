//! Exact rational numbers, such as 1/3, and the difference from an [`Exact`].
//!
//! A [`Ratio`] measures the loss of a conversion. Conversions do not use this module.

use crate::big::Big;
use crate::exact::Exact;
use core::cmp::Ordering;

/// Rational number `(-1)^neg * over / under * 2^exp`, read by [`crate::literal::ratio`] or made from an [`Exact`].
#[derive(Clone, Debug)]
pub struct Ratio {
    pub(crate) neg: bool,
    pub(crate) over: Big,
    /// Not zero.
    pub(crate) under: Big,
    pub(crate) exp: i32,
}

impl Ratio {
    /// Converts a finite value; `None` for NaN and infinities. A sticky value is truncated to the 64 bits of `sig`.
    #[must_use]
    pub fn from_exact(value: Exact) -> Option<Ratio> {
        let Exact::Finite { neg, sig, exp, .. } = value else { return None };
        let exp = if sig == 0 { 0 } else { exp };
        Some(Ratio { neg, over: Big::from_u64(sig), under: Big::from_u64(1), exp })
    }

    /// Returns `self - value`: exact, or the leading 64 bits with `sticky`. `None` if `value` is not finite.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, decimal::to_decimal, exact::decode, literal::ratio};
    /// let one = decode(DType::F64, 1f64.to_bits());
    /// let beside = ratio("1.0000000000000000000000000000000000000001").unwrap();
    /// let off = to_decimal(beside.minus(one).unwrap());
    /// assert!(off.starts_with("0.0000000000000000000000000000000000000000999999999")); // 64 bits of 1e-40
    /// ```
    #[must_use]
    pub fn minus(&self, value: Exact) -> Option<Exact> {
        let Exact::Finite { neg, sig, exp, .. } = value else { return None };
        // With the denominator d of `self`, the difference is (n 2^e - s d 2^x) / d.
        let common = match (self.over.is_zero(), sig) {
            (true, _) => exp,
            (false, 0) => self.exp,
            (false, _) => self.exp.min(exp),
        };
        let shifted = |n: &Big, exp: i32| if n.is_zero() { n.clone() } else { n.shl((exp - common) as u32) };
        let (mut left, mut right) = (shifted(&self.over, self.exp), shifted(&self.under.mul_u64(sig), exp));
        let neg = match (self.neg == neg, left.cmp(&right)) {
            (false, _) => {
                left.add(&right);
                self.neg
            }
            (true, Ordering::Less) => {
                right.sub(&left);
                left = right;
                !neg
            }
            (true, _) => {
                left.sub(&right);
                self.neg
            }
        };
        if left.is_zero() {
            return Some(Exact::Finite { neg: false, sig: 0, exp: 0, sticky: false });
        }
        let (sig, exp, sticky) = left.div_to_64(&self.under);
        Some(Exact::Finite { neg, sig, exp: exp + common, sticky })
    }
}
