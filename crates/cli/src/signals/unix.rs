//! Signals.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// From now on every signal that asks for the end is a request, except signals that were ignored when the process
/// started (`nohup`): it is added, and without a thread for that, the first one sets `stop`.
pub(super) fn watch(stop: Arc<AtomicBool>, add: impl Fn() + Send + 'static) {
    let asking: Vec<c_int> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let waiting = Signals::new(&asking)
        .and_then(|mut signals| thread::Builder::new().spawn(move || signals.forever().for_each(|_| add())));
    if waiting.is_err() {
        // There is no thread to be had: the first one asks, the second one ends.
        for signal in asking {
            // Fails only for signals that no process can catch.
            flag::register_conditional_shutdown(signal, 4, stop.clone()).ok();
            flag::register(signal, stop.clone()).ok();
        }
    }
}

pub(super) fn exit(code: u8) -> ! {
    low_level::exit(code.into())
}

/// Linux says so in a file; elsewhere there is no safe way to ask, and no signal is taken for ignored.
pub(super) fn is_ignored(signal: c_int) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Writing beyond the limit on the size of files fails, with a reason, instead of ending the process on the spot.
pub fn make_size_limit_an_error() {
    // The flag is not read: with a handler in place the write fails with its reason.
    flag::register(SIGXFSZ, Arc::<AtomicBool>::default()).ok();
}
