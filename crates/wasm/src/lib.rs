//! [`truecast_cli::explore::answer`] for JavaScript, which writes a request into a buffer and reads the answer from it.
//! `site/explorer/engine-wasm.js` is the other side.

use std::cell::RefCell;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a request of `length` bytes. The result is its place.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; length];
        buffer.as_mut_ptr()
    })
}

/// Replaces the request by its answer, whose length is the result.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = truecast_cli::explore::answer(&String::from_utf8_lossy(buffer)).into_bytes();
        buffer.len()
    })
}

/// Place of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn place() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}
