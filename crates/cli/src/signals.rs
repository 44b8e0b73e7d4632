//! Signals: which of them set a flag, and which are only an error of the call that caused them.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set by Ctrl-C and by a request to terminate; the conversion then stops and leaves nothing behind.
pub fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Fails only for signals that no process can catch.
        flag::register(signal, stop.clone()).ok();
    }
    stop
}

/// Writing beyond the limit on the size of files fails, with a reason, instead of ending the process on the spot.
pub fn make_size_limit_an_error() {
    // Nobody asks the flag: once there is a handler, the write says what happened.
    flag::register(SIGXFSZ, Arc::default()).ok();
}
