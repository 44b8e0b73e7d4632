//! Stores that go past the caches (`docs/kernels.md §8`): for results that would push everything else out of them, and
//! whose lines would be read only to be overwritten.

/// Copies `src` to `dst` with streaming stores, but for what does not fill a 64-byte line. Other threads see the result
/// after a [`fence`] of this one.
///
/// # Panics
/// If the lengths differ.
#[cfg(target_arch = "x86_64")]
pub(crate) fn copy(src: &[u8], dst: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    #[repr(align(64))]
    struct Line([__m128i; 4]);
    assert_eq!(src.len(), dst.len());
    // SAFETY: any 64 bytes are a valid `Line`.
    let (head, lines, tail) = unsafe { dst.align_to_mut::<Line>() };
    let (head_src, rest) = src.split_at(head.len());
    let (blocks, tail_src) = rest.split_at(lines.len() * 64);
    head.copy_from_slice(head_src);
    tail.copy_from_slice(tail_src);
    for (line, block) in lines.iter_mut().zip(blocks.as_chunks::<64>().0) {
        for (quarter, bytes) in line.0.iter_mut().zip(block.as_chunks::<16>().0) {
            // SAFETY: `bytes` is 16 readable bytes, the load needs no alignment; `quarter` is writable and aligned.
            unsafe { _mm_stream_si128(quarter, _mm_loadu_si128(bytes.as_ptr().cast())) };
        }
    }
}

/// Streaming stores of this thread come before whatever follows.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fence() {
    // SAFETY: every x86-64 CPU has the instruction; it touches no memory of its own.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// A plain copy: this architecture has no streaming stores here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn copy(src: &[u8], dst: &mut [u8]) {
    dst.copy_from_slice(src);
}

/// Nothing to wait for.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn fence() {}
