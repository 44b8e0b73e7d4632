//! Tensors that are computed from those of other files.

use std::fmt;

use crate::error::Error;

/// Computes the bytes of tensors that no file holds as they are: renamed, rearranged or dequantized.
pub trait View: fmt::Debug + Send + Sync {
    /// Fills `bytes` with bytes of a tensor, beginning at its byte `first`. `first` and the length are whole elements.
    ///
    /// # Errors
    /// An unreadable file, or data without a value.
    fn read_at(&self, tensor: usize, first: u64, bytes: &mut [u8]) -> Result<(), Error>;
}
