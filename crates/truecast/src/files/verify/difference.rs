//! How a file can differ from what it should be.

use super::found::Found;
use truecast_core::DType;

/// One way in which a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileDifference {
    /// The destination lacks a tensor.
    Missing {
        /// Its name.
        tensor: String,
    },
    /// The destination has a tensor that the source does not account for.
    Extra {
        /// Its name.
        tensor: String,
    },
    /// Type or shape are wrong.
    Header {
        /// Its name.
        tensor: String,
        /// What it should be.
        expected: (DType, Vec<u64>),
        /// What it is.
        actual: (DType, Vec<u64>),
    },
    /// Elements are wrong.
    Elements {
        /// The tensor.
        tensor: String,
        /// How many.
        count: u64,
        /// The first of them.
        first: WrongElement,
        /// Types of the source's and the destination's elements.
        types: (DType, DType),
    },
    /// Entries are wrong of a tensor that says how others are to be read: scales, zero points, shapes.
    Part {
        /// The tensor.
        tensor: String,
        /// How many.
        count: u64,
        /// The first of them.
        index: u64,
        /// The right code; of shapes, markers and what fills up rows or tiles a byte.
        expected: u64,
        /// What the file holds.
        actual: u64,
    },
    /// Texts are wrong, or elements that come from text.
    Texts {
        /// The tensor.
        tensor: String,
        /// How many.
        count: u64,
        /// The first of them.
        first: WrongText,
    },
    /// The source holds a value that the policy refuses or a text that is no number, so no result is right.
    Refused {
        /// The tensor.
        tensor: String,
        /// The first such element.
        index: u64,
    },
    /// The structure of a model, which is everything but the elements of its tensors, differs.
    Structure {
        /// Where in the file it does first.
        offset: u64,
    },
    /// A model's file of external data holds more than its elements, with zeros between them.
    ExternalData {
        /// The file, as the model names it.
        location: String,
        /// Where in it something else begins.
        offset: u64,
    },
    /// What a checkpoint wrote down about its source is not what this source is.
    Source {
        /// The checkpoint.
        path: String,
        /// What differs.
        why: String,
    },
    /// A file of a checkpoint is missing, damaged or another, or should not be there.
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file is not the one that a report or a manifest names.
    Digest {
        /// The file.
        path: String,
        /// `sha256` in a report, `xxh3` in a manifest.
        digest: &'static str,
        /// Length and digest that were recorded.
        expected: (u64, String),
        /// What they are, if there is such a file.
        actual: Option<(u64, String)>,
    },
    /// The metadata of a safetensors file differs; a `format` that the source lacks is `pt`.
    Metadata {
        /// The key.
        key: String,
    },
}

impl FileDifference {
    /// The tensor that it is about.
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

    /// Of a tensor whose bytes are known as a whole.
    pub(crate) fn of_bytes(tensor: &str, expected: &[u8], actual: &[u8]) -> Option<FileDifference> {
        let wrong = || (0..).zip(expected.iter().zip(actual)).filter(|(_, (expected, actual))| expected != actual);
        let (index, (&first, &found)) = wrong().next()?;
        let (tensor, count) = (tensor.into(), wrong().count() as u64);
        Some(FileDifference::Part { tensor, count, index, expected: first.into(), actual: found.into() })
    }

    /// Of a part of a tensor whose entries were recomputed: what each should be and is.
    pub(crate) fn of_found(tensor: &str, found: &Found<(u64, u64)>) -> Option<FileDifference> {
        let (index, (expected, actual)) = found.first?;
        Some(FileDifference::Part { tensor: tensor.into(), count: found.count, index, expected, actual })
    }
}

/// An element that is not what it should be. Codes are those of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongElement {
    /// Index in row-major order.
    pub index: u64,
    /// The source's code.
    pub source: u64,
    /// The right code.
    pub expected: u64,
    /// What the file holds.
    pub actual: u64,
}

/// An element that is not what it should be, where text is on one side or both. Numbers stand as hexadecimal codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongText {
    /// Index in row-major order.
    pub index: u64,
    /// The source's element.
    pub source: String,
    /// The right one.
    pub expected: String,
    /// What the file holds.
    pub actual: String,
}
