//! Strings of the caller: reads NUL-terminated strings, writes buffers up to their capacity.

use crate::status::Failure;
use std::ffi::{CStr, c_char};

/// Borrows a string of the caller.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string that does not change during `'a`.
pub(crate) unsafe fn read<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::misuse("the name is a null pointer"));
    }
    // SAFETY: not null (above), and NUL-terminated and unchanged (the caller).
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::unknown("the name is not UTF-8"))
}

/// Writes the part of `text` that fits, cut at a character boundary, and a NUL. Writes nothing if `capacity` is 0.
///
/// # Safety
/// `buffer` is null or valid for writes of `capacity` bytes.
pub(crate) unsafe fn write(text: &str, buffer: *mut c_char, capacity: usize) {
    if buffer.is_null() || capacity == 0 {
        return;
    }
    let room = text.len().min(capacity - 1);
    let len = (0..=room).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    // SAFETY: `len < capacity` bytes and the NUL fit (the caller vouches for `capacity`); `text` is Rust's own
    // memory, which the caller cannot have passed as `buffer`.
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        buffer.add(len).write(0);
    }
}
