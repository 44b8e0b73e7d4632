//! Lines on standard error: errors and warnings (`docs/interfaces.md §5`).

use crate::terminal::{Mark, Terminal};
use std::io::{self, Write};

/// Tells on standard error why a command did not do its work.
pub fn error(text: &str) {
    message(Mark::Bad, "truecast:", text);
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

/// Text on one line whatever it quotes: control characters are escaped.
pub fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}
