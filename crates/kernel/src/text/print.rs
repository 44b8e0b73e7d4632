//! Printing of one element. The shortest digits of f32 and f64 come from a library, other texts from the definition.

use truecast_core::policy::{Condition, NanRule, Subnormals, TextStyle};
use truecast_core::text::{MAX_LEN, Notation, lay_out, print_one};
use truecast_core::{CastSpec, DType, IntFormat, Kind};

#[derive(Debug)]
pub(crate) enum Printer {
    Int(IntFormat),
    /// f32; also tf32, whose storage is an f32.
    F32,
    F64,
    /// Narrow types, and rare policies.
    Definition,
}

impl Printer {
    pub(crate) fn new(spec: &CastSpec) -> Printer {
        let is_plain = spec.policy.nan != NanRule::Error && spec.policy.subnormals == Subnormals::Keep;
        match (spec.src, spec.src.kind()) {
            (_, Kind::Int(f)) => Printer::Int(f),
            (DType::F32 | DType::Tf32, _) if is_plain => Printer::F32,
            (DType::F64, _) if is_plain => Printer::F64,
            _ => Printer::Definition,
        }
    }

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
            Printer::Definition => text.extend_from_slice(print_one(spec, code)?.as_bytes()),
        }
        Ok(())
    }
}

/// Appends `printed`, the library's text of `value`, in the notation of truecast.
#[inline]
fn print_float(text: &mut Vec<u8>, value: f64, printed: &str, style: TextStyle) {
    if value.is_nan() {
        return text.extend_from_slice(b"nan");
    }
    let magnitude = value.abs();
    // 1e-4 as f64 is the least double above 10^-4 (`docs/spec/onnx.md §6.2` rule 2).
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
