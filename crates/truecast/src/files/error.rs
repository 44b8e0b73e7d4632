//! The error of everything about files and scaled tensors, and whose fault one is.

use crate::files::convert::error::CheckpointError;
use std::path::Path;
use truecast_core::DType;
use truecast_core::dtype::ParseTypeError;
use truecast_core::scaled::ScaledError;
use truecast_core::spec::SpecError;
use truecast_io::{Escaped, Foreign, NoForm, counted};
use truecast_kernel::text::TextError;
use truecast_kernel::{CastError, PlanError};

use truecast_core::ErrorKind;

/// Why something was not done: a cast of buffers, or of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum Error {
    /// Converting elements.
    #[error(transparent)]
    Cast(#[from] crate::Error),
    /// Reading or writing a container.
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
    /// A tensor cannot be converted as asked.
    #[error("{path}: tensor {}: {cause}", Escaped(.tensor))]
    Tensor { path: String, tensor: String, cause: Box<Cause> },
    /// A rule's pattern is not a glob.
    #[error("{option} {glob:?}: {cause}")]
    Glob {
        /// The option that gives such a rule.
        option: &'static str,
        glob: String,
        cause: crate::files::select::glob::GlobError,
    },
    /// A rule chooses nothing.
    #[error("{option} {rule:?} matches no tensor of {path}{}", closest(.nearest))]
    UnusedRule {
        /// The rule as written.
        rule: String,
        /// The option that gives such a rule.
        option: &'static str,
        /// Tensors with names like it.
        nearest: Vec<String>,
        path: String,
    },
    /// No tensor has the name that was asked for.
    #[error("{path}: tensor {} does not exist{}", Escaped(.tensor), closest(.nearest))]
    NoTensor {
        /// The file or folder.
        path: String,
        tensor: String,
        /// Tensors with names like it.
        nearest: Vec<String>,
    },
    /// The scales of a quantized file cannot be applied.
    #[error("{path}: {why}")]
    Unapplied { path: String, why: String },
    /// Reinterpreting needs a tensor whose elements have that width.
    #[error("{path}: {from} applies to no tensor: no rule selects a tensor of {bits}-bit elements")]
    UnusedFrom {
        path: String,
        from: DType,
        /// Its storage width.
        bits: u32,
    },
    /// Presets that keep nothing.
    #[error("{path}: --keep-preset has no effect: {why}")]
    UnusedPreset {
        /// The file or folder.
        path: String,
        why: &'static str,
    },
    /// A model cannot be converted as asked.
    #[error("{path}: {why}")]
    Model { path: String, why: String },
    /// Source and destination are one file.
    #[error("{path}: source and destination are the same file; choose another destination")]
    SameFile { path: String },
    /// The destination names no container.
    #[error("{path}: {found}")]
    UnknownKind {
        path: String,
        /// What it names instead.
        found: Foreign,
    },
    /// The destination of one file is a folder.
    #[error("{path}: this is a folder, but the result is one file; name a file in it")]
    FolderForFile { path: String },
    /// A report names something as a file that was written, and it is none.
    #[error("{path}: the report lists it as a written file, but it is not a regular file")]
    NoOutput { path: String },
    /// The memory limit is below what one chunk takes.
    #[error("buffers of {} are too small: at least {} are needed", counted(*.got, "byte"), counted(*.least, "byte"))]
    Memory { got: u64, least: u64 },
    /// The system gives no memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A checkpoint cannot be converted as asked.
    #[error("{path}: {cause}")]
    Checkpoint { path: String, cause: CheckpointError },
    /// What is quantized in a checkpoint is not understood.
    #[error("{path}: {cause}")]
    Scheme {
        /// The folder or file.
        path: String,
        cause: Box<truecast_schemes::Error>,
    },
    /// A tensor in memory has no form in a scheme.
    #[error("{why}")]
    NotQuantized {
        /// The scheme, and why not.
        why: String,
    },
    /// A scaled tensor in memory: its buffers, elements, codes or scales.
    #[error(transparent)]
    Scaled(#[from] ScaledError),
    /// Stopped on request.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

/// Errors of casts, which `?` takes.
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

/// What a pattern is called.
fn closest(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().map(|name| Escaped(name).to_string()).collect();
    match shown.as_slice() {
        [] => String::new(),
        [one] => format!("; the nearest is {one}"),
        [most @ .., last] => format!("; the nearest are {} and {last}", most.join(", ")),
    }
}

/// There is no memory for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a buffer of {bytes} bytes")]
pub struct NoMemory {
    /// Bytes that were wanted.
    pub bytes: u64,
}

/// Why a tensor cannot be converted as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The specification does not allow it.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It has no value to convert.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The destination cannot hold its type.
    #[error(transparent)]
    Form(#[from] NoForm),
    /// A text is not a number, or an `error` policy refused it.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The system gives no memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// Codes or scales that are no values.
    #[error(transparent)]
    Scaled(#[from] ScaledError),
    /// An `error` policy refused an element.
    #[error("{0}; choose another policy to convert it")]
    Value(#[from] CastError),
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

    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Cast(error) => error.kind(),
            Error::Io(error) => error.kind(),
            Error::Tensor { cause, .. } => match &**cause {
                Cause::Spec(error) => error.kind(),
                Cause::Form(_) => ErrorKind::Usage,
                Cause::NoMemory(_) => ErrorKind::System,
                _ => ErrorKind::Input,
            },
            Error::Glob { .. }
            | Error::UnusedRule { .. }
            | Error::NoTensor { .. }
            | Error::UnusedFrom { .. }
            | Error::UnusedPreset { .. }
            | Error::SameFile { .. }
            | Error::UnknownKind { .. }
            | Error::FolderForFile { .. }
            | Error::Memory { .. }
            | Error::NotQuantized { .. }
            | Error::Scaled(ScaledError::Layout { .. } | ScaledError::Arrays { .. } | ScaledError::Source { .. }) => {
                ErrorKind::Usage
            }
            Error::Scaled(_) => ErrorKind::Input,
            Error::Checkpoint { cause, .. } => cause.kind(),
            Error::Scheme { cause, .. } => cause.kind(),
            Error::Model { .. } | Error::NoOutput { .. } | Error::Unapplied { .. } => ErrorKind::Input,
            Error::NoMemory(_) | Error::Interrupted => ErrorKind::System,
        }
    }
}
