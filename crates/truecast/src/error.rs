//! Errors of working with files, and whose fault they are.

use std::path::Path;
use truecast_core::DType;
use truecast_core::spec::SpecError;
use truecast_io::{NoForm, Shown};
use truecast_kernel::{CastError, PlanError};
use truecast_text::TextError;

pub use truecast_io::Class;

/// Why a file was not converted, verified, compared or inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a container.
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
    /// A tensor cannot be converted as asked.
    #[error("{path}: tensor {}: {cause}", Shown(.tensor))]
    Tensor {
        /// The file.
        path: String,
        /// The tensor.
        tensor: String,
        /// Why not.
        cause: Box<Cause>,
    },
    /// A rule's pattern is not a glob.
    #[error("rule {glob:?}: {why}")]
    Glob {
        /// The pattern.
        glob: String,
        /// What is wrong.
        why: String,
    },
    /// A rule chooses nothing.
    #[error("rule {rule:?} matches no tensor of {path}; `truecast inspect` lists them")]
    UnusedRule {
        /// The rule as written.
        rule: String,
        /// The file.
        path: String,
    },
    /// Reinterpreting needs a tensor whose elements have that width.
    #[error(
        "{path}: --from {from} reinterprets no tensor: it needs a --rule that chooses tensors of {bits}-bit elements"
    )]
    UnusedFrom {
        /// The file.
        path: String,
        /// The type.
        from: DType,
        /// Its storage width.
        bits: u32,
    },
    /// Source and destination are one file.
    #[error("{path}: source and destination are the same file; choose another destination")]
    SameFile {
        /// The file.
        path: String,
    },
    /// The extension of the destination names no container.
    #[error("{path}: unknown kind of file; expected .safetensors, .npy or .npz")]
    UnknownKind {
        /// The destination.
        path: String,
    },
    /// The memory limit is below what one chunk takes.
    #[error("--max-memory {got} is too small: at least {least} bytes are needed")]
    Memory {
        /// The limit.
        got: u64,
        /// The least.
        least: u64,
    },
    /// Stopped on request.
    #[error("interrupted; nothing was written")]
    Interrupted,
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
    /// An `error` policy refused an element.
    #[error("{0}; choose another policy to convert it")]
    Value(#[from] CastError),
}

impl Error {
    pub(crate) fn tensor(path: &Path, tensor: &str, cause: impl Into<Cause>) -> Error {
        Error::Tensor { path: path.display().to_string(), tensor: tensor.into(), cause: Box::new(cause.into()) }
    }

    /// Whose fault it is: the exit code follows from it (`docs/interfaces.md §5`).
    pub fn class(&self) -> Class {
        match self {
            Error::Io(error) => error.class(),
            Error::Tensor { cause, .. } => match **cause {
                Cause::Spec(SpecError::Attribute { .. } | SpecError::Version { .. }) | Cause::Form(_) => Class::Usage,
                _ => Class::Input,
            },
            Error::Glob { .. }
            | Error::UnusedRule { .. }
            | Error::UnusedFrom { .. }
            | Error::SameFile { .. }
            | Error::UnknownKind { .. }
            | Error::Memory { .. } => Class::Usage,
            Error::Interrupted => Class::System,
        }
    }
}
