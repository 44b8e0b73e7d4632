//! [`truecast_cli::explore::answer`] for JavaScript. The caller allocates a request, gets its answer, and releases the
//! answer. `site/explorer/engine-wasm.js` is the other side.

/// Allocates a buffer of `length` zero bytes for a request.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    leaked(vec![0; length].into())
}

/// Answers the request in a buffer of [`allocate`], and frees the buffer. The result is four bytes with the length of
/// the answer, little-endian, followed by the answer; [`release`] frees it.
///
/// # Safety
/// `request` is the result of `allocate(length)`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(request: *mut u8, length: usize) -> *mut u8 {
    // SAFETY: the caller passes a box that `leaked` gave away, once.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    let answer = truecast_cli::explore::answer(&String::from_utf8_lossy(&request));
    let length = answer.len() as u32;
    leaked([&length.to_le_bytes(), answer.as_bytes()].concat().into())
}

/// Frees a result of [`answer`].
///
/// # Safety
/// `result` comes from [`answer`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(result: *mut u8) {
    // SAFETY: the result begins with its four bytes of length.
    let length = u32::from_le_bytes(unsafe { *result.cast() }) as usize;
    // SAFETY: the caller passes a box of these bytes that `leaked` gave away, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(result, 4 + length)) });
}

fn leaked(bytes: Box<[u8]>) -> *mut u8 {
    Box::into_raw(bytes).cast()
}
