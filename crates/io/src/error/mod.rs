//! All errors of this crate, one variant per cause. Each format has a module for faults in its bytes; [`Error`] adds
//! the path.

mod code;
pub mod denied;
pub mod folder;
pub mod gguf;
pub mod npy;
pub mod npz;
pub mod onnx;
pub mod safetensors;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use truecast_core::DType;
pub use truecast_core::{ErrorCode, ErrorKind};

use crate::escaped::{Escaped, EscapedPath, counted, in_units};
use crate::foreign::Foreign;
use denied::DeniedTensor;

/// Reason why a container could not be read or written.
///
/// The text is one line, lower case, without a full stop; names that come from files are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum Error {
    /// The extension is not a container's.
    #[error("{}: {found}", EscapedPath(path))]
    UnknownKind {
        path: PathBuf,
        /// Kind of file that was found.
        found: Foreign,
    },
    /// The file has a container's extension but other contents.
    #[error("{}: {found}", EscapedPath(path))]
    Replaced {
        path: PathBuf,
        /// Kind of file that was found.
        found: Foreign,
    },
    #[error("{}: destination exists", EscapedPath(path))]
    Exists { path: PathBuf },
    #[error("{}: destination is {found}, not a regular file; choose another name", EscapedPath(path))]
    DestinationNotRegular {
        path: PathBuf,
        /// Kind of the destination, such as `a folder`.
        found: &'static str,
    },
    #[error(
        "{}: links in a destination are not followed; remove the link, or choose another folder",
        EscapedPath(path)
    )]
    LinkInside { path: PathBuf },
    #[error("{}: the header states the types, so nothing is read as {from}", EscapedPath(path))]
    FromNotApplicable {
        path: PathBuf,
        /// The given type.
        from: DType,
    },
    #[error("{}: elements are {dtype}; {from} has another width", EscapedPath(path))]
    FromWidth {
        path: PathBuf,
        from: DType,
        /// Type in the file.
        dtype: DType,
    },
    #[error("{}: only a model can be converted to a model; choose another container for tensors", EscapedPath(path))]
    NotAModel { path: PathBuf },
    #[error("{}: this kind of file holds exactly one tensor, not {tensors}; use .npz", EscapedPath(path))]
    NotOneTensor {
        path: PathBuf,
        /// Number of tensors to write.
        tensors: usize,
    },
    /// Test vectors in hexadecimal are malformed.
    #[error("{}: line {line}: {why}", EscapedPath(path))]
    Hex { path: PathBuf, line: u64, why: String },
    #[error("{}: tensor {}: {cause}", EscapedPath(path), Escaped(tensor))]
    Refused { path: PathBuf, tensor: String, cause: DeniedTensor },
    /// The header of the new file exceeds the limit of readers.
    #[error(
        "{}: a header of {bytes} bytes exceeds the limit of {}; split the file",
        EscapedPath(path),
        safetensors::MAX_HEADER_BYTES
    )]
    HeaderTooLong { path: PathBuf, bytes: u64 },
    /// The number of bytes requested or written differs from the tensors' size.
    #[error("{}: {actual} bytes of tensor data, expected {expected}", EscapedPath(path))]
    DataLength {
        path: PathBuf,
        expected: u64,
        /// Number of bytes requested or given.
        actual: u64,
    },
    /// The source has no reliable size: a folder, a device, a pipe (`docs/spec/checkpoints.md §1.6 V22`).
    #[error("{}: not a regular file", EscapedPath(path))]
    NotRegular { path: PathBuf },
    #[error("{}: {cause}", EscapedPath(path))]
    Safetensors { path: PathBuf, cause: safetensors::HeaderError },
    #[error("{}: {cause}", EscapedPath(path))]
    Gguf { path: PathBuf, cause: gguf::HeaderError },
    #[error("{}: {}{cause}", EscapedPath(path), Member(member.as_deref()))]
    Npy {
        path: PathBuf,
        /// Member of a `.npz` file.
        member: Option<String>,
        cause: npy::HeaderError,
    },
    #[error("{}: {cause}", EscapedPath(path))]
    Npz { path: PathBuf, cause: npz::ArchiveError },
    #[error("{}: {cause}", EscapedPath(path))]
    Proto { path: PathBuf, cause: onnx::ProtoError },
    #[error("{}: descr {} does not hold {dtype}", EscapedPath(path), Escaped(descr))]
    Descr { path: PathBuf, descr: String, dtype: DType },
    #[error("{}: rows of {bytes} bytes are not a whole number of {dtype} elements", EscapedPath(path))]
    Rows { path: PathBuf, bytes: u64, dtype: DType },
    #[error(
        "{}: shape {shape:?} has no elements; every dimension of a TOSA tensor is at least 1 (docs/spec/tosa.md §2.4)",
        EscapedPath(path)
    )]
    Empty { path: PathBuf, shape: Vec<u64> },
    #[error("{}: element {index} does not fit in 48 bits", EscapedPath(path))]
    Wide { path: PathBuf, index: u64 },
    #[error("{}: no memory for {bytes} bytes", EscapedPath(path))]
    Memory {
        path: PathBuf,
        /// Number of bytes needed.
        bytes: u64,
    },
    #[error(
        "{}: tensor {}: element {index} is byte {byte:#04x}, which has bits above the {bits} of {dtype}",
        EscapedPath(path),
        Escaped(tensor)
    )]
    CodeTooWide {
        path: PathBuf,
        tensor: String,
        /// Index in row-major order.
        index: u64,
        byte: u8,
        bits: u32,
        dtype: DType,
    },
    #[error("{}: tensor {}: reading at offset {offset}: {source}", EscapedPath(path), Escaped(tensor))]
    ReadTensor {
        path: PathBuf,
        tensor: String,
        /// Offset in the file. For a member, Fortran order or text: number of bytes read before.
        offset: u64,
        source: io::Error,
    },
    #[error("{}: {cause}", EscapedPath(path))]
    Folder {
        /// The folder or the file.
        path: PathBuf,
        cause: folder::FolderError,
    },
    #[error("{}: the result needs {}, and {} are free", EscapedPath(path), in_units(*needed), in_units(*free))]
    Space {
        path: PathBuf,
        /// Number of bytes to be written.
        needed: u64,
        free: u64,
    },
    #[error("{}: {action}: {source}", EscapedPath(path))]
    Io {
        path: PathBuf,
        /// The failed action, such as `opening`.
        action: &'static str,
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    }
}

