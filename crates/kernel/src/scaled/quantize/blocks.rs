//! Blocks of a strip, with the results that each step of the plan adds.

use super::source::{F32, INF, Largest, LargestOfRows, Most, OfBf16, OfF16, Ranges, Source, Widened, by_source, how};
use crate::level::Level;
use crate::pipeline::Scratch;
use crate::scaled::rows::Rows;
use crate::scaled::threshold_table::Steps;
use std::marker::PhantomData;
use truecast_core::DType;

#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Largest magnitude of each block, as f32 bits.
    pub amax: Vec<u32>,
    /// Largest magnitude of all blocks, as f32 bits.
    pub most: u32,
    pub is_finite: bool,
    /// Lowest and highest value of each block. The range includes zero. Empty if the layout has no zero points.
    pub ranges: Vec<[f32; 2]>,
    /// Codes of the scales.
    pub stored: Vec<u8>,
    /// Global scale; 1 without global scale.
    pub global: f32,
    /// Operation on the elements, one of [`how`].
    pub how: u8,
    /// First operand of each block: the divisor, or the inverse of the divisor for [`how::TIMES`].
    pub t: Vec<F32>,
    /// Second operand of each block: the zero point, or the inverse of the divisor.
    pub u: Vec<F32>,
    /// Effective scale of each block; used only for counting.
    pub multipliers: Vec<F32>,
    /// Quotients of a tile, and codes of a tile.
    pub tile: [Vec<u8>; 2],
    pub tables: Tables,
    pub scales: ScaleBuffers,
    pub scratch: Scratch,
}

#[derive(Debug, Default)]
pub(super) struct ScaleBuffers {
    pub wanted: Vec<F32>,
    pub bytes: Vec<u8>,
    pub scratch: Scratch,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub steps: Vec<Steps>,
    /// First bf16 bits of each block's table. Three extra entries follow the last block.
    pub firsts: Vec<u16>,
    /// Index of each block's table. Three extra entries follow the last block. Empty if all blocks have the first
    /// table.
    pub indices: Vec<u8>,
    /// Table of each code of a one-byte scale: first bits in bits 0 to 15, table index from bit 16. Bit 24 marks a code
    /// without a table.
    pub by_code: Option<Box<[u32; 256]>>,
}

impl Blocks {
    /// Zero points; empty without zero points.
    pub fn zeros(&self) -> &[F32] {
        if self.how == how::DIVIDE_ADD { &self.u } else { &[] }
    }

    pub fn operands(&self) -> [&[F32]; 2] {
        [&self.t, if self.u.is_empty() { &self.t } else { &self.u }]
    }

    /// Finds the largest magnitude of each block, and the range if `wants_ranges`. Prefetches the line `ahead` bytes
    /// after each element. Returns the rows for the next step. Rows with gaps are copied to `copy`, because rows at
    /// distances of a power of two would compete for cache sets.
    pub fn find<'r>(
        &mut self,
        level: Level,
        rows: Rows<'r>,
        ahead: usize,
        wants_ranges: bool,
        copy: &'r mut Vec<u8>,
    ) -> Rows<'r> {
        let Rows { dtype, stride, cols, n_rows, block, .. } = rows;
        let (src, row_bytes) = (rows.span(), rows.row(0).len());
        self.amax.clear();
        self.amax.resize(rows.n_blocks(), 0);
        let has_gaps = n_rows > 1 && stride > row_bytes;
        copy.resize(if has_gaps { n_rows * row_bytes } else { 0 }, 0);
        let done = match dtype {
            DType::Bf16 if n_rows == 1 => by_kernel::<OfBf16>(level, src, block, ahead, &mut self.amax),
            DType::F16 if n_rows == 1 => by_kernel::<OfF16>(level, src, block, ahead, &mut self.amax),
            _ => 0,
        };
        self.ranges.clear();
        self.ranges.resize(if wants_ranges { self.amax.len() } else { 0 }, [0.0; 2]);
        by_source!(dtype, S => {
            let largest = &mut self.amax[done..];
            if n_rows == 1 {
                let src = S::elements(src);
                level.run(Largest::<S> { src: &src[src.len().min(done * block)..], block, ahead, largest });
            } else {
                let ahead = if has_gaps { ahead } else { 0 };
                level.run(LargestOfRows::<S> { src, stride, cols, block, ahead, copy, largest, source: PhantomData });
            }
            for row in 0..if wants_ranges { n_rows } else { 0 } {
                level.run(Ranges::<S> { src: S::elements(rows.row(row)), block, ranges: &mut self.ranges });
            }
        });
        self.most = level.run(Most { magnitudes: &self.amax });
        self.is_finite = self.most < INF;
        if has_gaps { Rows { bytes: copy, stride: row_bytes, ..rows } } else { rows }
    }
}

/// Finds the largest magnitudes of the first blocks by a kernel; returns the number of blocks done.
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
