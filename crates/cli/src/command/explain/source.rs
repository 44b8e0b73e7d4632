//! The value to explain: its text, and its element of the source type.

use crate::failure::{Failure, Mend};
use crate::number_format::NumberFormat;
use std::fmt::Display;
use truecast::decimal::to_decimal;
use truecast::exact::{decode, encode};
use truecast::explain::{Decoded, RoundingError, rounding_error};
use truecast::literal::{Literal, ratio, read};
use truecast::policy::{CastPolicy, Condition, IntOverflow};
use truecast::{DType, Exact, Kind};

pub struct Source {
    pub code: u64,
    /// True if the number that the user entered was not rounded.
    pub exact: bool,
    pub off_by: Option<RoundingError>,
    /// Types that can hold the number that the user entered, if it overflowed the source type.
    pub beyond: Option<Vec<DType>>,
}

pub fn not_a_number(text: &str, error: impl Display) -> Failure {
    let failure = failure!(InvalidValue, "{text:?} is not a number: {error}");
    // Commas between groups of three digits, or a decimal comma, or the suffix of a type in C and Rust.
    let meant = text.replace(',', ".");
    let whole = text.replace(',', "");
    let is_grouped = text.contains(',')
        && text.split(',').skip(1).all(|group| group.split('.').next().is_some_and(|digits| digits.len() == 3));
    if is_grouped && read(&whole).is_ok() {
        let or = if read(&meant).is_ok() { format!(" or {meant}") } else { String::new() };
        return failure.with_hint(&format!("write {whole}{or}"));
    }
    let meant = meant.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if text != meant && !text.starts_with("0x") && read(meant).is_ok() {
        return failure.with_hint(&format!("write {meant}")).mended(Mend::replace(text, meant));
    }
    failure.with_hint(match text {
        "true" | "false" => "--from bool takes it",
        _ if text.starts_with("0x") => "write a code such as 0x3f80",
        _ => "write a number such as -1.5e3 or 1/3, or a code such as 0x3f80",
    })
}

impl Source {
    pub fn text() -> Source {
        Source::exact(0)
    }

    fn exact(code: u64) -> Source {
        Source { code, exact: true, off_by: None, beyond: None }
    }

    /// Parses a code or a number of type `from`. A number is rounded at most once.
    pub fn read(text: &str, from: DType) -> Result<Source, Failure> {
        if from == DType::Bool {
            for (word, code) in [("false", 0), ("true", 1)] {
                if text.eq_ignore_ascii_case(word) {
                    return Ok(Source::exact(code));
                }
            }
        }
        let value = match read(text).map_err(|error| not_a_number(text, error))? {
            Literal::Code(code) => return of_code(text, code, NumberFormat::Type(from)).map(Source::exact),
            Literal::Number(value) => value,
        };
        match from.kind() {
            Kind::Int(_) => integer(text, value, from).map(Source::exact),
            _ => rounded(text, value, from),
        }
    }
}

pub fn of_code(text: &str, code: u64, from: NumberFormat) -> Result<u64, Failure> {
    let width = from.code_bits();
    if width < 64 && code >> width != 0 {
        Err(failure!(InvalidValue, "{text} has more than the {width} bits of {from}"))
    } else {
        Ok(code)
    }
}

fn integer(text: &str, value: Exact, from: DType) -> Result<u64, Failure> {
    let Kind::Int(f) = from.kind() else { unreachable!("asked of integers") };
    let policy = CastPolicy { int_overflow: IntOverflow::Error, ..CastPolicy::IEEE };
    let encoded = encode(from, &policy, value);
    match (encoded.code, encoded.condition) {
        (Some(code), None) => Ok(code),
        (_, Some(Condition::Overflow)) => {
            Err(failure!(InvalidValue, "{text} is outside {from}: {} to {}", f.min(), f.max()))
        }
        _ => Err(failure!(InvalidValue, "{text:?} is not an integer, but {from} is")),
    }
}

fn rounded(text: &str, value: Exact, from: DType) -> Result<Source, Failure> {
    let encoded = encode(from, &CastPolicy::IEEE, value);
    let code = encoded.code.ok_or_else(|| failure!(InvalidValue, "{text} has no code in {from}"))?;
    let read = Decoded { dtype: from, code, value: decode(from, code) };
    let exact = match (value, read.value) {
        (Exact::Finite { sticky: true, .. }, _) => false,
        (Exact::Finite { .. }, Exact::Finite { .. }) => to_decimal(value) == to_decimal(read.value),
        (Exact::Nan { .. }, Exact::Nan { .. }) | (Exact::Inf { .. }, Exact::Inf { .. }) => true,
        _ => false,
    };
    let off_by = if exact { None } else { ratio(text).and_then(|typed| rounding_error(&typed, &read)) };
    let is_number = |value| matches!(value, Exact::Finite { .. });
    let holds = |dtype: &DType| {
        encode(*dtype, &CastPolicy::IEEE, value).code.is_some_and(|code| is_number(decode(*dtype, code)))
    };
    let beyond = encoded.condition == Some(Condition::Overflow) && !is_number(read.value);
    let beyond = beyond.then(|| [DType::F32, DType::F64].into_iter().filter(holds).collect());
    Ok(Source { code, exact, off_by, beyond })
}
