//! Decimal text to [`Exact`] and back, with nothing lost.
//!
//! Text is rounded once, straight into its destination: [`parse`] keeps 64 bits and a sticky bit
//! (`docs/spec/onnx.md §6.5`), and [`to_decimal`] writes every digit. Shortest digits are another matter and do not live
//! here.

use crate::big::Big;
use crate::exact::Exact;

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct ParseDecimalError {
    /// What is wrong.
    pub what: &'static str,
    /// Byte position in the text.
    pub at: usize,
}

/// Beyond these decimal exponents of the leading digit every format overflows or underflows.
const HUGE: i64 = 400;
const TINY: i64 = -1200;

/// Reads `[+-]digits[.digits][e[+-]digits]`, `nan`, `inf` or `infinity` (any case, with sign).
///
/// Result: exact, or the leading 64 bits with `sticky`, which is enough for every floating-point destination.
///
/// # Errors
/// Anything else, with the position of the first byte that cannot belong to a number.
///
/// # Examples
/// ```
/// use truecast_core::{decimal::parse, Exact};
/// assert_eq!(parse("-1.5"), Ok(Exact::Finite { neg: true, sig: 3 << 62, exp: -63, sticky: false }));
/// assert!(matches!(parse("0.1"), Ok(Exact::Finite { sticky: true, .. })));
/// assert!(parse("1.5x").is_err());
/// ```
pub fn parse(text: &str) -> Result<Exact, ParseDecimalError> {
    let bytes = text.as_bytes();
    let neg = bytes.first() == Some(&b'-');
    let start = matches!(bytes.first(), Some(b'-' | b'+')) as usize;
    let word = &text[start..];
    if word.eq_ignore_ascii_case("nan") {
        return Ok(Exact::Nan { neg, payload: None });
    }
    if word.eq_ignore_ascii_case("inf") || word.eq_ignore_ascii_case("infinity") {
        return Ok(Exact::Inf { neg });
    }
    let mut at = start;
    let mut digits = Digits::default();
    at += digits.read(&bytes[at..], false);
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        at += digits.read(&bytes[at..], true);
    }
    if digits.count == 0 {
        return Err(ParseDecimalError { what: "expected a digit", at });
    }
    let mut exponent = 0i64;
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        let negative = bytes.get(at) == Some(&b'-');
        at += matches!(bytes.get(at), Some(b'-' | b'+')) as usize;
        let first = at;
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            exponent = exponent.saturating_mul(10).saturating_add((digit - b'0') as i64);
            at += 1;
        }
        if at == first {
            return Err(ParseDecimalError { what: "expected a digit of the exponent", at });
        }
        exponent = if negative { -exponent } else { exponent };
    }
    if at != bytes.len() {
        return Err(ParseDecimalError { what: "unexpected character", at });
    }
    Ok(digits.into_exact(neg, exponent))
}

/// The digits of a number as an integer, and where its point stands.
#[derive(Default)]
struct Digits {
    value: Big,
    /// Digits seen.
    count: usize,
    /// Significant digits kept in `value`.
    kept: i64,
    /// Decimal exponent of the last kept digit.
    exponent: i64,
    /// A nonzero digit was dropped.
    dropped: bool,
}

impl Digits {
    /// No value needs more digits to be told from its neighbours: halfway points of f64 have fewer than 800.
    const KEEP: i64 = 1200;

    fn read(&mut self, bytes: &[u8], fraction: bool) -> usize {
        let run = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
        for &byte in &bytes[..run] {
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
        self.count += run;
        run
    }

    fn into_exact(mut self, neg: bool, exponent: i64) -> Exact {
        if self.value.is_zero() {
            return Exact::Finite { neg, sig: 0, exp: 0, sticky: false };
        }
        let exponent = self.exponent.saturating_add(exponent);
        let leading = exponent.saturating_add(self.kept - 1);
        if !(TINY..=HUGE).contains(&leading) {
            let exp = if leading > HUGE { 4 * HUGE } else { 4 * TINY } as i32;
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

/// Every digit of a value without `sticky`: `0.1` as f32 is `0.100000001490116119384765625`. NaN and Inf are words.
///
/// # Examples
/// ```
/// use truecast_core::{decimal::to_decimal, exact::decode, DType};
/// assert_eq!(to_decimal(decode(DType::F8E4M3Fn, 0xfe)), "-448");
/// assert_eq!(to_decimal(decode(DType::F8E4M3Fn, 0x01)), "0.001953125");
/// ```
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
