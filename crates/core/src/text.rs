//! Elements as text and text as elements: the definition. Read with `docs/spec/onnx.md §6`.
//!
//! [`parse_one`] reads a text by the grammar of [`crate::decimal`] and rounds once. [`print_one`] writes the fewest
//! digits that read back to the element.
//! The fast version, `truecast_kernel::text`, is tested against this module.

use crate::decimal::{Decimal, Number, ParseDecimalError, scan, to_decimal};
use crate::dtype::{DType, Kind};
use crate::exact::{Encoded, Exact, Outcome, decode, encode, encode_whole, flush_source};
use crate::policy::{CastPolicy, CastSpec, Condition, NanRule, Subnormals, TextStyle};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Maximum number of bytes that an element takes as text in [`TextStyle::Reference`].
pub const MAX_LEN: usize = 24;

/// Returns the maximum length of an element as text, in bytes.
///
/// In plain notation, an f64 has at most 324 places after the point; other types have at most 45.
/// Two neighbors are at least 2^-1074 (2^-149) apart. Half of that distance is more than `0.5 * 10^-324` (`0.5 *
/// 10^-45`), so 324 (45) places distinguish all values.
///
/// # Examples
/// ```
/// use truecast_core::{DType, policy::TextStyle, text::max_len};
/// assert_eq!(max_len(DType::F32, TextStyle::Plain), "-0.".len() + 45);
/// ```
#[must_use]
pub const fn max_len(src: DType, style: TextStyle) -> usize {
    match (style, digits_type(src)) {
        (TextStyle::Reference, _) => MAX_LEN,
        (TextStyle::Plain, DType::F64) => 3 + 324,
        (TextStyle::Plain, _) => 3 + 45,
    }
}

/// Converts one text: reads, rounds once, encodes.
///
/// Result: the definition. Source: `docs/spec/onnx.md §6.4` to §6.6.
///
/// # Errors
/// [`ParseDecimalError`]: not a number of the grammar; an infinity or NaN for an integer destination.
///
/// # Panics
/// If the destination is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Outcome, spec::onnx::Cast, text::parse_one};
/// let f16 = Cast::to(DType::F16).resolve(DType::String)?;
/// assert_eq!(parse_one(&f16, b" 65519.9999999999999999999\n"), Ok(Outcome::Defined(0x7bff))); // not through f64
/// assert!(parse_one(&f16, b"1_000").is_err());
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
pub fn parse_one(spec: &CastSpec, text: &[u8]) -> Result<Outcome, ParseDecimalError> {
    let number = read(spec.dst, text)?;
    Ok(encode_number(spec.dst, &spec.policy, &number).outcome(spec.undefined))
}

/// Reads a text for a destination of type bool, integer or float.
///
/// Source: `docs/spec/onnx.md §6.4`; §6.5 (an integer takes no Inf or NaN); §6.6 (`true` and `false` in any case, for
/// bool only).
///
/// # Errors
/// The errors of [`parse_one`].
#[inline]
pub fn read(dst: DType, text: &[u8]) -> Result<Number<'_>, ParseDecimalError> {
    let begin = text.iter().take_while(|b| is_space(**b)).count();
    let end = text.len() - text[begin..].iter().rev().take_while(|b| is_space(**b)).count();
    let inner = &text[begin..end];
    let failed = |what, at| ParseDecimalError { what, at: begin + at };
    match (scan(inner), dst.kind()) {
        (Ok(Number::Inf { .. }), Kind::Int(_)) => Err(failed("an integer cannot be infinite", 0)),
        (Ok(Number::Nan { .. }), Kind::Int(_)) => Err(failed("an integer cannot be NaN", 0)),
        (Ok(number), _) => Ok(number),
        (Err(_), Kind::Bool) if inner.eq_ignore_ascii_case(b"true") => scan(b"1"),
        (Err(_), Kind::Bool) if inner.eq_ignore_ascii_case(b"false") => scan(b"0"),
        (Err(error), _) => Err(failed(error.what, error.at)),
    }
}

