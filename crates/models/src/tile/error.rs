//! What is wrong with a module, and where: the catalogue of §5, T001 to T021.

use std::sync::Arc;

use truecast_core::spec::tile::{Release, TileType, Violation, types::Malformed};

/// Why a constant of i4 is none.
pub(crate) const NO_I4: &str = "i4 has no constants; make one of i8 and use trunci";

/// Where something stands.
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

/// One thing that is wrong with a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}", self.message())]
#[allow(missing_docs)] // The messages name them.
pub struct Diagnostic {
    pub place: Place,
    /// What the operation's `loc(..)` says, with its brackets.
    pub location: Option<Arc<str>>,
    pub cause: Box<Cause>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn new(place: Place, cause: Cause) -> Self {
        Self { place, location: None, cause: Box::new(cause) }
    }

    /// What is wrong without where: number, cause, and the location that the operation names.
    pub fn message(&self) -> String {
        let location = self.location.as_ref().map_or(String::new(), |location| format!("; loc{location}"));
        format!("{}: {}{location}", self.code(), self.cause)
    }

    /// Its number in the catalogue.
    pub fn code(&self) -> &'static str {
        self.cause.code()
    }
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are what the messages say.
pub enum Cause {
    /// T001 to T012, T014: an operation is not legal.
    #[error("{value} ({operand} -> {result}): {violation}")]
    Illegal { value: String, operand: Arc<TileType>, result: Arc<TileType>, violation: Violation },
    /// T009 to T011: an attribute is not known.
    #[error("{value}: {violation}")]
    Attribute { value: String, violation: Violation },
    /// T001: the operand is not what the operation says.
    #[error("{value}: {op}: operand {operand} is {found}, the operation says {written}; write the operand's own type")]
    OperandType { value: String, op: &'static str, operand: String, found: String, written: String },
    /// T001, T002: pack and unpack.
    #[error("{value} ({operand} -> {result}): {op}: {why}")]
    Pack {
        value: String,
        op: &'static str,
        operand: Arc<TileType>,
        result: Arc<TileType>,
        why: String,
        code: &'static str,
    },
    /// T013.
    #[error("{what} needs file version {since}, this file is {file}; save the module as version {since}")]
    Newer { what: String, since: Release, file: Release },
    /// T014.
    #[error("{0}")]
    Type(#[from] Malformed),
    /// T014, of types that are no tiles.
    #[error("{why}")]
    TypeForm { why: String },
    /// T015.
    #[error("expected {expected}, found {found}")]
    Syntax { expected: String, found: String },
    /// T016.
    #[error("constant of {element}: {why}")]
    Literal { element: String, why: String },
    /// T017.
    #[error("{why}")]
    Structure { why: String },
    /// T018: an operation that is not known, by its opcode or by its name.
    #[error("{why}")]
    Opcode { why: String },
    /// T019.
    #[error("entry {entry}: {why}")]
    Signature { entry: String, why: String },
    /// T020.
    #[error("entry {entry}: last operation must be return")]
    Terminator { entry: String },
    /// T021.
    #[error("the module has no entry, so nothing in it runs")]
    NoEntry,
}

impl Cause {
    /// The number in the catalogue of §5.
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

/// Why there is nothing to evaluate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum EntryError {
    #[error("the module has no entry")]
    None,
    /// Several, and none was named.
    #[error("the module has several entries: {known}")]
    Several { known: String },
    /// None of that name.
    #[error("the module has no entry {name:?}; it has: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// Text of a file as it may stand in a message: short, on one line, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let (short, more) = shortened(text);
    format!("{}{more}", short.escape_debug())
}

/// The same of text that stands in no quotes, and has its own.
pub(crate) fn shown_bare(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (short, more) = shortened(&line);
    let harmless = short.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] });
    harmless.chain(more.chars()).collect()
}

/// The first characters, and dots if there are more.
fn shortened(text: &str) -> (&str, &'static str) {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => (&text[..end], ".."),
        None => (text, ""),
    }
}
