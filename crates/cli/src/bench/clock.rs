//! Timing. The contenders take turns, so that other work of the machine affects all of them; the fastest sample of each
//! contender counts.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;
use truecast_core::{DType, Layout};
use truecast_kernel::caster::MIN_BYTES_PER_THREAD;
use truecast_kernel::parallel;
use truecast_kernel::plain::{self, Plain};
use truecast_kernel::{CastError, Caster, Elements, ElementsMut, Level};

/// Least duration of a sample; a shorter one would mostly measure the clock. Short passes are repeated within a sample.
const MIN_SAMPLE_SECONDS: f64 = 1e-3;

/// A pass over memory, from one buffer to another.
pub(super) enum Contender<'a> {
    /// [`memcpy`].
    Memcpy { src: &'a [u8], threads: NonZeroUsize },
    /// [`plain_pass`].
    Plain { how: Plain, shape: (usize, usize), src: &'a [u8], dst_bytes: usize, level: Level, threads: NonZeroUsize },
    /// A conversion.
    Cast { caster: &'a Caster, src: Elements<'a> },
    /// A function that writes the destination buffer.
    Other(&'a dyn Fn(&mut [u8])),
}

impl Contender<'_> {
    fn pass(&self, dst: &mut [u8]) -> Result<(), CastError> {
        match self {
            Contender::Memcpy { src, threads } => memcpy(src, &mut dst[..src.len()], *threads),
            Contender::Plain { how, shape, src, dst_bytes, level, threads } => {
                plain_pass(*level, *how, *shape, src, &mut dst[..*dst_bytes], *threads);
            }
            Contender::Cast { caster, src } => {
                let dtype: DType = caster.spec().dst;
                let bytes = dtype.bytes_in(Layout::Packed, src.len() as u64).expect("text is never planned") as usize;
                black_box(caster.cast(*src, ElementsMut::new(dtype, src.len(), &mut dst[..bytes])?)?);
            }
            Contender::Other(run) => run(black_box(dst)),
        }
        Ok(())
    }
}

/// Copies bytes in one contiguous piece per thread. No piece is smaller than the pieces of a conversion
/// ([`MIN_BYTES_PER_THREAD`]). Several pieces are copied on the current rayon pool.
///
/// # Panics
/// If the lengths differ.
pub fn memcpy(src: &[u8], dst: &mut [u8], threads: NonZeroUsize) {
    let (src, dst) = black_box((src, dst));
    let piece = src.len().div_ceil(threads.get()).max(MIN_BYTES_PER_THREAD);
    if piece >= src.len() {
        dst.copy_from_slice(src);
    } else {
        let pieces = dst.chunks_mut(piece).zip(src.chunks(piece));
        parallel::map_each(pieces.collect(), |(d, s)| d.copy_from_slice(s));
    }
}

/// Runs [`plain::pass`] on one contiguous piece per thread. No piece is smaller than the pieces of a conversion.
fn plain_pass(level: Level, how: Plain, (k, m): (usize, usize), src: &[u8], dst: &mut [u8], threads: NonZeroUsize) {
    let (src, dst) = black_box((src, dst));
    let groups = (src.len() / (64 * k)).min(dst.len() / (64 * m));
    let piece = groups.div_ceil(threads.get()).max(MIN_BYTES_PER_THREAD / (64 * k)).max(1);
    if piece >= groups {
        plain::pass(level, how, (k, m), src, dst);
    } else {
        let pieces = dst.chunks_mut(piece * 64 * m).zip(src.chunks(piece * 64 * k));
        parallel::map_each(pieces.collect(), |(d, s)| plain::pass(level, how, (k, m), s, d));
    }
}

/// Returns for each contender the best time of one pass, in seconds. The contenders take turns, `samples` times each.
pub(super) fn best_of(samples: NonZeroUsize, all: &[Contender<'_>], dst: &mut [u8]) -> Result<Vec<f64>, CastError> {
    let mut passes = Vec::with_capacity(all.len());
    for contender in all {
        passes.push(passes_of_a_sample(contender, dst)?);
    }
    let mut best = vec![f64::INFINITY; all.len()];
    for _ in 0..samples.get() {
        for ((contender, passes), best) in all.iter().zip(&passes).zip(&mut best) {
            *best = best.min(time(*passes, contender, dst)?);
        }
    }
    Ok(best)
}

/// Returns the number of passes in a sample, after a warm-up. The first pass also fills caches and tables; if it was
/// short, a second pass is timed instead.
fn passes_of_a_sample(contender: &Contender<'_>, dst: &mut [u8]) -> Result<u32, CastError> {
    let first = time(1, contender, dst)?;
    let once = if first < 10.0 * MIN_SAMPLE_SECONDS { time(1, contender, dst)? } else { first };
    Ok((MIN_SAMPLE_SECONDS / once.max(1e-9)).ceil() as u32)
}

/// Returns the mean time of `passes` passes, in seconds.
fn time(passes: u32, contender: &Contender<'_>, dst: &mut [u8]) -> Result<f64, CastError> {
    let begin = Instant::now();
    for _ in 0..passes {
        contender.pass(dst)?;
    }
    Ok(begin.elapsed().as_secs_f64() / passes as f64)
}
