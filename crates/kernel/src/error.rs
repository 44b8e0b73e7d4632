//! Errors of conversions.

use truecast_core::policy::Condition;
use truecast_core::text::print_one;
use truecast_core::{CastSpec, DType};

/// Failure of a conversion. The content of the destination is then unspecified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum CastError {
    /// The bytes of a buffer do not fit its type and length.
    #[error("{len} elements of {dtype} take {expected} bytes, the buffer has {got}")]
    Length {
        /// Element type of the buffer.
        dtype: DType,
        /// Number of elements.
        len: usize,
        /// Required bytes, at most `u64::MAX`.
        expected: u64,
        got: usize,
    },
    /// Source and destination have different numbers of elements.
    #[error("the source has {src} elements, the destination {dst}")]
    Count {
        /// Number of source elements.
        src: usize,
        /// Number of destination elements.
        dst: usize,
    },
    /// The type of a buffer is not the type of the caster.
    #[error("this caster takes {expected}, the buffer holds {got}")]
    Type {
        /// Type of the caster.
        expected: DType,
        /// Type of the buffer.
        got: DType,
    },
    /// Text has no fixed-width elements.
    #[error("text has no fixed-width elements")]
    Text,
    /// An `error` policy refused an element.
    #[error("element {index}, {}, to {dst}: {}", shown(*.src, *.code), condition.refusal())]
    Value {
        /// Index of the first refused element.
        index: usize,
        /// Refused property of the value.
        condition: Condition,
        src: DType,
        /// Destination type.
        dst: DType,
        code: u64,
    },
}

impl CastError {
    /// Adds `first`, the number of elements before this part, to the error's index.
    #[must_use]
    pub fn after(self, first: usize) -> CastError {
        match self {
            CastError::Value { index, condition, src, dst, code } => {
                CastError::Value { index: index + first, condition, src, dst, code }
            }
            other => other,
        }
    }
}

/// Value with type and bits, for messages: `f32 465 (0x43e88000)`.
fn shown(dtype: DType, code: u64) -> String {
    let digits = dtype.code_bits().div_ceil(4) as usize + 2;
    let as_text = CastSpec { dst: DType::String, ..CastSpec::copy(dtype) };
    let value = print_one(&as_text, code).unwrap_or_default();
    format!("{dtype} {value} ({code:#0digits$x})")
}
