//! The threads of conversions: a pool of the package's own, made when work is first worth it.
//!
//! Threads do not survive a fork: a process that was forked makes a pool of its own.

use crate::error::{Class, raise};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use truecast::CastOptions;

/// Work on fewer bytes is done by the calling thread.
const WORTH_BYTES: usize = 1 << 20;

/// Level and threads of this machine. Asking takes longer than small conversions.
pub static DEFAULTS: LazyLock<CastOptions> = LazyLock::new(CastOptions::default);

#[derive(Default)]
struct State {
    pool: Option<Arc<ThreadPool>>,
    /// The process that made it.
    process: u32,
    /// As asked for; `None` is one for each core.
    threads: Option<NonZeroUsize>,
}

/// Locked for moments only.
static STATE: Mutex<State> = Mutex::new(State { pool: None, process: 0, threads: None });

/// Level and threads that conversions use now.
pub fn options() -> CastOptions {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    CastOptions { threads: state.threads.unwrap_or(DEFAULTS.threads), ..*DEFAULTS }
}

/// The same for work on so many bytes: work that is not worth the pool is not divided. It must not be, for the threads that
/// libraries divide it among are not in a process that was forked.
pub fn options_for(bytes: usize) -> CastOptions {
    let options = options();
    if bytes < WORTH_BYTES { CastOptions { threads: NonZeroUsize::MIN, ..options } } else { options }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.process != process {
        // Its threads are not in this process, and what they held may be locked for ever.
        std::mem::forget(state.pool.take());
        state.process = process;
    }
    if state.pool.is_none() {
        let threads = state.threads.unwrap_or(DEFAULTS.threads).get();
        state.pool = ThreadPoolBuilder::new().num_threads(threads).build().ok().map(Arc::new);
    }
    state.pool.clone()
}

/// Does work on so many bytes: with the interpreter released and on every thread, if that is worth it.
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

/// Does work that divides itself, on every thread. The caller is not attached to the interpreter.
pub fn install<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Sets how many threads conversions use from now on; ``None`` stands for one for each core. No result depends on it.
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

/// How many threads conversions use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    options().threads.get()
}
