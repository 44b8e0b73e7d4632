//! Differences between a file and its expected contents.

use super::found::Found;
use std::path::Path;
use truecast_core::DType;

/// Difference between a file and its expected contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The variants name the other fields.
pub enum FileDifference {
    /// A tensor is missing in the destination.
    Missing { tensor: String },
    /// The destination has an unexpected tensor.
    Extra { tensor: String },
    /// A tensor has a wrong type or shape.
    Header {
        tensor: String,
        /// Expected type and shape.
        expected: (DType, Vec<u64>),
        /// Type and shape in the file.
        actual: (DType, Vec<u64>),
    },
    /// A tensor has wrong elements.
    Elements {
        tensor: String,
        count: u64,
        first: WrongElement,
        /// Element types of source and destination.
        types: (DType, DType),
    },
    /// Another part of a quantized tensor has wrong entries: scales, zero points, shapes.
    Part {
        tensor: String,
        count: u64,
        index: u64,
        /// Expected code. For shapes, markers and padding, the expected byte.
        expected: u64,
        /// Actual code or byte.
        actual: u64,
    },
    /// A conversion from or to text has wrong elements.
    Texts { tensor: String, count: u64, first: WrongText },
    /// The policy refuses a source value, or a text is not a number; no result can be right.
    Refused {
        tensor: String,
        /// Index of the first refused element.
        index: u64,
    },
    /// The structure of a model differs.
    Structure {
        /// Offset in the file of the first difference.
        offset: u64,
    },
    /// External data of a model has wrong bytes.
    ExternalData {
        location: String,
        /// Offset in the external file of the first wrong byte.
        offset: u64,
    },
    /// The recorded source is not the source.
    Source { path: String, why: String },
    /// A file of a checkpoint is missing, damaged, different or unexpected.
    File { path: String, why: String },
    /// A file differs from the record in a report or a manifest.
    Digest {
        path: String,
        /// `sha256` in a report, `xxh3` in a manifest.
        digest: &'static str,
        expected: (u64, String),
        /// Actual length and digest; `None` if the file does not exist.
        actual: Option<(u64, String)>,
    },
    /// Metadata of a safetensors file differ. If the source has no `format`, `pt` is expected.
    Metadata { key: String },
}

/// The field `tensor` of a shared or a mutable difference.
macro_rules! tensor_of {
    ($difference:expr) => {
        match $difference {
            FileDifference::Missing { tensor }
            | FileDifference::Extra { tensor }
            | FileDifference::Header { tensor, .. }
            | FileDifference::Elements { tensor, .. }
            | FileDifference::Part { tensor, .. }
            | FileDifference::Texts { tensor, .. }
            | FileDifference::Refused { tensor, .. } => Some(tensor),
            _ => None,
        }
    };
}

impl FileDifference {
    /// Name of the tensor that differs; `None` for another part of a file.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        tensor_of!(self).map(String::as_str)
    }

    pub(crate) fn tensor_mut(&mut self) -> Option<&mut String> {
        tensor_of!(self)
    }

    pub(crate) fn file(path: &Path, why: impl Into<String>) -> FileDifference {
        FileDifference::File { path: path.display().to_string(), why: why.into() }
    }

    pub(crate) fn of_bytes(tensor: &str, expected: &[u8], actual: &[u8]) -> Option<FileDifference> {
        let wrong = || (0..).zip(expected.iter().zip(actual)).filter(|(_, (expected, actual))| expected != actual);
        let (index, (&first, &found)) = wrong().next()?;
        let (tensor, count) = (tensor.into(), wrong().count() as u64);
        Some(FileDifference::Part { tensor, count, index, expected: first.into(), actual: found.into() })
    }

    /// Difference for entries of a part. `found` has the expected and the actual code of the first wrong entry.
    pub(crate) fn of_found(tensor: &str, found: &Found<(u64, u64)>) -> Option<FileDifference> {
        let (index, (expected, actual)) = found.first?;
        Some(FileDifference::Part { tensor: tensor.into(), count: found.count, index, expected, actual })
    }
}

/// A wrong element. Its codes are in stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongElement {
    /// Index in row-major order.
    pub index: u64,
    /// Code in the source.
    pub source: u64,
    /// Expected code.
    pub expected: u64,
    /// Actual code.
    pub actual: u64,
}

/// A wrong element in a conversion to text or from text. Numbers are hexadecimal codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongText {
    /// Index in row-major order.
    pub index: u64,
    /// Element in the source.
    pub source: String,
    /// Expected element.
    pub expected: String,
    /// Actual element.
    pub actual: String,
}
