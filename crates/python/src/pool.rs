//! Thread pool of conversions, made at the first use. Threads do not survive a fork, so a forked process makes its own
//! pool.

use crate::error::{Class, raise};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use truecast::CastOptions;

/// Smallest work, in bytes, for several threads.
const WORTH_BYTES: usize = 1 << 20;

/// Level and threads of this machine. Cached, because detection takes longer than small conversions.
pub static DEFAULTS: LazyLock<CastOptions> = LazyLock::new(CastOptions::default);

#[derive(Default)]
struct State {
    pool: Option<Arc<ThreadPool>>,
    process: u32,
    /// Requested number of threads; `None` means one per core.
    threads: Option<NonZeroUsize>,
}

/// Never locked during a conversion.
static STATE: Mutex<State> = Mutex::new(State { pool: None, process: 0, threads: None });

pub fn options() -> CastOptions {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    CastOptions { threads: state.threads.unwrap_or(DEFAULTS.threads), ..*DEFAULTS }
}

/// Options for work of this size: small work gets one thread, also because a forked process lacks the threads of the
/// global pool.
pub fn options_for(bytes: usize) -> CastOptions {
    let options = options();
    if bytes < WORTH_BYTES { CastOptions { threads: NonZeroUsize::MIN, ..options } } else { options }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.process != process {
        // The threads of the old pool do not exist in this process, and may hold locks forever.
        std::mem::forget(state.pool.take());
        state.process = process;
    }
    if state.pool.is_none() {
        let threads = state.threads.unwrap_or(DEFAULTS.threads).get();
        state.pool = ThreadPoolBuilder::new().num_threads(threads).build().ok().map(Arc::new);
    }
    state.pool.clone()
}

/// Releases the interpreter and runs the work on all threads, if that is worthwhile.
pub fn run<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if bytes < WORTH_BYTES / 16 {
        return work();
    }
    let pool = (bytes >= WORTH_BYTES).then(pool).flatten();
    py.detach(|| match pool {
        Some(pool) => pool.install(work),
        None => work(),
    })
}

/// Runs work on the pool. The caller must not be attached to the interpreter.
pub fn install<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Sets the number of threads for conversions; ``None`` is one per core. Results do not depend on it.
#[pyfunction]
#[pyo3(signature = (threads=None))]
pub fn set_num_threads(py: Python<'_>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let known =
        |threads: &Bound<'_, PyAny>| threads.extract().ok().filter(|threads: &NonZeroUsize| threads.get() <= 512);
    let threads = match threads.map(known) {
        Some(None) => return Err(raise(py, Class::Usage, "threads must be from 1 to 512, or None")),
        threads => threads.flatten(),
    };
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.threads = threads;
    let old = state.pool.take();
    if state.process != std::process::id() {
        std::mem::forget(old);
    }
    Ok(())
}

/// Number of threads for conversions.
#[pyfunction]
pub fn get_num_threads() -> usize {
    options().threads.get()
}
