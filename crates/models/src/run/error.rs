//! Errors of evaluating a model.

use super::files::LONGEST_NAME;
use crate::array::ArrayError;
use crate::tile::Diagnostic;
use std::path::Path;
use truecast_core::{ErrorCode, ErrorKind};
use truecast_io::Escaped;

/// Reason why a model was not evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum RunError {
    /// A file that is not recognized as a model.
    #[error(
        "{path}: unknown kind of model; expected .onnx, .tosa, .xml, or a Tile IR module (.mlir, .tileir, or bytecode)"
    )]
    UnknownKind { path: String },
    /// The model cannot be read.
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    /// The network cannot be read.
    #[error(transparent)]
    Network(Box<crate::Error>),
    /// The model does not consist of conversions, has an illegal one, or failed to evaluate.
    #[error("{path}: {cause}")]
    Model { path: String, cause: Box<crate::Error> },
    /// A Tile IR module cannot be read or is not legal.
    #[error("{path}:{cause}")]
    Tile { path: String, cause: Diagnostic },
    /// A Tile IR module is too large.
    #[error("{path}: the module has more than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    /// The requested rules are for another kind of model.
    #[error("{path}: models of this kind are checked by the rules of {fitting}")]
    Rules { path: String, fitting: &'static str },
    /// An input file is not the expected tensor.
    #[error("input {}: {cause}", Escaped(name))]
    Input { name: String, cause: Box<ArrayError> },
    /// An argument is not `NAME=FILE`, repeats an input, or names a value of unknown type.
    #[error("input {given:?}: {why}; the inputs are {inputs}")]
    NoInput { given: String, why: &'static str, inputs: String },
    /// A file is given for an input that the model does not have.
    #[error("the model has no input {}; its inputs: {inputs}", Escaped(name))]
    UnknownInput { name: String, inputs: String },
    /// No file is given for an input that has no default.
    #[error("{path}: input {} is not given", Escaped(name))]
    NotGiven { path: String, name: String },
    /// A result would replace an input of the run.
    #[error("{path}: is an input and cannot also be a result")]
    Read { path: String },
    /// Two results would be written to the same file.
    #[error("{path}: two results have this path; rename one of them in the model")]
    SameOutput { path: String },
    /// The name of a result is too long for a file.
    #[error(
        "the output file name {} has {} bytes, at most {LONGEST_NAME} are possible; rename the output in the model",
        Escaped(file),
        file.len()
    )]
    LongName { file: String },
    /// An array cannot be read or written for a TOSA graph.
    #[error("{what} {}: {cause}", Escaped(name))]
    TosaArray { what: &'static str, name: String, cause: Box<truecast_io::Error> },
    /// A result cannot be written.
    #[error("output {}: {cause}", Escaped(name))]
    Output { name: String, cause: Box<truecast_io::Error> },
    /// The file format would change a text.
    #[error("output {}: element {index} {why}, which .npy cannot hold", Escaped(name))]
    Text { name: String, index: usize, why: &'static str },
}

impl From<crate::Error> for RunError {
    fn from(cause: crate::Error) -> RunError {
        RunError::Network(cause.into())
    }
}

impl RunError {
    /// Adds the path of the model to an error from its evaluation.
    pub(super) fn of(self, path: &Path) -> RunError {
        match self {
            RunError::Network(cause) => RunError::Model { path: path.display().to_string(), cause },
            other => other,
        }
    }

    /// Class of the error, which decides the exit code (`docs/interfaces.md §5`).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.error_code().kind()
    }

    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            RunError::UnknownKind { .. } => ErrorCode::UnknownFileKind,
            RunError::Rules { .. } => ErrorCode::InapplicableOption,
            RunError::NoInput { .. } | RunError::UnknownInput { .. } => ErrorCode::InvalidValue,
            RunError::NotGiven { .. } => ErrorCode::MissingArgument,
            RunError::Read { .. } => ErrorCode::SameFile,
            RunError::Model { cause, .. } | RunError::Network(cause) => cause.error_code(),
            RunError::Tile { cause, .. } => cause.error_code(),
            RunError::TooLarge { .. } | RunError::LongName { .. } => ErrorCode::LimitExceeded,
            RunError::SameOutput { .. } => ErrorCode::DuplicateName,
            RunError::Text { .. } => ErrorCode::InvalidText,
            RunError::Input { cause, .. } => cause.error_code(),
            RunError::File(cause) => cause.error_code(),
            RunError::TosaArray { cause, .. } | RunError::Output { cause, .. } => cause.error_code(),
        }
    }
}
