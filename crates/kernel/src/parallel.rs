//! Work cut into pieces: on the current rayon pool with the feature `parallel`, one after the other without it.
//!
//! Results come in the order of the pieces, so that nothing depends on threads. What a piece is, the caller decides.

use std::num::NonZeroUsize;
use std::ops::Range;

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// A thread gets at least this much (`docs/kernels.md §8`).
pub const MIN_BYTES_PER_THREAD: usize = 1 << 20;

/// A source and a destination in pieces of so many bytes, in order.
pub(crate) struct Pieces<'a> {
    pub src: &'a [u8],
    pub dst: &'a mut [u8],
    pub src_bytes: usize,
    pub dst_bytes: usize,
}

/// Maps the pieces. `work` makes what one thread needs. Every piece before the first failure is done; with several threads
/// others may be.
pub(crate) fn map_pieces<W, R: Send, E: Send>(
    threads: NonZeroUsize,
    pieces: Pieces<'_>,
    work: impl Fn() -> W + Sync + Send,
    piece: impl Fn(&mut W, usize, &[u8], &mut [u8]) -> Result<R, E> + Sync + Send,
) -> Result<Vec<R>, E> {
    let Pieces { src, dst, src_bytes, dst_bytes } = pieces;
    #[cfg(feature = "parallel")]
    if threads.get() > 1 && src.len() > src_bytes {
        let pieces = src.par_chunks(src_bytes).zip(dst.par_chunks_mut(dst_bytes)).enumerate();
        // Collected before looking for errors, so that the first one is told.
        let all: Vec<_> = pieces.map_init(work, |work, (i, (src, dst))| piece(work, i, src, dst)).collect();
        return all.into_iter().collect();
    }
    let _ = threads;
    let mut work = work();
    let pieces = src.chunks(src_bytes).zip(dst.chunks_mut(dst_bytes)).enumerate();
    pieces.map(|(i, (src, dst))| piece(&mut work, i, src, dst)).collect()
}

/// Maps numbers. `work` makes what one thread needs.
pub(crate) fn map_range<W, R: Send>(
    threads: NonZeroUsize,
    range: Range<usize>,
    work: impl Fn() -> W + Sync + Send,
    one: impl Fn(&mut W, usize) -> R + Sync + Send,
) -> Vec<R> {
    #[cfg(feature = "parallel")]
    if threads.get() > 1 {
        return range.into_par_iter().map_init(work, one).collect();
    }
    let _ = threads;
    let mut work = work();
    range.map(|i| one(&mut work, i)).collect()
}
