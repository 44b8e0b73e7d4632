//! Error type of this crate. It adds the file to the errors of each format's folder.

use std::path::PathBuf;

use truecast_core::{DType, ErrorCode};
use truecast_io::{Escaped, EscapedPath};
use truecast_kernel::text::TextError;

use crate::cast::DeniedCast;
use crate::evaluate::UndefinedResult;
use crate::onnx::NodeError;
use crate::openvino::{IrError, LayerError};
use crate::tile::error::{Diagnostic, EntryError};
use crate::{onnx, openvino, tosa};

/// Reason why a model cannot be read or has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages show the fields.
pub enum Error {
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    #[error("{}: {cause}", EscapedPath(path))]
    Ir { path: PathBuf, cause: openvino::IrError },
    #[error(transparent)]
    TosaFile(#[from] tosa::FileError),
    #[error(transparent)]
    Onnx(Box<onnx::ModelError>),
    #[error(transparent)]
    OpenVino(#[from] openvino::ModelError),
    #[error(transparent)]
    Tosa(Box<tosa::GraphError>),
    #[error(transparent)]
    Tile(#[from] Diagnostic),
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The standard defines no result: for a TOSA graph (unpredictable), or for an element (Tile IR, strict).
    #[error(transparent)]
    Undefined(UndefinedResult),
    /// The values held at the same time take too much memory.
    #[error("{place}: values take more than {limit} bytes")]
    Memory { place: String, limit: u64 },
    #[error("entry {entry} has no value {name}")]
    NoValue { entry: String, name: String },
    #[error("{name}: {len} elements of {found}, but the entry declares {declared}")]
    Supplied { name: String, len: u64, found: DType, declared: String },
    #[error("input {} ({declared}) has no value", Escaped(name))]
    Missing { name: String, declared: String },
    #[error("input {}: elements are {found}, the model declares {declared}", Escaped(name))]
    Type { name: String, found: DType, declared: DType },
    #[error("{what} {}: shape {found:?}, but the model declares {declared}", Escaped(name))]
    Shape { what: &'static str, name: String, found: Vec<u64>, declared: String },
    #[error("{}: the elements do not fill the shape {shape:?}", Escaped(name))]
    Inconsistent { name: String, shape: Vec<u64> },
    #[error("{label}: {cause}")]
    Cast { label: String, cause: DeniedCast },
    #[error("{label}: {cause}")]
    Constant { label: String, cause: Box<Error> },
}

impl From<onnx::ModelError> for Error {
    fn from(cause: onnx::ModelError) -> Error {
        Error::Onnx(cause.into())
    }
}

impl From<tosa::GraphError> for Error {
    fn from(cause: tosa::GraphError) -> Error {
        match cause {
            tosa::GraphError::Unpredictable(undefined) => Error::Undefined(undefined),
            cause => Error::Tosa(cause.into()),
        }
    }
}

impl Error {
    /// Stable code of the error.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Error::File(cause) => cause.error_code(),
            Error::Ir { cause, .. } => of_ir(cause),
            Error::TosaFile(cause) => match cause {
                tosa::FileError::Version { .. } | tosa::FileError::Features { .. } | tosa::FileError::NotOne { .. } => {
                    ErrorCode::UnsupportedFile
                }
                tosa::FileError::Duplicate { .. } => ErrorCode::DuplicateName,
                _ => ErrorCode::MalformedFile,
            },
            Error::Onnx(cause) => match &**cause {
                onnx::ModelError::Node { cause: NodeError::Unsupported | NodeError::Misspelled { .. }, .. } => {
                    ErrorCode::UnsupportedOperator
                }
                _ => ErrorCode::IllegalOperation,
            },
            Error::OpenVino(openvino::ModelError::Layer { cause, .. }) => match &**cause {
                LayerError::Unsupported | LayerError::Misspelled { .. } => ErrorCode::UnsupportedOperator,
                LayerError::Constant(cause) => of_ir(cause),
                _ => ErrorCode::IllegalOperation,
            },
            Error::OpenVino(_) => ErrorCode::IllegalOperation,
            Error::Tosa(cause) => match **cause {
                tosa::GraphError::Memory { .. } => ErrorCode::OutOfMemory,
                tosa::GraphError::Operator { .. } => ErrorCode::UnsupportedOperator,
                _ => ErrorCode::IllegalOperation,
            },
            Error::Tile(cause) => cause.error_code(),
            Error::Entry(EntryError::None) => ErrorCode::UnsupportedFile,
            Error::Entry(EntryError::Several { .. }) | Error::Missing { .. } => ErrorCode::MissingArgument,
            Error::Entry(EntryError::Unknown { .. }) => ErrorCode::InvalidValue,
            Error::Undefined(_) => ErrorCode::UndefinedResult,
            Error::Memory { .. } => ErrorCode::OutOfMemory,
            Error::NoValue { .. } => ErrorCode::MissingTensor,
            Error::Supplied { .. } | Error::Type { .. } => ErrorCode::TypeMismatch,
            Error::Shape { .. } | Error::Inconsistent { .. } => ErrorCode::ShapeMismatch,
            Error::Cast { cause, .. } => match cause {
                DeniedCast::Memory { .. } => ErrorCode::OutOfMemory,
                DeniedCast::Plan(_) => ErrorCode::UnsupportedPair,
                DeniedCast::Text(TextError::Malformed { .. }) => ErrorCode::InvalidText,
                DeniedCast::Value(_) | DeniedCast::Text(_) => ErrorCode::RefusedValue,
            },
            Error::Constant { cause, .. } => cause.error_code(),
        }
    }
}

fn of_ir(cause: &IrError) -> ErrorCode {
    match cause {
        IrError::TooLarge { .. } | IrError::TooManyAttributes { .. } => ErrorCode::LimitExceeded,
        IrError::NetVersion { .. } | IrError::Namespace { .. } | IrError::UnknownLayout { .. } => {
            ErrorCode::UnsupportedFile
        }
        IrError::Duplicate { .. } => ErrorCode::DuplicateName,
        IrError::Size { .. } => ErrorCode::ShapeMismatch,
        IrError::Range { .. } => ErrorCode::TruncatedFile,
        IrError::NoWeights { .. } => ErrorCode::MissingFile,
        IrError::Elements { .. } => ErrorCode::UnsupportedType,
        _ => ErrorCode::MalformedFile,
    }
}
