//! Borrowed buffers of elements. The size of a buffer is checked once.

use crate::error::CastError;
use truecast_core::{DType, Layout};

/// Elements in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<B> {
    dtype: DType,
    layout: Layout,
    len: usize,
    bytes: B,
}

/// Elements to read. Bits beyond the last element are ignored.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::Elements;
/// let three_nibbles = Elements::new(DType::F4E2M1, 3, &[0x12, 0x02])?;
/// assert_eq!(three_nibbles.len(), 3);
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
pub type Elements<'a> = Buffer<&'a [u8]>;

/// Elements to write.
pub type ElementsMut<'a> = Buffer<&'a mut [u8]>;

impl<B: AsRef<[u8]>> Buffer<B> {
    /// Makes a buffer of `len` packed elements; `bytes.len()` must be `ceil(len * bits / 8)`.
    ///
    /// # Errors
    /// [`CastError::Length`] for another number of bytes; [`CastError::Text`] for text, which cannot be packed.
    pub fn new(dtype: DType, len: usize, bytes: B) -> Result<Self, CastError> {
        Buffer::with_layout(dtype, Layout::Packed, len, bytes)
    }

    /// Makes a buffer of `len` elements in a layout.
    ///
    /// # Errors
    /// The errors of [`Buffer::new`].
    pub fn with_layout(dtype: DType, layout: Layout, len: usize, bytes: B) -> Result<Self, CastError> {
        let got = bytes.as_ref().len();
        match dtype.bytes_in(layout, len as u64) {
            Some(expected) if expected == got as u64 => Ok(Self { dtype, layout, len, bytes }),
            None if dtype.bits_in(layout).is_none() => Err(CastError::Text),
            expected => Err(CastError::Length { dtype, len, expected: expected.unwrap_or(u64::MAX), got }),
        }
    }
}

impl<B> Buffer<B> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Layout of elements narrower than a byte.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn byte_len(&self) -> usize
    where
        B: AsRef<[u8]>,
    {
        self.bytes.as_ref().len()
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> B {
        self.bytes
    }
}

impl<B: AsRef<[u8]>> Buffer<B> {
    /// Returns the code of element `i`, as in [`truecast_core::cast_one`].
    ///
    /// # Panics
    /// If `i` is out of bounds, or the buffer holds text.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::DType;
    /// use truecast_kernel::{Elements, ElementsMut};
    /// let mut bytes = [0; 2];
    /// let mut nibbles = ElementsMut::new(DType::I4, 3, &mut bytes)?;
    /// nibbles.set(1, 0xf); // -1
    /// nibbles.set(2, 3);
    /// assert_eq!([0, 1, 2].map(|i| nibbles.get(i)), [0, 0xf, 3]);
    /// assert_eq!(bytes, [0xf0, 0x03]);
    /// # Ok::<(), truecast_kernel::CastError>(())
    /// ```
    pub fn get(&self, i: usize) -> u64 {
        self.dtype.code_of_storage(self.storage(i))
    }

    /// Returns the stored bits of element `i`. For bool, tf32 and others, the storage is wider than the code.
    ///
    /// # Panics
    /// If `i` is out of bounds, or the buffer holds text.
    pub fn storage(&self, i: usize) -> u64 {
        let at = self.place(i);
        (self.word(&at) >> at.shift) & at.mask
    }

    /// Bytes with an element, as one little-endian number.
    fn word(&self, at: &Place) -> u64 {
        let mut word = [0; 8];
        let bytes = &self.bytes.as_ref()[at.first..at.end];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Buffer<B> {
    /// Sets element `i` to `code`; bits beyond the width of the type are ignored. Other elements are unchanged.
    ///
    /// # Panics
    /// If `i` is out of bounds, or the buffer holds text.
    pub fn set(&mut self, i: usize, code: u64) {
        let at = self.place(i);
        let bits = self.dtype.storage_of_code(code) & at.mask;
        let word = self.word(&at) & !(at.mask << at.shift) | bits << at.shift;
        self.bytes.as_mut()[at.first..at.end].copy_from_slice(&word.to_le_bytes()[..at.end - at.first]);
    }
}

/// Place of an element. Bytes `first..end` are a little-endian number; its bits `mask << shift` are the element.
struct Place {
    first: usize,
    end: usize,
    shift: usize,
    mask: u64,
}

impl<B> Buffer<B> {
    fn place(&self, i: usize) -> Place {
        assert!(i < self.len, "element {i} of {}", self.len);
        assert!(self.dtype != DType::String, "text has no codes");
        let bits = self.dtype.bits_in(self.layout).expect("all but text have a width") as usize;
        Place {
            first: i * bits / 8,
            end: ((i + 1) * bits).div_ceil(8),
            shift: i * bits % 8,
            mask: u64::MAX >> (64 - bits),
        }
    }
}

impl<B: AsRef<[u8]>> Buffer<B> {
    /// Byte range of `len` elements from `first`, which must be a multiple of 8.
    fn range(&self, first: usize, len: usize) -> std::ops::Range<usize> {
        let bits = self.dtype.bits_in(self.layout).expect("only numbers are cut") as usize;
        first * bits / 8..((first + len) * bits).div_ceil(8)
    }
}

impl<'a> Elements<'a> {
    /// `len` elements from `first`, which must be a multiple of 8.
    pub(crate) fn part(&self, first: usize, len: usize) -> Elements<'a> {
        Buffer { len, bytes: &self.bytes[self.range(first, len)], ..*self }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl ElementsMut<'_> {
    /// `len` elements from `first`, which must be a multiple of 8.
    pub(crate) fn part_mut(&mut self, first: usize, len: usize) -> ElementsMut<'_> {
        let range = self.range(first, len);
        Buffer { dtype: self.dtype, layout: self.layout, len, bytes: &mut self.bytes[range] }
    }
}
