//! Memory of arrays as slices: the one place that trusts the pointers of other libraries.
//!
//! An array says where its elements lie. What is taken for granted of whom:
//!
//! - NumPy's own class: pointer, flags and strides, and that it keeps what it is a view of. An array over an address that an
//!   object told NumPy (`__array_interface__` with a number, `__array_struct__`, a capsule of DLPack) is as good as that
//!   object, and a file that is mapped must stay as long as it is.
//! - torch: the pointer of a tensor, and the bytes of its storage, with which its elements are compared.
//!
//! The array is kept alive as long as the slice. What other threads do to it while it is converted is their business, as
//! with every function of NumPy and torch: elements that they write meanwhile may be read before or after, and they must not
//! take its memory away by force (`resize(refcheck=False)`, `untyped_storage().resize_`).

use pyo3::prelude::*;

/// Bytes of an array, which it keeps alive.
pub struct Memory<'py> {
    data: *mut u8,
    len: usize,
    is_writable: bool,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Memory<'py> {
    /// The memory of `owner`.
    ///
    /// # Safety
    /// - `data` is valid for reads of `len` bytes as long as `owner` lives and its memory is not taken away by force, and for
    ///   writes if `is_writable`.
    pub unsafe fn new(data: *mut u8, len: usize, is_writable: bool, owner: Bound<'py, PyAny>) -> Memory<'py> {
        Memory { data, len, is_writable, _owner: owner }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[]; // the pointer may be anything
        }
        // SAFETY: `data` is valid for reads of `len` bytes, more than none, by what `new` asks for: `self` owns the owner, and
        // nobody takes its memory away.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// The bytes, to be written.
    ///
    /// # Panics
    /// If they may not be.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_writable, "the array is read-only");
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: `data` is valid for reads and writes of `len` bytes, more than none, by what `new` asks for: `self` owns the
        // owner, and nobody takes its memory away. The borrow of `self` is unique, and `overlaps` tells callers of the memory
        // of others.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }

    /// Whether both share a byte.
    pub fn overlaps(&self, other: &Memory<'_>) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        self.len > 0 && other.len > 0 && a < b + other.len && b < a + self.len
    }
}
