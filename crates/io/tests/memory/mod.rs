//! How much memory the current thread holds, by an allocator that counts. Readers of untrusted files are measured with it;
//! other crates' tests include this file by its path.

use std::alloc::{GlobalAlloc, Layout as Allocation, System};
use std::cell::Cell;

/// Counts what the current thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to `System`, which keeps the contract; the counters are plain cells that
// neither allocate nor have destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Allocation) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(HELD.get()));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Allocation) {
        HELD.set(HELD.get().saturating_sub(layout.size()));
        // SAFETY: `pointer` came from `System.alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Forgets what was held before.
pub fn begin() {
    HELD.set(0);
    PEAK.set(0);
}

/// The most that was held at once since then, in bytes.
pub fn peak() -> usize {
    PEAK.get()
}
