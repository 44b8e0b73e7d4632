//! Numbers in the forms that a command line accepts. They are decimals with `_` between digits, hexadecimal floats,
//! fractions, and codes in hexadecimal.
//!
//! Data files use the stricter grammar of [`crate::decimal`], which a standard fixes.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::big::Big;
use crate::decimal::{BEYOND, Number, scan};
use crate::exact::Exact;
pub use crate::ratio::Ratio;

/// Number or code that a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal {
    /// The code of an element.
    Code(u64),
    /// A number, NaN or an infinity.
    Number(Exact),
}

/// Error for a text that is neither a number nor a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum LiteralError {
    /// A character that is not allowed at its position.
    #[error("{what} at byte {at}")]
    Character {
        what: &'static str,
        /// Byte position in the text.
        at: usize,
    },
    /// A code that is not a hexadecimal number of at most 64 bits.
    #[error("not a hexadecimal code of at most 64 bits; a hexadecimal number has a point or an exponent: 0x1.8p4")]
    Code,
    /// A code with a sign.
    #[error("a code has no sign; a hexadecimal number has a point or an exponent: -0x1.8p4")]
    SignedCode,
    /// A fraction that does not consist of two integers.
    #[error(
        "a fraction has two integers of at most {MOST_DIGITS} digits, such as 1/3, and its denominator is not zero"
    )]
    Fraction,
}

const MOST_DIGITS: usize = 1000;

/// Reads `1.5e3`, `1_000`, `nan`, `-inf`, `1/3`, `0x1.8p-3`, or `0x7f80_0001`, which is a code.
///
/// # Errors
/// [`LiteralError`] for any other text.
///
/// # Examples
/// ```
/// use truecast_core::{Exact, literal::{Literal, read}};
/// let number = |neg, sig, exp| Ok(Literal::Number(Exact::Finite { neg, sig, exp, sticky: false }));
/// assert_eq!(read("-0x1.8p4"), number(true, 0x18, 0)); // -24
/// assert_eq!(read("0x7f80_0001"), Ok(Literal::Code(0x7f800001)));
/// assert_eq!(read("3/4"), number(false, 3 << 62, -64));
/// assert!(read("1__0").is_err());
/// ```
pub fn read(text: &str) -> Result<Literal, LiteralError> {
    let neg = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        return if digits.contains(['.', 'p', 'P']) {
            hexadecimal(text, sign + 2, neg).map(Literal::Number)
        } else if sign > 0 {
            Err(LiteralError::SignedCode)
        } else {
            code(digits).map(Literal::Code)
        };
    }
    match text.split_once('/') {
        Some((over, under)) => fraction(over, under).map(Literal::Number),
        None => {
            let plain = without_separators(text)?;
            let number = scan(plain.as_bytes()).map_err(|e| {
                // Position in the typed text, where separators count.
                let skipped = text.bytes().scan(0, |digits, b| {
                    *digits += (b != b'_') as usize;
                    Some(*digits)
                });
                let at = skipped.take_while(|digits| *digits <= e.at).count();
                LiteralError::Character { what: e.what, at }
            })?;
            Ok(Literal::Number(number.for_every_format()))
        }
    }
}

/// Maximum number of digits, and maximum exponent, in [`ratio`].
const MOST_PLACES: usize = 10_000;

/// Reads the same number as [`read`], without loss; `None` unless the number is finite. A number with more than 10,000
/// digits or an exponent beyond ±10,000 gives `None`, too.
///
/// # Examples
/// ```
/// use truecast_core::{DType, decimal::to_decimal, exact::decode, literal::ratio};
/// let off = ratio("1/3").unwrap().minus(decode(DType::F16, 0x3555)).unwrap(); // 1365/4096
/// assert!(to_decimal(off).starts_with("0.00008138020833333333")); // 1/12288
/// assert!(ratio("nan").is_none());
/// ```
#[must_use]
pub fn ratio(text: &str) -> Option<Ratio> {
    let Ok(Literal::Number(Exact::Finite { neg, .. })) = read(text) else { return None };
    let plain = text.replace('_', "");
    let plain = plain.strip_prefix(['-', '+']).unwrap_or(&plain);
    if plain.len() > MOST_PLACES {
        return None;
    }
    let integer = |digits: &str, radix: u32| Big::from_digits(radix, digits.chars().filter_map(|c| c.to_digit(radix)));
    if let Some((over, under)) = plain.split_once('/') {
        return Some(Ratio { neg, over: integer(over, 10), under: integer(under, 10), exp: 0 });
    }
    let within = |exp: i64| i32::try_from(exp).ok().filter(|exp| exp.unsigned_abs() as usize <= MOST_PLACES);
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        let (digits, power) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
        let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let exp = within(power.parse::<i64>().ok()?)? - 4 * places as i32;
        return Some(Ratio { neg, over: integer(digits, 16), under: Big::from_u64(1), exp });
    }
    let Ok(Number::Decimal(decimal)) = scan(plain.as_bytes()) else { return None };
    let digits = decimal.whole.iter().chain(decimal.fraction).map(|digit| (digit - b'0').into());
    let (mut over, mut under) = (Big::from_digits(10, digits), Big::from_u64(1));
    let exponent = within(decimal.exponent)? - decimal.fraction.len() as i32;
    match exponent {
        0.. => over.mul_pow10(exponent.unsigned_abs()),
        _ => under.mul_pow10(exponent.unsigned_abs()),
    }
    Some(Ratio { neg, over, under, exp: 0 })
}

