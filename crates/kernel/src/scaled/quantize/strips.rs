//! Division of rows into strips, which stay in a cache between the steps of a plan.

use super::plan::{BlockPlan, Strip};
use crate::caches::Caches;
use crate::scaled::rows::{NextRows, Rows};
use crate::stage::slot_bytes;
use std::ops::Range;
use truecast_core::scaled::{Packing, Search};

/// Short rows are joined into longer rows of about this many bytes.
const JOINED: usize = 64 << 10;

impl BlockPlan {
    pub fn strips<'a>(&self, rows: Range<u64>, src: &'a [u8]) -> Vec<Strip<'a>> {
        let [block_rows, block_cols] = self.planes.scales.block;
        let (size, cols) = (slot_bytes(self.load.src), self.layout.cols as usize);
        let block = usize::try_from(block_cols).unwrap_or(usize::MAX).min(cols);
        let caches = Caches::of_this_machine();
        let budget = (caches.l2 / 4) as usize;
        // Several rows are read in place if the last-level cache can hold the rows.
        let whole_rows = if self.how.search == Search::Formula { (caches.llc / 16) as usize } else { 0 };
        let rows_of_bytes = |bytes: usize| (bytes / (cols * size)).max(1) as u64;
        let joins = self.joins_rows();
        let step = match block_rows {
            _ if self.has_one_scale() => rows_of_bytes(budget),
            1 if joins => rows_of_bytes(JOINED),
            rows => rows,
        };
        let (mut strips, mut row) = (Vec::new(), rows.start);
        while row < rows.end {
            let end = rows.end.min(row.saturating_add(step));
            let (src, n) = (&src[(row - rows.start) as usize * cols * size..], (end - row) as usize);
            let (n_rows, cols) = if joins { (1, n * cols) } else { (n, cols) };
            // A single row stays in a cache.
            let is_whole = n_rows == 1 || n_rows * cols * size <= whole_rows;
            let blocks = (budget / (n_rows * size).saturating_mul(block)).max(1);
            let width = if is_whole { cols } else { blocks.saturating_mul(block).min(cols) };
            for col in (0..cols).step_by(width) {
                let (dtype, stride, bytes) = (self.load.src, cols * size, &src[col * size..n_rows * cols * size]);
                let next = if col + width < cols { col + width } else { n_rows * cols };
                // The CPU prefetches the lines after whole rows.
                let next = if n_rows > 1 && width == cols { &[] } else { &src[next * size..] };
                strips.push(Strip {
                    at: [row, col as u64],
                    rows: Rows { dtype, bytes, stride, cols: width.min(cols - col), n_rows, block },
                    next: NextRows { bytes: next, stride },
                });
            }
            row = end;
        }
        strips
    }

    /// Whether rows may be joined to one row: no block crosses rows, and results have no gaps.
    fn joins_rows(&self) -> bool {
        let (planes, cols) = (&self.planes, self.layout.cols);
        let bits = cols * u64::from(planes.codes.code.bits());
        let is_whole = match planes.codes.packing {
            Packing::BYTES => bits.is_multiple_of(8),
            Packing::Rows { .. } => bits.is_multiple_of(32),
            Packing::HighFirst => cols.is_multiple_of(2),
            _ => false,
        };
        let [rows, block] = planes.scales.block;
        let has_whole_blocks = rows == 1 && cols.is_multiple_of(block.min(cols));
        has_whole_blocks && is_whole && !self.has_zero_points() && planes.scales.plane.packing == Packing::BYTES
    }
}
