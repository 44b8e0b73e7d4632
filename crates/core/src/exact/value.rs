//! Exact numbers (IEEE 754-2019 §3.3): comparison, and split at a bit.

use crate::round::Remainder;
use core::cmp::Ordering;

/// Number without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// Not a number.
    Nan {
        /// Sign.
        neg: bool,
        /// Fraction bits from bit 63 down; bit 63 is the quiet bit. `None` if the source format has no payload.
        payload: Option<u64>,
    },
    /// Infinity.
    Inf {
        /// Sign.
        neg: bool,
    },
    /// Finite number `(-1)^neg * sig * 2^exp`; `sig == 0` is a signed zero. Exponents are within ±100,000.
    /// A sticky value has a 64-bit `sig`, finer than any floating-point destination.
    Finite {
        /// Sign.
        neg: bool,
        /// Significand.
        sig: u64,
        /// Exponent of the last bit of `sig`.
        exp: i32,
        /// True if the magnitude is strictly between `sig * 2^exp` and `(sig + 1) * 2^exp`.
        sticky: bool,
    },
}

impl Exact {
    /// Returns the value times `2^exponent`; infinities and NaN are unchanged.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{exact::decode, DType};
    /// let [one, eighth] = [1f32, 0.125].map(|x| decode(DType::F32, x.to_bits().into()));
    /// assert!(one.scaled(-3).cmp_value(eighth).is_eq());
    /// ```
    #[inline]
    #[must_use]
    pub const fn scaled(self, exponent: i32) -> Exact {
        match self {
            Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg, sig, exp: exp + exponent, sticky },
            special => special,
        }
    }

    /// Compares two numbers by value. -0 equals +0; all NaN are equal and above all numbers. Sticky values with the
    /// same 64 bits are equal.
    ///
    /// # Examples
    /// ```
    /// use core::cmp::Ordering;
    /// use truecast_core::{exact::decode, DType};
    /// let [tenth_f16, tenth_bf16] = [decode(DType::F16, 0x2e66), decode(DType::Bf16, 0x3dcd)];
    /// assert_eq!(tenth_f16.cmp_value(tenth_bf16), Ordering::Less); // 0.0999755859375, 0.10009765625
    /// assert_eq!(decode(DType::I8, 0).cmp_value(decode(DType::F32, 0x8000_0000)), Ordering::Equal);
    /// ```
    #[inline]
    #[must_use]
    pub fn cmp_value(self, other: Exact) -> Ordering {
        let class = self.class();
        class.cmp(&other.class()).then_with(|| match (self, other) {
            (Exact::Finite { neg, sig: a, exp: i, sticky: x }, Exact::Finite { sig: b, exp: j, sticky: y, .. })
                if class != 0 =>
            {
                let magnitude = compare([(a, i, x), (b, j, y)]);
                if neg { magnitude.reverse() } else { magnitude }
            }
            _ => Ordering::Equal,
        })
    }

    /// Rank for comparisons. -Inf, negative, zero, positive, Inf and NaN have the ranks -2 to 3.
    #[inline]
    fn class(self) -> i32 {
        match self {
            Exact::Nan { .. } => 3,
            Exact::Inf { neg } => {
                if neg {
                    -2
                } else {
                    2
                }
            }
            Exact::Finite { sig: 0, sticky: false, .. } => 0,
            Exact::Finite { neg, .. } => {
                if neg {
                    -1
                } else {
                    1
                }
            }
        }
    }
}

/// Compares two nonzero magnitudes `(sig, exp, sticky)`.
/// If the leading bits have equal exponents, the `exp` differ by at most 63. In units of the smaller `exp`, with one
/// bit below for `sticky`, both magnitudes fit in 128 bits.
#[inline]
fn compare([a, b]: [(u64, i32, bool); 2]) -> Ordering {
    leading(a.0, a.1).cmp(&leading(b.0, b.1)).then_with(|| {
        let grid = a.1.min(b.1);
        let on_grid =
            |(sig, exp, sticky): (u64, i32, bool)| ((sig as u128) << 1 | sticky as u128) << (exp - grid) as u32;
        on_grid(a).cmp(&on_grid(b))
    })
}

/// Exponent of the leading bit; `sig` is not 0.
pub(super) const fn leading(sig: u64, exp: i32) -> i32 {
    exp + 63 - sig.leading_zeros() as i32
}

/// Splits a magnitude into `floor(sig * 2^(exp - q))` and the remainder, in units of `2^q`. The floor must fit in 64
/// bits.
#[inline(always)]
pub(super) fn split(sig: u64, exp: i32, sticky: bool, q: i32) -> (u64, Remainder) {
    let shift = q - exp;
    debug_assert!(!sticky || shift > 0, "a sticky value is finer than any destination");
    if shift <= 0 {
        return (sig << -shift, Remainder::Zero);
    }
    // One bit below `sig` holds the sticky bit. One half stays exactly one half.
    let wide = (sig as u128) << 1 | sticky as u128;
    let s = (shift as u32 + 1).min(127);
    let (rest, half) = (wide & ((1 << s) - 1), 1 << (s - 1));
    let remainder = match rest {
        0 => Remainder::Zero,
        _ if rest < half => Remainder::BelowHalf,
        _ if rest == half => Remainder::Half,
        _ => Remainder::AboveHalf,
    };
    ((wide >> s) as u64, remainder)
}
