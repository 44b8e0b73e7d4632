//! All errors of this crate, one variant per cause.
//!
//! Each format has a module for faults in its bytes; [`Error`] adds the path. Exit codes and printing are elsewhere.

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

/// Why a container could not be read or written.
///
/// The text is one line, lower case, without a full stop; names that come from files are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum Error {
    /// The path names no container of this crate.
    #[error("{}: {found}", EscapedPath(path))]
    UnknownKind {
        path: PathBuf,
        /// Actual kind of file.
        found: Foreign,
    },
    /// Another kind of file under the name of a container.
    #[error("{}: {found}", EscapedPath(path))]
    Replaced {
        path: PathBuf,
        /// Actual kind of file.
        found: Foreign,
    },
    /// The destination exists and must not be replaced.
    #[error("{}: destination exists", EscapedPath(path))]
    Exists { path: PathBuf },
    /// The destination exists and is not a regular file; it is never replaced.
    #[error("{}: destination is {found}, not a regular file; choose another name", EscapedPath(path))]
    DestinationNotRegular {
        path: PathBuf,
        /// Kind of the destination, such as `a folder`.
        found: &'static str,
    },
    /// A file in a destination folder, or a folder in it, is a link.
    #[error(
        "{}: links in a destination are not followed; remove the link, or choose another folder",
        EscapedPath(path)
    )]
    LinkInside { path: PathBuf },
    /// A type was given for a file whose header states the types.
    #[error("{}: the header states the types, so nothing is read as {from}", EscapedPath(path))]
    FromNotApplicable {
        path: PathBuf,
        /// The given type.
        from: DType,
    },
    /// A type was given for elements of another width.
    #[error("{}: elements are {dtype}; {from} has another width", EscapedPath(path))]
    FromWidth {
        path: PathBuf,
        /// The given type.
        from: DType,
        /// Type in the file.
        dtype: DType,
    },
    /// A model can be made only from a model.
    #[error("{}: only a model can be converted to a model; choose another container for tensors", EscapedPath(path))]
    NotAModel { path: PathBuf },
    /// A `.npy` or `.pb` file holds exactly one tensor, and another number was given.
    #[error("{}: this kind of file holds exactly one tensor, not {tensors}; use .npz", EscapedPath(path))]
    NotOneTensor {
        path: PathBuf,
        /// Number of tensors to write.
        tensors: usize,
    },
    /// A container's rules forbid writing a tensor.
    #[error("{}: tensor {}: {cause}", EscapedPath(path), Escaped(tensor))]
    Refused { path: PathBuf, tensor: String, cause: DeniedTensor },
    /// The header of the file to be written exceeds what readers accept.
    #[error(
        "{}: a header of {bytes} bytes exceeds the limit of {}; split the file",
        EscapedPath(path),
        safetensors::MAX_HEADER_BYTES
    )]
    HeaderTooLong { path: PathBuf, bytes: u64 },
    /// A caller requested more bytes than the tensor has left, or a writer was given another number than announced.
    #[error("{}: {actual} bytes of tensor data, expected {expected}", EscapedPath(path))]
    DataLength {
        path: PathBuf,
        /// Bytes announced by the tensors' types and shapes.
        expected: u64,
        /// Bytes requested or given.
        actual: u64,
    },
    /// The source is a folder, a device, a pipe: anything without a reliable size (`docs/spec/checkpoints.md §1.6
    /// V22`).
    #[error("{}: not a regular file", EscapedPath(path))]
    NotRegular { path: PathBuf },
    /// A safetensors header breaks a rule.
    #[error("{}: {cause}", EscapedPath(path))]
    Safetensors { path: PathBuf, cause: safetensors::HeaderError },
    /// A `.gguf` file is malformed or unsupported.
    #[error("{}: {cause}", EscapedPath(path))]
    Gguf { path: PathBuf, cause: gguf::HeaderError },
    /// A `.npy` file, or a member of a `.npz` file, is malformed or unsupported.
    #[error("{}: {}{cause}", EscapedPath(path), Member(member.as_deref()))]
    Npy {
        path: PathBuf,
        /// The member, in a `.npz` file.
        member: Option<String>,
        cause: npy::HeaderError,
    },
    /// A `.npz` file is malformed or unsupported.
    #[error("{}: {cause}", EscapedPath(path))]
    Npz { path: PathBuf, cause: npz::ArchiveError },
    /// A `.onnx` or `.pb` file is malformed or unsupported.
    #[error("{}: {cause}", EscapedPath(path))]
    Proto { path: PathBuf, cause: onnx::ProtoError },
    /// The elements of a `.npy` file cannot have this type.
    #[error("{}: descr {} does not hold {dtype}", EscapedPath(path), Escaped(descr))]
    Descr { path: PathBuf, descr: String, dtype: DType },
    /// A row of packed elements in a `.npy` file does not hold a whole number of elements, or does not end at a byte.
    #[error("{}: rows of {bytes} bytes are not a whole number of {dtype} elements", EscapedPath(path))]
    Rows { path: PathBuf, bytes: u64, dtype: DType },
    /// A dimension of a TOSA tensor is 0.
    #[error(
        "{}: shape {shape:?} has no elements; every dimension of a TOSA tensor is at least 1 (docs/spec/tosa.md §2.4)",
        EscapedPath(path)
    )]
    Empty { path: PathBuf, shape: Vec<u64> },
    /// A 64-bit element exceeds 48 bits.
    #[error("{}: element {index} does not fit in 48 bits", EscapedPath(path))]
    Wide { path: PathBuf, index: u64 },
    /// Not enough memory for the elements.
    #[error("{}: no memory for {bytes} bytes", EscapedPath(path))]
    Memory {
        path: PathBuf,
        /// Bytes needed.
        bytes: u64,
    },
    /// A byte that holds one narrower element has bits set above the element's width.
    #[error(
        "{}: tensor {}: element {index} is byte {byte:#04x}, which has bits above the {bits} of {dtype}",
        EscapedPath(path),
        Escaped(tensor)
    )]
    CodeTooWide {
        path: PathBuf,
        tensor: String,
        /// The element's index in row-major order.
        index: u64,
        byte: u8,
        /// Bits of a code.
        bits: u32,
        /// The element type.
        dtype: DType,
    },
    /// Reading a tensor's data failed.
    #[error("{}: tensor {}: reading at offset {offset}: {source}", EscapedPath(path), Escaped(tensor))]
    ReadTensor {
        path: PathBuf,
        tensor: String,
        /// Offset in the file; for an archive's member, data in Fortran order or text, the number of bytes read before.
        offset: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// A checkpoint folder, or a JSON file of one, breaks a rule.
    #[error("{}: {cause}", EscapedPath(path))]
    Folder {
        /// The folder or the file.
        path: PathBuf,
        cause: folder::FolderError,
    },
    /// The disk is too full.
    #[error("{}: the result needs {}, and {} are free", EscapedPath(path), in_units(*needed), in_units(*free))]
    Space {
        path: PathBuf,
        /// Bytes to be written.
        needed: u64,
        /// Bytes available.
        free: u64,
    },
    /// Another system call failed.
    #[error("{}: {action}: {source}", EscapedPath(path))]
    Io {
        path: PathBuf,
        /// The action that failed, such as `opening`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    }
}

/// Fault in the bytes of a file.
pub(crate) trait Cause {
    /// Adds the file's path.
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

/// Why a part of a file could not be read: bad bytes or a system error.
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
    /// Adds the file's path, and to a system error the `action` that failed. A text file under a container's name is
    /// reported as such.
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

/// Difference between actual and stated length of data.
struct OffBy {
    needed: u64,
    found: u64,
}

impl fmt::Display for OffBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found.checked_sub(self.needed) {
            Some(surplus) => write!(f, "the file has {} too many", counted(surplus, "byte")),
            None => f.write_str("the file is truncated or damaged"),
        }
    }
}

/// Prefix with the name of a member, if in an archive.
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
