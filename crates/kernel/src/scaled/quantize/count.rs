//! Counting of elements and blocks in a strip.

use super::blocks::Blocks;
use super::counts::{Block, BlockCounts, Counter, Fields};
use super::plan::BlockPlan;
use super::source::{Source, ZeroElements, by_source};
use crate::scaled::rows::{CodesMut, Rows};
use crate::stage::slot_bytes;
use std::ops::Range;
use truecast_core::DType;

impl BlockPlan {
    /// Counts blocks and codes of rows. The first block begins at row and column `at`.
    pub fn count(
        &self,
        at: [u64; 2],
        rows: &Rows<'_>,
        codes: &CodesMut<'_>,
        blocks: &mut Blocks,
        counts: &mut BlockCounts,
    ) {
        let Some(counter) = &self.counter else { return };
        self.scale.multipliers(blocks);
        let fields = Fields::new(self.planes.codes, self.bits());
        let bytes = codes.bytes.chunks(codes.stride);
        bytes.for_each(|row| counter.small_codes(fields, &row[..fields.bytes(rows.cols)], rows.cols, counts));
        let is_cut = self.layout.kept != [self.layout.rows, self.layout.cols];
        counts.needs_values |= !blocks.is_finite || self.has_zero_points() || is_cut;
        let code = |row: usize, col: usize| fields.get(&codes.bytes[row * codes.stride..], col);
        let row_elements = rows.stride / slot_bytes(rows.dtype);
        let index = |row: usize, col: usize| row * row_elements + col;
        match rows.dtype {
            DType::F64 => {
                let x = rows.bytes.as_chunks().0;
                counts.needs_values = true;
                let x = |row, col| f64::from_le_bytes(x[index(row, col)]);
                self.count_blocks(counter, at, rows, blocks, x, code, |_, _, _| true, counts);
            }
            dtype => by_source!(dtype, S => {
                let all = S::elements(rows.bytes);
                let zeros = |i: usize| self.level().run(ZeroElements::<S> { x: &all[index(i, 0)..][..rows.cols] });
                counts.zero_in += (0..rows.n_rows).map(zeros).sum::<u64>();
                let above = |row, cols: Range<usize>, limit| {
                    S::any_above(&all[index(row, cols.start)..index(row, cols.end)], limit)
                };
                let x = |row, col| S::value(all[index(row, col)]).into();
                self.count_blocks(counter, at, rows, blocks, x, code, above, counts);
            }),
        }
    }

    /// Counts blocks. `x` and `code` return the element at a row and column, and its code. `above` tests whether a
    /// range of columns exceeds a limit.
    #[allow(clippy::too_many_arguments)]
    fn count_blocks(
        &self,
        counter: &Counter,
        [row, col]: [u64; 2],
        rows: &Rows<'_>,
        blocks: &Blocks,
        x: impl Fn(usize, usize) -> f64,
        code: impl Fn(usize, usize) -> u8,
        above: impl Fn(usize, Range<usize>, f32) -> bool,
        counts: &mut BlockCounts,
    ) {
        let (layout, zeros, half) = (&self.layout, blocks.zeros(), self.encode.half());
        let has_one_scale = self.has_one_scale();
        for (i, stored) in blocks.stored.chunks_exact(self.scale.size()).enumerate() {
            // Joined rows are adjacent.
            let at = col + (i * rows.block) as u64;
            let (block_row, block_col) = (row + at / layout.cols, at % layout.cols);
            if block_row >= layout.kept[0] || block_col >= layout.kept[1] {
                continue;
            }
            let scale = f32::from_le_bytes(blocks.multipliers[i]);
            counts.needs_values |= !counter.is_usual(scale);
            let first = i * rows.block;
            let len = rows.block.min(rows.cols - first).min((layout.kept[1] - block_col) as usize);
            let largest = if has_one_scale { blocks.most } else { blocks.amax[i] };
            let block = Block {
                rows: 0..rows.n_rows.min((layout.kept[0] - block_row) as usize),
                cols: first..first + len,
                x: &x,
                code: &code,
                stored,
                scale,
                minus: zeros.get(i).map_or(0.0, |zero| f32::from_le_bytes(*zero) + half),
                largest: if blocks.is_finite { f32::from_bits(largest) } else { f32::NAN },
                above: &above,
            };
            if has_one_scale {
                counter.rows_of_block(&block, row == 0, counts);
            } else {
                counter.block(&block, counts);
            }
        }
    }
}
