//! What can be wrong with a `.tosa` file, and with a graph.

use truecast_core::spec::SpecError;
use truecast_io::Escaped;

use crate::evaluate::UndefinedResult;

/// Operands of an operator, and dimensions of a tensor, beyond which a file is not read on.
pub(super) const MOST_OPERANDS: usize = 64;

/// What is wrong with a `.tosa` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum FileError {
    /// The identifier is another.
    #[error("offset 4: not a .tosa file")]
    Identifier,
    /// An offset or a length leads out of the file, or a text is none.
    #[error("offset {at}: {what} is damaged")]
    Damaged { at: u64, what: &'static str },
    /// A version that numbers its types otherwise.
    #[error("version {major}.{minor}.{patch} of TOSA is not supported; versions 1.x are")]
    Version { major: i32, minor: i32, patch: i32 },
    /// The file says that readers must know more.
    #[error("the file uses unknown format features {unknown:#x}")]
    Features { unknown: u64 },
    /// Control flow has several.
    #[error("{found} {what}, expected one; control flow is not evaluated")]
    NotOne { what: &'static str, found: usize },
    /// Offsets lead to the same place again and again.
    #[error("the file references its parts more often than it has bytes")]
    Repetition,
    /// An operator without end.
    #[error("an operator with more than {MOST_OPERANDS} operands")]
    Operands,
    /// Two tensors of one name.
    #[error("two tensors are named {}", Escaped(name))]
    Duplicate { name: String },
}

/// Why a graph has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum GraphError {
    /// An ERROR condition of the specification.
    #[error("{place}: {cause}")]
    Condition { place: String, cause: SpecError },
    /// The specification makes no requirement.
    #[error(transparent)]
    Unpredictable(UndefinedResult),
    /// An operator that converts nothing.
    #[error("{place}: {name} is not supported; truecast evaluates only CONST, CONST_SHAPE, IDENTITY, CAST, RESCALE")]
    Operator { place: String, name: String },
    /// Operands do not fit the operator or each other.
    #[error("{place}: {what}")]
    Operands { place: String, what: String },
    /// A name that no tensor has, or that has no value when it is used.
    #[error("tensor {}: {what}", Escaped(name))]
    Tensor { name: String, what: String },
    /// A result takes more memory than there is.
    #[error("{place}: no memory for {bytes} bytes")]
    Memory { place: String, bytes: u64 },
}

impl GraphError {
    /// Why, without the place.
    pub fn reason(&self) -> String {
        match self {
            GraphError::Condition { cause, .. } => cause.to_string(),
            GraphError::Unpredictable(undefined) => undefined.reason.to_string(),
            GraphError::Operands { what, .. } => what.clone(),
            other => other.to_string(),
        }
    }

    /// The specification calls the result unpredictable; otherwise it is an error.
    pub const fn is_unpredictable(&self) -> bool {
        matches!(self, GraphError::Unpredictable(_))
    }
}

pub(super) fn operands(place: &str, what: impl Into<String>) -> GraphError {
    GraphError::Operands { place: place.into(), what: what.into() }
}
