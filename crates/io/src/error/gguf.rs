//! Errors of a GGUF header (`docs/spec/checkpoints.md §9.1`).

use crate::escaped::{Escaped, counted};
use crate::gguf::Block;

/// Maximum length of a key or tensor name. The format's own limits are 65,535 bytes for a key and 64 for a tensor name.
pub const MAX_NAME_BYTES: u64 = 65_535;
/// Maximum length of a key's text.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Maximum total bytes of all names and texts in a header.
pub const MAX_ALL_TEXT_BYTES: u64 = 64 << 20;
/// Maximum total bytes of key values that are copied to another file.
pub const MAX_KEYS_BYTES: u64 = 256 << 20;
/// Maximum number of keys, and of tensors. Files of real models have a few thousand.
pub const MAX_ENTRIES: u64 = 1 << 16;
/// Maximum rank. ggml itself takes 4; files for other programs have 5.
pub const MAX_RANK: usize = 8;
/// Maximum nesting of arrays.
pub const MAX_DEPTH: u32 = 4;

/// Error of a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum HeaderError {
    /// The first four bytes differ from the format's.
    #[error("offset 0: not a GGUF file; it is empty, damaged or something else")]
    Magic,
    /// Written by a big-endian machine.
    #[error("offset 4: a big-endian GGUF file, which is not supported")]
    BigEndian,
    /// An unsupported version.
    #[error("offset 4: version {version} is not known; versions 2 and 3 are read")]
    Version { version: u32 },
    /// The file ends within the header.
    #[error("offset {offset}: the header extends past the end of the file; the file is truncated or damaged")]
    Truncated { offset: u64 },
    /// A count that cannot fit the file.
    #[error("offset {offset}: {count} entries are more than the file can hold, or than the limit of {MAX_ENTRIES}")]
    TooMany { offset: u64, count: u64 },
    /// A text that is too long.
    #[error("offset {offset}: a string of {bytes} bytes exceeds the limit of {most}")]
    TextTooLong { offset: u64, bytes: u64, most: u64 },
    /// Too much text in total.
    #[error("offset {offset}: all strings together exceed the limit of {MAX_ALL_TEXT_BYTES} bytes")]
    TooMuchText { offset: u64 },
    /// Values of keys that are too long in total.
    #[error("key values take {bytes} bytes; at most {MAX_KEYS_BYTES} can be copied to another file")]
    KeysTooLong { bytes: u64 },
    /// A text that is not UTF-8.
    #[error("offset {offset}: text is not UTF-8")]
    NotUtf8 { offset: u64 },
    /// An unknown type of values.
    #[error("offset {offset}: unknown value type {kind}")]
    ValueType { offset: u64, kind: u32 },
    /// Arrays nested too deeply.
    #[error("offset {offset}: arrays are nested deeper than {MAX_DEPTH}")]
    TooDeep { offset: u64 },
    #[error("key {} occurs twice", Escaped(key))]
    DuplicateKey { key: String },
    /// Two tensors have the same name.
    #[error("tensor {}: name occurs twice", Escaped(tensor))]
    DuplicateTensor { tensor: String },
    /// Invalid `general.alignment`.
    #[error("general.alignment is not a power of two up to 1048576")]
    Alignment,
    /// Too many dimensions.
    #[error("tensor {}: {rank} dimensions exceed the limit of {MAX_RANK}", Escaped(tensor))]
    Rank { tensor: String, rank: u32 },
    /// An unknown block type.
    #[error("tensor {}: unknown block type {id}", Escaped(tensor))]
    BlockType { tensor: String, id: u32 },
    /// Rows that are not a whole number of blocks.
    #[error("tensor {}: rows of {columns} elements are not a whole number of blocks of {block}", Escaped(tensor))]
    Columns { tensor: String, columns: u64, block: Block },
    /// Too many elements.
    #[error("tensor {}: shape has 2^63 elements or more", Escaped(tensor))]
    ShapeTooBig { tensor: String },
    /// An offset that is not a multiple of the alignment.
    #[error("tensor {}: offset {offset} is not a multiple of {alignment}", Escaped(tensor))]
    Unaligned { tensor: String, offset: u64, alignment: u64 },
    /// Data of two tensors overlap, or are in another order than the header's.
    #[error("tensor {}: data begins at {offset}, expected {expected}; tensors overlap", Escaped(tensor))]
    Overlap { tensor: String, offset: u64, expected: u64 },
    /// Data beyond the end of the file.
    #[error("tensor {}: data extends past the end of the file; the file is truncated or damaged", Escaped(tensor))]
    PastEnd { tensor: String },
    /// Bytes that belong to no tensor.
    #[error(
        "{} after the data of the last tensor; if files of a model were joined, give the files themselves",
        counted(*bytes, "byte")
    )]
    Surplus { bytes: u64 },
    /// An original shape with another number of elements than the tensor.
    #[error(
        "tensor {}: shape {stored:?}, but its comfy.gguf.orig_shape is {}, not as many elements",
        Escaped(tensor),
        stated.as_ref().map_or("not a list of dimensions".into(), |stated| format!("{stated:?}"))
    )]
    OriginalShape { tensor: String, stored: Vec<u64>, stated: Option<Vec<u64>> },
    /// A name that does not identify the other parts of the model.
    #[error("part {} of {count} by its keys, so its name must end with -{:05}-of-{count:05}.gguf", no + 1, no + 1)]
    PartName { no: u64, count: u64 },
    /// A missing part.
    #[error("part {} is missing; all parts of a model must be in one folder", Escaped(file))]
    MissingPart { file: String },
    /// A part of another model.
    #[error("{key} is {}, expected {expected}; the parts do not belong together", found.map_or("missing".into(), |n| n.to_string()))]
    OtherPart { key: &'static str, found: Option<u64>, expected: u64 },
    /// The parts have another number of tensors than stated.
    #[error("the parts have {}, but split.tensors.count is {stated}", counted(*found as u64, "tensor"))]
    TensorsOfParts { stated: u64, found: usize },
    /// A tensor in two parts.
    #[error("tensor {}: {} has a tensor of this name too", Escaped(tensor), Escaped(first))]
    TensorOfTwoParts { tensor: String, first: String },
}
