//! Printing one element: shortest digits of f32 and f64 from a library, of narrow types from a table that the definition
//! fills on demand.

use super::power::leading_bits;
use std::sync::OnceLock;
use truecast_core::decimal::Decimal;
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, Condition, NanRule, Subnormals, TextStyle};
use truecast_core::text::{MAX_LEN, Notation, digits_type, lay_out, max_len, print_with};
use truecast_core::{CastSpec, DType, IntFormat, Kind};

/// How elements of a type are printed.
#[derive(Debug)]
pub(crate) enum Printer {
    /// Plain decimal.
    Int(IntFormat),
    /// f32, and what is stored like it.
    F32,
    F64,
    /// By code, for types of 16 bits or fewer.
    Table(Table<MAX_LEN>),
    /// The same in plain notation, which takes more room.
    PlainTable(Table<PLAIN_LEN>),
    /// Rare policies.
    Definition,
}

/// The longest plain text of a type of 16 bits or fewer; all of them have fewer digits than f64.
const PLAIN_LEN: usize = max_len(DType::F32, TextStyle::Plain);

/// Texts of at most `N` bytes by code, each made when it is first asked for.
#[derive(Debug)]
pub(crate) struct Table<const N: usize>(Box<[OnceLock<Result<Entry<N>, Condition>>]>);

#[derive(Debug)]
struct Entry<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> Table<N> {
    fn new(bits: u32) -> Self {
        Table((0..1 << bits).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    fn print(&self, spec: &CastSpec, code: u64, text: &mut Vec<u8>) -> Result<(), Condition> {
        let make = || define(spec, code).map(|made| Entry::new(&made));
        match self.0[code as usize].get_or_init(make) {
            Ok(Entry { len, bytes }) => {
                text.extend_from_slice(&bytes[..*len as usize]);
                Ok(())
            }
            Err(condition) => Err(*condition),
        }
    }
}

impl<const N: usize> Entry<N> {
    fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Entry { len: text.len() as u8, bytes }
    }
}

impl Printer {
    pub(crate) fn new(spec: &CastSpec) -> Printer {
        let is_plain = spec.policy.nan != NanRule::Error && spec.policy.subnormals == Subnormals::Keep;
        let bits = spec.src.code_bits();
        match (spec.src, spec.src.kind()) {
            (_, Kind::Int(f)) => Printer::Int(f),
            _ if bits <= 16 && spec.policy.text == TextStyle::Plain => Printer::PlainTable(Table::new(bits)),
            _ if bits <= 16 => Printer::Table(Table::new(bits)),
            (DType::F32 | DType::Tf32, _) if is_plain => Printer::F32,
            (DType::F64, _) if is_plain => Printer::F64,
            _ => Printer::Definition,
        }
    }

    /// Appends the text of a storage element.
    #[inline]
    pub(crate) fn print(&self, spec: &CastSpec, storage: u64, text: &mut Vec<u8>) -> Result<(), Condition> {
        let code = spec.src.code_of_storage(storage);
        match self {
            Printer::Int(f) if f.signed => {
                text.extend_from_slice(itoa::Buffer::new().format(f.value(code) as i64).as_bytes());
            }
            Printer::Int(_) => text.extend_from_slice(itoa::Buffer::new().format(code).as_bytes()),
            Printer::F32 => {
                let value = f32::from_bits(spec.src.storage_of_code(code) as u32);
                print_float(text, value.into(), zmij::Buffer::new().format(value), spec.policy.text);
            }
            Printer::F64 => {
                let value = f64::from_bits(code);
                print_float(text, value, zmij::Buffer::new().format(value), spec.policy.text);
            }
            Printer::Table(table) => return table.print(spec, code, text),
            Printer::PlainTable(table) => return table.print(spec, code, text),
            Printer::Definition => text.extend_from_slice(define(spec, code)?.as_bytes()),
        }
        Ok(())
    }
}

/// The definition, reading candidates back quickly.
fn define(spec: &CastSpec, code: u64) -> Result<String, Condition> {
    print_with(spec, code, |decimal: &Decimal<'_>| {
        let value = leading_bits(decimal).unwrap_or_else(|| decimal.to_exact());
        encode(digits_type(spec.src), &CastPolicy::IEEE, value).code
    })
}

/// Appends what the library printed, in our notation. `value` is the same number.
#[inline]
fn print_float(text: &mut Vec<u8>, value: f64, printed: &str, style: TextStyle) {
    if value.is_nan() {
        return text.extend_from_slice(b"nan");
    }
    let magnitude = value.abs();
    // 1e-4 as f64 is the least double above one ten-thousandth (`docs/spec/onnx.md §6.2` rule 2).
    let is_fixed = magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) || style == TextStyle::Plain;
    let mark = printed.bytes().position(|b| b == b'e');
    if (is_fixed && mark.is_none()) || value.is_infinite() {
        return text.extend_from_slice(printed.as_bytes());
    }
    let (mantissa, power) = printed.split_at(mark.unwrap_or(printed.len()));
    let power = if power.is_empty() { 0 } else { power[1..].parse().unwrap_or(0) };
    let mantissa = mantissa.trim_start_matches('-').as_bytes();
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let (mut digits, mut len) = ([0; MAX_LEN], 0);
    for digit in mantissa.iter().filter(|b| **b != b'.') {
        digits[len] = *digit;
        len += 1;
    }
    let zeros = digits[..len].iter().take_while(|b| **b == b'0').count();
    let end = digits[..len].iter().rposition(|b| *b != b'0').map_or(len, |last| last + 1);
    let exponent = point as i32 - 1 - zeros as i32 + power;
    let notation = if is_fixed { Notation::Fixed } else { Notation::Exponent };
    lay_out(text, value.is_sign_negative(), &digits[zeros..end], exponent, notation);
}
