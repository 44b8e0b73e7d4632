//! Recomputes values of quantized tensors without code of the writer. f32 arithmetic (`values`) computes most elements;
//! the reference definition (`truecast_core::scaled`) decides uncertain elements. Reads bands of rows if rows are
//! contiguous, otherwise whole matrices.

mod band;
pub(crate) mod blocks;
pub(crate) mod by_kind;
pub(crate) mod codes;
mod dequantized;
pub(crate) mod fields;
pub(crate) mod job_check;
pub(crate) mod planes;
pub(crate) mod relaid;
mod repacked;
pub(crate) mod scaled;
pub(crate) mod source;
pub(crate) mod values;

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::quantize::flat::are_planes_in_rows;
use crate::files::convert::recompute::values::Arithmetic;
use crate::files::error::{Cause, Error};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use truecast_core::scaled::{Coding, Group, Layout, Part, Parts, Planes};
use truecast_io::folder::Folder;

const BAND: u64 = 1 << 16;

pub(crate) struct Recomputed<'a> {
    folder: &'a Folder,
    quantized: &'a Quantized,
    /// The last matrix that was read. Used for layouts whose rows cannot be read alone.
    last: Mutex<Option<Arc<HeldRows>>>,
}

impl<'a> Recomputed<'a> {
    pub fn new(folder: &'a Folder, quantized: &'a Quantized) -> Recomputed<'a> {
        Recomputed { folder, quantized, last: Mutex::new(None) }
    }

    /// f32 bits of elements.
    ///
    /// # Errors
    /// An unreadable file; codes without a value.
    pub fn read(&self, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let mut all = Vec::with_capacity((elements.end - elements.start) as usize);
        for piece in row_pieces(&self.quantized.layout, elements) {
            let (rows, first) = (self.rows(&piece)?, all.len());
            all.extend(rows.quick(piece.clone()));
            for (index, value) in piece.zip(&mut all[first..]) {
                if f32::from_bits(*value).is_nan() {
                    *value = self.value(&rows, index)?;
                }
            }
        }
        Ok(all)
    }

    /// Reads the rows of a piece, or the whole matrix if the rows cannot be read alone.
    pub fn rows(&self, piece: &Range<u64>) -> Result<Arc<HeldRows>, Error> {
        let layout = &self.quantized.layout;
        let [rows, cols] = layout.out();
        let (first, end) = (piece.start / cols, piece.end.div_ceil(cols));
        let matrix = first / rows;
        if are_rows_together(layout) {
            return Ok(Arc::new(self.held(matrix, first - matrix * rows..end - matrix * rows)?));
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(held) if held.before == matrix * rows * cols => Ok(held.clone()),
            _ => {
                *last = None;
                Ok(last.insert(Arc::new(self.held(matrix, 0..layout.rows)?)).clone())
            }
        }
    }

    fn held(&self, matrix: u64, stored: Range<u64>) -> Result<HeldRows, Error> {
        let layout = &self.quantized.layout;
        let mut parts = Vec::new();
        for (part, at) in &self.quantized.parts {
            if let Some(range) = bytes_of(layout, *part, matrix, &stored) {
                parts.push((*part, at.read(self.folder, range)?));
            }
        }
        let [out_rows, out_cols] = layout.out();
        let rows = stored.end - stored.start;
        let kept = [layout.kept[0].saturating_sub(stored.start).min(rows), layout.kept[1]];
        let first = if layout.transposed { 0 } else { stored.start };
        let layout = Layout { matrices: 1, rows, kept, ..*layout };
        Ok(HeldRows { parts, layout, before: (matrix * out_rows + first) * out_cols })
    }

    /// f32 bits that the reference definition gives for an element.
    ///
    /// # Errors
    /// A code without a value.
    pub fn value(&self, rows: &HeldRows, index: u64) -> Result<u32, Error> {
        let value = rows.layout.value(&rows.parts(), index - rows.before);
        value.map_err(|cause| Error::tensor(self.folder.path(), &self.quantized.name, Cause::Scaled(cause)))
    }
}

pub(crate) struct HeldRows {
    parts: Vec<(Part, Vec<u8>)>,
    layout: Layout,
    /// Number of tensor elements before the rows.
    before: u64,
}

impl HeldRows {
    /// f32 bits by arithmetic; NaN for uncertain elements.
    pub fn quick(&self, Range { start, end }: Range<u64>) -> Vec<u32> {
        Arithmetic::new(&self.layout, self.parts()).values(start - self.before..end - self.before)
    }

    fn parts(&self) -> Parts<'_> {
        Parts::of(|part| self.parts.iter().find(|(of, _)| *of == part).map_or(&[], |(_, bytes)| bytes))
    }
}

/// Divides elements into pieces of a few rows within a matrix. A piece that begins inside a block also ends in that
/// block.
pub(crate) fn row_pieces(layout: &Layout, elements: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let [rows, cols] = layout.out().map(|len| len.max(1));
    let blocks = if are_rows_together(layout) { blocks(layout) } else { Vec::new() };
    let (mut at, end) = (elements.start, elements.end);
    std::iter::from_fn(move || {
        let row = at / cols;
        let first = row % rows;
        let mut last = rows.min(first + (BAND / cols).max(1));
        for block in blocks.iter().filter(|block| !first.is_multiple_of(**block)) {
            last = last.min(first.next_multiple_of(*block));
        }
        let piece = at..end.min((row - first + last) * cols);
        at = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Number of rows that a block has in the grid of scales, and in the grid of global scales.
fn blocks(layout: &Layout) -> Vec<u64> {
    let planes = layout.planes();
    let of = |planes: &Planes| [Some(planes.scales.block[0]), planes.global.map(|global| global.block[0])];
    planes.map_or(Vec::new(), |planes| of(planes).into_iter().flatten().collect())
}

pub(crate) fn are_rows_together(layout: &Layout) -> bool {
    let Some(planes) = layout.planes() else { return !layout.transposed };
    !layout.transposed && planes.group != Group::OfRow && are_planes_in_rows(layout)
}

/// Byte range that rows take in a part. `None` if the layout lacks the part.
pub(crate) fn bytes_of(layout: &Layout, part: Part, matrix: u64, rows: &Range<u64>) -> Option<Range<u64>> {
    let each = layout.part_bytes(part).ok()?? / layout.matrices.max(1);
    let (row, rows, all) = match (layout.coding, layout.plane(part)) {
        (Coding::Blocks { block, .. }, _) if part == Part::Codes => {
            (block.bytes_of([1, layout.cols]), rows.clone(), layout.rows)
        }
        (_, Some((plane, block))) => {
            let [all, cols] = layout.grid(block);
            (plane.bytes([1, cols]), rows.start / block[0]..rows.end.div_ceil(block[0]), all)
        }
        _ => (None, 0..0, 0),
    };
    let first = matrix * each;
    // A whole matrix may have any packing. Code books and group indices have no rows.
    if rows == (0..all) {
        return Some(first..first + each);
    }
    row.map(|row| first + rows.start * row..first + rows.end * row)
}
