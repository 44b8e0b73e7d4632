//! Errors of operations on files and scaled tensors.

use crate::error::{of_cast, of_text};
use crate::files::convert::error::CheckpointError;
use crate::flag::Flag;
use std::path::Path;
use truecast_core::DType;
use truecast_core::dtype::ParseTypeError;
use truecast_core::scaled::ScaledError;
use truecast_core::spec::SpecError;
use truecast_io::{Escaped, Foreign, NoForm, counted};
use truecast_kernel::text::TextError;
use truecast_kernel::{CastError, PlanError};

use truecast_core::{ErrorCode, ErrorKind};

/// Error of an operation on buffers, files or scaled tensors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum Error {
    /// A cast of elements failed.
    #[error(transparent)]
    Cast(#[from] crate::Error),
    /// A container cannot be read or written.
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
    /// A tensor cannot be converted.
    #[error("{path}: tensor {}: {cause}", Escaped(.tensor))]
    Tensor { path: String, tensor: String, cause: Box<Cause> },
    /// A rule's pattern is not a glob.
    #[error("{option} {glob:?}: {cause}")]
    Glob { option: &'static str, glob: String, cause: crate::files::select::glob::GlobError },
    /// A rule matches no tensor.
    #[error("{option} {rule:?} matches no tensor of {path}{}", closest(.nearest))]
    UnusedRule {
        rule: String,
        option: &'static str,
        /// Similar patterns that match tensors.
        nearest: Vec<String>,
        path: String,
    },
    /// A rule matches no tensor of the result, but some in the source.
    #[error("{option} {rule:?} matches {} of {path}, {}", Escaped(.tensor), lost(.whole.as_deref()))]
    LostRule {
        rule: String,
        option: &'static str,
        /// The first match.
        tensor: String,
        /// Tensor of the result that it is a part of; `None` if it is left out.
        whole: Option<String>,
        path: String,
    },
    /// No tensor has the requested name.
    #[error("{path}: tensor {} does not exist{}", Escaped(.tensor), closest(.nearest))]
    NoTensor {
        path: String,
        tensor: String,
        /// Similar names of tensors.
        nearest: Vec<String>,
    },
    /// The first bytes of a file are not a header.
    #[error("{path}: {why}")]
    NotDescribed { path: String, why: String },
    /// The scales of a quantized file cannot be applied.
    #[error("{path}: {why}")]
    Unapplied { path: String, why: String },
    /// No tensor has the width of the type in `--from`.
    #[error("{path}: {from} applies to no tensor: no rule selects a tensor of {bits}-bit elements")]
    UnusedFrom {
        path: String,
        from: DType,
        /// Width of the type in bits.
        bits: u32,
    },
    /// A preset matches no tensor.
    #[error("{path}: {} has no effect: {why}", Flag::KeepPreset)]
    UnusedPreset {
        /// File or folder.
        path: String,
        why: &'static str,
    },
    /// The source has no quantized tensor.
    #[error("{path}: no tensor is quantized")]
    NoneQuantized { path: String },
    /// A model cannot be converted.
    #[error("{path}: {why}")]
    Model { path: String, why: String },
    /// Source and destination are the same file.
    #[error("{path}: source and result are the same file")]
    SameFile { path: String },
    /// The destination's name belongs to no container.
    #[error("{path}: {}", unwritten(*.found))]
    UnknownKind {
        path: String,
        /// Kind of file that the name belongs to.
        found: Foreign,
    },
    /// The result or the report cannot have this place.
    #[error("{path}: {why}")]
    Unsuitable { path: String, why: &'static str },
    /// A report lists a written file that does not exist.
    #[error("{path}: the report lists it as a written file, but it is not a regular file")]
    NoOutput { path: String },
    /// The memory limit is too small for one chunk.
    #[error("buffers of {} are too small: at least {} are needed", counted(*.got, "byte"), counted(*.least, "byte"))]
    Memory { got: u64, least: u64 },
    /// Out of memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A checkpoint cannot be converted.
    #[error("{path}: {cause}")]
    Checkpoint { path: String, cause: CheckpointError },
    /// The quantization of a checkpoint cannot be interpreted.
    #[error("{}{cause}", place(path, cause))]
    Scheme {
        /// Path of the folder or file.
        path: String,
        cause: Box<truecast_schemes::Error>,
    },
    /// The scheme does not support the tensor.
    #[error("{why}")]
    NotQuantized {
        /// Scheme and reason.
        why: String,
    },
    /// Wrong buffers, elements, codes or scales of a scaled tensor.
    #[error(transparent)]
    Scaled(#[from] ScaledError),
    /// The operation was stopped.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

macro_rules! of_casts {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::Cast(error.into())
            }
        })*
    };
}

