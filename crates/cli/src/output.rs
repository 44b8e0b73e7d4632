//! Standard output: text, or the one object of `--json` (`docs/interfaces.md §6`).

use crate::failure::Failure;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes text as it is. That nobody reads it to its end is not an error, and changes nothing else.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format_args!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Text on one line whatever it quotes: control characters are escaped.
pub fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}

/// The object of a command: version and command first.
pub fn object(command: &str, body: Map<String, Value>) -> Value {
    let mut object = Map::new();
    object.insert("truecast".into(), json!(env!("CARGO_PKG_VERSION")));
    object.insert("command".into(), json!(command));
    object.extend(body);
    object.into()
}

/// Writes the object of a command.
pub fn json(command: &str, body: Map<String, Value>) -> Result<(), Failure> {
    text(&pretty(&object(command, body)))
}

/// An object as it is printed and written to files.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Bits as `docs/interfaces.md §6` writes them, with as many digits as the code has.
pub fn bits(code: u64, width: u32) -> String {
    format!("{code:#0digits$x}", digits = width.div_ceil(4) as usize + 2)
}
