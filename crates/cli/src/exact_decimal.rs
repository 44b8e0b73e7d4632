//! Exact values as decimal numbers: all digits, or the leading digits and the number of digits.

use crate::number::significant;
use crate::output::bits;
use crate::terminal::Terminal;
use truecast::DType;
use truecast::Exact;
use truecast::decimal::to_decimal;
use truecast::exact::{decode, encode};
use truecast::policy::CastPolicy;

/// Longest number, in characters, that never gets an exponent.
const PLAIN: usize = 24;
/// Longest number, in characters, with all digits.
const LONGEST: usize = 40;
const LEADING: usize = 23;

/// Short text of a value, for a table. A power of two with many digits is `2^e`. Other values with many digits are
/// cut to the leading digits.
pub fn shown(value: Exact) -> String {
    let every = to_decimal(value);
    match value {
        Exact::Finite { neg, sig, exp, sticky: false } if every.len() > PLAIN && sig.is_power_of_two() => {
            format!("{}2^{}", if neg { "-" } else { "" }, exp + sig.ilog2() as i32)
        }
        _ => few(&every),
    }
}

/// Short text of a value: at most 12 characters, or 9 significant digits. Nine digits distinguish all values of f32.
pub fn brief(value: Exact) -> String {
    const DIGITS: usize = 9;
    let shown = shown(value);
    if is_brief(&shown) {
        return shown;
    }
    match to_decimal(value).parse::<f64>() {
        Ok(x) if x.is_normal() => significant(x, DIGITS),
        _ => scientific(value, DIGITS),
    }
}

fn is_brief(shown: &str) -> bool {
    shown.len() <= 12
}

/// The shortest decimal number that parses to this value of a floating-point type. `None` for other types, NaN and
/// infinities.
pub fn shortest(dtype: DType, value: f64) -> Option<f64> {
    if !dtype.is_float() || !value.is_finite() {
        return None;
    }
    let code = |x: f64| encode(dtype, &CastPolicy::IEEE, decode(DType::F64, x.to_bits())).code;
    let of = |digits: usize| format!("{value:.*e}", digits - 1).parse::<f64>().ok();
    (1..=17).filter_map(of).find(|x| code(*x) == code(value))
}

/// Code and value, for example `0x7e = 448`. A terminal rounds a long value, for example `0x7f61 ≈ 2.99076299e38`.
pub fn code_with_value(dtype: DType, code: u64, terminal: &Terminal) -> String {
    let value = decode(dtype, code);
    let shown = shown(value);
    let is_whole = terminal.width.is_none() || is_brief(&shown);
    let value = if is_whole { format!("= {shown}") } else { format!("≈ {}", brief(value)) };
    format!("{} {value}", bits(code, dtype.code_bits()))
}

/// Sign (`-` or empty), and the rest.
fn signed(number: &str) -> (&str, &str) {
    number.split_at(number.starts_with('-') as usize)
}

/// First to last nonzero digit, and decimal exponent of the first digit.
fn digits_of(decimal: &str) -> (String, i64) {
    let point = decimal.find('.').unwrap_or(decimal.len());
    let digits = decimal.replace('.', "");
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    (digits.trim_matches('0').into(), point as i64 - 1 - zeros as i64)
}

/// Text such as `1.25e-3`, made from the digits 125 and the exponent -3.
fn with_exponent(sign: &str, digits: &str, exponent: i64) -> String {
    let (first, rest) = digits.split_at(1);
    format!("{sign}{first}{}{rest}e{exponent}", if rest.is_empty() { "" } else { "." })
}

/// Shorter of two notations, one plain and one with an exponent. Very long numbers are cut to their leading digits.
pub fn few(every: &str) -> String {
    let (sign, decimal) = signed(every);
    let (digits, exponent) = digits_of(decimal);
    if every.len() <= PLAIN || digits.is_empty() {
        return every.into();
    }
    let with_exponent = with_exponent(sign, &digits, exponent);
    let shorter = if with_exponent.len() < every.len() { with_exponent } else { every.into() };
    if shorter.len() <= LONGEST {
        return shorter;
    }
    let count = digits.len();
    match exponent {
        // A small number with an exponent would be hardly shorter.
        -4..=19 => format!("{sign}{}…, {count} digits", &decimal[..LEADING + 1 + (-exponent).max(0) as usize]),
        _ => format!("{sign}{}.{}…e{exponent}, {count} digits", &digits[..1], &digits[1..LEADING.min(count)]),
    }
}

