//! Errors of a protobuf message and its tensors, one variant per cause.

use truecast_core::DType;

use crate::escaped::Escaped;

/// Maximum memory for a model's nodes, names and attributes: about 260,000 nodes with one attribute each. Real models
/// need a tenth.
pub const MAX_STRUCTURE_BYTES: u64 = 96 << 20;

/// Error in the bytes of a `.onnx` or `.pb` file. Offsets count from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ProtoError {
    #[error("offset {offset}: a value extends past the end of its message at {end}; the file is truncated or damaged")]
    Truncated { offset: u64, end: u64 },
    #[error(
        "offset {offset}: a field has {len} bytes, but its message has {left} left; the file is truncated or damaged"
    )]
    Length { offset: u64, len: u64, left: u64 },
    #[error("offset {offset}: a number of more than ten bytes; the file is damaged or not protobuf")]
    Varint { offset: u64 },
    /// Field number zero or too large, a group, or an unknown wire type.
    #[error("offset {offset}: {tag:#x} is not a field tag; the file is damaged or not protobuf")]
    Tag { offset: u64, tag: u64 },
    #[error("offset {offset}: field {field} is encoded as {found}, expected {expected}")]
    WireType { offset: u64, field: u32, found: &'static str, expected: &'static str },
    #[error("offset {offset}: field {field} of {message} occurs twice")]
    Repeated { offset: u64, message: &'static str, field: u32 },
    #[error("offset {offset}: {message} has no {field}; the file is truncated or something else")]
    Missing { offset: u64, message: &'static str, field: &'static str },
    #[error("offset {offset}: a name is not UTF-8")]
    NotUtf8 { offset: u64 },
    #[error("offset {offset}: messages are nested more than {limit} deep")]
    TooDeep { offset: u64, limit: usize },
    #[error(
        "offset {offset}: nodes, names and attributes up to here take more than {} MiB, which is the limit",
        MAX_STRUCTURE_BYTES >> 20
    )]
    TooMuch { offset: u64 },
    #[error("offset {offset}: domain {} is imported in version {first} and in version {second}", Escaped(domain))]
    TwoVersions { offset: u64, domain: String, first: i64, second: i64 },
    #[error(
        "offset {offset}: a second function {} of domain {} and overload {}; no call can say which of them it means",
        Escaped(name),
        Escaped(domain),
        Escaped(overload)
    )]
    TwoFunctions { offset: u64, name: String, domain: String, overload: String },
    #[error("offset {offset}: attribute {}: {why}", Escaped(name))]
    Attribute { offset: u64, name: String, why: &'static str },
    #[error("offset {offset}: tensor {}: {cause}", Escaped(tensor))]
    Tensor { offset: u64, tensor: String, cause: TensorError },
}

/// Broken rule of `docs/spec/onnx.md §3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum TensorError {
    /// Source: `docs/spec/onnx.md §3.5`, §1.7.
    #[error("data type {code} is not in the specification, which has 1 to 28")]
    DataType { code: i64 },
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("dimension {found} is negative")]
    NegativeDimension { found: i64 },
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("shape has 2^63 elements or more, or too many bytes")]
    ShapeTooBig,
    #[error("more than {} dimensions", crate::tensor::MAX_RANK)]
    RankTooHigh,
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("both {first} and {second} hold data")]
    TwoFields { first: &'static str, second: &'static str },
    /// Source: `docs/spec/onnx.md §3.2`.
    #[error("elements of {data_type} cannot be in {found}; the field for them is {expected}")]
    WrongField { data_type: &'static str, found: &'static str, expected: &'static str },
    /// Source: `docs/spec/onnx.md §3.2`.
    #[error("raw_data has {actual} bytes, but type and dims need {expected}")]
    RawLength { expected: u64, actual: u64 },
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("{field} has {actual} entries, but type and dims need {expected}")]
    Entries { field: &'static str, expected: u64, actual: u64 },
    /// §3.5. Surplus entries are not counted.
    #[error("{field} has more entries than the {expected} that type and dims need")]
    MoreEntries { field: &'static str, expected: u64 },
    /// Source: `docs/spec/onnx.md §3.3`.
    #[error("entry {index} of int32_data is {found:#x}, which has bits above the 6 of the type")]
    EntryTooWide { index: u64, found: u64 },
    /// Source: `docs/spec/onnx.md §3.4`.
    #[error("unused bits of the last byte are not zero")]
    TailBits,
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("field segment is not supported")]
    Segment,
    /// Source: `docs/spec/onnx.md §3.6`, §3.7.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// §3.5: text that is not UTF-8.
    #[error("element {index} is not UTF-8; such text can only be copied")]
    NotUtf8 { index: u64 },
    /// An element ends with zeros, which cells of code points cannot represent.
    #[error("element {index} ends with NUL; such text can only be copied")]
    NulAtEnd { index: u64 },
    /// Every cell has the length of the longest element, so the length is limited.
    #[error("element {index} has more than {limit} characters; such text can only be copied")]
    TextTooLong { index: u64, limit: usize },
    #[error("{data_type} can only be copied")]
    Unreadable { data_type: &'static str },
    #[error("elements are {found}, not {wanted}")]
    NotOfKind { found: DType, wanted: &'static str },
}

/// Broken rule of `docs/spec/onnx.md §3.6` or §3.7 on external data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ExternalError {
    /// Source: `docs/spec/onnx.md §3.6`.
    #[error("external data has no location")]
    NoLocation,
    /// Source: `docs/spec/onnx.md §3.6`.
    #[error("key {} of external data occurs twice", Escaped(key))]
    RepeatedKey { key: String },
    /// Source: `docs/spec/onnx.md §3.6`.
    #[error("{key} of external data is {}, not 1 to 20 digits below 2^64", Escaped(found))]
    NotANumber { key: &'static str, found: String },
    /// §3.5: the tensor has data inside and outside.
    #[error("the tensor has external data and also {field}")]
    AlsoInside { field: &'static str },
    /// Source: `docs/spec/onnx.md §3.5`.
    #[error("text cannot be external")]
    Text,
    /// Source: `docs/spec/onnx.md §3.6`.
    #[error("external data has {found} bytes, but type and dims need {needed}")]
    Length { found: u64, needed: u64 },
    /// Rule 1 of `docs/spec/onnx.md §3.7`.
    #[error("location {} of external data is empty, absolute or not a path", Escaped(location))]
    Location { location: String },
    /// Rule 2 of `docs/spec/onnx.md §3.7`.
    #[error("location {} of external data leaves the model's folder", Escaped(location))]
    Parent { location: String },
    /// Rule 3 of `docs/spec/onnx.md §3.7`.
    #[error("location {} of external data is a link that leads outside the model's folder", Escaped(location))]
    Outside { location: String },
    /// Rule 4 of `docs/spec/onnx.md §3.7`.
    #[error("location {} of external data is not a regular file", Escaped(location))]
    NotRegular { location: String },
    #[error("external data: file {} is not in the model's folder", Escaped(location))]
    NotFound { location: String },
    /// Rule 5 of `docs/spec/onnx.md §3.7`.
    #[error(
        "external data at {offset} has {bytes} bytes, but file {} has {file_bytes}; the file is truncated or another \
         file",
        Escaped(location)
    )]
    PastEnd { location: String, offset: u64, bytes: u64, file_bytes: u64 },
}
