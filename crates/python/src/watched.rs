//! Long work in another thread. The calling thread reports progress and handles Ctrl-C.

use crate::{error, pool};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use truecast::Progress;
use truecast::files::Error;

/// Interval between checks for Ctrl-C.
const GLANCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Shown {
    bytes: u64,
    tensor: String,
    is_done: bool,
}

/// Marks the end of the work, even after a panic.
struct Finish<'a> {
    shown: &'a Mutex<Shown>,
    changed: &'a Condvar,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).is_done = true;
        self.changed.notify_all();
    }
}

/// Runs work in another thread. `progress` receives the finished bytes, the total bytes, and the tensor.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    total: u64,
    work: impl FnOnce(&AtomicBool, &(dyn Fn(Progress<'_>) + Sync)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (stop, shown, changed) = (AtomicBool::new(false), Mutex::new(Shown::default()), Condvar::new());
    let lock = || shown.lock().unwrap_or_else(PoisonError::into_inner);
    let tell = |now: Progress<'_>| {
        let mut shown = lock();
        shown.bytes = now.bytes;
        if shown.tensor != now.tensor {
            shown.tensor = now.tensor.into();
        }
    };
    let (result, stopped) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _finish = Finish { shown: &shown, changed: &changed };
            pool::install(|| work(&stop, &tell))
        });
        let mut stopped = Ok(());
        let mut told = u64::MAX;
        loop {
            let (bytes, tensor, is_done) = py.detach(|| {
                let waited = changed.wait_timeout_while(lock(), GLANCE, |shown| !shown.is_done);
                let (shown, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (shown.bytes, shown.tensor.clone(), shown.is_done)
            });
            if stopped.is_ok() {
                stopped = py.check_signals();
                if let (Ok(()), Some(progress), true) = (&stopped, progress, bytes != told || is_done) {
                    stopped = progress.call1((bytes, total, tensor)).map(drop);
                    told = bytes;
                }
                stop.store(stopped.is_err(), Ordering::Relaxed);
            }
            if is_done {
                break;
            }
        }
        (worker.join(), stopped)
    });
    stopped?;
    match result {
        Ok(result) => result.map_err(|error| error::to_py_err(py, &error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
