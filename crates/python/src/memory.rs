//! Memory of arrays as slices: the one place that trusts the pointers of other libraries.
//!
//! Assumptions about a library's pointers:
//!
//! - NumPy's own class: pointer, flags and strides are right, and an array keeps the base of a view alive. An array
//!   over an address from an object (`__array_interface__` with a number, `__array_struct__`, a capsule of DLPack) is
//!   as valid as that object, and a mapped file must not shrink.
//! - torch: the pointer of a tensor and the size of its storage are right; the elements are compared with that size.
//!
//! The slice keeps the array alive. Other threads may write elements during a conversion, as with every function of
//! NumPy and torch: they may be read before or after. They must not free its memory by force (`resize(refcheck=False)`,
//! `untyped_storage().resize_`).

use pyo3::prelude::*;

/// Bytes of an array, which is kept alive.
pub struct Memory<'py> {
    data: *mut u8,
    len: usize,
    is_writable: bool,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Memory<'py> {
    /// Makes the memory of `owner`.
    ///
    /// # Safety
    /// - `data` is valid for reads of `len` bytes while `owner` lives and its memory is not freed by force, and for
    ///   writes if `is_writable`.
    pub unsafe fn new(data: *mut u8, len: usize, is_writable: bool, owner: Bound<'py, PyAny>) -> Memory<'py> {
        Memory { data, len, is_writable, _owner: owner }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[]; // the pointer may be invalid
        }
        // SAFETY: `data` is valid for reads of `len` bytes, at least one, by the contract of `new`: `self` owns the
        // owner, and its memory is not freed by force.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Returns the bytes, for writing.
    ///
    /// # Panics
    /// If the bytes are read-only.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_writable, "the array is read-only");
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: `data` is valid for reads and writes of `len` bytes, at least one, by the contract of `new`: `self`
        // owns the owner, and its memory is not freed by force. The borrow of `self` is unique, and callers check other
        // memory with `overlaps`.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }

    /// Whether both share a byte.
    pub fn overlaps(&self, other: &Memory<'_>) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        self.len > 0 && other.len > 0 && a < b + other.len && b < a + self.len
    }
}
