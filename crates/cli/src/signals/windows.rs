//! Ctrl-C, Ctrl-Break, and the end of the console or of the session.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Adds each request from now on; the handler has a thread of its own, so the flag is not needed.
pub(super) fn watch(_stop: Arc<AtomicBool>, add: impl Fn() + Send + 'static) {
    // Fails only if it was called before.
    ctrlc::set_handler(add).ok();
}

pub(super) fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}

/// The system has no such limit.
pub fn make_size_limit_an_error() {}
