//! Output in which invisible characters are escaped.

use serde::Serialize;
use std::io::{self, Write};
use truecast::io::is_unseen;

pub fn json_line(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    serde_json::to_writer(Escaped(&mut text, Escapes::Json), value).expect("a vector takes everything");
    String::from_utf8(text).expect("JSON is UTF-8")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// Escapes have the form `\u{202e}`. Newlines, tabs and color sequences are not escaped.
    Text,
    /// Escapes have the form `\u202e`. They replace invisible characters that JSON permits.
    Json,
    /// As `Json`, and `<`, which JSON has only in strings: no text ends an element of a page.
    JsonInPage,
}

/// Writer that escapes invisible characters, so that text from files cannot move the cursor.
pub struct Escaped<W>(pub W, pub Escapes);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Callers write complete UTF-8 strings.
        let mut rest = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        let escapes = |c| is_unseen(c) || (c == '<' && self.1 == Escapes::JsonInPage);
        while let Some((at, c)) = rest.char_indices().find(|&(at, c)| escapes(c) && !self.allows(&rest[at..])) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            match self.1 {
                Escapes::Text => write!(self.0, "{}", c.escape_unicode())?,
                Escapes::Json | Escapes::JsonInPage => {
                    c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(self.0, "\\u{unit:04x}"))?;
                }
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W> Escaped<W> {
    /// True if the text begins with a newline, tab or color sequence of the program.
    fn allows(&self, text: &str) -> bool {
        let is_color = || {
            let codes =
                text.strip_prefix("\u{1b}[").map(|text| text.trim_start_matches(|c| matches!(c, '0'..='9' | ';')));
            codes.is_some_and(|rest| rest.starts_with('m'))
        };
        text.starts_with('\n') || (self.1 == Escapes::Text && (text.starts_with('\t') || is_color()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control characters, line separators and direction marks (`docs/interfaces.md §6`).
    const UNSEEN: [char; 8] =
        ['\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202e}', '\u{2066}'];

    fn written(text: &str, escapes: Escapes) -> String {
        let mut out = Vec::new();
        Escaped(&mut out, escapes).write_all(text.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_unseen_is_printed() {
        for c in UNSEEN.into_iter().chain(['\u{1b}', '\r', '\u{7}', '\u{e0041}']) {
            let text = written(&format!("a{c}é"), Escapes::Text);
            assert_eq!(text, format!("a\\u{{{:x}}}é", c as u32));
        }
        assert_eq!(
            written("\u{1b}[1m\u{1b}[31mbad\u{1b}[0m\t\n", Escapes::Text),
            "\u{1b}[1m\u{1b}[31mbad\u{1b}[0m\t\n"
        );
        assert_eq!(written("\u{1b}]0;title\u{7}", Escapes::Text), "\\u{1b}]0;title\\u{7}");
    }
}
