//! Borrowed buffers of elements, checked once.

use crate::caster::CastError;
use truecast_core::{DType, Layout};

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
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    dtype: DType,
    layout: Layout,
    len: usize,
    bytes: &'a [u8],
}

/// Elements to write.
#[derive(Debug)]
pub struct CodesMut<'a> {
    dtype: DType,
    layout: Layout,
    len: usize,
    bytes: &'a mut [u8],
}

fn check(dtype: DType, layout: Layout, len: usize, got: usize) -> Result<(), CastError> {
    match dtype.bytes_in(layout, len as u64) {
        Some(expected) if expected == got as u64 => Ok(()),
        Some(expected) => Err(CastError::Length { dtype, len, expected, got }),
        None => Err(CastError::Text),
    }
}

impl<'a> Codes<'a> {
    /// `len` packed elements; `bytes.len()` is `ceil(len * bits / 8)`.
    ///
    /// # Errors
    /// [`CastError::Length`] otherwise; [`CastError::Text`] for text.
    pub fn new(dtype: DType, len: usize, bytes: &'a [u8]) -> Result<Self, CastError> {
        Codes::with_layout(dtype, Layout::Packed, len, bytes)
    }

    /// `len` elements in a layout.
    ///
    /// # Errors
    /// As [`Codes::new`].
    pub fn with_layout(dtype: DType, layout: Layout, len: usize, bytes: &'a [u8]) -> Result<Self, CastError> {
        check(dtype, layout, len, bytes.len())?;
        Ok(Self { dtype, layout, len, bytes })
    }

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
    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> CodesMut<'a> {
    /// Room for `len` packed elements; `bytes.len()` is `ceil(len * bits / 8)`.
    ///
    /// # Errors
    /// [`CastError::Length`] otherwise; [`CastError::Text`] for text.
    pub fn new(dtype: DType, len: usize, bytes: &'a mut [u8]) -> Result<Self, CastError> {
        CodesMut::with_layout(dtype, Layout::Packed, len, bytes)
    }

    /// Room for `len` elements in a layout.
    ///
    /// # Errors
    /// As [`CodesMut::new`].
    pub fn with_layout(dtype: DType, layout: Layout, len: usize, bytes: &'a mut [u8]) -> Result<Self, CastError> {
        check(dtype, layout, len, bytes.len())?;
        Ok(Self { dtype, layout, len, bytes })
    }

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
    pub(crate) fn into_bytes(self) -> &'a mut [u8] {
        self.bytes
    }
}
