//! Standard output: text, or the one object of `--json` (`docs/interfaces.md §6`).

use crate::failure::Failure;
use crate::message::is_unseen;
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, BufWriter, Write};

thread_local! {
    /// Instead of standard output, what is printed by this thread.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Runs a command, and gives what it prints instead of printing it.
pub fn captured<T>(command: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.set(Some(Vec::new()));
    let result = command();
    let printed = CAPTURED.take().unwrap_or_default();
    (result, String::from_utf8_lossy(&printed).into_owned())
}

/// Writes text; what is not seen in it is escaped.
pub fn text(text: &str) -> Result<(), Failure> {
    stream(|out| out.write_all(text.as_bytes()))
}

/// Writes piece by piece what is too long to be in memory. A reader that closes the pipe early is no error, and changes
/// nothing else.
pub fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if let Some(mut captured) = CAPTURED.take() {
        let written = write(&mut Escaped(&mut captured, Escapes::Text));
        CAPTURED.set(Some(captured));
        return written.map_err(Failure::system);
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut Escaped(&mut out, Escapes::Text)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format_args!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The object of a command: version and command first.
#[derive(Serialize)]
struct Object<'a, B> {
    truecast: &'static str,
    command: &'a str,
    #[serde(flatten)]
    body: B,
}

/// A list whose rows are made when they are written: a long one is never in memory.
pub struct Rows<F>(pub F);

impl<R: Serialize, I: Iterator<Item = R>, F: Fn() -> I> Serialize for Rows<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Writes the object of a command to standard output.
pub fn json(command: &str, body: impl Serialize) -> Result<(), Failure> {
    stream(|out| write_json(out, command, body))
}

/// Writes the object of a command. `body` is a map or a structure.
pub fn write_json(out: &mut dyn Write, command: &str, body: impl Serialize) -> io::Result<()> {
    let object = Object { truecast: env!("CARGO_PKG_VERSION"), command, body };
    serde_json::to_writer_pretty(Escaped(&mut *out, Escapes::Json), &object)?;
    out.write_all(b"\n")
}

/// JSON in one line, such as that of an error.
pub fn json_line(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    serde_json::to_writer(Escaped(&mut text, Escapes::Json), value).expect("a vector takes everything");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// How characters that are not seen are written instead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// `\u{202e}`; lines, tabs and colours stay.
    Text,
    /// `\u202e`, beyond the control characters that JSON escapes anyway.
    Json,
}

/// What goes to standard output, of which names and texts come from files: nothing in it can move the cursor or look like
/// something else, whoever made it.
struct Escaped<W>(W, Escapes);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Everything is written in whole texts.
        let mut rest = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        while let Some((at, c)) = rest.char_indices().find(|&(at, c)| is_unseen(c) && !self.allows(&rest[at..])) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            match self.1 {
                Escapes::Text => write!(self.0, "{}", c.escape_unicode())?,
                Escapes::Json => {
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
    /// The text begins with something unseen that is the program's own.
    fn allows(&self, text: &str) -> bool {
        let is_colour = || {
            let codes =
                text.strip_prefix("\u{1b}[").map(|text| text.trim_start_matches(|c| matches!(c, '0'..='9' | ';')));
            codes.is_some_and(|rest| rest.starts_with('m'))
        };
        text.starts_with('\n') || (self.1 == Escapes::Text && (text.starts_with('\t') || is_colour()))
    }
}

/// The object of a command as text, for what is written elsewhere.
pub fn pretty(command: &str, body: impl Serialize) -> String {
    let mut text = Vec::new();
    write_json(&mut text, command, body).expect("a vector takes everything");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Bits as `docs/interfaces.md §6` writes them, with as many digits as the code has.
pub fn bits(code: u64, width: u32) -> String {
    format!("{code:#0digits$x}", digits = width.div_ceil(4) as usize + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controls of both sets, separators and marks of direction: `docs/interfaces.md §6`.
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

    #[test]
    fn json_says_the_same_in_characters_that_are_seen() {
        for c in UNSEEN.into_iter().chain(['\u{1b}', '\n', '\u{e0041}']) {
            let value = serde_json::json!({ "name": format!("a{c}b") });
            for text in [json_line(&value), pretty("inspect", &value)] {
                assert!(text.chars().all(|c| c == '\n' || !is_unseen(c)), "{text:?}");
                let read: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(read["name"], value["name"]);
            }
        }
    }
}
