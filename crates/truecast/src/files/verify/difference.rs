//! Differences between a file and its expected contents.

use super::found::Found;
use truecast_core::DType;

/// A difference between a file and its expected contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The variants name the other fields.
pub enum FileDifference {
    /// A tensor is missing in the destination.
    Missing { tensor: String },
    /// The destination has an unexpected tensor.
    Extra { tensor: String },
    /// Wrong type or shape.
    Header {
        tensor: String,
        /// Expected type and shape.
        expected: (DType, Vec<u64>),
        /// Type and shape in the file.
        actual: (DType, Vec<u64>),
    },
    /// Wrong elements.
    Elements {
        tensor: String,
        count: u64,
        first: WrongElement,
        /// Types of the source's and the destination's elements.
        types: (DType, DType),
    },
    /// Wrong entries of a tensor that is needed to read others: scales, zero points, shapes.
    Part {
        tensor: String,
        count: u64,
        index: u64,
        /// The right code; for shapes, markers and padding of rows or tiles, a byte.
        expected: u64,
        /// The code in the file.
        actual: u64,
    },
    /// Wrong texts, or wrong elements that were read from text.
    Texts { tensor: String, count: u64, first: WrongText },
    /// The source has a value that the policy refuses, or a text that is not a number, so every result is wrong.
    Refused {
        tensor: String,
        /// Index of the first refused element.
        index: u64,
    },
    /// A different model structure: anything except the elements of its tensors.
    Structure {
        /// Offset of the first difference in the file.
        offset: u64,
    },
    /// A model's file of external data has bytes other than the expected elements and the zeros between them.
    ExternalData {
        /// The file, as named in the model.
        location: String,
        /// Offset of the first wrong byte.
        offset: u64,
    },
    /// A checkpoint's record of its source does not match the source.
    Source { path: String, why: String },
    /// A file of a checkpoint is missing, damaged, different or unexpected.
    File { path: String, why: String },
    /// A file differs from the record in a report or a manifest.
    Digest {
        path: String,
        /// `sha256` in a report, `xxh3` in a manifest.
        digest: &'static str,
        /// Recorded length and digest.
        expected: (u64, String),
        /// Actual length and digest, if the file exists.
        actual: Option<(u64, String)>,
    },
    /// Different metadata of a safetensors file. If the source has no `format`, `pt` is expected.
    Metadata { key: String },
}

impl FileDifference {
    /// Returns the name of the tensor with the difference, if the difference is in a tensor.
    pub(crate) fn tensor_mut(&mut self) -> Option<&mut String> {
        match self {
            FileDifference::Missing { tensor }
            | FileDifference::Extra { tensor }
            | FileDifference::Header { tensor, .. }
            | FileDifference::Elements { tensor, .. }
            | FileDifference::Part { tensor, .. }
            | FileDifference::Texts { tensor, .. }
            | FileDifference::Refused { tensor, .. } => Some(tensor),
            _ => None,
        }
    }

    /// Compares the whole bytes of a tensor.
    pub(crate) fn of_bytes(tensor: &str, expected: &[u8], actual: &[u8]) -> Option<FileDifference> {
        let wrong = || (0..).zip(expected.iter().zip(actual)).filter(|(_, (expected, actual))| expected != actual);
        let (index, (&first, &found)) = wrong().next()?;
        let (tensor, count) = (tensor.into(), wrong().count() as u64);
        Some(FileDifference::Part { tensor, count, index, expected: first.into(), actual: found.into() })
    }

    /// Makes the difference for recomputed entries of a part; `found` has the expected and the actual code of the first
    /// wrong entry.
    pub(crate) fn of_found(tensor: &str, found: &Found<(u64, u64)>) -> Option<FileDifference> {
        let (index, (expected, actual)) = found.first?;
        Some(FileDifference::Part { tensor: tensor.into(), count: found.count, index, expected, actual })
    }
}

/// A wrong element, with codes as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongElement {
    /// Index in row-major order.
    pub index: u64,
    /// The source's code.
    pub source: u64,
    /// The right code.
    pub expected: u64,
    /// The code in the file.
    pub actual: u64,
}

/// A wrong element with text on one side or both. Numbers are shown as hexadecimal codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongText {
    /// Index in row-major order.
    pub index: u64,
    /// The source's element.
    pub source: String,
    /// The right element.
    pub expected: String,
    /// The element in the file.
    pub actual: String,
}
