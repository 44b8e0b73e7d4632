//! Decimal text to [`Exact`] and back, without loss.
//!
//! [`scan`] keeps all digits; [`parse`] keeps 64 bits and a sticky bit (`docs/spec/onnx.md §6.5`). Conversions between
//! text and element codes are in [`crate::text`].

use crate::big::Big;
use crate::exact::{Exact, SplitMagnitude};
use crate::round::Remainder;
use alloc::format;
use alloc::string::String;
use core::ops::RangeInclusive;

/// Error for a text that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
#[allow(missing_docs)] // The messages name them.
pub struct ParseDecimalError {
    pub what: &'static str,
    /// Byte position in the text.
    pub at: usize,
}

/// Computed range of the leading digit's decimal exponent. Outside, every element type overflows or underflows. The
/// limit bounds the time per number.
const ELEMENT_TYPES: RangeInclusive<i64> = -1200..=400;
/// Range for the formats of P3109, whose exponents have up to 15 bits.
const EVERY_FORMAT: RangeInclusive<i64> = -5000..=5000;
/// Binary exponent beyond every format.
pub(crate) const BEYOND: i32 = 20_000;

/// Reads `[+-]digits[.digits][e[+-]digits]`, `nan`, `inf` or `infinity` (any case, with sign).
///
/// Result: the exact value, or its leading 64 bits with `sticky`. Both round correctly to every floating-point format.
///
/// # Errors
/// [`ParseDecimalError`], with the position of the first byte that cannot belong to a number.
///
/// # Examples
/// ```
/// use truecast_core::{decimal::parse, Exact};
/// assert_eq!(parse("-1.5"), Ok(Exact::Finite { neg: true, sig: 3 << 62, exp: -63, sticky: false }));
/// assert!(matches!(parse("0.1"), Ok(Exact::Finite { sticky: true, .. })));
/// assert!(parse("1.5x").is_err());
/// ```
pub fn parse(text: &str) -> Result<Exact, ParseDecimalError> {
    Ok(scan(text.as_bytes())?.to_exact())
}

/// Number in the form of the text, with every digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number<'a> {
    /// Not a number.
    Nan {
        /// Sign.
        neg: bool,
    },
    /// Infinity.
    Inf {
        /// Sign.
        neg: bool,
    },
    /// A finite number, as its digits.
    Decimal(Decimal<'a>),
}

impl Number<'_> {
    /// Returns the value that [`parse`] returns for the same text.
    #[must_use]
    pub fn to_exact(&self) -> Exact {
        self.within(ELEMENT_TYPES)
    }

    pub(crate) fn for_every_format(&self) -> Exact {
        self.within(EVERY_FORMAT)
    }

    fn within(&self, exponents: RangeInclusive<i64>) -> Exact {
        match *self {
            Number::Nan { neg } => Exact::Nan { neg, payload: None },
            Number::Inf { neg } => Exact::Inf { neg },
            Number::Decimal(decimal) => decimal.within(exponents),
        }
    }
}

/// `(-1)^neg * whole.fraction * 10^exponent`; the digits are ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<'a> {
    /// Sign.
    pub neg: bool,
    /// Digits before the point, possibly empty.
    pub whole: &'a [u8],
    /// Digits after the point, possibly empty; `whole` and `fraction` together have at least one.
    pub fraction: &'a [u8],
    /// Exponent that the text states, clamped to 64 bits.
    pub exponent: i64,
}

/// Reads a number by the grammar of [`parse`] (`docs/spec/onnx.md §6.4`).
///
/// Cost: linear, without allocation.
///
/// # Errors
/// [`ParseDecimalError`], with the position of the first byte that cannot belong to a number.
///
/// # Examples
/// ```
/// use truecast_core::decimal::{Decimal, Number, scan};
/// let digits = Decimal { neg: true, whole: b"1", fraction: b"50", exponent: 3 };
/// assert_eq!(scan(b"-1.50e3"), Ok(Number::Decimal(digits)));
/// assert_eq!(scan(b"1e").unwrap_err().at, 2);
/// ```
#[inline]
pub fn scan(text: &[u8]) -> Result<Number<'_>, ParseDecimalError> {
    let neg = text.first() == Some(&b'-');
    let start = matches!(text.first(), Some(b'-' | b'+')) as usize;
    let whole = digits_at(text, start);
    let mut at = start + whole.len();
    let mut fraction: &[u8] = &[];
    if text.get(at) == Some(&b'.') {
        fraction = digits_at(text, at + 1);
        at += 1 + fraction.len();
    }
    if whole.is_empty() && fraction.is_empty() {
        return word(&text[start..], neg).ok_or(ParseDecimalError { what: "expected a digit", at });
    }
    let mut exponent = 0i64;
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        let negative = text.get(at) == Some(&b'-');
        at += matches!(text.get(at), Some(b'-' | b'+')) as usize;
        let digits = digits_at(text, at);
        if digits.is_empty() {
            return Err(ParseDecimalError { what: "expected a digit of the exponent", at });
        }
        let shifted = |value: i64, digit: &u8| value.saturating_mul(10).saturating_add((digit - b'0') as i64);
        exponent = digits.iter().fold(0, shifted);
        exponent = if negative { -exponent } else { exponent };
        at += digits.len();
    }
    if at != text.len() {
        return Err(ParseDecimalError { what: "unexpected character", at });
    }
    Ok(Number::Decimal(Decimal { neg, whole, fraction, exponent }))
}

fn digits_at(text: &[u8], at: usize) -> &[u8] {
    let rest = &text[at..];
    &rest[..rest.iter().take_while(|b| b.is_ascii_digit()).count()]
}

