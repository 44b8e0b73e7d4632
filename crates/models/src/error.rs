//! Everything that can go wrong in this crate.

use std::path::PathBuf;

use truecast_core::ErrorKind;
use truecast_io::ShownPath;

use crate::openvino::IrError;

/// Why a model has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    /// An OpenVINO IR is malformed or unsupported.
    #[error("{}: {cause}", ShownPath(path))]
    Ir {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: IrError,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::File(cause) => cause.kind(),
            Error::Ir { .. } => ErrorKind::Input,
        }
    }
}
