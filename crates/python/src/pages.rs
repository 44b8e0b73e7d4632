//! Memory of large results: pages of the system, which are kept for a while when no array is left of them.
//!
//! The system clears each page when it is first written, which takes about as long as most conversions. Pages that were
//! written before are clear of that. So what large results lay in is not unmapped but kept for the next one that fits, and
//! the system is told that it may take the pages at any time (`MADV_FREE`): they count as resident until it needs them.
//! Only Linux has that advice in this form; elsewhere results are allocated by their library, as small ones are.
//!
//! Pages belong to one owner at a time: to a `Pages` that arrays have as their base, or to `KEPT`. They get there when the
//! `Pages` is dropped, so when no array, view, tensor or capsule of DLPack refers to it any more.

use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Fewer bytes are allocated by the library of the result.
const LARGE: usize = 1 << 20;
/// Large pages: one clearing for 512 small ones.
const HUGE: usize = 2 << 20;
/// So many maps are kept, and so many bytes in all.
const MOST_KEPT: usize = 16;
const MOST_BYTES: usize = 1 << 30;

/// Memory that is not in use, the newest last.
static KEPT: Mutex<Vec<Room>> = Mutex::new(Vec::new());

/// What is kept; `None` if another thread has it at this moment. Nobody waits for it: in a process that was forked then, it
/// would be for ever.
fn kept() -> Option<MutexGuard<'static, Vec<Room>>> {
    match KEPT.try_lock() {
        Ok(kept) => Some(kept),
        Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Memory of this process alone.
#[derive(Debug)]
struct Room {
    map: MmapMut,
    /// Where the part that is used begins.
    start: usize,
    /// Its bytes.
    len: usize,
}

impl Room {
    /// Memory that nobody wrote to: `None` if there is not so much.
    fn new(bytes: usize) -> Option<Room> {
        let is_huge = bytes >= 2 * HUGE;
        let (len, slack) = if is_huge { (bytes.checked_next_multiple_of(HUGE)?, HUGE) } else { (bytes, 0) };
        let map = MmapOptions::new().len(len.checked_add(slack)?).map_anon().ok()?;
        let start = if is_huge { map.as_ptr().align_offset(HUGE) } else { 0 };
        if is_huge {
            // A system without large pages refuses, which is of no matter.
            let _ = map.advise_range(Advice::HugePage, start, len);
        }
        Some(Room { map, start, len })
    }

    /// The smallest that is kept and has so many bytes, and not more than twice as many.
    fn kept(bytes: usize) -> Option<Room> {
        let mut kept = kept()?;
        let fits = kept.iter().enumerate().filter(|(_, room)| room.len >= bytes && room.len / 2 <= bytes);
        let at = fits.min_by_key(|(_, room)| room.len)?.0;
        Some(kept.remove(at))
    }

    /// Keeps it, and gives up the oldest that are too many. What they held may be lost from here on.
    fn keep(self) {
        // SAFETY: no array refers to the memory any more, so nobody reads what the system may replace by zeros. Whoever gets
        // it next takes it for memory without a value, and writes before anybody reads.
        let freed = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::Free, self.start, self.len) };
        // Refused for memory that is locked.
        if freed.is_err() || self.len > MOST_BYTES {
            return;
        }
        let Some(mut kept) = kept() else { return };
        kept.push(self);
        let mut bytes = 0;
        let newest = kept.iter().rev().take(MOST_KEPT).take_while(|room| {
            bytes += room.len;
            bytes <= MOST_BYTES
        });
        let given_up = kept.len() - newest.count();
        let given_up: Vec<Room> = kept.drain(..given_up).collect();
        drop(kept);
        drop(given_up); // unmapping takes time
    }
}

/// Memory of a large result, the base object of its array.
#[pyclass(frozen, module = "truecast._truecast")]
#[derive(Debug)]
pub struct Pages {
    /// Some until it is dropped.
    room: Option<Room>,
    bytes: usize,
}

impl Pages {
    /// Memory for so many bytes, and whether it is new, so that its pages are still to be cleared. `None` if there are few,
    /// or not so many.
    pub fn of(bytes: usize) -> Option<(Pages, bool)> {
        if bytes < LARGE || cfg!(not(target_os = "linux")) {
            return None;
        }
        let kept = Room::kept(bytes);
        let is_new = kept.is_none();
        let room = Some(kept.or_else(|| Room::new(bytes))?);
        Some((Pages { room, bytes }, is_new))
    }
}

#[pymethods]
impl Pages {
    /// NumPy's array interface: bytes that may be written.
    #[getter(__array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let first = self.room.as_ref().map_or(0, |room| room.map.as_ptr() as usize + room.start);
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
        if let Some(room) = self.room.take() {
            room.keep();
        }
    }
}

/// Gives the memory that is kept for coming results back to the system, and returns how many bytes it was.
///
/// Results of 1 MiB or more lie in memory that is not unmapped when the last array on it is gone, but kept: the next result
/// that fits need not wait until the system has cleared new pages. At most 16 results and 1 GiB are kept, on Linux only. The
/// system may take the memory whenever it needs some, so this function is for those who want to see it gone.
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
    rooms.iter().map(|room| room.len).sum()
}
