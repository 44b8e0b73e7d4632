//! Requests to end the process on Unix: signals.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Calls `add` for each signal that asks the process to end. Signals that were ignored at the start (`nohup`) remain
/// ignored. If no thread can be started, the first signal sets `stop` and the second ends the process.
pub(super) fn watch(stop: Arc<AtomicBool>, add: impl Fn() + Send + 'static) {
    let asking: Vec<c_int> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let waiting = Signals::new(&asking)
        .and_then(|mut signals| thread::Builder::new().spawn(move || signals.forever().for_each(|_| add())));
    if waiting.is_err() {
        // No thread could be started. The first signal sets the flag, the second ends the process.
        for signal in asking {
            // An error is possible only for signals that no process can catch.
            flag::register_conditional_shutdown(signal, 4, stop.clone()).ok();
            flag::register(signal, stop.clone()).ok();
        }
    }
}

pub(super) fn exit(code: u8) -> ! {
    low_level::exit(code.into())
}

/// Linux lists ignored signals in a file. Other systems have no safe way to ask; the result is then `false`.
pub(super) fn is_ignored(signal: c_int) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Turns a write beyond the limit on file sizes into an error. Without a handler, SIGXFSZ would end the process.
pub fn make_size_limit_an_error() {
    // The flag is never read. Any handler turns the signal into an error of the write.
    flag::register(SIGXFSZ, Arc::<AtomicBool>::default()).ok();
}
