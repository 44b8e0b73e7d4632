//! Errors of a `.npy` header.

use truecast_core::DType;

use super::OffBy;
use crate::escaped::Escaped;
use crate::tensor::MAX_RANK;

/// Maximum length of header text. NumPy writes at most 65,535 bytes for the types of this crate; the rest is room for
/// padding.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Error of a `.npy` stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum HeaderError {
    #[error("offset 0: not a .npy file; it is empty, damaged or something else")]
    Magic,
    #[error("offset 6: version {major}.{minor} is not known; versions 1.0, 2.0 and 3.0 are read")]
    Version { major: u8, minor: u8 },
    #[error("offset 8: a header of {bytes} bytes exceeds the limit of {MAX_HEADER_BYTES}")]
    HeaderTooLong { bytes: u64 },
    #[error("offset 8: a header of {bytes} bytes extends past the end; the file is truncated")]
    HeaderPastEnd { bytes: u64 },
    #[error("header character {at}: expected {expected}")]
    Syntax { at: usize, expected: &'static str },
    #[error("header key {} occurs twice", Escaped(key))]
    DuplicateKey { key: String },
    #[error("unknown header key {}", Escaped(key))]
    UnknownKey { key: String },
    #[error("no header key {key:?}")]
    MissingKey { key: &'static str },
    #[error("structured elements are not supported; save the fields as arrays of their own")]
    Structured,
    #[error("descr {}: {why}", Escaped(descr))]
    Descr { descr: String, why: &'static str },
    #[error("descr {} does not state the type", Escaped(descr))]
    FromNeeded { descr: String },
    #[error("descr {} cannot be read as {from}: elements have another size", Escaped(descr))]
    FromWidth { descr: String, from: DType },
    #[error("descr {} is text, not {from}", Escaped(descr))]
    FromText { descr: String, from: DType },
    /// Elements of zero bytes, whose number would be unlimited.
    #[error("descr {} has no element width", Escaped(descr))]
    NoWidth { descr: String },
    #[error("more than {MAX_RANK} dimensions")]
    RankTooHigh,
    #[error("shape has 2^63 elements or bytes or more")]
    ShapeTooBig,
    #[error(
        "header declares {expected} bytes of data from offset {data_start}, and {actual} follow; {}",
        OffBy { needed: *expected, found: *actual }
    )]
    DataLength { data_start: u64, expected: u64, actual: u64 },
}
