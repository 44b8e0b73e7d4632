//! The one error type of this crate. Each function returns the cause that it can have; here they are together.

use crate::decimal::ParseDecimalError;
use crate::dtype::ParseTypeError;
use crate::error_kind::ErrorKind;
use crate::format::FormatError;
use crate::literal::LiteralError;
use crate::promote::PromotionError;
use crate::rescale::{Requirement, ScaleError};
use crate::spec::SpecError;

/// Why something was refused, one variant per cause.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Error, ErrorKind, FloatFormat, spec::onnx};
/// fn design(name: &str, exponent: u8, fraction: u8) -> Result<bool, Error> {
///     let dtype = DType::parse(name)?;
///     onnx::Cast::to(dtype).resolve(DType::F32)?;
///     Ok(FloatFormat::ieee(exponent, fraction)?.bits() < dtype.code_bits())
/// }
/// assert_eq!(design("f16", 4, 3), Ok(true));
/// assert_eq!(design("f17", 4, 3).unwrap_err().kind(), ErrorKind::Usage);
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A standard does not allow it.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Two types have no common one.
    #[error(transparent)]
    Promotion(#[from] PromotionError),
    /// A requirement of RESCALE does not hold.
    #[error(transparent)]
    Requirement(#[from] Requirement),
    /// A number is no scale of RESCALE.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The name of a type is not understood.
    #[error(transparent)]
    TypeName(#[from] ParseTypeError),
    /// The fields describe no format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Data hold a text that is no number.
    #[error(transparent)]
    Decimal(#[from] ParseDecimalError),
    /// What was typed is no number.
    #[error(transparent)]
    Literal(#[from] LiteralError),
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Error::Spec(cause) => cause.kind(),
            Error::Promotion(cause) => cause.kind(),
            Error::Requirement(_) | Error::Decimal(_) => ErrorKind::Input,
            Error::Scale(_) | Error::TypeName(_) | Error::Format(_) | Error::Literal(_) => ErrorKind::Usage,
        }
    }
}