/// Includes vertical tabs, unlike `u8::is_ascii_whitespace`.
#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Rounds a number once. Integer destinations use every digit of a text.
///
/// # Panics
/// If the destination is complex or text.
#[must_use]
pub fn encode_number(dst: DType, policy: &CastPolicy, number: &Number<'_>) -> Encoded {
    match (dst.kind(), number) {
        (Kind::Int(f), Number::Decimal(decimal)) => encode_whole(f, policy, decimal.neg, decimal.cut()),
        _ => encode(dst, policy, number.to_exact()),
    }
}

/// Writes one code as text.
///
/// Result: the definition. Source: `docs/spec/onnx.md §6.2`.
///
/// # Errors
/// [`Condition`]: the property of the value that an `error` policy refuses.
///
/// # Panics
/// If the source is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::onnx::Cast, text::print_one};
/// let print = |src, code| print_one(&Cast::to(DType::String).resolve(src).unwrap(), code).unwrap();
/// assert_eq!(print(DType::F32, 0x3b200000), "0.0024414062"); // of two equally near, the even one
/// assert_eq!(print(DType::F8E4M3Fn, 0x7e), "448.0"); // as the f32 of the same value
/// assert_eq!(print(DType::I4, 8), "-8");
/// assert_eq!(print(DType::F32, 0x60ad78ec), "1e+20"); // and in the other style:
/// let mut plain = Cast::to(DType::String).resolve(DType::F32).unwrap();
/// plain.policy.text = truecast_core::policy::TextStyle::Plain;
/// assert_eq!(print_one(&plain, 0x60ad78ec).unwrap(), "100000000000000000000.0");
/// ```
pub fn print_one(spec: &CastSpec, code: u64) -> Result<String, Condition> {
    let (src, policy) = (spec.src, printing(&spec.policy));
    let value = flush_source(decode(src, code), src, &policy);
    Ok(match (src.kind(), value) {
        (Kind::Bool, _) => if code != 0 { "True" } else { "False" }.into(),
        (Kind::Int(f), _) => f.value(code).to_string(),
        (_, Exact::Nan { .. }) if policy.nan == NanRule::Error => return Err(Condition::Nan),
        (_, Exact::Nan { .. }) => "nan".into(),
        (_, Exact::Inf { neg }) => if neg { "-inf" } else { "inf" }.into(),
        (_, Exact::Finite { neg, sig: 0, .. }) => if neg { "-0.0" } else { "0.0" }.into(),
        (_, Exact::Finite { neg, sig, exp, sticky }) => {
            let every = Digits::every(Exact::Finite { neg: false, sig, exp, sticky });
            let mut text = Vec::new();
            let read = |decimal: &Decimal<'_>| encode(digits_type(src), &CastPolicy::IEEE, decimal.to_exact()).code;
            let Digits { digits, exponent } = every.shortest(read);
            lay_out(&mut text, neg, &digits, exponent, Notation::new(every.exponent, policy.text));
            String::from_utf8(text).expect("digits are ASCII")
        }
    })
}

/// Returns a policy with only the fields that [`print_one`] uses; other fields have the values of [`CastPolicy::IEEE`].
/// Two policies with equal results print every element identically.
#[must_use]
pub const fn printing(policy: &CastPolicy) -> CastPolicy {
    CastPolicy {
        nan: if matches!(policy.nan, NanRule::Error) { NanRule::Error } else { NanRule::Keep },
        subnormals: Subnormals::new(policy.subnormals.flushes_source(), false),
        text: policy.text,
        ..CastPolicy::IEEE
    }
}

/// Returns the type to which the digits of an element must read back. Narrow types print as the f32 of the same value.
/// With the fewest digits for a narrow type, 448 would print as 450.
///
/// Source: `docs/spec/onnx.md §6.2` rules 1 and 6.
#[must_use]
pub const fn digits_type(src: DType) -> DType {
    match src {
        DType::F64 | DType::F16 | DType::Bf16 => src,
        _ => DType::F32,
    }
}

/// Notation of a printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `123.0`.
    Fixed,
    /// `1.23e+16`.
    Exponent,
}