pub(crate) trait Cause {
    fn at(self, path: &Path) -> Error;
}

macro_rules! causes {
    ($($cause:ty => $variant:ident { $($more:tt)* })*) => {$(
        impl Cause for $cause {
            fn at(self, path: &Path) -> Error {
                Error::$variant { path: path.into(), cause: self, $($more)* }
            }
        }
    )*};
}

causes! {
    safetensors::HeaderError => Safetensors {}
    gguf::HeaderError => Gguf {}
    npy::HeaderError => Npy { member: None }
    npz::ArchiveError => Npz {}
    folder::FolderError => Folder {}
    onnx::ProtoError => Proto {}
}

#[derive(Debug)]
pub(crate) enum ReadError<C> {
    Cause(C),
    Io(io::Error),
}

impl<C: Cause> From<C> for ReadError<C> {
    fn from(cause: C) -> ReadError<C> {
        ReadError::Cause(cause)
    }
}

impl<C> From<io::Error> for ReadError<C> {
    fn from(error: io::Error) -> ReadError<C> {
        ReadError::Io(error)
    }
}

impl<C: Cause> ReadError<C> {
    /// Adds the path, and to a system error the failed `action`. A text file with a container's extension gives
    /// [`Error::Replaced`].
    pub(crate) fn at(self, path: &Path, action: &'static str) -> Error {
        match self {
            ReadError::Cause(cause) => match Foreign::instead(path) {
                Some(found) => Error::Replaced { path: path.into(), found },
                None => cause.at(path),
            },
            ReadError::Io(error) => Error::io(path, action)(error),
        }
    }
}

/// End of a message about missing bytes.
const TRUNCATED: &str = "the file is truncated or damaged: download or copy it again";

struct OffBy {
    needed: u64,
    found: u64,
}

impl fmt::Display for OffBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found.checked_sub(self.needed) {
            Some(surplus) => write!(f, "the file has {} too many", counted(surplus, "byte")),
            None => f.write_str(TRUNCATED),
        }
    }
}

struct Member<'a>(Option<&'a str>);

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "member {}: ", Escaped(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_whatever_the_names() {
        let error = Error::CodeTooWide {
            path: "dir\n/a.npy".into(),
            tensor: "x\r\n\0".into(),
            index: 7,
            byte: 0x1f,
            bits: 4,
            dtype: DType::I4,
        };
        assert_eq!(
            error.to_string(),
            "dir\\n/a.npy: tensor \"x\\r\\n\\0\": element 7 is byte 0x1f, which has bits above the 4 of i4"
        );
    }
}
