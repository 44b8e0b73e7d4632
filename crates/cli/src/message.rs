//! Lines on standard error: errors and warnings (`docs/interfaces.md §5`).

use crate::terminal::{Mark, Terminal};
use serde_json::json;
use std::io::{self, Write};

/// Tells on standard error why a command did not do its work.
pub fn error(text: &str) {
    message(Mark::Bad, "truecast:", text);
}

/// The same as an object, with the exit code.
pub fn error_object(text: &str, code: u8) {
    let line = json!({ "truecast": env!("CARGO_PKG_VERSION"), "error": text, "exit_code": code });
    // Nobody is left to tell if standard error is gone too.
    writeln!(io::stderr(), "{line}").ok();
}

/// Tells on standard error what is odd.
pub fn warning(text: &str) {
    message(Mark::Warn, "truecast: warning:", text);
}

/// One line; a terminal breaks it between words.
fn message(mark: Mark, head: &str, text: &str) {
    let terminal = Terminal::stderr();
    let lines = terminal.wrap(&format!("{head} {}", one_line(text)));
    let body = lines.strip_prefix(head).unwrap_or_default();
    // A closed standard error cannot be reported anywhere.
    writeln!(io::stderr(), "{}{body}", terminal.paint(mark, head)).ok();
}

/// Text on one line whatever it quotes: characters that are not seen are escaped.
pub fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if is_unseen(c) { c.escape_debug().collect() } else { vec![c] }).collect()
}

/// Control characters, and those that turn, join or divide what stands beside them: a name from a file could move the cursor
/// with them, or look like another.
pub fn is_unseen(c: char) -> bool {
    let is_joiner = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let turns = matches!(c, '\u{61c}' | '\u{2028}'..='\u{202e}' | '\u{2065}'..='\u{2069}');
    c.is_control() || is_joiner || turns
}
