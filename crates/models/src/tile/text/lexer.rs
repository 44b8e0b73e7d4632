//! Splits text into tokens with positions (§9.2). A lexer is a position in the text, so a copy can look ahead.

use crate::tile::error::{Cause, Diagnostic, Place, shown};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Letters, digits, `_`, `.`, `$`: a name, keyword or number, or a shape with its element type.
    Word(&'a str),
    /// `%name`, without the sign.
    Value(&'a str),
    /// `@name` or `@"name"`, without the sign and the quotes.
    Symbol(&'a str),
    /// `"text"`, without the quotes.
    Text(&'a str),
    /// `->`.
    Arrow,
    Sign(char),
    End,
}

/// Escapes a name for use in quotes: a backslash before quotes and backslashes, codes for control characters.
pub(super) fn escaped(name: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        _ if c.is_control() => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:02X}")).collect(),
        _ => c.to_string(),
    };
    name.chars().map(escape).collect()
}

/// Reverses [`escaped`] and MLIR's other escapes. An invalid escape stays.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
        let (byte, taken) = match (first, after) {
            (b'\\', [quoted @ (b'"' | b'\\'), ..]) => (*quoted, 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [high, low, ..]) => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => (*first, 1),
            },
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(text) => write!(f, "\"{}\"", shown(text)),
            Token::Value(text) => write!(f, "\"%{}\"", shown(text)),
            Token::Symbol(text) => write!(f, "\"@{}\"", shown(text)),
            Token::Text(_) => f.write_str("a string"),
            Token::Arrow => f.write_str("\"->\""),
            Token::Sign(c) => write!(f, "{:?}", c.to_string()),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme<'a> {
    pub token: Token<'a>,
    pub place: Place,
    /// Whether the token is the first of its line.
    pub leads_line: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
    leads_line: bool,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, column: 1, leads_line: true }
    }

    /// Text between this position and a later position.
    pub fn text_up_to(&self, later: &Lexer<'a>) -> &'a str {
        &self.rest[..self.rest.len() - later.rest.len()]
    }

    fn place(&self) -> Place {
        Place::Text { line: self.line, column: self.column }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        match taken.rfind('\n') {
            Some(at) => {
                self.line = self.line.saturating_add(taken.matches('\n').count() as u32);
                self.column = 1 + taken[at + 1..].chars().count() as u32;
                self.leads_line = true;
            }
            None => self.column = self.column.saturating_add(taken.chars().count() as u32),
        }
        self.rest = rest;
        taken
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len()))
    }

    fn skip_blanks(&mut self) {
        loop {
            self.run(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.run(|c| c != '\n')
            } else {
                return;
            };
        }
    }

    pub fn next(&mut self) -> Result<Lexeme<'a>, Diagnostic> {
        self.skip_blanks();
        let (place, leads_line) = (self.place(), self.leads_line);
        let token = self.token(place)?;
        self.leads_line = false;
        Ok(Lexeme { token, place, leads_line })
    }

    fn token(&mut self, place: Place) -> Result<Token<'a>, Diagnostic> {
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
        let unexpected =
            |expected: &str, found: String| Diagnostic::new(place, Cause::Syntax { expected: expected.into(), found });
        Ok(match first {
            '%' | '@' if self.rest[1..].starts_with(in_name) => {
                self.take(1);
                let name = self.run(in_name);
                if first == '%' { Token::Value(name) } else { Token::Symbol(name) }
            }
            '@' if self.rest[1..].starts_with('"') => {
                self.take(1);
                Token::Symbol(self.string(place)?)
            }
            '%' | '@' => return Err(unexpected("a name", format!("{first:?}"))),
            '"' => Token::Text(self.string(place)?),
            '-' if self.rest.starts_with("->") => {
                self.take(2);
                Token::Arrow
            }
            c if c.is_ascii_alphanumeric() || c == '_' => Token::Word(self.word()),
            c if c.is_ascii_punctuation() => {
                self.take(1);
                Token::Sign(c)
            }
            c => return Err(unexpected("a token", format!("{c:?}"))),
        })
    }

    /// Takes a word. If the word is a number, a sign may follow its `e`.
    fn word(&mut self) -> &'a str {
        let whole = self.rest;
        let word = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
        let mantissa = word.strip_suffix(['e', 'E']).unwrap_or("");
        let is_number = mantissa.starts_with(|c: char| c.is_ascii_digit())
            && mantissa.chars().all(|c| c.is_ascii_digit() || c == '.');
        let signed = self.rest.strip_prefix(['+', '-']).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
        if is_number && signed {
            self.take(1);
            self.run(|c| c.is_ascii_digit());
        }
        &whole[..whole.len() - self.rest.len()]
    }

    /// Takes text in quotes. A quote after a backslash does not end the text.
    fn string(&mut self, place: Place) -> Result<&'a str, Diagnostic> {
        self.take(1);
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = c == '"' && !escaped || c == '\n';
            escaped = c == '\\' && !escaped;
            ends
        });
        match end {
            Some(at) if self.rest[at..].starts_with('"') => {
                let text = self.take(at);
                self.take(1);
                Ok(text)
            }
            _ => {
                let (expected, found) = ("a closing quote".into(), "the end of the line".into());
                Err(Diagnostic::new(place, Cause::Syntax { expected, found }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_quotes() {
        for name in ["a b", "\\", "\"", "k\u{3}n\n\0\\", "\u{9b}\u{e9}", "\\0A", "\\n"] {
            let text = escaped(name);
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert_eq!(unescaped(&text), name);
        }
        assert_eq!(unescaped(r"a\tb\n\22\5C\q\"), "a\tb\n\"\\\\q\\");
    }
}
