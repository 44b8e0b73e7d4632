//! Ctrl-C, Ctrl-Break, and the end of the console or of the session.

use super::Requests;

pub(super) fn watch(requests: Requests) {
    // Fails only if it was called before.
    ctrlc::set_handler(move || requests.add()).ok();
}

pub(super) fn end_at_once_from_here_on() {}

pub(super) fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}

/// The system has no such limit.
pub fn make_size_limit_an_error() {}
