//! Borrowed buffers of elements, checked once.

use crate::caster::CastError;
use truecast_core::{DType, Layout};

/// Elements in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<B> {
    dtype: DType,
    layout: Layout,
    len: usize,
    bytes: B,
}

/// Elements to read. Bytes beyond the last element's bits are ignored.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::Codes;
/// let three_nibbles = Codes::new(DType::F4E2M1, 3, &[0x12, 0x02])?;
/// assert_eq!(three_nibbles.len(), 3);
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
pub type Codes<'a> = Buffer<&'a [u8]>;

/// Room for elements to be written.
pub type CodesMut<'a> = Buffer<&'a mut [u8]>;

impl<B: AsRef<[u8]>> Buffer<B> {
    /// `len` packed elements; `bytes.len()` is `ceil(len * bits / 8)`.
    ///
    /// # Errors
    /// [`CastError::Length`] otherwise; [`CastError::Text`] for text, which has no such layout.
    pub fn new(dtype: DType, len: usize, bytes: B) -> Result<Self, CastError> {
        Buffer::with_layout(dtype, Layout::Packed, len, bytes)
    }

    /// `len` elements in a layout.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn with_layout(dtype: DType, layout: Layout, len: usize, bytes: B) -> Result<Self, CastError> {
        let got = bytes.as_ref().len();
        match dtype.bytes_in(layout, len as u64) {
            Some(expected) if expected == got as u64 => Ok(Self { dtype, layout, len, bytes }),
            Some(expected) => Err(CastError::Length { dtype, len, expected, got }),
            None => Err(CastError::Text),
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

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn byte_len(&self) -> usize
    where
        B: AsRef<[u8]>,
    {
        self.bytes.as_ref().len()
    }

    /// The bytes.
    pub fn into_bytes(self) -> B {
        self.bytes
    }
}

impl<'a> Codes<'a> {
    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}
