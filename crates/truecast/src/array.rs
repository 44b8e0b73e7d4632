//! Files of one tensor whose type is known beforehand: what a check compares, what a model is fed.

use crate::error::{Class, Error};
use std::path::Path;
use truecast_core::{DType, Layout};
use truecast_io::Source;

/// Why a file is not the tensor that it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] Error),
    /// It holds several tensors, or none.
    #[error("{path}: {tensors} tensors where one is expected")]
    NotOne {
        /// The file.
        path: String,
        /// How many it has.
        tensors: usize,
    },
    /// Its elements are of another type.
    #[error("{path}: elements are {found}, expected are {expected}")]
    Type {
        /// The file.
        path: String,
        /// What they are.
        found: DType,
        /// What they should be.
        expected: DType,
    },
}

impl ArrayError {
    /// Whose fault it is: the exit code follows from it (`docs/interfaces.md §5`).
    pub fn class(&self) -> Class {
        match self {
            ArrayError::File(error) => error.class(),
            ArrayError::NotOne { .. } | ArrayError::Type { .. } => Class::Input,
        }
    }
}

/// Opens a file of one tensor of a type. Where the header of an array leaves the type open, or stores it as bytes or
/// unsigned integers of its width (`docs/interfaces.md §4`), it is read as that type.
///
/// # Errors
/// [`ArrayError`].
pub(crate) fn open(path: &Path, dtype: DType) -> Result<Source, ArrayError> {
    let shown = || path.display().to_string();
    let as_asked = || Source::open(path, Some(dtype)).map_err(Error::from);
    let source = match Source::open(path, None) {
        Ok(source) => match source.tensors() {
            [tensor] if tensor.dtype == dtype => source,
            [tensor] if source.kind() == truecast_io::Kind::Npy && is_stand_in(tensor.dtype, dtype) => as_asked()?,
            [tensor] => return Err(ArrayError::Type { path: shown(), found: tensor.dtype, expected: dtype }),
            tensors => return Err(ArrayError::NotOne { path: shown(), tensors: tensors.len() }),
        },
        // A header that does not say; any other error comes again.
        Err(_) => as_asked()?,
    };
    Ok(source)
}

/// `found` is what an array of `dtype` may call itself: no integer or truth value hides in another.
fn is_stand_in(found: DType, dtype: DType) -> bool {
    let same_width = found.bits_in(Layout::Bytes) == dtype.bits_in(Layout::Bytes);
    let is_bytes = matches!(found, DType::U8 | DType::U16);
    let is_narrow = dtype.storage_bits().is_some_and(|bits| bits < 8);
    same_width && is_bytes && (dtype.is_float() || is_narrow)
}
