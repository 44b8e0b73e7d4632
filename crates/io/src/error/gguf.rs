//! Errors of a GGUF header (`docs/spec/checkpoints.md §9.1`).

use super::TRUNCATED;
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
    #[error("offset 0: not a GGUF file; it is empty, damaged or something else")]
    Magic,
    #[error("offset 4: a big-endian GGUF file, which is not supported")]
    BigEndian,
    #[error("offset 4: version {version} is not known; versions 2 and 3 are read")]
    Version { version: u32 },
    #[error("offset {offset}: the header extends past the end of the file; {TRUNCATED}")]
    Truncated { offset: u64 },
    #[error("offset {offset}: {count} entries exceed the limit of {MAX_ENTRIES}")]
    TooMany { offset: u64, count: u64 },
    #[error("offset {offset}: a string of {bytes} bytes exceeds the limit of {most}")]
    TextTooLong { offset: u64, bytes: u64, most: u64 },
    #[error("offset {offset}: all strings together exceed the limit of {MAX_ALL_TEXT_BYTES} bytes")]
    TooMuchText { offset: u64 },
    #[error("key values take {bytes} bytes; at most {MAX_KEYS_BYTES} can be copied to another file")]
    KeysTooLong { bytes: u64 },
    #[error("offset {offset}: text is not UTF-8")]
    NotUtf8 { offset: u64 },
    #[error("offset {offset}: unknown value type {kind}")]
    ValueType { offset: u64, kind: u32 },
    #[error("offset {offset}: arrays are nested deeper than {MAX_DEPTH}")]
    TooDeep { offset: u64 },
    #[error("key {} occurs twice", Escaped(key))]
    DuplicateKey { key: String },
    #[error("tensor {}: name occurs twice", Escaped(tensor))]
    DuplicateTensor { tensor: String },
    #[error("general.alignment is not a power of two up to 1048576")]
    Alignment,
    #[error("tensor {}: {rank} dimensions exceed the limit of {MAX_RANK}", Escaped(tensor))]
    Rank { tensor: String, rank: u32 },
    #[error("tensor {}: unknown block type {id}", Escaped(tensor))]
    BlockType { tensor: String, id: u32 },
    #[error("tensor {}: rows of {columns} elements are not a whole number of blocks of {block}", Escaped(tensor))]
    Columns { tensor: String, columns: u64, block: Block },
    #[error("tensor {}: shape has 2^63 elements or more", Escaped(tensor))]
    ShapeTooBig { tensor: String },
    #[error("tensor {}: offset {offset} is not a multiple of {alignment}", Escaped(tensor))]
    Unaligned { tensor: String, offset: u64, alignment: u64 },
    #[error("tensor {}: data begins at {offset}, expected {expected}; tensors overlap", Escaped(tensor))]
    Overlap { tensor: String, offset: u64, expected: u64 },
    #[error(
        "tensor {}: data extends past the end: the header claims {needed} bytes, and the file has {file_bytes}; {TRUNCATED}",
        Escaped(tensor)
    )]
    PastEnd { tensor: String, needed: u64, file_bytes: u64 },
    #[error(
        "{} after the data of the last tensor; if files of a model were joined, give the files themselves",
        counted(*bytes, "byte")
    )]
    Surplus { bytes: u64 },
    #[error(
        "tensor {}: shape {stored:?}, but its comfy.gguf.orig_shape is {}, not as many elements",
        Escaped(tensor),
        stated.as_ref().map_or("not a list of dimensions".into(), |stated| format!("{stated:?}"))
    )]
    OriginalShape { tensor: String, stored: Vec<u64>, stated: Option<Vec<u64>> },
    /// The file's name has no part number, so the other parts cannot be found.
    #[error("part {} of {count} by its keys, so its name must end with -{:05}-of-{count:05}.gguf", no + 1, no + 1)]
    PartName { no: u64, count: u64 },
    #[error("part {} is missing; all parts of a model must be in one folder", Escaped(file))]
    MissingPart { file: String },
    #[error("{key} is {}, expected {expected}; the parts do not belong together", found.map_or("missing".into(), |n| n.to_string()))]
    OtherPart { key: &'static str, found: Option<u64>, expected: u64 },
    #[error("the parts have {}, but split.tensors.count is {stated}", counted(*found as u64, "tensor"))]
    TensorsOfParts { stated: u64, found: usize },
    #[error("tensor {}: {} has a tensor of this name too", Escaped(tensor), Escaped(first))]
    TensorOfTwoParts { tensor: String, first: String },
}
