//! Threads of conversions: the package's own pool, made at the first use.
//!
//! Threads do not survive a fork: a forked process makes its own pool.

use crate::error::{Class, raise};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use truecast::CastOptions;

/// Smaller work is done by the calling thread.
const WORTH_BYTES: usize = 1 << 20;

/// Level and threads of this machine. Detection takes longer than small conversions.
pub static DEFAULTS: LazyLock<CastOptions> = LazyLock::new(CastOptions::default);

#[derive(Default)]
struct State {
    pool: Option<Arc<ThreadPool>>,
    /// Process that made the pool.
    process: u32,
    /// Requested number; `None` is one per core.
    threads: Option<NonZeroUsize>,
}

/// Locked only briefly.
static STATE: Mutex<State> = Mutex::new(State { pool: None, process: 0, threads: None });

/// Returns the level and threads for conversions.
pub fn options() -> CastOptions {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    CastOptions { threads: state.threads.unwrap_or(DEFAULTS.threads), ..*DEFAULTS }
}

/// Returns [`options`] for work of this size: small work is not divided. It must not be, since a forked process lacks
/// the threads of the global pool.
pub fn options_for(bytes: usize) -> CastOptions {
    let options = options();
    if bytes < WORTH_BYTES { CastOptions { threads: NonZeroUsize::MIN, ..options } } else { options }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.process != process {
        // The threads of the old pool are not in this process, and may hold locks forever.
        std::mem::forget(state.pool.take());
        state.process = process;
    }
    if state.pool.is_none() {
        let threads = state.threads.unwrap_or(DEFAULTS.threads).get();
        state.pool = ThreadPoolBuilder::new().num_threads(threads).build().ok().map(Arc::new);
    }
    state.pool.clone()
}

/// Runs work of this size with the interpreter released and on every thread, if that is worthwhile.
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

/// Runs work that divides itself, on every thread. The caller is not attached to the interpreter.
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