of_casts!(SpecError, ParseTypeError, PlanError, CastError, TextError);

fn unwritten(found: Foreign) -> String {
    let files = ".safetensors, .gguf, .npy, .npz, .pb and .onnx files, and folders of checkpoints";
    if found == Foreign::Stream { found.to_string() } else { format!("truecast writes {files}") }
}

fn lost(whole: Option<&str>) -> String {
    match whole {
        Some(whole) => format!("which is only a part of {} in the result; match all of its parts", Escaped(whole)),
        None => "which the result leaves out".into(),
    }
}

fn closest(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().map(|name| Escaped(name).to_string()).collect();
    match shown.as_slice() {
        [] => String::new(),
        [one] => format!("; the nearest is {one}"),
        [most @ .., last] => format!("; the nearest are {} and {last}", most.join(", ")),
    }
}

/// Failed allocation of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a buffer of {bytes} bytes")]
pub struct NoMemory {
    /// Requested size in bytes.
    pub bytes: u64,
}

/// Error of the conversion of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The specification forbids the conversion.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The pair of types has no conversion by value.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The destination's format does not support the type.
    #[error(transparent)]
    Form(#[from] NoForm),
    /// A text is not a number, or an `error` policy refused a value.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Out of memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A code or scale has no value.
    #[error(transparent)]
    Scaled(#[from] ScaledError),
    /// An `error` policy refused an element.
    #[error("{0}; choose another policy to convert it")]
    Value(#[from] CastError),
}

/// Path before the cause. A request for a read-only scheme is wrong for every file.
fn place(path: &str, cause: &truecast_schemes::Error) -> String {
    match cause {
        truecast_schemes::Error::NotWritten { .. } => String::new(),
        _ => format!("{path}: "),
    }
}

impl Error {
    pub(crate) fn tensor(path: &Path, tensor: &str, cause: impl Into<Cause>) -> Error {
        Error::Tensor { path: path.display().to_string(), tensor: tensor.into(), cause: Box::new(cause.into()) }
    }

    pub(crate) fn checkpoint(path: &Path, cause: CheckpointError) -> Error {
        Error::Checkpoint { path: path.display().to_string(), cause }
    }

    pub(crate) fn scheme(path: &Path, cause: truecast_schemes::Error) -> Error {
        Error::Scheme { path: path.display().to_string(), cause: Box::new(cause) }
    }

    /// Kind of the error: usage, input or system.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.error_code().kind()
    }

    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Error::Cast(error) => error.error_code(),
            Error::Io(error) => error.error_code(),
            Error::Tensor { cause, .. } => match &**cause {
                Cause::Spec(error) => error.error_code(),
                Cause::Plan(_) => ErrorCode::UnsupportedPair,
                Cause::Form(_) => ErrorCode::UnstorableType,
                Cause::Text(error) => of_text(error),
                Cause::NoMemory(_) => ErrorCode::OutOfMemory,
                Cause::Scaled(_) => ErrorCode::InvalidCode,
                Cause::Value(error) => of_cast(error),
            },
            Error::Glob { .. } => ErrorCode::InvalidPattern,
            Error::UnusedRule { .. }
            | Error::LostRule { .. }
            | Error::UnusedFrom { .. }
            | Error::UnusedPreset { .. }
            | Error::NoneQuantized { .. } => ErrorCode::UnmatchedPattern,
            Error::NoTensor { .. } => ErrorCode::UnknownTensor,
            Error::NotDescribed { .. } => ErrorCode::MalformedFile,
            Error::Unapplied { .. } => ErrorCode::UnknownQuantization,
            Error::Model { .. } => ErrorCode::IllegalOperation,
            Error::SameFile { .. } => ErrorCode::SameFile,
            Error::UnknownKind { .. } => ErrorCode::UnknownFileKind,
            Error::Unsuitable { .. } => ErrorCode::UnsuitableDestination,
            Error::NoOutput { .. } => ErrorCode::MissingFile,
            Error::Memory { .. } => ErrorCode::MemoryLimit,
            Error::NoMemory(_) => ErrorCode::OutOfMemory,
            Error::Checkpoint { cause, .. } => cause.error_code(),
            Error::Scheme { cause, .. } => cause.error_code(),
            Error::NotQuantized { .. } => ErrorCode::UnquantizableTensor,
            Error::Scaled(ScaledError::Layout { .. } | ScaledError::Arrays { .. } | ScaledError::Source { .. }) => {
                ErrorCode::InvalidValue
            }
            Error::Scaled(_) => ErrorCode::InvalidCode,
            Error::Interrupted => ErrorCode::Interrupted,
        }
    }
}