impl Notation {
    /// Returns the notation of a number; `exponent` is the power of ten of the first digit of the **exact** value.
    /// Source: `docs/spec/onnx.md §6.2` rules 2 and 9.
    #[must_use]
    pub const fn new(exponent: i32, style: TextStyle) -> Notation {
        match style {
            TextStyle::Plain => Notation::Fixed,
            TextStyle::Reference if -4 <= exponent && exponent < 16 => Notation::Fixed,
            TextStyle::Reference => Notation::Exponent,
        }
    }
}

/// ASCII digits of a positive number, without zeros at either end. `exponent` is the power of ten that the first digit
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits {
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    fn every(value: Exact) -> Digits {
        let text = to_decimal(value);
        let point = text.find('.').unwrap_or(text.len()) as i32;
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b'.').collect();
        let zeros = digits.iter().take_while(|b| **b == b'0').count();
        Digits { digits: digits[zeros..].to_vec(), exponent: point - 1 - zeros as i32 }.trimmed()
    }

    fn trimmed(mut self) -> Digits {
        let end = self.digits.iter().rposition(|b| *b != b'0').map_or(0, |last| last + 1);
        self.digits.truncate(end);
        self
    }

    /// Fewest digits that round to the code of the full digits. If two candidates exist, the nearer one wins, and on a
    /// tie the one with an even last digit.
    fn shortest(&self, read: impl Fn(&Decimal<'_>) -> Option<u64>) -> Digits {
        let own = read(&self.decimal());
        let same = |digits: &Digits| read(&digits.decimal()) == own;
        let candidates = (1..self.digits.len()).find_map(|n| {
            let (head, rest) = self.digits.split_at(n);
            let down = Digits { digits: head.to_vec(), exponent: self.exponent };
            let up = down.next();
            match (same(&down), same(&up)) {
                (false, false) => None,
                (true, false) => Some(down),
                (false, true) => Some(up),
                (true, true) => {
                    let even = head[n - 1] % 2 == 0;
                    let is_down = rest < b"5" || (rest == b"5" && even);
                    Some(if is_down { down } else { up })
                }
            }
        });
        candidates.unwrap_or_else(|| self.clone()).trimmed()
    }

    fn next(&self) -> Digits {
        let mut next = self.clone();
        for digit in next.digits.iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                return next;
            }
            *digit = b'0';
        }
        next.digits.insert(0, b'1');
        next.exponent += 1;
        next
    }

    fn decimal(&self) -> Decimal<'_> {
        let exponent = (self.exponent + 1) as i64 - self.digits.len() as i64;
        Decimal { neg: false, whole: &self.digits, fraction: &[], exponent }
    }
}

/// Writes digits, without zeros at either end, in the notation. Source: `docs/spec/onnx.md §6.2` rules 3 to 5.
///
/// Shapes: `digits` is ASCII; `exponent` is the power of ten of the first digit.
///
/// # Examples
/// ```
/// use truecast_core::text::{Notation, lay_out};
/// let mut text = Vec::new();
/// lay_out(&mut text, true, b"12", -5, Notation::Exponent);
/// assert_eq!(text, b"-1.2e-05");
/// ```
#[inline]
pub fn lay_out(text: &mut Vec<u8>, neg: bool, digits: &[u8], exponent: i32, notation: Notation) {
    if neg {
        text.push(b'-');
    }
    let zeros = |text: &mut Vec<u8>, n: i32| text.extend(core::iter::repeat_n(b'0', n.max(0) as usize));
    match notation {
        Notation::Fixed => {
            let (whole, fraction) = digits.split_at(digits.len().min((exponent + 1).max(0) as usize));
            text.extend_from_slice(whole);
            zeros(text, exponent + 1 - whole.len() as i32);
            text.extend_from_slice(if exponent < 0 { b"0." } else { b"." });
            zeros(text, -1 - exponent);
            text.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
        }
        Notation::Exponent => {
            let (first, others) = digits.split_at(1);
            text.extend_from_slice(first);
            if !others.is_empty() {
                text.push(b'.');
                text.extend_from_slice(others);
            }
            text.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            let magnitude = exponent.unsigned_abs();
            if magnitude >= 100 {
                text.push(b'0' + (magnitude / 100) as u8);
            }
            text.extend([b'0' + (magnitude / 10 % 10) as u8, b'0' + (magnitude % 10) as u8]);
        }
    }
}
