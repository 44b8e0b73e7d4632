//! A tensor in memory, for models of all formats.

use std::borrow::Cow;

use truecast_core::{DType, Layout};
use truecast_kernel::text::Texts;
use truecast_kernel::{Elements, ElementsMut};

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

/// Stored form of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Packed codes ([`Layout::Packed`]).
    Codes(Vec<u8>),
    /// One code for all elements (constants of Tile IR).
    Splat(u64),
    /// Packed codes with one scale per [`BLOCK`](truecast_core::spec::tosa::block::BLOCK) (TOSA).
    Blocks {
        /// The codes.
        codes: Vec<u8>,
        /// One byte per block.
        scales: Vec<u8>,
    },
    /// Texts, for [`DType::String`] only.
    Texts(Texts),
}

impl Tensor {
    /// Creates a tensor with the same code in every element.
    pub fn splat(dtype: DType, shape: Vec<u64>, code: u64) -> Tensor {
        Tensor { dtype, shape, data: Data::Splat(code) }
    }

    /// Creates a tensor from the codes of its elements, in order. Missing elements get code 0.
    ///
    /// # Panics
    /// If there are more codes than elements in the shape, or the type is text.
    pub fn of_codes(dtype: DType, shape: Vec<u64>, codes: impl IntoIterator<Item = u64>) -> Tensor {
        let codes = packed(dtype, shape.iter().product(), codes);
        Tensor { dtype, shape, data: Data::Codes(codes) }
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// True if the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// True if the number and kind of elements match the shape and type.
    pub fn is_consistent(&self) -> bool {
        use truecast_core::spec::tosa::block::BLOCK;
        let len = self.shape.iter().try_fold(1u64, |product, &d| product.checked_mul(d));
        let Some(len) = len else { return false };
        let fill = |bytes: &[u8]| self.dtype.bytes_in(Layout::Packed, len) == Some(bytes.len() as u64);
        match &self.data {
            Data::Codes(codes) => fill(codes),
            Data::Splat(_) => self.dtype.storage_bits().is_some(),
            Data::Blocks { codes, scales } => fill(codes) && scales.len() as u64 == len / BLOCK as u64,
            Data::Texts(texts) => self.dtype == DType::String && texts.len() as u64 == len,
        }
    }

    /// Packed codes of all elements; empty for text.
    pub fn codes(&self) -> Cow<'_, [u8]> {
        match &self.data {
            Data::Codes(codes) | Data::Blocks { codes, .. } => codes.into(),
            Data::Splat(code) => {
                // Eight elements of any width fill whole bytes, which can be repeated.
                let of = |len: u64| packed(self.dtype, len, (0..len).map(|_| *code));
                let mut bytes = of(8).repeat((self.len() / 8) as usize);
                bytes.extend_from_slice(&of(self.len() % 8));
                bytes.into()
            }
            Data::Texts(_) => Cow::default(),
        }
    }

    /// Common code of all elements, if stored once.
    pub fn as_splat(&self) -> Option<u64> {
        match self.data {
            Data::Splat(code) => Some(code),
            _ => None,
        }
    }

    /// Makes a function from an element's index to its code.
    ///
    /// # Panics
    /// If the elements are text or do not match the shape; the returned function panics beyond the last element.
    pub fn reader(&self) -> impl Fn(u64) -> u64 {
        let elements = match &self.data {
            Data::Splat(_) => None,
            Data::Codes(codes) | Data::Blocks { codes, .. } => {
                let elements = Elements::new(self.dtype, self.len() as usize, &codes[..]);
                Some(elements.expect("the elements fill the shape"))
            }
            Data::Texts(_) => panic!("text has no codes"),
        };
        move |index| match (&elements, &self.data) {
            (Some(elements), _) => elements.get(index as usize),
            (None, Data::Splat(code)) if index < self.len() => *code,
            _ => panic!("element {index} of {}", self.len()),
        }
    }

    /// Elements as signed integers. The type must have whole bytes.
    pub fn integers(&self) -> Vec<i64> {
        let bytes = self.dtype.storage_bits().map_or(1, |bits| bits as usize / 8).max(1);
        let one = |code: &[u8]| {
            let mut wide = [0; 8];
            wide[8 - bytes..].copy_from_slice(code);
            i64::from_le_bytes(wide) >> (64 - 8 * bytes)
        };
        self.codes().chunks_exact(bytes).map(one).collect()
    }

    /// Bytes of memory that the elements take; 0 for a splat.
    pub fn held_bytes(&self) -> u64 {
        match &self.data {
            Data::Codes(codes) => codes.len() as u64,
            Data::Blocks { codes, scales } => (codes.len() + scales.len()) as u64,
            Data::Splat(_) => 0,
            Data::Texts(texts) => texts.iter().map(|text| text.len() as u64).sum(),
        }
    }
}

fn packed(dtype: DType, len: u64, codes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let bytes = dtype.bytes_in(Layout::Packed, len).expect("a type with a width, and a size that memory can have");
    let mut packed = vec![0; bytes as usize];
    let mut elements = ElementsMut::new(dtype, len as usize, &mut packed).expect("the buffer is as large");
    codes.into_iter().enumerate().for_each(|(i, code)| elements.set(i, code));
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back() {
        for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_numeric()) {
            let mask = u64::MAX >> (64 - dtype.code_bits());
            let codes: Vec<u64> = (0..50u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            for len in 0..codes.len() {
                let tensor = Tensor::of_codes(dtype, vec![len as u64], codes[..len].iter().copied());
                assert_eq!(Some(tensor.codes().len() as u64), dtype.bytes_in(Layout::Packed, len as u64), "{dtype}");
                assert_eq!((0..len as u64).map(tensor.reader()).collect::<Vec<_>>(), codes[..len], "{dtype}");
            }
        }
    }
}
