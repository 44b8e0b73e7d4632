//! Memory of arrays as slices: the only file that trusts pointers of other libraries.
//!
//! Assumptions about the pointers:
//!
//! - NumPy: pointer, flags and strides of its own class are right, and an array keeps the base of a view alive. An
//!   array over an address from an object (`__array_interface__` with a number, `__array_struct__`, a DLPack capsule)
//!   is as valid as the object. A mapped file must not shrink.
//! - torch: the pointer of a tensor and the size of its storage are right; all elements must be inside the storage.
//!
//! The slice keeps the array alive. Other threads may write elements during a conversion, as in functions of NumPy and
//! torch. No thread may free the memory by force (`resize(refcheck=False)`, `untyped_storage().resize_`).

use pyo3::prelude::*;

/// Bytes of an array; keeps the array alive.
pub struct Memory<'py> {
    data: *mut u8,
    len: usize,
    is_writable: bool,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Memory<'py> {
    /// Borrows the memory of `owner`.
    ///
    /// # Safety
    /// - `data` is valid for reads of `len` bytes while `owner` lives and its memory is not freed by force, and for
    ///   writes if `is_writable`.
    pub unsafe fn new(data: *mut u8, len: usize, is_writable: bool, owner: Bound<'py, PyAny>) -> Memory<'py> {
        Memory { data, len, is_writable, _owner: owner }
    }

    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[]; // the pointer may be invalid
        }
        // SAFETY: `data` is valid for reads of `len` bytes, at least one, by the contract of `new`: `self` owns the
        // owner, and its memory is not freed by force.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Bytes for writing.
    ///
    /// # Panics
    /// If the memory is read-only.
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

    pub fn overlaps(&self, other: &Memory<'_>) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        self.len > 0 && other.len > 0 && a < b + other.len && b < a + self.len
    }
}
