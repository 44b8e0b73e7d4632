//! Errors of evaluating a model.

use super::files::LONGEST_NAME;
use crate::array::ArrayError;
use crate::tile::Diagnostic;
use std::path::Path;
use truecast_core::ErrorCode;
use truecast_io::Escaped;

/// Reason why a model was not evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum RunError {
    #[error(
        "{path}: unknown kind of model; expected .onnx, .tosa, .xml, or a Tile IR module (.mlir, .tileir, or bytecode)"
    )]
    UnknownKind { path: String },
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    #[error(transparent)]
    Network(Box<crate::Error>),
    /// The model is not made of legal conversions, or its evaluation failed.
    #[error("{path}: {cause}")]
    Model { path: String, cause: Box<crate::Error> },
    #[error("{path}:{cause}")]
    Tile { path: String, cause: Diagnostic },
    #[error("{path}: the module has more than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("{path}: models of this kind are checked by the rules of {fitting}")]
    Rules { path: String, fitting: &'static str },
    #[error("input {}: {cause}", Escaped(name))]
    Input { name: String, cause: Box<ArrayError> },
    #[error("input {given:?}: {why}; the inputs are {inputs}")]
    NoInput { given: String, why: &'static str, inputs: String },
    #[error("the model has no input {}; its inputs: {inputs}", Escaped(name))]
    UnknownInput { name: String, inputs: String },
    #[error("{path}: input {} is not given", Escaped(name))]
    NotGiven { path: String, name: String },
    #[error("{path}: is an input and cannot also be a result")]
    Read { path: String },
    #[error("{path}: two results have this path; rename one of them in the model")]
    SameOutput { path: String },
    #[error(
        "the output file name {} has {} bytes, at most {LONGEST_NAME} are possible; rename the output in the model",
        Escaped(file),
        file.len()
    )]
    LongName { file: String },
    #[error("{what} {}: {cause}", Escaped(name))]
    TosaArray { what: &'static str, name: String, cause: Box<truecast_io::Error> },
    #[error("output {}: {cause}", Escaped(name))]
    Output { name: String, cause: Box<truecast_io::Error> },
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
    pub(super) fn in_file(self, path: &Path) -> RunError {
        match self {
            RunError::Network(cause) => RunError::Model { path: path.display().to_string(), cause },
            other => other,
        }
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
