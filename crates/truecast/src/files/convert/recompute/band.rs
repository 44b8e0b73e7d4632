//! Bands: rectangles of a quantized tensor, or of a sample of its blocks, that are recomputed one at a time.
//!
//! Three indices occur: *local* in the band, row by row; of an element of the tensor, which has no padding; of an entry
//! of a stored plane.

use crate::files::convert::recompute::source::SourceValues;
use crate::files::error::Error;
use crate::files::scan::Stretch;
use std::ops::Range;
use truecast_core::scaled::Layout;

/// Largest band with several block rows, in elements.
const BAND: u64 = 1 << 16;

/// Rows and columns of a stored matrix. A band has blocks of one block row, or several whole block rows. If a matrix has
/// one scale, a band has rows of elements.
pub(crate) struct Band {
    layout: Layout,
    pub matrix: u64,
    pub rows: Range<u64>,
    pub cols: Range<u64>,
}

/// The part of a scale block that is in a band.
pub(crate) struct GridBlock {
    /// Index of the block's entry in the grid of scales.
    pub entry: u64,
    /// Local rows and columns.
    pub rows: Range<usize>,
    pub cols: Range<usize>,
    /// Number of elements without padding.
    pub kept: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Position {
    /// Index of an element of the tensor.
    Kept(u64),
    /// Index of an entry of the stored codes.
    Padding(u64),
}

impl Band {
    pub fn width(&self) -> usize {
        (self.cols.end - self.cols.start) as usize
    }

    pub fn position(&self, local: usize) -> Position {
        let Layout { rows, cols, kept: [kept_rows, kept_cols], .. } = self.layout;
        let (row, col) = (local / self.width(), local % self.width());
        let (row, col) = (self.rows.start + row as u64, self.cols.start + col as u64);
        if row < kept_rows && col < kept_cols {
            Position::Kept((self.matrix * kept_rows + row) * kept_cols + col)
        } else {
            Position::Padding((self.matrix * rows + row) * cols + col)
        }
    }

    /// Reads the values as f32 bits, row by row. Padding is 0.
    pub fn values(&self, source: &SourceValues<'_>) -> Result<Vec<u32>, Error> {
        let ([kept_rows, kept_cols], width) = (self.layout.kept, self.width());
        let cols = self.cols.start.min(kept_cols)..self.cols.end.min(kept_cols);
        let is_contiguous = cols == (0..kept_cols) && width as u64 == kept_cols;
        let rows_per_read = if is_contiguous { self.rows.end - self.rows.start } else { 1 };
        let mut all: Vec<u32> = Vec::new();
        for row in (self.rows.start..self.rows.end.min(kept_rows)).step_by(rows_per_read as usize) {
            let first = (self.matrix * kept_rows + row) * kept_cols;
            let last = first + (rows_per_read.min(kept_rows - row) - 1) * kept_cols;
            let values = source.read(first + cols.start..last + cols.end)?;
            if all.is_empty() {
                all = values;
            } else {
                all.extend(values);
            }
            all.resize(all.len().next_multiple_of(width), 0);
        }
        all.resize((self.rows.end - self.rows.start) as usize * width, 0);
        Ok(all)
    }

    /// Rows and columns of the grid of blocks `[rows, cols]`.
    pub fn grid(&self, [rows, cols]: [u64; 2]) -> [Range<u64>; 2] {
        let grid = |range: &Range<u64>, size| range.start / size..range.end.div_ceil(size);
        [grid(&self.rows, rows), grid(&self.cols, cols)]
    }

