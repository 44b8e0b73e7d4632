//! Allocator that counts the memory of the current thread. Tests of readers use it.
//!
//! Each test file installs the allocator: `#[global_allocator] static ALLOCATOR: Counting = Counting;`

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocator that counts the memory of each thread.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to `System`, which keeps the contract; the counters are plain cells that
// neither allocate nor have destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(HELD.get()));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get().saturating_sub(layout.size()));
        // SAFETY: `pointer` came from `System.alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Starts a measurement.
///
/// # Panics
/// If the test file did not install [`Counting`].
pub fn begin() {
    HELD.set(0);
    PEAK.set(0);
    drop(std::hint::black_box(Box::new(0u8)));
    assert!(PEAK.get() > 0, "the test file does not install `memory::Counting` as its allocator");
    PEAK.set(0);
}

/// Peak memory since [`begin`], in bytes.
pub fn peak() -> usize {
    PEAK.get()
}
