//! The elements of a tile: codes as [`truecast_core::exact`] takes them, one value for all or one for each.

use truecast_core::DType;

/// Codes of one element type, each in as many whole bytes as its storage takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    dtype: DType,
    len: u64,
    data: Data,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    Splat(u64),
    List(Vec<u8>),
}

/// Bytes that hold one code: 1, 2, 4 or 8.
fn width(dtype: DType) -> usize {
    (dtype.code_bits().div_ceil(8) as usize).next_power_of_two()
}

impl Codes {
    /// One code for all elements.
    pub fn splat(dtype: DType, len: u64, code: u64) -> Self {
        Self { dtype, len, data: Data::Splat(code) }
    }

    /// No elements yet.
    pub fn empty(dtype: DType) -> Self {
        Self { dtype, len: 0, data: Data::List(Vec::new()) }
    }

    /// One code each.
    pub fn list(dtype: DType, codes: impl IntoIterator<Item = u64>) -> Self {
        let mut list = Codes::empty(dtype);
        codes.into_iter().for_each(|code| list.push(code));
        list
    }

    /// Adds an element to a list.
    ///
    /// # Panics
    /// If all elements have one code.
    pub fn push(&mut self, code: u64) {
        let Data::List(bytes) = &mut self.data else { panic!("a splat has no end to add to") };
        bytes.extend_from_slice(&code.to_le_bytes()[..width(self.dtype)]);
        self.len += 1;
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The code of all elements, if they were made as one.
    pub fn as_splat(&self) -> Option<u64> {
        match self.data {
            Data::Splat(code) => Some(code),
            Data::List(_) => None,
        }
    }

    /// The code of an element.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn get(&self, index: u64) -> u64 {
        assert!(index < self.len, "element {index} of {}", self.len);
        match &self.data {
            Data::Splat(code) => *code,
            Data::List(bytes) => {
                let n = width(self.dtype);
                let mut word = [0; 8];
                word[..n].copy_from_slice(&bytes[index as usize * n..][..n]);
                u64::from_le_bytes(word)
            }
        }
    }

    /// Every code.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// Bytes of memory that the elements take.
    pub fn held_bytes(&self) -> u64 {
        match &self.data {
            Data::Splat(_) => 0,
            Data::List(bytes) => bytes.len() as u64,
        }
    }
}