    /// Blocks `[rows, cols]` in the order of the grid.
    pub fn blocks(&self, block: [u64; 2]) -> impl Iterator<Item = GridBlock> {
        let ([grid_rows, grid_cols], [all_rows, all_cols]) = (self.grid(block), self.layout.grid(block));
        let entries = move |row| grid_cols.clone().map(move |col| (row, col));
        grid_rows.flat_map(entries).map(move |(row, col)| {
            let (rows, cols) = (clip(&self.rows, row, block[0]), clip(&self.cols, col, block[1]));
            let kept = kept(&rows, self.layout.kept[0]) * kept(&cols, self.layout.kept[1]);
            let entry = (self.matrix * all_rows + row) * all_cols + col;
            GridBlock { entry, rows: local(&rows, &self.rows), cols: local(&cols, &self.cols), kept }
        })
    }
}

impl GridBlock {
    /// Local indices of the entries, row by row.
    pub fn entries(&self, band: &Band) -> Vec<usize> {
        let width = band.width();
        self.rows.clone().flat_map(|row| self.cols.clone().map(move |col| row * width + col)).collect()
    }
}

/// Rows or columns of a block that are in a range.
fn clip(range: &Range<u64>, block: u64, size: u64) -> Range<u64> {
    (block * size).max(range.start)..(block + 1).saturating_mul(size).min(range.end)
}

fn kept(range: &Range<u64>, kept: u64) -> u64 {
    range.end.min(kept).saturating_sub(range.start)
}

fn local(range: &Range<u64>, within: &Range<u64>) -> Range<usize> {
    (range.start - within.start) as usize..(range.end - within.start) as usize
}

/// Divides a range of elements into bands of blocks `[rows, cols]`. A sample is extended to whole blocks. A range that
/// ends with the tensor includes the last block.
pub(crate) fn bands(layout: &Layout, [rows, cols]: [u64; 2], stretch: &Stretch) -> impl Iterator<Item = Band> + use<> {
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
    let rows_together = (BAND / (rows * layout.cols).max(1)).max(1);
    std::iter::from_fn(move || {
        let (row, from) = (block / across, block % across);
        let (matrix, of_matrix) = (row / down, row % down);
        let whole = (end - block) / across;
        let (now, n_rows) = match from {
            0 if whole > 0 => (across, whole.min(rows_together).min(down - of_matrix)),
            _ => ((across - from).min(end - block), 1),
        };
        let band = Band {
            layout,
            matrix,
            rows: of_matrix * rows..((of_matrix + n_rows) * rows).min(layout.rows),
            cols: from * cols..((from + now) * cols).min(layout.cols),
        };
        block += now * n_rows;
        (now > 0).then_some(band)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::DType;
    use truecast_core::scaled::{Coding, Plane, Planes};

    /// Two matrices `[3, 5]`, stored as `[4, 8]`.
    fn layout(block: [u64; 2]) -> Layout {
        let planes = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), block);
        Layout { kept: [3, 5], ..Layout::new(2, [4, 8], Coding::Planes(planes)) }
    }

    fn band(block: [u64; 2], rows: Range<u64>, cols: Range<u64>) -> Band {
        Band { layout: layout(block), matrix: 1, rows, cols }
    }

    #[test]
    fn positions() {
        let band = band([2, 4], 2..4, 4..8);
        // Local rows: elements 15 + 14 of row 2, column 4, then padding; row 3 is padding.
        assert_eq!(band.position(0), Position::Kept(29));
        assert_eq!(band.position(1), Position::Padding(32 + 21));
        assert_eq!(band.position(4), Position::Padding(32 + 28));
        assert_eq!(band.position(7), Position::Padding(63));
    }

    #[test]
    fn blocks_are_cut_by_the_matrix_and_by_the_band() {
        let blocks = |band: &Band, block| {
            let fields = |block: GridBlock| (block.entry, block.entries(band), block.kept);
            band.blocks(block).map(fields).collect::<Vec<_>>()
        };
        // A grid of 2 x 3 entries. The second matrix begins at entry 6; its second row of blocks has one row.
        let last_row = [(9, vec![0, 1, 2], 0), (10, vec![3, 4, 5], 0), (11, vec![6, 7], 0)];
        assert_eq!(blocks(&band([3, 3], 3..4, 0..8), [3, 3]), last_row);
        let first = band([3, 3], 0..3, 3..6);
        assert_eq!(blocks(&first, [3, 3]), [(7, (0..9).collect(), 6)]);
        // One scale for a matrix, which is compared in rows.
        let row = band([u64::MAX, u64::MAX], 1..2, 0..8);
        assert_eq!(blocks(&row, [u64::MAX; 2]), [(1, (0..8).collect(), 5)]);
    }

    #[test]
    fn bands_cover_a_sample_in_whole_blocks() {
        let cover = |first, len| {
            let bands = bands(&layout([2, 4]), [2, 4], &Stretch { first, len });
            bands.map(|band| (band.matrix, band.rows, band.cols)).collect::<Vec<_>>()
        };
        assert_eq!(cover(0, 30), [(0, 0..4, 0..8), (1, 0..4, 0..8)]);
        // Element 12 is in row 2, column 2 of the first matrix. Nine elements need two blocks.
        assert_eq!(cover(12, 9), [(0, 2..4, 0..8)]);
        assert_eq!(cover(29, 1), [(1, 2..4, 4..8)]);
    }
}
