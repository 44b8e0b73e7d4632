//! Tables of `docs/spec/tosa.md`.

const PAGE: &str = include_str!("../../../../docs/spec/tosa.md");

/// Rows of the first table after the text `after`, in the section that begins with `heading`; the header is the first
/// row.
pub fn table(heading: &str, after: &str) -> Vec<Vec<String>> {
    let section = &PAGE[PAGE.find(&format!("\n{heading}")).unwrap_or_else(|| panic!("no section {heading}"))..];
    let text = &section[section.find(after).unwrap_or_else(|| panic!("no {after:?} in {heading}"))..];
    let lines = text.lines().skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|'));
    let cells = |line: &str| {
        let line = line.trim_matches('|').replace("\\|", "\u{0}");
        line.split('|').map(|c| c.trim().replace('\u{0}', "|")).collect::<Vec<_>>()
    };
    lines.map(cells).filter(|row| !row[0].starts_with("---")).collect()
}

/// Format `0x..`.
pub fn hex(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").unwrap_or_else(|| panic!("{text} is not hexadecimal"));
    u64::from_str_radix(digits, 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Formats `3`, `-3`, `2^31-1`, `-2^31`, `10^9`.
pub fn integer(text: &str) -> i64 {
    let text = text.trim().trim_end_matches('*').replace(' ', "");
    let (neg, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (power, less) = match magnitude.split_once('-') {
        Some((power, less)) => (power, less.parse().unwrap()),
        None => (magnitude, 0),
    };
    let value = match power.split_once('^') {
        Some((base, exponent)) => base.parse::<i64>().unwrap().pow(exponent.parse().unwrap()),
        None => power.parse().unwrap_or_else(|e| panic!("{text}: {e}")),
    };
    let value = value - less;
    if neg { -value } else { value }
}
