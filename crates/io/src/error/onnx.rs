//! Errors of a protobuf message and its tensors, one variant per cause.
//!
//! [`Error`](super::Error) adds the path.

use truecast_core::DType;

use crate::escaped::Escaped;

/// Maximum memory for nodes, names and attributes of a model: about 260,000 nodes with one attribute each. Real models
/// take a tenth.
pub const MAX_STRUCTURE_BYTES: u64 = 96 << 20;

/// Error in the bytes of a `.onnx` or `.pb` file. Offsets count from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ProtoError {
    /// A number or fixed value is cut off.
    #[error("offset {offset}: a value extends past the end of its message at {end}; the file is truncated or damaged")]
    Truncated { offset: u64, end: u64 },
    /// A length exceeds the rest of the enclosing message.
    #[error(
        "offset {offset}: a field has {len} bytes, but its message has {left} left; the file is truncated or damaged"
    )]
    Length { offset: u64, len: u64, left: u64 },
    /// A number with more than ten bytes.
    #[error("offset {offset}: a number of more than ten bytes; the file is damaged or not protobuf")]
    Varint { offset: u64 },
    /// Field number zero or too large, a group, or an unknown wire type.
    #[error("offset {offset}: {tag:#x} is not a field tag; the file is damaged or not protobuf")]
    Tag { offset: u64, tag: u64 },
    /// A field is encoded as another kind of value than declared.
    #[error("offset {offset}: field {field} is encoded as {found}, expected {expected}")]
    WireType { offset: u64, field: u32, found: &'static str, expected: &'static str },
    /// A field occurs more often than allowed.
    #[error("offset {offset}: field {field} of {message} occurs twice")]
    Repeated { offset: u64, message: &'static str, field: u32 },
    /// A required field is missing.
    #[error("offset {offset}: {message} has no {field}; the file is truncated or something else")]
    Missing { offset: u64, message: &'static str, field: &'static str },
    /// A name that is not UTF-8.
    #[error("offset {offset}: a name is not UTF-8")]
    NotUtf8 { offset: u64 },
    /// Graphs nested too deeply.
    #[error("offset {offset}: messages are nested more than {limit} deep")]
    TooDeep { offset: u64, limit: usize },
    /// The structure of a model, without its tensors, is too large.
    #[error(
        "offset {offset}: nodes, names and attributes up to here take more than {} MiB, which is the limit",
        MAX_STRUCTURE_BYTES >> 20
    )]
    TooMuch { offset: u64 },
    /// A domain is imported twice with different versions.
    #[error("offset {offset}: domain {} is imported in version {first} and in version {second}", Escaped(domain))]
    TwoVersions { offset: u64, domain: String, first: i64, second: i64 },
    /// Two functions with the same identity.
    #[error(
        "offset {offset}: a second function {} of domain {} and overload {}; no call can say which of them it means",
        Escaped(name),
        Escaped(domain),
        Escaped(overload)
    )]
    TwoFunctions { offset: u64, name: String, domain: String, overload: String },
    /// An attribute's value has another kind than its stated type.
    #[error("offset {offset}: attribute {}: {why}", Escaped(name))]
    Attribute { offset: u64, name: String, why: &'static str },
    /// A tensor breaks a rule of `docs/spec/onnx.md §3`.
    #[error("offset {offset}: tensor {}: {cause}", Escaped(tensor))]
    Tensor { offset: u64, tensor: String, cause: TensorError },
}

