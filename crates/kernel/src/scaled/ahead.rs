//! Prefetches in loops over scaled elements.
//!
//! A prefetch in a loop over blocks of 16 or 32 elements has a second effect. The compiler then vectorizes each block
//! by itself and gathers no elements from several blocks.

/// Distance in bytes for elements.
pub(super) const AHEAD: usize = 8192;

/// Distance in bytes for the operands of short blocks.
pub(super) const OPERANDS_AHEAD: usize = 256;

/// Prefetches the lines `ahead` bytes after the elements, on x86-64.
#[inline(always)]
pub(super) fn look_ahead<T>(x: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(x)).step_by(64) {
        crate::x86::prefetch(x.as_ptr().cast::<u8>().wrapping_add(ahead + at));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, ahead);
}
