//! Errors of a `.tosa` file, and of a graph.

use truecast_core::spec::SpecError;
use truecast_io::Escaped;

use crate::evaluate::UndefinedResult;

/// Limit on the number of operands of an operator, and on the number of dimensions of a tensor.
pub(super) const MOST_OPERANDS: usize = 64;

/// Error of a `.tosa` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum FileError {
    #[error("offset 4: not a .tosa file")]
    Identifier,
    /// An offset or a length points outside the file, or a text is not UTF-8.
    #[error("offset {at}: {what} is damaged")]
    Damaged { at: u64, what: &'static str },
    #[error("version {major}.{minor}.{patch} of TOSA is not supported; versions 1.x are")]
    Version { major: i32, minor: i32, patch: i32 },
    #[error("the file uses unknown format features {unknown:#x}")]
    Features { unknown: u64 },
    /// Control flow needs several regions or blocks, and is not supported.
    #[error("{found} {what}, expected one; control flow is not evaluated")]
    NotOne { what: &'static str, found: usize },
    /// Offsets share parts of the file too often.
    #[error("the file references its parts more often than it has bytes")]
    Repetition,
    #[error("an operator with more than {MOST_OPERANDS} operands")]
    Operands,
    #[error("two tensors are named {}", Escaped(name))]
    Duplicate { name: String },
}

/// Reason why a graph has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum GraphError {
    /// An ERROR condition of the specification.
    #[error("{place}: {cause}")]
    Condition { place: String, cause: SpecError },
    #[error(transparent)]
    Unpredictable(UndefinedResult),
    #[error("{place}: {name} is not supported; truecast evaluates only CONST, CONST_SHAPE, IDENTITY, CAST, RESCALE")]
    Operator { place: String, name: String },
    #[error("{place}: {what}")]
    Operands { place: String, what: String },
    /// The graph declares no tensor of this name, or the tensor has no value before its use.
    #[error("tensor {}: {what}", Escaped(name))]
    Tensor { name: String, what: String },
    #[error("{place}: no memory for {bytes} bytes")]
    Memory { place: String, bytes: u64 },
}

impl GraphError {
    /// Reason without the place.
    pub fn reason(&self) -> String {
        match self {
            GraphError::Condition { cause, .. } => cause.to_string(),
            GraphError::Unpredictable(undefined) => undefined.reason.to_string(),
            GraphError::Operands { what, .. } => what.clone(),
            other => other.to_string(),
        }
    }

    /// True if the specification calls the result unpredictable, rather than an error.
    pub const fn is_unpredictable(&self) -> bool {
        matches!(self, GraphError::Unpredictable(_))
    }
}

pub(super) fn operands(place: &str, what: impl Into<String>) -> GraphError {
    GraphError::Operands { place: place.into(), what: what.into() }
}
