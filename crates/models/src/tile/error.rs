//! Errors in a module. Each has a position, and a number in the catalogue of §5 (T001 to T021).

use std::sync::Arc;

use truecast_core::ErrorCode;
use truecast_core::spec::tile::{Release, TileType, Violation, types::Malformed};

pub(crate) const NO_I4: &str = "i4 has no constants; make one of i8 and use trunci";

/// Position of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In text: line and column, from 1, in characters.
    Text {
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
    /// In bytecode: offset in the file.
    Byte(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Text { line, column } => write!(f, "{line}:{column}"),
            Place::Byte(offset) => write!(f, "offset {offset}"),
        }
    }
}

/// An error in a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}", self.message())]
#[allow(missing_docs)] // The messages name them.
pub struct Diagnostic {
    pub place: Place,
    /// Text of the operation's `loc(..)`, with brackets.
    pub location: Option<Arc<str>>,
    pub cause: Box<Cause>,
}

impl Diagnostic {
    /// Creates an error at a place.
    pub fn new(place: Place, cause: Cause) -> Self {
        Self { place, location: None, cause: Box::new(cause) }
    }

    /// Message without the position: number, cause, and location of the operation.
    pub fn message(&self) -> String {
        let location = self.location.as_ref().map_or(String::new(), |location| format!("; loc{location}"));
        format!("{}: {}{location}", self.code(), self.cause)
    }

    /// Number in the catalogue of §5.
    pub fn code(&self) -> &'static str {
        self.cause.code()
    }

    /// Stable code of the error.
    pub fn error_code(&self) -> ErrorCode {
        match *self.cause {
            Cause::Newer { .. } | Cause::NoEntry => ErrorCode::UnsupportedFile,
            Cause::Opcode { .. } => ErrorCode::UnsupportedOperator,
            Cause::Syntax { .. } | Cause::Structure { .. } => ErrorCode::MalformedFile,
            _ => ErrorCode::IllegalOperation,
        }
    }
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are what the messages say.
pub enum Cause {
    /// T001 to T012, T014: an operation is not legal.
    #[error("{value} ({operand} -> {result}): {violation}")]
    Illegal { value: String, operand: Arc<TileType>, result: Arc<TileType>, violation: Violation },
    /// T009 to T011: an unknown attribute.
    #[error("{value}: {violation}")]
    Attribute { value: String, violation: Violation },
    /// T001: the operand's type differs from the type that the operation states.
    #[error("{value}: {op}: operand {operand} is {found}, the operation says {written}; write the operand's own type")]
    OperandType { value: String, op: &'static str, operand: String, found: String, written: String },
    /// T001, T002: a pack or unpack is not legal.
    #[error("{value} ({operand} -> {result}): {op}: {why}")]
    Pack {
        value: String,
        op: &'static str,
        operand: Arc<TileType>,
        result: Arc<TileType>,
        why: String,
        code: &'static str,
    },
    /// Error T013 of §5.
    #[error("{what} needs file version {since}, this file is {file}; save the module as version {since}")]
    Newer { what: String, since: Release, file: Release },
    /// Error T014 of §5.
    #[error("{0}")]
    Type(#[from] Malformed),
    /// T014: a type that is not a tile, or not an element type.
    #[error("{why}")]
    TypeForm { why: String },
    /// Error T015 of §5.
    #[error("expected {expected}, found {found}")]
    Syntax { expected: String, found: String },
    /// Error T016 of §5.
    #[error("constant of {element}: {why}")]
    Literal { element: String, why: String },
    /// Error T017 of §5.
    #[error("{why}")]
    Structure { why: String },
    /// T018: an unknown operation, by opcode or by name.
    #[error("{why}")]
    Opcode { why: String },
    /// Error T019 of §5.
    #[error("entry {entry}: {why}")]
    Signature { entry: String, why: String },
    /// Error T020 of §5.
    #[error("entry {entry}: last operation must be return")]
    Terminator { entry: String },
    /// Error T021 of §5.
    #[error("the module has no entry, so nothing in it runs")]
    NoEntry,
}

impl Cause {
    /// Number in the catalogue of §5.
    pub fn code(&self) -> &'static str {
        match self {
            Cause::Illegal { violation, .. } | Cause::Attribute { violation, .. } => violation.code(),
            Cause::OperandType { .. } => "T001",
            Cause::Pack { code, .. } => code,
            Cause::Newer { .. } => "T013",
            Cause::Type(_) | Cause::TypeForm { .. } => "T014",
            Cause::Syntax { .. } => "T015",
            Cause::Literal { .. } => "T016",
            Cause::Structure { .. } => "T017",
            Cause::Opcode { .. } => "T018",
            Cause::Signature { .. } => "T019",
            Cause::Terminator { .. } => "T020",
            Cause::NoEntry => "T021",
        }
    }
}

/// Reason why no entry can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum EntryError {
    #[error("the module has no entry")]
    None,
    #[error("the module has several entries: {known}")]
    Several { known: String },
    #[error("the module has no entry {name:?}; it has: {known}")]
    Unknown {
        /// Requested name.
        name: String,
        known: String,
    },
}

/// Shortens text from a file to one line without control characters, for messages.
pub(crate) fn shown(text: &str) -> String {
    let (short, more) = shortened(text);
    format!("{}{more}", short.escape_debug())
}

/// Returns the text of [`shown`] without escapes of quotes and backslashes, for text that has no quotes around it.
pub(crate) fn shown_bare(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (short, more) = shortened(&line);
    let harmless = short.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] });
    harmless.chain(more.chars()).collect()
}

/// First characters, and dots if more follow.
fn shortened(text: &str) -> (&str, &'static str) {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => (&text[..end], ".."),
        None => (text, ""),
    }
}
