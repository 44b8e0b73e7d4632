//! Requests to end the process on Windows: Ctrl-C, Ctrl-Break, and the end of the console or session.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Calls `add` for each request, on a thread of its own. The flag is not needed.
pub(super) fn watch(_stop: Arc<AtomicBool>, add: impl Fn() + Send + 'static) {
    // An error is possible only if a handler already exists.
    ctrlc::set_handler(add).ok();
}

pub(super) fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}

/// Does nothing: Windows has no limit on file sizes.
pub fn make_size_limit_an_error() {}
