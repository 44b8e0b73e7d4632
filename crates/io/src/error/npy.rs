//! Errors of a `.npy` header.

use truecast_core::DType;

use super::OffBy;
use crate::escaped::Escaped;
use crate::tensor::MAX_RANK;

/// Maximum length of header text. NumPy writes at most 65,535 bytes for an array of any type of this crate; the rest is
/// room for padding.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Error of a `.npy` stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum HeaderError {
    /// The first six bytes differ from the format's, or there are fewer than ten.
    #[error("offset 0: not a .npy file; it is empty, damaged or something else")]
    Magic,
    /// A version that NumPy has not defined.
    #[error("offset 6: version {major}.{minor} is not known; versions 1.0, 2.0 and 3.0 are read")]
    Version { major: u8, minor: u8 },
    /// The header's stated length is too large.
    #[error("offset 8: a header of {bytes} bytes exceeds the limit of {MAX_HEADER_BYTES}")]
    HeaderTooLong { bytes: u64 },
    /// The header continues beyond the end of the data.
    #[error("offset 8: a header of {bytes} bytes extends past the end; the file is truncated")]
    HeaderPastEnd { bytes: u64 },
    /// The header is not the expected literal.
    #[error("header character {at}: expected {expected}")]
    Syntax { at: usize, expected: &'static str },
    /// A key is repeated.
    #[error("header key {} occurs twice", Escaped(key))]
    DuplicateKey { key: String },
    /// An unknown key.
    #[error("unknown header key {}", Escaped(key))]
    UnknownKey { key: String },
    /// A key is missing.
    #[error("no header key {key:?}")]
    MissingKey { key: &'static str },
    /// The elements are records.
    #[error("structured elements are not supported; save the fields as arrays of their own")]
    Structured,
    /// The elements have an unsupported type.
    #[error("descr {}: {why}", Escaped(descr))]
    Descr { descr: String, why: &'static str },
    /// The descriptor does not determine the type.
    #[error("descr {} does not state the type", Escaped(descr))]
    FromNeeded { descr: String },
    /// The given type takes another number of bytes.
    #[error("descr {} cannot be read as {from}: elements have another size", Escaped(descr))]
    FromWidth { descr: String, from: DType },
    /// A type was given for text, which is not reinterpreted.
    #[error("descr {} is text, not {from}", Escaped(descr))]
    FromText { descr: String, from: DType },
    /// Elements take zero bytes, so that their number would be unlimited.
    #[error("descr {} has no element width", Escaped(descr))]
    NoWidth { descr: String },
    /// More dimensions than NumPy supports.
    #[error("more than {MAX_RANK} dimensions")]
    RankTooHigh,
    /// The shape's product is too large.
    #[error("shape has 2^63 elements or bytes or more")]
    ShapeTooBig,
    /// The data is shorter or longer than stated.
    #[error(
        "header declares {expected} bytes of data from offset {data_start}, and {actual} follow; {}",
        OffBy { needed: *expected, found: *actual }
    )]
    DataLength { data_start: u64, expected: u64, actual: u64 },
}
