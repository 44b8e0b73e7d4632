//! Errors for operands without a common type. Codes and texts: `docs/spec/openvino.md §2.5`.

use super::openvino::{self, U64Target};
use super::{Element, Operand};
use crate::dtype::DType;
use crate::error_code::ErrorCode;
use alloc::format;
use alloc::string::String;

/// Error for two operands without a common type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum PromotionError {
    /// P1: the operator never takes the type, whatever the type of the other input.
    #[error(
        "ConvertPromoteTypes does not take element type {} (input {input}); it takes {}, and {}",
        ov(*.element), openvino::names(&openvino::ACCEPTED), openvino::DYNAMIC
    )]
    Element {
        element: DType,
        /// Index of the input, 0 or 1.
        input: usize,
    },
    /// P2: the float is less than twice as wide as the integer.
    #[error(
        "safe promotion of {} with {} refused: {1} has {float_bits} bits and {needed_bits} are required; unsafe \
         promotion would give {1}",
        ov(*.integer), ov(*.float)
    )]
    IntegerWithFloat {
        integer: DType,
        float: DType,
        float_bits: u32,
        /// Twice the width of the integer.
        needed_bits: u32,
    },
    /// P3: the scalar does not fit the type of the dimensioned input.
    #[error(
        "safe scalar promotion refused: a {} scalar may not become {}; unsafe promotion would give {1}",
        ov(*.scalar), ov(*.dimensioned)
    )]
    Scalar {
        /// Type of the scalar.
        scalar: DType,
        /// Type of the other input.
        dimensioned: DType,
    },
    /// P4: no signed integer of the needed width exists.
    #[error(
        "safe promotion of {} with {} refused: a signed integer of {needed_bits} bits is required and {1} has \
         {signed_bits}; unsafe promotion would give {}",
        ov(*.unsigned), ov(*.signed), ov(*.unsafe_result)
    )]
    UnsignedWithSigned {
        /// The unsigned integer.
        unsigned: DType,
        signed: DType,
        signed_bits: u32,
        /// Twice the width of the unsigned integer.
        needed_bits: u32,
        /// Result under unsafe promotion.
        unsafe_result: DType,
    },
    /// P5: two floats of the same width.
    #[error(
        "safe promotion of {} with {} refused: same width, different formats; unsafe promotion would give {}",
        ov(*.lhs), ov(*.rhs), ov(*.unsafe_result)
    )]
    SameWidth {
        /// Type of input 0.
        lhs: DType,
        /// Type of input 1.
        rhs: DType,
        /// Result under unsafe promotion.
        unsafe_result: DType,
    },
    /// P6: the attribute is not a type that Convert can produce from u64.
    #[error(
        "u64_integer_promotion_target {value:?} is not a type that Convert can produce from u64; use one of {}{}",
        openvino::names(&U64Target::ALL), spelling(*.meant)
    )]
    U64Target {
        /// The attribute in the user's spelling.
        value: String,
        /// The type that a legacy name means.
        meant: Option<DType>,
    },
    /// P7: the strict mode requires every value to be kept, and the common type loses some values.
    #[error(
        "strict promotion refused: {} -> {} does not keep every value of {0}; safe mode openvino would give {1}",
        ov(*.element), ov(*.result)
    )]
    Lossy {
        /// The type that loses values.
        element: DType,
        /// The common type that the mode `openvino` gives.
        result: DType,
    },
    /// P8: the system has no such type.
    #[error("{system} has no element type {operand}")]
    UnknownType { system: &'static str, operand: Operand },
    /// P9: the system knows both types and refuses the pair.
    #[error("{system} refuses to promote {lhs} with {rhs}")]
    Refused {
        system: &'static str,
        /// The left operand.
        lhs: Operand,
        /// The right operand.
        rhs: Operand,
    },
}

fn ov(dtype: DType) -> &'static str {
    openvino::name(Element::Type(dtype))
}

fn spelling(meant: Option<DType>) -> String {
    meant.map_or(String::new(), |dtype| format!("; the spelling here is {}", ov(dtype)))
}

impl PromotionError {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            PromotionError::U64Target { .. } => ErrorCode::InvalidAttribute,
            PromotionError::Element { .. } | PromotionError::UnknownType { .. } => ErrorCode::UnsupportedType,
            _ => ErrorCode::PromotionRefused,
        }
    }

    /// Returns the code of the error in `docs/spec/openvino.md §2.5`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            PromotionError::Element { .. } => "TC-PRM-01",
            PromotionError::IntegerWithFloat { .. } => "TC-PRM-02",
            PromotionError::Scalar { .. } => "TC-PRM-03",
            PromotionError::UnsignedWithSigned { .. } => "TC-PRM-04",
            PromotionError::SameWidth { .. } => "TC-PRM-05",
            PromotionError::U64Target { .. } => "TC-PRM-06",
            PromotionError::Lossy { .. } => "TC-PRM-07",
            PromotionError::UnknownType { .. } => "TC-PRM-08",
            PromotionError::Refused { .. } => "TC-PRM-09",
        }
    }
}
