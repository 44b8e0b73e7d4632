//! Unsigned big integers, for exact conversion between decimal text and binary values.
//!
//! Limbs are little-endian, without leading zero limbs. The text of an element has at most about 1,100 digits.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::cmp::Ordering;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Big(Vec<u32>);

impl Big {
    pub fn from_u64(value: u64) -> Self {
        Self(vec![value as u32, (value >> 32) as u32]).trimmed()
    }

    /// The most significant digit comes first.
    pub fn from_digits(radix: u32, digits: impl IntoIterator<Item = u32>) -> Self {
        let mut value = Self::default();
        digits.into_iter().for_each(|digit| value.mul_add(radix, digit));
        value
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn trimmed(mut self) -> Self {
        self.trim();
        self
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| 32 * self.0.len() as u32 - top.leading_zeros())
    }

    pub fn mul_add(&mut self, factor: u32, addend: u32) {
        let mut carry = addend as u64;
        for limb in &mut self.0 {
            carry += *limb as u64 * factor as u64;
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    pub fn mul_pow10(&mut self, n: u32) {
        self.mul_pow(5, n);
        *self = self.shl(n);
    }

    pub fn mul_pow(&mut self, base: u32, n: u32) {
        for _ in 0..n {
            self.mul_add(base, 0);
        }
    }

    pub fn mul_u64(&self, factor: u64) -> Self {
        let mut carry = 0u128;
        let mut out = Vec::with_capacity(self.0.len() + 2);
        for &limb in &self.0 {
            carry += u128::from(limb) * u128::from(factor);
            out.push(carry as u32);
            carry >>= 32;
        }
        out.extend([carry as u32, (carry >> 32) as u32]);
        Self(out).trimmed()
    }

    pub fn shl(&self, n: u32) -> Self {
        let (limbs, bits) = ((n / 32) as usize, n % 32);
        let mut out = vec![0; limbs];
        let mut carry = 0u64;
        for &limb in &self.0 {
            carry |= (limb as u64) << bits;
            out.push(carry as u32);
            carry >>= 32;
        }
        out.push(carry as u32);
        Self(out).trimmed()
    }

    /// Divides in place and returns the remainder.
    pub fn div_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for limb in self.0.iter_mut().rev() {
            rest = rest << 32 | *limb as u64;
            *limb = (rest / divisor as u64) as u32;
            rest %= divisor as u64;
        }
        self.trim();
        rest as u32
    }

    pub fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    pub fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
        let mut carry = 0u64;
        for (i, limb) in self.0.iter_mut().enumerate() {
            carry += u64::from(*limb) + u64::from(other.0.get(i).copied().unwrap_or(0));
            *limb = carry as u32;
            carry >>= 32;
        }
        self.trim();
    }

    /// Requires `other <= self`.
    pub fn sub(&mut self, other: &Self) {
        let mut borrow = 0i64;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let difference = *limb as i64 - other.0.get(i).copied().unwrap_or(0) as i64 + borrow;
            *limb = difference as u32;
            borrow = difference >> 32;
        }
        self.trim();
    }

    /// Leading 64 bits of `self / divisor`, as `(sig, exp, sticky)`. They mean `sig * 2^exp`, and bit 63 of `sig` is
    /// set. `sticky` is true if the quotient has further bits. Neither operand may be zero.
    pub fn div_to_64(&self, divisor: &Self) -> (u64, i32, bool) {
        // Scale so that the quotient is in (2^63, 2^65), then divide bit by bit.
        let scale = 64 + divisor.bits() as i32 - self.bits() as i32;
        let mut rest = self.shl(scale.max(0) as u32);
        let part = divisor.shl((-scale).max(0) as u32 + 64);
        let mut quotient = 0u128;
        for _ in 0..=64 {
            quotient <<= 1;
            if rest.cmp(&part) != Ordering::Less {
                rest.sub(&part);
                quotient |= 1;
            }
            rest.mul_add(2, 0);
        }
        let extra = quotient >> 64 != 0;
        let lost = extra && quotient & 1 != 0;
        ((quotient >> extra as u32) as u64, extra as i32 - scale, lost || !rest.is_zero())
    }

    pub fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.is_zero() {
            groups.push(rest.div_small(1_000_000_000));
        }
        let Some(first) = groups.pop() else { return "0".into() };
        groups.iter().rev().fold(first.to_string(), |text, group| text + &format!("{group:09}"))
    }
}
