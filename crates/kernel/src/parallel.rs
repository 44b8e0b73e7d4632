//! Work in pieces: on the current rayon pool with the feature `parallel`, else sequential.
//!
//! Results are in the order of the pieces, so nothing depends on threads.

use std::num::NonZeroUsize;
use std::ops::Range;

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Minimum number of bytes per thread (`docs/kernels.md §8`).
pub const MIN_BYTES_PER_THREAD: usize = 1 << 20;

pub(crate) struct Pieces<'a> {
    pub src: &'a [u8],
    pub dst: &'a mut [u8],
    pub src_bytes: usize,
    pub dst_bytes: usize,
}

/// Maps the pieces. `work` makes the buffers of one thread. Every piece before the first failure is done; with several
/// threads, later pieces may be done, too.
/// Fewer than [`MIN_BYTES_PER_THREAD`] bytes stay on the caller's thread.
pub(crate) fn map_pieces<W, R: Send, E: Send>(
    threads: NonZeroUsize,
    pieces: Pieces<'_>,
    work: impl Fn() -> W + Sync + Send,
    piece: impl Fn(&mut W, usize, &[u8], &mut [u8]) -> Result<R, E> + Sync + Send,
) -> Result<Vec<R>, E> {
    let Pieces { src, dst, src_bytes, dst_bytes } = pieces;
    #[cfg(feature = "parallel")]
    if threads.get() > 1 && src.len() > src_bytes && src.len().max(dst.len()) >= MIN_BYTES_PER_THREAD {
        let pieces = src.par_chunks(src_bytes).zip(dst.par_chunks_mut(dst_bytes)).enumerate();
        // Collects all results first, so that the first error is returned.
        let all: Vec<_> = pieces.map_init(work, |work, (i, (src, dst))| piece(work, i, src, dst)).collect();
        return all.into_iter().collect();
    }
    let _ = threads;
    let mut work = work();
    let pieces = src.chunks(src_bytes).zip(dst.chunks_mut(dst_bytes)).enumerate();
    pieces.map(|(i, (src, dst))| piece(&mut work, i, src, dst)).collect()
}

/// Maps the numbers of a range. `work` makes the buffers of one thread.
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

/// Calls `work` with every number below `count`, in any order, on the current rayon pool. Each call of `work` costs an
/// indirect call and a lock, because the loop is compiled once for all closures.
#[cfg(feature = "parallel")]
pub fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

/// Maps the numbers below `count`. Results are in ascending order of numbers.
#[cfg(feature = "parallel")]
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let places: Vec<std::sync::Mutex<Option<T>>> = (0..count).map(|_| std::sync::Mutex::new(None)).collect();
    each(count, &|at| {
        let made = work(at);
        *places[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(made);
    });
    let made =
        |place: std::sync::Mutex<Option<T>>| place.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    places.into_iter().map(|place| made(place).expect("every number was mapped")).collect()
}

/// Maps each item once. Results are in the order of items.
#[cfg(feature = "parallel")]
pub fn map_each<I: Send, T: Send>(items: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let items: Vec<std::sync::Mutex<Option<I>>> =
        items.into_iter().map(|item| std::sync::Mutex::new(Some(item))).collect();
    map(items.len(), |at| {
        let item = items[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        work(item.expect("every item is mapped once"))
    })
}

#[cfg(all(test, feature = "parallel"))]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        assert_eq!(map(1000, |i| i * i), (0..1000).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(map(0, |i| i), []);
        let mut bytes = [0u8; 100];
        let sums = map_each(bytes.chunks_mut(7).enumerate().collect(), |(at, chunk)| {
            chunk.fill(at as u8);
            chunk.len()
        });
        assert_eq!((sums.len(), sums.iter().sum::<usize>()), (15, 100));
        assert!(bytes.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i / 7));
    }
}
