//! Requests to end the process on Windows: Ctrl-C, Ctrl-Break, and the end of the console or of the session.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Calls `add` for each request. The handler has a thread of its own, so the flag is not needed.
pub(super) fn watch(_stop: Arc<AtomicBool>, add: impl Fn() + Send + 'static) {
    // Fails only if a handler was set before.
    ctrlc::set_handler(add).ok();
}

pub(super) fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}

/// Does nothing: the system has no such limit.
pub fn make_size_limit_an_error() {}