/// Broken rule of `docs/spec/onnx.md §3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum TensorError {
    /// §3.5, §1.7.
    #[error("data type {code} is not in the specification, which has 1 to 28")]
    DataType { code: i64 },
    /// §3.5.
    #[error("dimension {found} is negative")]
    NegativeDimension { found: i64 },
    /// §3.5.
    #[error("shape has 2^63 elements or more, or too many bytes")]
    ShapeTooBig,
    /// The rank exceeds the limit of readers.
    #[error("more than {} dimensions", crate::tensor::MAX_RANK)]
    RankTooHigh,
    /// §3.5.
    #[error("both {first} and {second} hold data")]
    TwoFields { first: &'static str, second: &'static str },
    /// §3.2.
    #[error("elements of {data_type} cannot be in {found}; the field for them is {expected}")]
    WrongField { data_type: &'static str, found: &'static str, expected: &'static str },
    /// §3.2.
    #[error("raw_data has {actual} bytes, but type and dims need {expected}")]
    RawLength { expected: u64, actual: u64 },
    /// §3.5.
    #[error("{field} has {actual} entries, but type and dims need {expected}")]
    Entries { field: &'static str, expected: u64, actual: u64 },
    /// §3.5. The surplus is not counted.
    #[error("{field} has more entries than the {expected} that type and dims need")]
    MoreEntries { field: &'static str, expected: u64 },
    /// §3.3.
    #[error("entry {index} of int32_data is {found:#x}, which has bits above the 6 of the type")]
    EntryTooWide { index: u64, found: u64 },
    /// §3.4.
    #[error("unused bits of the last byte are not zero")]
    TailBits,
    /// §3.5.
    #[error("field segment is not supported")]
    Segment,
    /// §3.6, §3.7.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// §3.5: text that is not UTF-8, while cells hold code points.
    #[error("element {index} is not UTF-8; such text can only be copied")]
    NotUtf8 { index: u64 },
    /// An element ends with zeros, which cells cannot represent.
    #[error("element {index} ends with NUL; such text can only be copied")]
    NulAtEnd { index: u64 },
    /// An element is too long: every cell has the length of the longest element.
    #[error("element {index} has more than {limit} characters; such text can only be copied")]
    TextTooLong { index: u64, limit: usize },
    /// The operation needs elements of a type that truecast does not have.
    #[error("{data_type} can only be copied")]
    Unreadable { data_type: &'static str },
    /// Text where elements of a fixed width are required, or the reverse.
    #[error("elements are {found}, not {wanted}")]
    NotOfKind { found: DType, wanted: &'static str },
}

/// Broken rule of `docs/spec/onnx.md §3.6` or §3.7 on external data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ExternalError {
    /// §3.6.
    #[error("external data has no location")]
    NoLocation,
    /// §3.6.
    #[error("key {} of external data occurs twice", Escaped(key))]
    RepeatedKey { key: String },
    /// §3.6.
    #[error("{key} of external data is {}, not 1 to 20 digits below 2^64", Escaped(found))]
    NotANumber { key: &'static str, found: String },
    /// §3.5: two places for one tensor.
    #[error("the tensor has external data and also {field}")]
    AlsoInside { field: &'static str },
    /// §3.5.
    #[error("text cannot be external")]
    Text,
    /// §3.6.
    #[error("external data has {found} bytes, but type and dims need {needed}")]
    Length { found: u64, needed: u64 },
    /// §3.7 rule 1.
    #[error("location {} of external data is empty, absolute or not a path", Escaped(location))]
    Location { location: String },
    /// §3.7 rule 2.
    #[error("location {} of external data leaves the model's folder", Escaped(location))]
    Parent { location: String },
    /// §3.7 rule 3.
    #[error("location {} of external data is a link that leads outside the model's folder", Escaped(location))]
    Outside { location: String },
    /// §3.7 rule 4.
    #[error("location {} of external data is not a regular file", Escaped(location))]
    NotRegular { location: String },
    /// The file does not exist.
    #[error("external data: file {} is not in the model's folder", Escaped(location))]
    NotFound { location: String },
    /// §3.7 rule 5.
    #[error(
        "external data at {offset} has {bytes} bytes, but file {} has {file_bytes}; the file is truncated or another \
         file",
        Escaped(location)
    )]
    PastEnd { location: String, offset: u64, bytes: u64, file_bytes: u64 },
}
