//! Lines on standard error: errors and warnings (`docs/interfaces.md §5`).

use crate::escaped::json_line;
use crate::terminal::{Mark, Terminal};
use serde_json::json;
use std::io::{self, Write};
pub use truecast::io::one_line;

/// Tells on standard error why a command did not do its work.
pub fn error(text: &str) {
    message(Mark::Bad, "truecast:", text);
}

/// The same as an object.
pub fn error_object(text: &str, code: &str, exit_code: u8) {
    let version = env!("CARGO_PKG_VERSION");
    let line = json!({ "truecast": version, "error": text, "code": code, "exit_code": exit_code });
    write_line(&json_line(&line));
}

/// Prints a warning on standard error.
pub fn warning(text: &str) {
    message(Mark::Warn, "truecast: warning:", text);
}

/// One line; a terminal breaks it between words.
fn message(mark: Mark, head: &str, text: &str) {
    let terminal = Terminal::stderr();
    let lines = terminal.wrap(&format!("{head} {}", one_line(text)));
    let body = lines.strip_prefix(head).unwrap_or_default();
    write_line(&format!("{}{body}", terminal.paint(mark, head)));
}

/// At once, so that lines of several processes do not mix.
fn write_line(line: &str) {
    // No output is left for a message if standard error is gone too.
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}
