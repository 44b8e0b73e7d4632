//! Stores past the caches (`docs/kernels.md §8`), for results larger than the caches. Unlike plain stores, such stores
//! do not first read the lines.

use crate::level::Level;

#[cfg(target_arch = "x86_64")]
pub(crate) use crate::x86::stream::Line;

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub(crate) const LINE: usize = 64;

/// Whole lines of `bytes`.
///
/// # Panics
/// If `bytes` does not begin at a line.
#[cfg(target_arch = "x86_64")]
pub(crate) fn lines(bytes: &mut [u8]) -> &mut [Line] {
    // SAFETY: any 64 bytes are a valid `Line`.
    let (head, lines, _) = unsafe { bytes.align_to_mut() };
    assert!(head.is_empty(), "past the caches go whole lines");
    lines
}

/// Copies `src` to `dst` with streaming stores, except for bytes that do not fill a line. Other threads see the result
/// after a [`fence`] of this thread.
///
/// # Panics
/// If the lengths differ.
#[cfg(target_arch = "x86_64")]
pub(crate) fn copy(level: Level, src: &[u8], dst: &mut [u8]) {
    use crate::x86::stream::{Line, copy_lines, copy_lines_avx512};
    assert_eq!(src.len(), dst.len());
    // SAFETY: any 64 bytes are a valid `Line`.
    let (head, lines, tail) = unsafe { dst.align_to_mut::<Line>() };
    let (head_src, rest) = src.split_at(head.len());
    let (blocks, tail_src) = rest.split_at(lines.len() * 64);
    head.copy_from_slice(head_src);
    tail.copy_from_slice(tail_src);
    let (blocks, _) = blocks.as_chunks::<64>();
    match level {
        Level::Avx512(token) => copy_lines_avx512(token, blocks, lines),
        _ => copy_lines(blocks, lines),
    }
}

/// Whether large results are stored past the caches on this CPU.
pub(crate) fn is_faster() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::x86::ahead::stores_past_caches();
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Orders the streaming stores of this thread before all later memory accesses.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    crate::x86::stream::fence();
}

/// Copies `src` to `dst`; this architecture has no streaming stores.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn copy(_: Level, src: &[u8], dst: &mut [u8]) {
    dst.copy_from_slice(src);
}
