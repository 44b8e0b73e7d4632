//! Everything that can go wrong in this crate, one variant per cause.
//!
//! The container modules name what is wrong with a file's bytes ([`safetensors::HeaderError`], [`npy::HeaderError`],
//! [`npz::ArchiveError`]); this module adds where. What a process does with an error (exit codes, printing) is not here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use truecast_core::DType;
pub use truecast_core::ErrorKind as Class;

use crate::foreign::Foreign;
use crate::writer::Refusal;
use crate::{npy, npz, onnx, openvino, safetensors};

/// Why a container could not be read or written.
///
/// The text is one line, lower case, without a full stop; names that come from files are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path names no container of this crate.
    #[error("{}: {found}", Place(path))]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// What it names instead.
        found: Foreign,
    },
    /// The destination exists and replacing it was not asked for.
    #[error("{}: destination exists", Place(path))]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// The destination exists and is not a regular file; it is not replaced whatever was asked for.
    #[error("{}: destination is {found}, not a regular file; choose another name", Place(path))]
    DestinationNotRegular {
        /// The destination.
        path: PathBuf,
        /// What stands there, such as `a folder`.
        found: &'static str,
    },
    /// A type was given for a file whose header states the types.
    #[error("{}: the header states the types, so nothing is read as {from}", Place(path))]
    FromNotApplicable {
        /// The file.
        path: PathBuf,
        /// The type that was given.
        from: DType,
    },
    /// A type was given for elements of another width.
    #[error("{}: elements are {dtype}; {from} has another width", Place(path))]
    FromWidth {
        /// The source.
        path: PathBuf,
        /// The type that was given.
        from: DType,
        /// The type that the file states.
        dtype: DType,
    },
    /// A model is made from a model only.
    #[error("{}: a model is only made from a model; choose another container for tensors", Place(path))]
    NotAModel {
        /// The destination.
        path: PathBuf,
    },
    /// A `.npy` or `.pb` file holds one tensor.
    #[error("{}: such a file holds exactly one tensor, not {tensors}; use .npz", Place(path))]
    NotOneTensor {
        /// The destination.
        path: PathBuf,
        /// How many were to be written.
        tensors: usize,
    },
    /// A container's rules forbid a tensor that was to be written.
    #[error("{}: tensor {}: {cause}", Place(path), Shown(tensor))]
    Refused {
        /// The destination.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Which rule.
        cause: Refusal,
    },
    /// The header of the file to be written exceeds what readers accept.
    #[error(
        "{}: a header of {bytes} bytes exceeds the limit of {}; split the file",
        Place(path),
        safetensors::MAX_HEADER_BYTES
    )]
    HeaderTooLong {
        /// The destination.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// A reader was asked for more bytes than the tensor has left, or a writer was given more or fewer than announced.
    #[error("{}: {actual} bytes of tensor data where {expected} were announced", Place(path))]
    DataLength {
        /// The file.
        path: PathBuf,
        /// Bytes announced by the tensors' types and shapes.
        expected: u64,
        /// Bytes asked for or given.
        actual: u64,
    },
    /// The source is a folder, a device, a pipe: anything without a size that can be trusted
    /// (`docs/spec/checkpoints.md §1.6 V22`).
    #[error("{}: not a regular file", Place(path))]
    NotRegular {
        /// The source.
        path: PathBuf,
    },
    /// A safetensors header breaks a rule.
    #[error("{}: {cause}", Place(path))]
    Safetensors {
        /// The source.
        path: PathBuf,
        /// Which rule.
        cause: safetensors::HeaderError,
    },
    /// A `.npy` file, or a member of a `.npz` file, is malformed or unsupported.
    #[error("{}: {}{cause}", Place(path), Member(member.as_deref()))]
    Npy {
        /// The source.
        path: PathBuf,
        /// The member, in a `.npz` file.
        member: Option<String>,
        /// What is wrong.
        cause: npy::HeaderError,
    },
    /// A `.npz` file is malformed or unsupported.
    #[error("{}: {cause}", Place(path))]
    Npz {
        /// The source.
        path: PathBuf,
        /// What is wrong.
        cause: npz::ArchiveError,
    },
    /// A `.onnx` or `.pb` file is malformed or unsupported.
    #[error("{}: {cause}", Place(path))]
    Proto {
        /// The source.
        path: PathBuf,
        /// What is wrong.
        cause: onnx::ProtoError,
    },
    /// An OpenVINO IR is malformed or unsupported.
    #[error("{}: {cause}", Place(path))]
    Ir {
        /// The source.
        path: PathBuf,
        /// What is wrong.
        cause: openvino::IrError,
    },
    /// An element that takes a byte has bits above its width.
    #[error(
        "{}: tensor {}: element {index} is byte {byte:#04x}, which has bits above the {bits} of {dtype}",
        Place(path),
        Shown(tensor)
    )]
    CodeTooWide {
        /// The source.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The element's index in row-major order.
        index: u64,
        /// What was found.
        byte: u8,
        /// The bits of a code.
        bits: u32,
        /// The element type.
        dtype: DType,
    },
    /// Reading a tensor's data failed.
    #[error("{}: tensor {}: reading at offset {offset}: {source}", Place(path), Shown(tensor))]
    ReadTensor {
        /// The source.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The offset in the file; in a compressed member, in the data that it expands to.
        offset: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("{}: {action}: {source}", Place(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, such as `opening`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn class(&self) -> Class {
        match self {
            Error::UnknownKind { .. }
            | Error::Exists { .. }
            | Error::DestinationNotRegular { .. }
            | Error::FromNotApplicable { .. }
            | Error::FromWidth { .. }
            | Error::NotAModel { .. }
            | Error::NotOneTensor { .. }
            | Error::Refused { cause: Refusal::NoForm(_), .. }
            | Error::DataLength { .. } => Class::Usage,
            Error::Npy { cause, .. } if cause.is_usage() => Class::Usage,
            Error::Npz { cause: npz::ArchiveError::FromUnused { .. }, .. } => Class::Usage,
            Error::Refused { .. }
            | Error::HeaderTooLong { .. }
            | Error::NotRegular { .. }
            | Error::Safetensors { .. }
            | Error::Npy { .. }
            | Error::Npz { .. }
            | Error::Proto { .. }
            | Error::Ir { .. }
            | Error::CodeTooWide { .. } => Class::Input,
            Error::ReadTensor { .. } | Error::Io { .. } => Class::System,
        }
    }

    pub(crate) fn proto(path: &Path, error: onnx::ReadError) -> Error {
        match error {
            onnx::ReadError::Proto(cause) => Error::Proto { path: path.into(), cause },
            onnx::ReadError::Io(error) => Error::io(path, "reading")(error),
        }
    }

    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    }
}

/// A name from a file as it may be printed: in double quotes, with control and other unprintable characters escaped,
/// cut after 200 characters.
///
/// # Examples
/// ```
/// use truecast_io::Shown;
/// assert_eq!(Shown("a\u{1b}[31m").to_string(), r#""a\u{1b}[31m""#);
/// assert_eq!(Shown(&"x".repeat(300)).to_string().len(), 2 + 200 + "…".len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(200) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => {
                let cut = format!("{:?}", &self.0[..end]);
                write!(f, "{}…\"", &cut[..cut.len() - 1])
            }
        }
    }
}

/// A path as it may be printed: without quotes, unprintable characters escaped.
struct Place<'a>(&'a Path);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string_lossy().chars() {
            match c {
                '"' | '\'' | '\\' => write!(f, "{c}")?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// The prefix that names a member of an archive, if there is one.
struct Member<'a>(Option<&'a str>);

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "member {}: ", Shown(name)),
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

    #[test]
    fn a_cut_name_stays_quoted() {
        let text = Shown(&"\n".repeat(201)).to_string();
        assert_eq!(text, format!("\"{}…\"", "\\n".repeat(200)));
    }
}
