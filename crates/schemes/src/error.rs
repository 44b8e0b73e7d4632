//! Errors in a checkpoint's description, one variant per cause.

use std::fmt;

use truecast_core::{DType, ErrorCode};
use truecast_io::{Escaped, one_line};

use crate::finding::Finding;
use crate::scheme::{Scheme, SchemeError};

/// Reason why a checkpoint's tensors cannot be identified or described, or why a target cannot be written.
///
/// The text is one line, lower case, without a full stop; names that come from files are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages show the fields.
pub enum Error {
    #[error("{place}: {} is {}, expected {expected}", one_line(key), one_line(found))]
    Value { place: String, key: String, found: String, expected: String },
    /// An unknown key or value, whose effect on weights is unknown (§5.3.1).
    #[error("{place}: {} is {}, and truecast does not know its effect on the weights", one_line(key), one_line(found))]
    Unexplained { place: String, key: String, found: String, scheme: Option<&'static str> },
    #[error("{place}: {message}")]
    Json { place: String, message: String },
    /// An unsupported scheme: `docs/spec/checkpoints.md §4.15`.
    #[error("{place}: scheme {} is not supported", Escaped(scheme))]
    Unsupported { place: String, scheme: String },
    #[error("{place}: {what} is not supported: {why}")]
    Refused { place: String, what: String, why: &'static str },
    /// Two contradictory statements that affect values (§5.7).
    #[error("{0}")]
    Inconsistent(Box<Finding>),
    /// Another error, and the schemes with which the checkpoint can be read, spelled as for `--from-scheme`.
    #[error("{cause}")]
    Advised { cause: Box<Error>, schemes: Vec<String> },
    /// Two places declare different schemes for a tensor (§2.5).
    #[error("tensor {}: {first_place} says {first}, {second_place} says {second}", Escaped(tensor))]
    Contradiction { tensor: String, first: Box<Scheme>, first_place: String, second: Box<Scheme>, second_place: String },
    /// No group has a declared scheme (§2.5).
    #[error("{place} declares {scheme}, but no tensor uses it")]
    Stale { place: String, scheme: Box<Scheme> },
    /// Codes lack a required tensor (§5.5).
    #[error("missing {part} for {}: {scheme} needs tensor {}", Escaped(codes), Escaped(expected))]
    Missing { codes: String, part: &'static str, scheme: Box<Scheme>, expected: String },
    /// No group owns a tensor with an auxiliary name (§5.5).
    #[error("orphan {what} {}: {why}", Escaped(tensor))]
    Orphan { tensor: String, what: &'static str, why: String },
    /// Two groups claim one tensor (§5.5).
    #[error("tensor {} belongs to both {} and {}", Escaped(tensor), Escaped(first), Escaped(second))]
    Twice { tensor: String, first: String, second: String },
    /// The dequantized tensor of a group has the name of another tensor.
    #[error("tensor {} would be written twice: {} also converts to this name", Escaped(tensor), Escaped(codes))]
    Collision { tensor: String, codes: String },
    /// The grid of scales does not fit its tensor (§3.1).
    #[error(
        "tensor {}: the scales have shape {found:?}; {scheme} needs {expected} for {} of shape {logical:?}",
        Escaped(tensor),
        Escaped(codes)
    )]
    Grid {
        tensor: String,
        codes: String,
        scheme: Box<Scheme>,
        found: Box<[u64]>,
        logical: Box<[u64]>,
        expected: String,
    },
    /// Several scales per tensor need a declared scheme (§5.2 step 6).
    #[error(
        "tensor {}: shape {found:?} for {} of shape {logical:?} looks like block scales, and no configuration states \
         the block size",
        Escaped(tensor),
        Escaped(codes)
    )]
    Undeclared { tensor: String, codes: String, found: Box<[u64]>, logical: Box<[u64]> },
    #[error("tensor {}: {scheme} does not have {part} of type {found}; expected {}", Escaped(tensor), Types(expected))]
    Type { tensor: String, scheme: Box<Scheme>, part: &'static str, found: DType, expected: Vec<DType> },
    #[error("tensor {}: shape {found:?} is not a shape of {scheme}: {why}", Escaped(tensor))]
    Shape { tensor: String, scheme: Box<Scheme>, found: Vec<u64>, why: String },
    /// Only a configuration could state the detail (§5.2, §5.4).
    #[error("tensor {}: {what} of {scheme} is not known; {advice}", Escaped(tensor))]
    Unknown { tensor: String, scheme: Box<Scheme>, what: &'static str, advice: String },
    /// A narrow float has no scales: §5.2 step 7.
    #[error(
        "tensor {}: {dtype} without a scale in a checkpoint that has scales; truecast never copies raw codes",
        Escaped(tensor)
    )]
    Unscaled { tensor: String, dtype: DType },
    /// The guard of global scales: §4.5.1.
    #[error("tensor {}: value {value:?} {why}", Escaped(tensor))]
    Guard { tensor: String, value: f32, why: &'static str },
    #[error("tensor {}: {found}, expected {expected}", Escaped(tensor))]
    Content { tensor: String, found: String, expected: String },
    #[error("tensor {}: {bytes} bytes are too many for a tensor that describes other tensors", Escaped(tensor))]
    TooLargeToRead { tensor: String, bytes: u64 },
    #[error("tensor {} occurs twice", Escaped(tensor))]
    DuplicateName { tensor: String },
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The scheme is read-only, or is written only by relayout.
    #[error("{scheme} can be {}", if *relayout { "written by relayout only" } else { "read, not written" })]
    NotWritten { scheme: Box<Scheme>, relayout: bool },
    #[error("tensor {}: {scheme} cannot hold it: {why}", Escaped(tensor))]
    NoForm { tensor: String, scheme: Box<Scheme>, why: String },
    /// The values have no exact form in the target scheme (§8).
    #[error("tensor {}: {from} has no lossless relayout to {to}: {why}", Escaped(tensor))]
    NoRelayout { tensor: String, from: Box<Scheme>, to: Box<Scheme>, why: &'static str },
    #[error("tensor {}: {cause}", Escaped(tensor))]
    Layout { tensor: String, cause: String },
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
}

/// Reason in [`Error::NoRelayout`] if only the global scale would have to be rounded.
pub const NO_EQUAL_GLOBAL_SCALE: &str = "no f32 global scale gives the same values in the target";

impl Error {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Error::Value { .. } | Error::Json { .. } => ErrorCode::InvalidConfiguration,
            Error::Unexplained { .. } | Error::Undeclared { .. } | Error::Unknown { .. } => {
                ErrorCode::UnknownQuantization
            }
            Error::Unsupported { .. } | Error::Refused { .. } => ErrorCode::UnsupportedScheme,
            Error::Advised { cause, .. } => cause.error_code(),
            Error::Missing { .. } | Error::Unscaled { .. } => ErrorCode::ScaleMissing,
            Error::Orphan { .. } => ErrorCode::OrphanTensor,
            Error::Grid { .. } | Error::Shape { .. } | Error::Layout { .. } => ErrorCode::ShapeMismatch,
            Error::Type { .. } => ErrorCode::TypeMismatch,
            Error::TooLargeToRead { .. } => ErrorCode::LimitExceeded,
            Error::DuplicateName { .. } => ErrorCode::DuplicateName,
            Error::Scheme(_) => ErrorCode::UnknownScheme,
            Error::NotWritten { .. } => ErrorCode::UnwritableScheme,
            Error::NoForm { .. } => ErrorCode::UnquantizableTensor,
            Error::NoRelayout { .. } => ErrorCode::InexactRelayout,
            Error::Io(error) => error.error_code(),
            Error::Inconsistent(_)
            | Error::Contradiction { .. }
            | Error::Stale { .. }
            | Error::Twice { .. }
            | Error::Collision { .. }
            | Error::Guard { .. }
            | Error::Content { .. } => ErrorCode::InconsistentCheckpoint,
        }
    }
}

struct Types<'a>(&'a [DType]);

impl fmt::Display for Types<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dtype) in self.0.iter().enumerate() {
            let joint = match i {
                0 => "",
                _ if i + 1 == self.0.len() => " or ",
                _ => ", ",
            };
            write!(f, "{joint}{dtype}")?;
        }
        Ok(())
    }
}
