//! Timing: contenders take turns, so that what else the machine does hits all of them, and the fastest sample of each
//! counts.

use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use truecast_core::{DType, Layout};
use truecast_kernel::caster::MIN_BYTES_PER_THREAD;
use truecast_kernel::{CastError, Caster, Codes, CodesMut};

/// A sample is at least this long: shorter ones are mostly clock. Short passes are repeated.
const MIN_SAMPLE: Duration = Duration::from_millis(1);

/// Something that reads one buffer and writes another.
pub(super) enum Contender<'a> {
    /// Copies bytes, in as many contiguous pieces as there are threads, none smaller than a conversion would make them.
    Memcpy { src: &'a [u8], threads: NonZeroUsize },
    /// Converts.
    Cast { caster: &'a Caster, src: Codes<'a> },
}

impl Contender<'_> {
    fn pass(&self, dst: &mut [u8]) -> Result<(), CastError> {
        match self {
            Contender::Memcpy { src, threads } => {
                let dst = &mut black_box(&mut *dst)[..src.len()];
                let piece = src.len().div_ceil(threads.get()).max(MIN_BYTES_PER_THREAD);
                if piece >= src.len() {
                    dst.copy_from_slice(src);
                } else {
                    dst.par_chunks_mut(piece).zip(src.par_chunks(piece)).for_each(|(d, s)| d.copy_from_slice(s));
                }
            }
            Contender::Cast { caster, src } => {
                let dtype: DType = caster.spec().dst;
                let bytes = dtype.bytes_in(Layout::Packed, src.len() as u64).expect("text is never planned") as usize;
                black_box(caster.cast(*src, CodesMut::new(dtype, src.len(), &mut dst[..bytes])?)?);
            }
        }
        Ok(())
    }
}

/// The best time of one pass of each contender, in seconds, of `samples` samples that they take in turns.
pub(super) fn best_of(samples: NonZeroUsize, all: &[Contender<'_>], dst: &mut [u8]) -> Result<Vec<f64>, CastError> {
    let mut passes = Vec::with_capacity(all.len());
    for contender in all {
        contender.pass(dst)?; // fills tables and caches
        let once = time(1, contender, dst)?;
        passes.push((MIN_SAMPLE.as_secs_f64() / once.max(1e-9)).ceil().max(1.0) as u32);
    }
    let mut best = vec![f64::INFINITY; all.len()];
    for _ in 0..samples.get() {
        for ((contender, passes), best) in all.iter().zip(&passes).zip(&mut best) {
            *best = best.min(time(*passes, contender, dst)?);
        }
    }
    Ok(best)
}

/// Seconds of one pass, the mean of several.
fn time(passes: u32, contender: &Contender<'_>, dst: &mut [u8]) -> Result<f64, CastError> {
    let begin = Instant::now();
    for _ in 0..passes {
        contender.pass(dst)?;
    }
    Ok(begin.elapsed().as_secs_f64() / passes as f64)
}