fn word(text: &[u8], neg: bool) -> Option<Number<'static>> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is("nan") {
        return Some(Number::Nan { neg });
    }
    (is("inf") || is("infinity")).then_some(Number::Inf { neg })
}

impl Decimal<'_> {
    /// Returns the exact value, or its leading 64 bits with `sticky`.
    #[must_use]
    pub fn to_exact(&self) -> Exact {
        self.within(ELEMENT_TYPES)
    }

    fn within(&self, exponents: RangeInclusive<i64>) -> Exact {
        let mut digits = Digits::default();
        digits.read(self.whole, false);
        digits.read(self.fraction, true);
        digits.into_exact(self.neg, self.exponent, exponents)
    }

    /// Splits the magnitude at the decimal point, for rounding to an integer.
    ///
    /// Source: `docs/spec/onnx.md §6.5`.
    pub(crate) fn cut(&self) -> SplitMagnitude {
        let digits = || self.whole.iter().chain(self.fraction).map(|digit| (digit - b'0') as u64);
        let written = (self.whole.len() + self.fraction.len()) as i64;
        // Position of the decimal point, counted from the first written digit.
        let point = (self.whole.len() as i64).saturating_add(self.exponent);
        let before = point.clamp(0, written) as usize;
        let zeros = (point - before as i64).max(0);
        let (mut low, mut fits) = (0u64, true);
        let mut push = |digit: u64| {
            let next = low.checked_mul(10).and_then(|tens| tens.checked_add(digit));
            fits &= next.is_some();
            low = low.wrapping_mul(10).wrapping_add(digit);
        };
        digits().take(before).for_each(&mut push);
        // `low` is modulo 2^64, and 2^64 divides 10^64. More than 64 zeros change nothing.
        (0..zeros.min(64)).for_each(|_| push(0));
        let mut rest = digits().skip(before);
        // If `point` is negative, the first digit after the point is 0.
        let first = if point < 0 { 0 } else { rest.next().unwrap_or(0) };
        let more = rest.any(|digit| digit != 0);
        let remainder = match (first, more) {
            (0, false) => Remainder::Zero,
            (0..5, _) => Remainder::BelowHalf,
            (5, false) => Remainder::Half,
            _ => Remainder::AboveHalf,
        };
        SplitMagnitude { low, fits, remainder }
    }
}

/// Leading digits of a number: `value * 10^exponent`.
#[derive(Default)]
struct Digits {
    value: Big,
    /// Number of significant digits in `value`.
    kept: i64,
    /// Decimal exponent of the last kept digit.
    exponent: i64,
    /// True if a nonzero digit was dropped.
    dropped: bool,
}

impl Digits {
    /// Number of digits to keep. Halfway points between f64 values have fewer than 800 digits.
    const KEEP: i64 = 1200;

    fn read(&mut self, digits: &[u8], fraction: bool) {
        for byte in digits {
            let digit = (byte - b'0') as u32;
            if self.kept < Self::KEEP {
                self.value.mul_add(10, digit);
                self.kept += !self.value.is_zero() as i64;
                self.exponent -= fraction as i64;
            } else {
                self.dropped |= digit != 0;
                self.exponent += !fraction as i64;
            }
        }
    }

    fn into_exact(mut self, neg: bool, exponent: i64, exponents: RangeInclusive<i64>) -> Exact {
        if self.value.is_zero() {
            return Exact::Finite { neg, sig: 0, exp: 0, sticky: false };
        }
        let exponent = self.exponent.saturating_add(exponent);
        let leading = exponent.saturating_add(self.kept - 1);
        if !exponents.contains(&leading) {
            let exp = if leading > *exponents.end() { BEYOND } else { -BEYOND };
            return Exact::Finite { neg, sig: 1 << 63, exp, sticky: true };
        }
        let mut divisor = Big::from_u64(1);
        if exponent >= 0 {
            self.value.mul_pow10(exponent as u32);
        } else {
            divisor.mul_pow10(-exponent as u32);
        }
        let (sig, exp, rest) = self.value.div_to_64(&divisor);
        Exact::Finite { neg, sig, exp, sticky: rest || self.dropped }
    }
}

/// Writes every decimal digit of a value: f32 `0.1` is `0.100000001490116119384765625`. NaN and infinities are written
/// as words. The value must not have `sticky`.
///
/// # Examples
/// ```
/// use truecast_core::{decimal::to_decimal, exact::decode, DType};
/// assert_eq!(to_decimal(decode(DType::F8E4M3Fn, 0xfe)), "-448");
/// assert_eq!(to_decimal(decode(DType::F8E4M3Fn, 0x01)), "0.001953125");
/// ```
#[must_use]
pub fn to_decimal(value: Exact) -> String {
    let sign = |neg: bool| if neg { "-" } else { "" };
    match value {
        Exact::Nan { neg, .. } => format!("{}nan", sign(neg)),
        Exact::Inf { neg } => format!("{}inf", sign(neg)),
        Exact::Finite { neg, sig: 0, .. } => format!("{}0", sign(neg)),
        Exact::Finite { neg, sig, exp, .. } => {
            let (sig, exp) = (sig >> sig.trailing_zeros(), exp + sig.trailing_zeros() as i32);
            let mut digits = Big::from_u64(sig);
            if exp >= 0 {
                return format!("{}{}", sign(neg), digits.shl(exp as u32).to_decimal());
            }
            // sig / 2^k = sig * 5^k / 10^k
            let k = -exp as usize;
            digits.mul_pow(5, k as u32);
            let text = format!("{:0>width$}", digits.to_decimal(), width = k + 1);
            let (whole, fraction) = text.split_at(text.len() - k);
            format!("{}{whole}.{fraction}", sign(neg))
        }
    }
}
