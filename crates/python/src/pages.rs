//! Memory of large results: pages that are kept for reuse. The system clears each new page, which takes about as long
//! as a conversion. Advice (`MADV_FREE`, only on Linux) lets the system take kept pages at any time.
//!
//! Pages have one owner at a time: a `Pages` that is the base of arrays, or `KEPT`. Dropping the `Pages` moves the
//! pages to `KEPT`, when no array, view, tensor or DLPack capsule refers to the `Pages`.

use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Smallest size in bytes; the library of the result allocates smaller results.
const LARGE: usize = 1 << 20;
/// Size of a large page, which the system clears at once.
const HUGE: usize = 2 << 20;
/// Largest number of kept maps.
const MOST_KEPT: usize = 16;
const MOST_BYTES: usize = 1 << 30;

/// Unused memory, newest last.
static KEPT: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// Kept memory; `None` if another thread holds the lock. Never waits, because a forked process could inherit a locked
/// lock.
fn kept() -> Option<MutexGuard<'static, Vec<Mapping>>> {
    match KEPT.try_lock() {
        Ok(kept) => Some(kept),
        Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[derive(Debug)]
struct Mapping {
    map: MmapMut,
    start: usize,
    len: usize,
}

impl Mapping {
    /// Maps new memory; `None` if there is not enough.
    fn new(bytes: usize) -> Option<Mapping> {
        let is_huge = bytes >= 2 * HUGE;
        let (len, slack) = if is_huge { (bytes.checked_next_multiple_of(HUGE)?, HUGE) } else { (bytes, 0) };
        let map = MmapOptions::new().len(len.checked_add(slack)?).map_anon().ok()?;
        let start = if is_huge { map.as_ptr().align_offset(HUGE) } else { 0 };
        if is_huge {
            // A system without large pages refuses; that is harmless.
            let _ = map.advise_range(Advice::HugePage, start, len);
        }
        Some(Mapping { map, start, len })
    }

    /// Takes the smallest kept memory between `bytes` and twice `bytes`.
    fn kept(bytes: usize) -> Option<Mapping> {
        let mut kept = kept()?;
        let fits = kept.iter().enumerate().filter(|(_, mapping)| mapping.len >= bytes && mapping.len / 2 <= bytes);
        let at = fits.min_by_key(|(_, mapping)| mapping.len)?.0;
        Some(kept.remove(at))
    }

    /// Keeps the memory, whose contents may be lost from now on. Drops the oldest memory beyond the limits.
    fn keep(self) {
        // SAFETY: no array refers to the memory, so replacing it by zeros is not observed. The next user treats it as
        // uninitialized, and writes before any read.
        let freed = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::Free, self.start, self.len) };
        // The system refuses the advice for locked memory.
        if freed.is_err() || self.len > MOST_BYTES {
            return;
        }
        let Some(mut kept) = kept() else { return };
        kept.push(self);
        let mut bytes = 0;
        let newest = kept.iter().rev().take(MOST_KEPT).take_while(|mapping| {
            bytes += mapping.len;
            bytes <= MOST_BYTES
        });
        let given_up = kept.len() - newest.count();
        let given_up: Vec<Mapping> = kept.drain(..given_up).collect();
        drop(kept);
        drop(given_up); // unmapping takes time
    }
}

/// Memory of a large result, the base object of its array.
#[pyclass(frozen, module = "truecast._truecast")]
#[derive(Debug)]
pub struct Pages {
    /// `Some` until it is dropped.
    mapping: Option<Mapping>,
    bytes: usize,
    /// True if no earlier result used the memory.
    pub is_new: bool,
}

impl Pages {
    /// Memory for this many bytes. `None` for small sizes, and if there is not enough memory.
    pub fn of(bytes: usize) -> Option<Pages> {
        if bytes < LARGE || cfg!(not(target_os = "linux")) {
            return None;
        }
        let kept = Mapping::kept(bytes);
        let is_new = kept.is_none();
        let mapping = Some(kept.or_else(|| Mapping::new(bytes))?);
        Some(Pages { mapping, bytes, is_new })
    }
}

#[pymethods]
impl Pages {
    /// NumPy's array interface for writable bytes.
    #[getter(__array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let first = self.mapping.as_ref().map_or(0, |mapping| mapping.map.as_ptr() as usize + mapping.start);
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("shape", (self.bytes,))?;
        interface.set_item("data", (first, false))?;
        Ok(interface)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            mapping.keep();
        }
    }
}

/// Returns memory that is kept for later results to the system, and its number of bytes to the caller.
///
/// Memory of results of 1 MiB or more is not unmapped when its last array is gone, but kept: the next result that fits
/// need not wait until the system has cleared new pages. At most 16 results and 1 GiB are kept, on Linux only. The
/// system may take the memory at any time, so calling this function is rarely necessary.
///
/// Examples
/// --------
/// >>> import numpy as np, truecast as tc
/// >>> y = tc.cast(np.zeros(1 << 20, np.float32), "f16")
/// >>> del y
/// >>> kept = tc.release_memory()  # 2 MiB or more on Linux
/// >>> tc.release_memory()
/// 0
#[pyfunction]
pub fn release_memory() -> usize {
    let rooms = kept().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    rooms.iter().map(|mapping| mapping.len).sum()
}
