//! Largest magnitudes and ranges of the blocks of rows.

use super::source::{
    INF, Largest, LargestOfRows, Most, OfBf16, OfF16, Ranges, Source, ToZero, Widened, by_source, is_source,
};
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch};
use crate::scaled::rows::Rows;
use crate::scaled::values::pipeline;
use crate::stage::slot_bytes;
use std::marker::PhantomData;
use truecast_core::DType;
use truecast_core::scaled::{NonFinite, ScaledError, amax};

/// Magnitudes of the elements of each block.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The largest magnitude, as bits of f32.
    pub largest: Vec<u32>,
    /// The largest of these.
    pub most: u32,
    /// The lowest and the highest value and zero, where there are zero points.
    pub ranges: Vec<[f32; 2]>,
}

impl Found {
    /// Looks through rows, and prefetches the line `ahead` bytes after each element.
    pub fn look(&mut self, level: Level, rows: &Rows<'_>, ahead: usize, wants_ranges: bool) {
        let (block, blocks) = (rows.block, rows.n_blocks());
        self.largest.clear();
        self.largest.resize(blocks, 0);
        self.ranges.clear();
        self.ranges.resize(if wants_ranges { blocks } else { 0 }, [0.0; 2]);
        for row in 0..rows.n_rows {
            let bytes = rows.row(row);
            let done = match rows.dtype {
                DType::Bf16 => by_kernel::<OfBf16>(level, bytes, block, ahead, &mut self.largest),
                DType::F16 => by_kernel::<OfF16>(level, bytes, block, ahead, &mut self.largest),
                _ => 0,
            };
            by_source!(rows.dtype, S => {
                let src = S::elements(bytes);
                let largest = &mut self.largest[done..];
                level.run(Largest::<S> { src: &src[src.len().min(done * block)..], block, ahead, largest });
                if wants_ranges {
                    level.run(Ranges::<S> { src, block, ranges: &mut self.ranges });
                }
            });
        }
        self.most = level.run(Most { magnitudes: &self.largest });
    }

    /// As [`Found::look`] for many rows, which it may copy; without ranges. Returns the rows to read again.
    pub fn look_at_rows<'r>(
        &mut self,
        level: Level,
        rows: &Rows<'r>,
        ahead: usize,
        mut copy: Option<&'r mut Vec<u8>>,
    ) -> Rows<'r> {
        let Rows { dtype, stride, cols, block, .. } = *rows;
        let (src, row_bytes) = (rows.span(), rows.row(0).len());
        self.ranges.clear();
        self.largest.clear();
        self.largest.resize(rows.n_blocks(), 0);
        if let Some(copy) = &mut copy {
            copy.resize(rows.n_rows * row_bytes, 0);
        }
        by_source!(dtype, S => {
            let (largest, source) = (&mut self.largest[..], PhantomData);
            let copy = copy.as_deref_mut().map_or(&mut [][..], |copy| &mut copy[..]);
            level.run(LargestOfRows::<S> { src, stride, cols, block, ahead, copy, largest, source });
        });
        self.most = level.run(Most { magnitudes: &self.largest });
        match copy {
            Some(copy) => Rows { bytes: copy, stride: row_bytes, ..*rows },
            None => *rows,
        }
    }

    /// Whether every element is finite.
    pub fn is_finite(&self) -> bool {
        self.most < INF
    }
}

/// Finds the largest magnitudes of the first blocks by a kernel, if there is one; returns the number of these blocks.
fn by_kernel<S: Source<Magnitude = i16>>(
    level: Level,
    src: &[u8],
    block: usize,
    ahead: usize,
    largest: &mut [u32],
) -> usize {
    const BLOCKS: usize = 64;
    let (mut magnitudes, mut done) = ([0; BLOCKS], 0);
    for (src, largest) in src.chunks(BLOCKS.saturating_mul(2 * block)).zip(largest.chunks_mut(BLOCKS)) {
        let n = level.kernels().block_amax(block, src, ahead, &mut magnitudes[..largest.len()]);
        if n == 0 {
            break;
        }
        level.run(Widened::<S> { magnitudes: &magnitudes[..n], largest, source: PhantomData });
        done += n;
    }
    done
}

/// Elements in f32.
#[derive(Debug)]
pub(super) struct Widener {
    pub src: DType,
    level: Level,
    to_f32: Pipeline,
}

impl Widener {
    pub fn new(src: DType, level: Level) -> Result<Widener, ScaledError> {
        if !is_source(src) && src != DType::F64 {
            return Err(ScaledError::Source { dtype: src });
        }
        Ok(Widener { src, level, to_f32: pipeline(src, DType::F32, level)? })
    }

    /// Widens as many elements as there is room for.
    pub fn run(&self, src: &[u8], x: &mut [u8], scratch: &mut Scratch) {
        let len = x.len() / 4;
        let _ = self.to_f32.run_packed(src, x, len, scratch);
    }

    /// All elements of rows, without gaps. f32 elements stay as they are.
    pub fn all(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Vec<u8> {
        let mut all = vec![0; rows.n_rows * rows.cols * 4];
        for (row, x) in all.chunks_mut(rows.cols * 4).enumerate() {
            match rows.dtype {
                DType::F32 => x.copy_from_slice(rows.row(row)),
                _ => self.run(rows.row(row), x, scratch),
            }
        }
        all
    }

    /// The largest magnitude of the finite elements.
    ///
    /// # Errors
    /// Where those that are not finite are refused, the first of them; `first` is the index of the first element.
    pub fn amax(&self, nonfinite: NonFinite, src: &[u8], first: usize) -> Result<f32, ScaledError> {
        const TILE: usize = 4096;
        let (size, mut found, mut all) = (slot_bytes(self.src), Found::default(), 0);
        let mut scratch = Scratch::default();
        for (i, src) in src.chunks(TILE * size).enumerate() {
            let rows = Rows::single(self.src, src, TILE);
            if is_source(self.src) {
                found.look(self.level, &rows, ahead(), false);
            }
            if !is_source(self.src) || !found.is_finite() {
                let x = self.all(&rows, &mut scratch);
                let values: Vec<u32> = x.as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x)).collect();
                found.largest = vec![amax(nonfinite, &values).map_err(|error| later(error, first + i * TILE))?];
            }
            all = all.max(found.largest[0]);
        }
        Ok(f32::from_bits(all))
    }

    /// Makes NaN zero in place, or with `infinities` every element that is not finite.
    pub fn to_zero(&self, infinities: bool, x: &mut [u8]) {
        let x = x.as_chunks_mut().0;
        if infinities {
            self.level.run(ToZero::<true> { x });
        } else {
            self.level.run(ToZero::<false> { x });
        }
    }
}

/// Distance in bytes from an element that is only read to the line prefetched with it.
pub(super) fn ahead() -> usize {
    #[cfg(target_arch = "x86_64")]
    return crate::x86::AHEAD;
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// The error of an element, with `first` added to its index.
pub(super) fn later(error: ScaledError, first: usize) -> ScaledError {
    match error {
        ScaledError::NotFinite { index } => ScaledError::NotFinite { index: index + first as u64 },
        error => error,
    }
}
