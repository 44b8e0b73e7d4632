//! A tensor in memory.

use truecast_core::{DType, Layout};
use truecast_text::Texts;

/// Elements with a type and a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The type of the elements.
    pub dtype: DType,
    /// The dimensions, in elements; empty for a scalar.
    pub shape: Vec<u64>,
    /// The elements, row-major.
    pub data: Data,
}

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Packed codes ([`Layout::Packed`]).
    Codes(Vec<u8>),
    /// Texts, of [`DType::String`] only.
    Texts(Texts),
}

impl Tensor {
    /// Elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The elements are as many as the shape says, and of the type's kind.
    pub fn is_consistent(&self) -> bool {
        let len = self.shape.iter().try_fold(1u64, |product, &d| product.checked_mul(d));
        match (&self.data, len) {
            (Data::Codes(bytes), Some(len)) => self.dtype.bytes_in(Layout::Packed, len) == Some(bytes.len() as u64),
            (Data::Texts(texts), Some(len)) => self.dtype == DType::String && texts.len() as u64 == len,
            _ => false,
        }
    }
}
