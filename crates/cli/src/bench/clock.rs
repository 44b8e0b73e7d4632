//! Timing. The passes take turns, so that other work of the machine affects all of them; the fastest sample of each
//! counts.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;
use truecast_core::Layout;
use truecast_kernel::caster::MIN_BYTES_PER_THREAD;
use truecast_kernel::parallel;
use truecast_kernel::plain::{self, Plain};
use truecast_kernel::{CastError, CastOptions, Caster, Elements, ElementsMut, Level};

/// Least duration of a sample; a shorter one would mostly measure the clock. Short passes are repeated within a sample.
const MIN_SAMPLE_SECONDS: f64 = 1e-3;

/// A pass over memory, which writes to the given buffer.
pub type Pass<'a> = Box<dyn Fn(&mut [u8]) -> Result<(), CastError> + 'a>;

/// Returns a conversion.
#[must_use]
pub fn conversion<'a>(caster: &'a Caster, src: Elements<'a>) -> Pass<'a> {
    let (dtype, len) = (caster.spec().dst, src.len());
    let bytes = dtype.bytes_in(Layout::Packed, len as u64).expect("text is never planned") as usize;
    Box::new(move |dst| {
        black_box(caster.cast(src, ElementsMut::new(dtype, len, &mut dst[..bytes])?)?);
        Ok(())
    })
}

/// Returns the plain passes: each reads and writes as many bytes, `k` blocks for every `m` that it writes.
pub fn plain_passes<'a>(
    exec: &CastOptions,
    (k, m): (usize, usize),
    src: &'a [u8],
    dst_bytes: usize,
) -> impl Iterator<Item = Pass<'a>> {
    let CastOptions { level, threads, .. } = *exec;
    Plain::ALL.iter().map(move |&how| -> Pass<'a> {
        Box::new(move |dst| {
            plain_pass(level, how, (k, m), src, &mut dst[..dst_bytes], threads);
            Ok(())
        })
    })
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

/// Returns for each pass its best time, in seconds. The passes take turns, `samples` times each.
///
/// # Errors
/// The error of a pass.
pub fn best_of(samples: NonZeroUsize, all: &[Pass<'_>], dst: &mut [u8]) -> Result<Vec<f64>, CastError> {
    let mut repeats = Vec::with_capacity(all.len());
    for pass in all {
        repeats.push(repeats_of_a_sample(pass, dst)?);
    }
    let mut best = vec![f64::INFINITY; all.len()];
    for _ in 0..samples.get() {
        for ((pass, repeats), best) in all.iter().zip(&repeats).zip(&mut best) {
            *best = best.min(time(*repeats, pass, dst)?);
        }
    }
    Ok(best)
}

/// Returns how often a sample repeats the pass, after a warm-up. The first pass also fills caches and tables; if it was
/// short, a second pass is timed instead.
fn repeats_of_a_sample(pass: &Pass<'_>, dst: &mut [u8]) -> Result<u32, CastError> {
    let first = time(1, pass, dst)?;
    let once = if first < 10.0 * MIN_SAMPLE_SECONDS { time(1, pass, dst)? } else { first };
    Ok((MIN_SAMPLE_SECONDS / once.max(1e-9)).ceil() as u32)
}

/// Returns the mean time of the pass, in seconds.
fn time(repeats: u32, pass: &Pass<'_>, dst: &mut [u8]) -> Result<f64, CastError> {
    let begin = Instant::now();
    for _ in 0..repeats {
        pass(black_box(dst))?;
    }
    Ok(begin.elapsed().as_secs_f64() / repeats as f64)
}
