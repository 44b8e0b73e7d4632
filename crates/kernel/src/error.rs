//! Errors of conversions.

use truecast_core::policy::Condition;
use truecast_core::text::print_one;
use truecast_core::{CastSpec, DType};

/// Failure of a conversion. The destination's content is then unspecified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum CastError {
    /// A buffer whose bytes do not fit its type and length.
    #[error("{len} elements of {dtype} take {expected} bytes, the buffer has {got}")]
    Length {
        /// Element type of the buffer.
        dtype: DType,
        /// Elements it should hold.
        len: usize,
        /// Bytes that they take, at most `u64::MAX`.
        expected: u64,
        got: usize,
    },
    /// Source and destination hold different numbers of elements.
    #[error("the source has {src} elements, the destination {dst}")]
    Count {
        /// Elements of the source.
        src: usize,
        /// Elements of the destination.
        dst: usize,
    },
    /// A buffer's type is not the caster's.
    #[error("this caster takes {expected}, the buffer holds {got}")]
    Type {
        /// The caster's type.
        expected: DType,
        /// The buffer's type.
        got: DType,
    },
    /// Text has no fixed-width elements.
    #[error("text has no fixed-width elements")]
    Text,
    /// An `error` policy refused an element.
    #[error("element {index}, {}, to {dst}: {}", shown(*.src, *.code), condition.refusal())]
    Value {
        /// Index of the first such element.
        index: usize,
        /// The fault.
        condition: Condition,
        src: DType,
        /// Destination type.
        dst: DType,
        code: u64,
    },
}

impl CastError {
    /// Adds `first`, the number of elements before the converted elements, to the error's index.
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

/// Formats a value with its type and bits, for messages: `f32 465 (0x43e88000)`.
fn shown(dtype: DType, code: u64) -> String {
    let digits = dtype.code_bits().div_ceil(4) as usize + 2;
    let as_text = CastSpec { dst: DType::String, ..CastSpec::copy(dtype) };
    let value = print_one(&as_text, code).unwrap_or_default();
    format!("{dtype} {value} ({code:#0digits$x})")
}
