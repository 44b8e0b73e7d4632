//! The error of conversions in memory.

use truecast_core::dtype::ParseTypeError;
use truecast_core::spec::SpecError;
use truecast_core::{ErrorCode, ErrorKind};
use truecast_kernel::text::TextError;
use truecast_kernel::{CastError, PlanError};

/// Error of a conversion in memory.
///
/// # Examples
/// ```
/// use truecast::{DType, Error, ErrorKind, cast_vec, spec::ieee, policy::Overflow};
/// let spec = ieee::Cast { overflow: Overflow::Error, ..ieee::Cast::to(DType::F16) }.resolve(DType::F32)?;
/// let error = cast_vec::<f32, u16>(&spec, &[1.0, 1e6]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Input);
/// assert_eq!(
///     error.to_string(),
///     "element 1, f32 1000000.0 (0x49742400), to f16: the value is out of the destination's range"
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification does not allow the request.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Unknown type name.
    #[error(transparent)]
    TypeName(#[from] ParseTypeError),
    /// The pair cannot be converted by value.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Buffers of the wrong size, or an element that an `error` policy refused.
    #[error(transparent)]
    Cast(#[from] CastError),
    /// A text that is not a number, or a number outside the destination's range.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl Error {
    /// Tells who has to act: the caller, the input or the system.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.error_code().kind()
    }

    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Error::Spec(error) => error.error_code(),
            Error::TypeName(error) => error.error_code(),
            Error::Plan(_) => ErrorCode::UnsupportedPair,
            Error::Cast(error) => of_cast(error),
            Error::Text(error) => of_text(error),
        }
    }
}

pub(crate) fn of_cast(error: &CastError) -> ErrorCode {
    match error {
        CastError::Value { .. } => ErrorCode::RefusedValue,
        CastError::Type { .. } | CastError::Text => ErrorCode::TypeMismatch,
        _ => ErrorCode::ShapeMismatch,
    }
}

pub(crate) fn of_text(error: &TextError) -> ErrorCode {
    match error {
        TextError::Malformed { .. } => ErrorCode::InvalidText,
        TextError::Refused { .. } | TextError::Unprintable { .. } => ErrorCode::RefusedValue,
        TextError::Unsupported { .. } => ErrorCode::UnsupportedPair,
        _ => ErrorCode::ShapeMismatch,
    }
}
