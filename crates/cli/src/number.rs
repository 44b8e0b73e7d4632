//! Numbers in text output: few digits, with units or nouns. `--json` has all digits.

pub use truecast::io::in_units as bytes;

/// Text such as `1_234_567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// Text such as `1 tensor`, `2 tensors` or `0 entries`; `thing` is the singular.
pub fn count(n: u64, thing: &str) -> String {
    format!("{} {}", grouped(n), truecast::io::noun(n, thing))
}

/// Shortest time in seconds for which a rate is shown.
const SHORTEST_SECONDS: f64 = 0.1;
/// Smallest number of bytes for which a rate is shown.
const FEWEST_BYTES: u64 = 1 << 20;

/// Rate in bytes per second. `None` if the time is too short or the data too small.
pub fn rate(bytes: u64, seconds: f64) -> Option<String> {
    let says_something = bytes >= FEWEST_BYTES && seconds >= SHORTEST_SECONDS;
    says_something.then(|| format!("{}/s", self::bytes((bytes as f64 / seconds) as u64)))
}

/// Number with `digits` significant digits. From 1e-4 to below 1e6 without an exponent.
///
/// `0`, `1.00`, `253`, `0.0125`, `1.20e-5`, `3.40e38`
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        // Adding 0.0 turns -0.0 into 0.0.
        return format!("{}", value + 0.0);
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -4..=5) => {
            let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
            format!("{value:.decimals$}")
        }
        _ => scientific,
    }
}

/// Decibels with one decimal; -0.0 becomes 0.0.
pub fn decibels(value: f64) -> String {
    let tenths = format!("{value:.1}");
    if tenths == "-0.0" { "0.0".into() } else { tenths }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_of_almost_nothing() {
        assert_eq!(rate(22 << 10, 1.0), None);
        assert_eq!(rate(1 << 30, 0.01), None);
        assert_eq!(rate(1 << 30, 2.0).as_deref(), Some("512 MiB/s"));
    }

    #[test]
    fn numbers_are_plain_where_they_can_be() {
        let cases = [(1.0, "1.00"), (253.4, "253"), (0.00153, "0.00153"), (17.0, "17.0"), (1.401e-45, "1.40e-45")];
        let more = [(123456.0, "123456"), (1.5e6, "1.50e6"), (0.0, "0"), (-0.0, "0"), (9.996, "10.0"), (-2.5, "-2.50")];
        for (value, text) in cases.into_iter().chain(more) {
            assert_eq!(significant(value, 3), text);
        }
        assert_eq!((significant(f64::INFINITY, 3), significant(1.5e-5, 4)), ("inf".into(), "1.500e-5".into()));
    }

    #[test]
    fn decibels_have_no_negative_zero() {
        assert_eq!([decibels(-0.04), decibels(31.43), decibels(-1.0)], ["0.0", "31.4", "-1.0"]);
    }
}
