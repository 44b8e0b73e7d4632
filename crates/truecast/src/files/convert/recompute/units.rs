//! Division of a quantized tensor, or of a sample of its blocks, into units of recomputation.

use crate::files::scan::Stretch;
use std::ops::Range;
use truecast_core::scaled::Layout;

const UNIT: u64 = 1 << 16;

/// Unit of recomputation. It has blocks of one block row, or several whole block rows. If a matrix has one scale, a
/// unit has rows of elements.
pub(crate) struct Unit {
    pub matrix: u64,
    pub rows: Range<u64>,
    pub cols: Range<u64>,
}

impl Unit {
    /// Number of elements without padding.
    pub fn kept(&self, [rows, cols]: [u64; 2]) -> u64 {
        let len = |of: &Range<u64>, kept: u64| of.end.min(kept).saturating_sub(of.start);
        len(&self.rows, rows) * len(&self.cols, cols)
    }
}

/// Divides a range of elements into units of blocks `[rows, cols]`. A sample is extended to whole blocks. A range that
/// ends with the tensor includes the last block.
pub(crate) fn units(layout: &Layout, [rows, cols]: [u64; 2], stretch: &Stretch) -> impl Iterator<Item = Unit> + use<> {
    let layout = *layout;
    let [kept_rows, kept_cols] = layout.kept;
    let (rows, cols) = (rows.min(layout.rows), cols.min(layout.cols));
    let (down, across) = (layout.rows.div_ceil(rows), layout.cols.div_ceil(cols));
    let all_blocks = layout.matrices * down * across;
    let is_whole = stretch.first == 0 && stretch.len == layout.elements();
    let mut block = 0;
    let mut end = all_blocks;
    if !is_whole {
        let blocks = stretch.len.div_ceil(rows * cols);
        let (matrix, within) = (stretch.first / (kept_rows * kept_cols), stretch.first % (kept_rows * kept_cols));
        block = (matrix * down + within / kept_cols / rows) * across + within % kept_cols / cols;
        if stretch.first + stretch.len == layout.elements() {
            block = all_blocks.saturating_sub(blocks);
        }
        end = (block + blocks).min(all_blocks);
    }
    let together = (UNIT / (rows * layout.cols).max(1)).max(1);
    std::iter::from_fn(move || {
        let (row, from) = (block / across, block % across);
        let (matrix, of_matrix) = (row / down, row % down);
        let whole = (end - block) / across;
        let (now, n_rows) = match from {
            0 if whole > 0 => (across, whole.min(together).min(down - of_matrix)),
            _ => ((across - from).min(end - block), 1),
        };
        let unit = Unit {
            matrix,
            rows: of_matrix * rows..((of_matrix + n_rows) * rows).min(layout.rows),
            cols: from * cols..((from + now) * cols).min(layout.cols),
        };
        block += now * n_rows;
        (now > 0).then_some(unit)
    })
}
