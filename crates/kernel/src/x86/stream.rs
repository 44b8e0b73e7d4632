use super::{Block, load};
use crate::level::Avx512;
use std::arch::x86_64::*;

/// A cache line that is written as a whole.
#[repr(align(64))]
pub(crate) struct Line([__m128i; 4]);

/// Copies blocks to lines past the caches, until the shorter slice ends.
pub(crate) fn copy_lines_avx512(_: Avx512, blocks: &[Block], lines: &mut [Line]) {
    #[target_feature(enable = "avx512f")]
    fn copy(blocks: &[Block], lines: &mut [Line]) {
        for (line, block) in lines.iter_mut().zip(blocks) {
            // SAFETY: a `Line` is 64 writable bytes, aligned to 64.
            unsafe { _mm512_stream_si512((line as *mut Line).cast(), load(block)) };
        }
    }
    // SAFETY: the token proves that the feature was detected.
    unsafe { copy(blocks, lines) };
}

impl Line {
    /// Writes the line past the caches, with instructions that every x86-64 CPU has.
    #[inline(always)]
    pub fn stream(&mut self, block: &Block) {
        for (quarter, bytes) in self.0.iter_mut().zip(block.as_chunks::<16>().0) {
            // SAFETY: `bytes` is 16 readable bytes, and the load needs no alignment; `quarter` is writable and aligned.
            unsafe { _mm_stream_si128(quarter, _mm_loadu_si128(bytes.as_ptr().cast())) };
        }
    }
}

/// Does the work of [`copy_lines_avx512`] with instructions that every x86-64 CPU has.
pub(crate) fn copy_lines(blocks: &[Block], lines: &mut [Line]) {
    lines.iter_mut().zip(blocks).for_each(|(line, block)| line.stream(block));
}

/// Orders the streaming stores of this thread before all of its later stores.
pub(crate) fn fence() {
    // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
    unsafe { _mm_sfence() };
}
