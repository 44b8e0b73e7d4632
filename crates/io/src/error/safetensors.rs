//! Errors of a safetensors header.

use std::fmt;

use truecast_core::DType;

use super::OffBy;
use crate::escaped::Escaped;
use crate::tensor::MAX_RANK;

/// Maximum length of a header (`docs/spec/checkpoints.md §1.6 V2`, §1.8).
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Key of a header for text about the file; every other key is a tensor's name.
pub const METADATA_KEY: &str = "__metadata__";

/// Broken rule of `docs/spec/checkpoints.md §1.6`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum HeaderError {
    /// Rule V1 of `docs/spec/checkpoints.md §1.6`.
    #[error("a file of {file_bytes} bytes is too short for a safetensors header; it is truncated or something else")]
    TooShort { file_bytes: u64 },
    /// Rule V2 of `docs/spec/checkpoints.md §1.6`.
    #[error("offset 0: header length {bytes} exceeds the limit of {MAX_HEADER_BYTES}; not a safetensors file")]
    HeaderTooLong { bytes: u64 },
    /// Rule V3 of `docs/spec/checkpoints.md §1.6`.
    #[error(
        "offset 0: a header of {bytes} bytes does not fit a file of {file_bytes}; it is truncated (download it again) or \
         something else"
    )]
    HeaderPastEnd { bytes: u64, file_bytes: u64 },
    /// Rule V4 of `docs/spec/checkpoints.md §1.6`.
    #[error("offset {offset}: header is not UTF-8")]
    NotUtf8 { offset: u64 },
    /// Rule V5 of `docs/spec/checkpoints.md §1.6`.
    #[error("offset 8: header does not begin with {{")]
    NotAnObject,
    /// Rule V6 of `docs/spec/checkpoints.md §1.6`.
    #[error("offset {offset}: header continues after its object; only spaces may follow")]
    AfterObject { offset: u64 },
    /// Rule V4 (lone surrogates), V19, V20, and text that is not JSON.
    #[error("offset {offset}: {}{message}", InTensor(tensor.as_deref()))]
    Json { offset: u64, tensor: Option<String>, message: String },
    /// Rule V7 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: name occurs twice", Escaped(tensor))]
    DuplicateTensor { tensor: String },
    /// Rule V8 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: field {field:?} occurs twice", Escaped(tensor))]
    DuplicateField { tensor: String, field: &'static str },
    /// Rule V8 of `docs/spec/checkpoints.md §1.6`.
    #[error("{METADATA_KEY} occurs twice")]
    DuplicateMetadata,
    /// Rule V9 of `docs/spec/checkpoints.md §1.6`.
    #[error("{METADATA_KEY}: key {} occurs twice", Escaped(key))]
    DuplicateMetadataKey { key: String },
    /// Rule V10 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: unknown field {}", Escaped(tensor), Escaped(field))]
    UnknownField { tensor: String, field: String },
    /// Rule V10 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: no field {field:?}", Escaped(tensor))]
    MissingField { tensor: String, field: &'static str },
    /// Rule V11 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: unknown dtype {}", Escaped(tensor), Escaped(dtype))]
    UnknownDtype { tensor: String, dtype: String },
    /// Rule V12 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: {field}: {found} is not a plain integer from 0 to 2^64-1", Escaped(tensor))]
    NotAnInteger { tensor: String, field: &'static str, found: String },
    /// Rule V12 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: data_offsets does not hold exactly two numbers", Escaped(tensor))]
    OffsetCount { tensor: String },
    /// Rule V13 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: shape has 2^63 elements or more", Escaped(tensor))]
    ShapeTooBig { tensor: String },
    /// Rule V14 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: more than {MAX_RANK} dimensions", Escaped(tensor))]
    RankTooHigh { tensor: String },
    /// Rule V15 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: {len} elements of {dtype} are not a whole number of bytes below 2^61", Escaped(tensor))]
    NotWholeBytes { tensor: String, len: u64, dtype: DType },
    /// Rule V16 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: data_offsets is [{begin}, {end}], but shape and dtype need {bytes} bytes", Escaped(tensor))]
    WrongLength { tensor: String, begin: u64, end: u64, bytes: u64 },
    /// Rule V17 of `docs/spec/checkpoints.md §1.6`.
    #[error("tensor {}: data begins at {begin}, expected {expected}; tensors overlap or leave a gap", Escaped(tensor))]
    NotContiguous { tensor: String, begin: u64, expected: u64 },
    /// Rule V18 of `docs/spec/checkpoints.md §1.6`.
    #[error(
        "the header claims {end} bytes of data, and the file has {data_bytes}; {}",
        OffBy { needed: *end, found: *data_bytes }
    )]
    DataLength { end: u64, data_bytes: u64 },
}

struct InTensor<'a>(Option<&'a str>);

impl fmt::Display for InTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "tensor {}: ", Escaped(name)),
            None => Ok(()),
        }
    }
}