/// Removes each `_` between two digits.
fn without_separators(text: &str) -> Result<Cow<'_, str>, LiteralError> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let misplaced = |at: &usize| bytes[*at] == b'_' && !(*at > 0 && is_digit(at - 1) && is_digit(at + 1));
    match (0..bytes.len()).find(misplaced) {
        Some(at) => Err(LiteralError::Character { what: "'_' may appear only between two digits", at }),
        None if text.contains('_') => Ok(text.replace('_', "").into()),
        None => Ok(text.into()),
    }
}

fn code(digits: &str) -> Result<u64, LiteralError> {
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.bytes().all(|b| b.is_ascii_hexdigit()) {
        u64::from_str_radix(&plain, 16).map_err(|_| LiteralError::Code)
    } else {
        Err(LiteralError::Code)
    }
}

/// Reads `H.HpD` from byte `start`.
fn hexadecimal(text: &str, start: usize, neg: bool) -> Result<Exact, LiteralError> {
    let bytes = text.as_bytes();
    let (mut sig, mut exp, mut sticky) = (0u64, 0i64, false);
    let (mut at, mut point, mut digits) = (start, false, 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                digits += 1;
                // A digit that does not fit in `sig` increases the exponent instead.
                match sig >> 60 {
                    0 => sig = sig << 4 | u64::from(digit),
                    _ => {
                        sticky |= digit != 0;
                        exp += 4;
                    }
                }
                exp -= if point { 4 } else { 0 };
            }
            None if byte == b'.' && !point => point = true,
            None if byte == b'_' => {}
            None => break,
        }
        at += 1;
    }
    let wrong = |what, at| Err(LiteralError::Character { what, at });
    if digits == 0 {
        return wrong("expected a hexadecimal digit", at);
    }
    if matches!(bytes.get(at), Some(b'p' | b'P')) {
        let power = &text[at + 1..];
        let is_number = power.strip_prefix(['-', '+']).unwrap_or(power).bytes().all(|b| b.is_ascii_digit());
        match power.parse::<i64>() {
            Ok(power) => exp = exp.saturating_add(power),
            Err(_) if is_number && power.len() > 18 => exp = if power.starts_with('-') { i64::MIN } else { i64::MAX },
            Err(_) => return wrong("expected a digit of the exponent", at + 1),
        }
    } else if at < bytes.len() {
        return wrong("unexpected character", at);
    }
    if sig == 0 {
        return Ok(Exact::Finite { neg, sig: 0, exp: 0, sticky: false });
    }
    if sticky {
        // A sticky value must use all 64 bits of `sig`.
        let shift = sig.leading_zeros();
        return Ok(Exact::Finite { neg, sig: sig << shift, exp: bounded(exp) - shift as i32, sticky });
    }
    Ok(Exact::Finite { neg, sig, exp: bounded(exp), sticky })
}

fn bounded(exp: i64) -> i32 {
    exp.clamp((-BEYOND).into(), BEYOND.into()) as i32
}

fn fraction(over: &str, under: &str) -> Result<Exact, LiteralError> {
    let neg = over.starts_with('-');
    let unsigned = over.strip_prefix(['-', '+']).unwrap_or(over);
    let [over, under] = [integer(unsigned)?, integer(under)?];
    if under.is_zero() {
        return Err(LiteralError::Fraction);
    }
    if over.is_zero() {
        return Ok(Exact::Finite { neg, sig: 0, exp: 0, sticky: false });
    }
    let (sig, exp, sticky) = over.div_to_64(&under);
    Ok(Exact::Finite { neg, sig, exp, sticky })
}

fn integer(text: &str) -> Result<Big, LiteralError> {
    let plain = without_separators(text)?;
    if plain.is_empty() || plain.len() > MOST_DIGITS || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return Err(LiteralError::Fraction);
    }
    Ok(Big::from_digits(10, plain.bytes().map(|digit| (digit - b'0').into())))
}