/// Text such as `4.94e-324`. The value is rounded to nearest, to `digits` significant digits, and may exceed the range
/// of f64.
pub fn scientific(value: Exact, digits: usize) -> String {
    let every = to_decimal(value);
    let (sign, decimal) = signed(&every);
    let (all, mut exponent) = digits_of(decimal);
    if all.is_empty() {
        return decimal.into();
    }
    let at = |i: usize| all.as_bytes().get(i).map_or(0, |digit| u64::from(digit - b'0'));
    let mut kept = (0..digits).fold(0, |number, i| 10 * number + at(i)) + u64::from(at(digits) >= 5);
    if kept == 10u64.pow(digits as u32) {
        kept /= 10;
        exponent += 1;
    }
    with_exponent(sign, &kept.to_string(), exponent)
}

/// Value in JSON. A value that is zero or normal in f64 is a number, rounded to f64. Any other value is text with 17
/// digits.
pub fn json(value: Exact) -> serde_json::Value {
    match to_decimal(value).parse::<f64>() {
        Ok(x) if x.is_normal() || to_decimal(value) == "0" => x.into(),
        _ => scientific(value, 17).into(),
    }
}

/// Shortens a result of [`shown`] to at most `most` characters. Digits are cut first, then the number of digits; the
/// exponent remains.
pub fn shortened(number: &str, most: usize) -> String {
    let (number, count) = number.split_once(", ").map_or((number, String::new()), |(n, c)| (n, format!(", {c}")));
    let (mantissa, mut exponent) =
        number.find('e').map_or((number, String::new()), |at| (&number[..at], number[at..].into()));
    let (sign, digits) = signed(mantissa);
    let mut digits = digits.trim_end_matches('…').to_string();
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return number.chars().take(most).collect(); // NaN or an infinity
    }
    let whole = digits.find('.').unwrap_or(digits.len());
    if exponent.is_empty() && sign.len() + whole >= most {
        // The exponent keeps the magnitude; without it, a cut integer would be a smaller integer.
        digits.retain(|c| c != '.');
        digits.insert(1, '.');
        exponent = format!("e{}", whole - 1);
    }
    // The text keeps at least as many digits as `1.2345` has. If necessary, the number of digits is omitted.
    let few = sign.len() + "1.2345".len();
    let tails = [format!("…{exponent}{count}"), format!("…{exponent}")];
    let tail = tails.iter().find(|tail| tail.chars().count() + few <= most).unwrap_or(&tails[1]);
    let room = most.saturating_sub(sign.len() + tail.chars().count());
    let digits = digits.chars().take(room).collect::<String>();
    format!("{sign}{}{tail}", digits.trim_end_matches('.')).chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_digits_of_a_type() {
        for (dtype, value, digits) in [
            (DType::F32, f64::from(0.1f32), 0.1),
            (DType::F32, f64::from(3e38f32), 3e38),
            (DType::F16, 0.0999755859375, 0.1),
            (DType::F64, 0.1 + 0.2, 0.1 + 0.2),
            (DType::F8E4M3Fn, 0.001953125, 0.002),
        ] {
            assert_eq!(shortest(dtype, value), Some(digits));
        }
        assert_eq!(shortest(DType::I8, 3.0), None);
    }

    #[test]
    fn short_numbers_keep_their_size() {
        let long = "1.4012984643248170709237…e-45, 105 digits";
        for (number, most, text) in [
            (long, 30, "1.40129846432…e-45, 105 digits"),
            (long, 18, "1.40129846432…e-45"),
            (long, 6, "1…e-45"),
            ("-9.9999461011147595815259…e-41, 108 digits", 12, "-9.9999…e-41"),
            ("0.10000000000000000555111…, 55 digits", 12, "0.100000000…"),
            ("340282346638528859811704183484516925440", 12, "3.402823…e38"),
            ("12345.678901234567890123", 10, "12345.678…"),
            ("nan", 2, "na"),
        ] {
            assert_eq!(shortened(number, most), text);
        }
    }
}
