//! Standard output: text, or one JSON object with `--json` (`docs/interfaces.md §6`).

use crate::escaped::{Escaped, Escapes};
use crate::failure::Failure;
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use truecast::ErrorCode;

thread_local! {
    /// Buffer for the output of this thread; standard output if `None`.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

pub fn captured<T>(command: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.set(Some(Vec::new()));
    let result = command();
    let printed = CAPTURED.take().unwrap_or_default();
    (result, String::from_utf8_lossy(&printed).into_owned())
}

pub fn is_captured() -> bool {
    CAPTURED.with_borrow(Option::is_some)
}

pub fn text(text: &str) -> Result<(), Failure> {
    stream(|out| out.write_all(text.as_bytes()))
}

/// Writes a result in pieces, because a long result may exceed the memory. The reader of a pipe may close the pipe
/// early.
pub fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if let Some(mut captured) = CAPTURED.take() {
        let written = write(&mut Escaped(&mut captured, Escapes::Text));
        CAPTURED.set(Some(captured));
        return written.map_err(|error| Failure::new(ErrorCode::IoError, error));
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut Escaped(&mut out, Escapes::Text)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failure!(IoError, "standard output: {error}")),
        _ => Ok(()),
    }
}

/// JSON object of a command. `body` has the keys that only this command has.
#[derive(Serialize)]
struct Object<'a, B> {
    truecast: &'static str,
    command: &'a str,
    #[serde(flatten)]
    body: B,
}

/// JSON list that computes each row when the row is written, to save memory.
pub struct Rows<F>(pub F);

impl<R: Serialize, I: Iterator<Item = R>, F: Fn() -> I> Serialize for Rows<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

pub fn json(command: &str, body: impl Serialize) -> Result<(), Failure> {
    stream(|out| write_json(out, command, body))
}

/// JSON object of a command. `body` must serialize as a map or structure.
pub fn object<B: Serialize>(command: &str, body: B) -> impl Serialize {
    Object { truecast: env!("CARGO_PKG_VERSION"), command, body }
}

/// Writes the JSON object of a command. `body` must serialize as a map or structure.
pub fn write_json(out: &mut dyn Write, command: &str, body: impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(Escaped(&mut *out, Escapes::Json), &object(command, body))?;
    out.write_all(b"\n")
}

pub fn pretty(command: &str, body: impl Serialize) -> String {
    let mut text = Vec::new();
    write_json(&mut text, command, body).expect("a vector takes everything");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Code in hexadecimal with leading zeros (`docs/interfaces.md §6`).
pub fn bits(code: u64, width: u32) -> String {
    format!("{code:#0digits$x}", digits = width.div_ceil(4) as usize + 2)
}
