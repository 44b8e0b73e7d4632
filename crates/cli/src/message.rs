//! Lines on standard error: errors and warnings (`docs/interfaces.md §5`).

use crate::escaped::json_line;
use crate::terminal::{Mark, Terminal};
use serde_json::json;
use std::io::{self, Write};
pub use truecast::io::one_line;

/// Prints the error of a command on standard error.
pub fn error(text: &str) {
    message(Mark::Bad, "truecast:", text);
}

/// Prints the error of a command on standard error as a JSON object.
pub fn error_object(text: &str, code: &str, exit_code: u8) {
    let version = env!("CARGO_PKG_VERSION");
    let line = json!({ "truecast": version, "error": text, "code": code, "exit_code": exit_code });
    write_line(&json_line(&line));
}

/// Prints a warning on standard error.
pub fn warning(text: &str) {
    message(Mark::Warn, "truecast: warning:", text);
}

/// Prints a message in one line, which is broken between words at the edge of a terminal.
fn message(mark: Mark, head: &str, text: &str) {
    let terminal = Terminal::stderr();
    let lines = terminal.wrap(&format!("{head} {}", one_line(text)));
    let body = lines.strip_prefix(head).unwrap_or_default();
    write_line(&format!("{}{body}", terminal.paint(mark, head)));
}

/// Writes a line in one call, so that lines of several processes do not mix.
fn write_line(line: &str) {
    // If standard error is closed, there is no other place for a message.
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}
