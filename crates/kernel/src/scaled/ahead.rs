//! Prefetches of loops over scaled elements.
//!
//! A loop over blocks of 16 or 32 elements that prefetches is compiled as written, each block in vectors of its
//! elements, not as one that takes an element of each of several blocks in a vector, and scatters them.

/// Distance in bytes of elements that are only read.
pub(super) const AHEAD: usize = 8192;

/// Distance in bytes of the operands of short blocks.
pub(super) const OPERANDS_AHEAD: usize = 256;

/// Prefetches the lines `ahead` bytes after some elements, on x86-64.
#[inline(always)]
pub(super) fn look_ahead<T>(x: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(x)).step_by(64) {
        crate::x86::prefetch(x.as_ptr().cast::<u8>().wrapping_add(ahead + at));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, ahead);
}
