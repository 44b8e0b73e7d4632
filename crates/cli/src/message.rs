//! Lines on standard error: errors and warnings (`docs/interfaces.md §5`).

use crate::escaped::json_line;
use crate::terminal::{Mark, Terminal};
use serde_json::json;
use std::io::{self, Write};
pub use truecast::io::one_line;

pub fn error(text: &str) {
    message(Mark::Bad, "truecast:", text);
}

pub fn error_object(text: &str, code: &str, exit_code: u8) {
    let version = env!("CARGO_PKG_VERSION");
    let line = json!({ "truecast": version, "error": text, "code": code, "exit_code": exit_code });
    write_line(&json_line(&line));
}

pub fn warning(text: &str) {
    message(Mark::Warn, "truecast: warning:", text);
}

/// Prints a message, wrapped between words on a terminal.
fn message(mark: Mark, head: &str, text: &str) {
    let terminal = Terminal::stderr();
    let lines = terminal.wrap(&format!("{head} {}", one_line(text)));
    let body = lines.strip_prefix(head).unwrap_or_default();
    write_line(&format!("{}{body}", terminal.paint(mark, head)));
}

/// One call per line, so that lines of several processes do not mix.
fn write_line(line: &str) {
    // If standard error is closed, the message is lost.
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}

/// Quotes a word for a shell, on one line.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=@,:+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", one_line(word).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        assert_eq!(quoted("a.b/c"), "a.b/c");
        assert_eq!(quoted("*'$x"), r"'*'\''$x'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a\u{1b}["), r"'a\u{1b}['");
    }
}
