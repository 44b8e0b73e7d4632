//! Untrusted names and paths in messages. They are on one line, without unprintable characters.

use std::fmt;
use std::path::Path;

/// A printable form of a name from a file. The name is in double quotes, and is cut after 200 characters. Control
/// characters and other unprintable characters are escaped.
///
/// # Examples
/// ```
/// use truecast_io::Escaped;
/// assert_eq!(Escaped("a\u{1b}[31m").to_string(), r#""a\u{1b}[31m""#);
/// assert_eq!(Escaped(&"x".repeat(300)).to_string().len(), 2 + 200 + "…".len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(200) {
            None => f.write_str(&one_line(&format!("{:?}", self.0))),
            Some((end, _)) => {
                let cut = one_line(&format!("{:?}", &self.0[..end]));
                write!(f, "{}…\"", &cut[..cut.len() - 1])
            }
        }
    }
}

/// A path for printing: without quotes, unprintable characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct EscapedPath<'a>(pub &'a Path);

impl fmt::Display for EscapedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string_lossy().chars() {
            match c {
                _ if is_unseen(c) => f.write_str(&one_line(c.encode_utf8(&mut [0; 4])))?,
                '"' | '\'' | '\\' => write!(f, "{c}")?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// Returns a count and its noun, in the plural where needed; `thing` is the singular.
///
/// # Examples
/// ```
/// use truecast_io::counted;
/// assert_eq!([counted(1, "shard"), counted(0, "key"), counted(2, "entry")], ["1 shard", "0 keys", "2 entries"]);
/// ```
#[must_use]
pub fn counted(n: u64, thing: &str) -> String {
    format!("{n} {}", noun(n, thing))
}

/// Formats a number of bytes with three significant digits and a binary unit.
///
/// # Examples
/// ```
/// use truecast_io::in_units;
/// let shown = [999, 1000, 90_864_832, 1 << 30, (1 << 20) - 1].map(in_units);
/// assert_eq!(shown, ["999 B", "0.98 KiB", "86.7 MiB", "1.00 GiB", "1.00 MiB"]);
/// ```
#[must_use]
pub fn in_units(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    // 999.5 would be printed with four digits.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Returns the noun for a count, in the plural where needed; `thing` is the singular.
#[must_use]
pub fn noun(n: u64, thing: &str) -> String {
    match thing.strip_suffix('y') {
        _ if n == 1 => thing.into(),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{thing}s"),
    }
}

/// Escapes control characters and invisible characters, which keeps the text on one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if c.is_control() => out.extend(c.escape_debug()),
            _ if is_unseen(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}

/// Whether a character is a control character, is invisible, or reverses, joins or separates its neighbors. With such
/// characters a name could move the cursor, or look like another name.
///
/// Source: Unicode's property `Default_Ignorable_Code_Point`, with line and paragraph separators and interlinear
/// annotations.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    let is_ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || is_ignorable || matches!(c, '\u{2028}'..='\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_escaped_everywhere() {
        for (c, escaped) in [
            ('\u{202e}', r"\u{202e}"),
            ('\u{2066}', r"\u{2066}"),
            ('\u{200d}', r"\u{200d}"),
            ('\u{3164}', r"\u{3164}"),
            ('\u{fe0f}', r"\u{fe0f}"),
            ('\u{e0041}', r"\u{e0041}"),
            ('\u{1b}', r"\u{1b}"),
            ('\n', r"\n"),
        ] {
            let name = format!("a{c}b");
            assert_eq!(Escaped(&name).to_string(), format!("\"a{escaped}b\""));
            assert_eq!(EscapedPath(Path::new(&name)).to_string(), format!("a{escaped}b"));
            assert_eq!(one_line(&name), format!("a{escaped}b"));
        }
        assert_eq!(Escaped("q\"é").to_string(), r#""q\"é""#);
    }

    #[test]
    fn a_cut_name_stays_quoted() {
        let text = Escaped(&"\n".repeat(201)).to_string();
        assert_eq!(text, format!("\"{}…\"", "\\n".repeat(200)));
    }
}
