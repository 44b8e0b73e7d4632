//! Dense elements recomputed from quantised ones by the definition (`truecast_core::scaled`), which shares no code with what
//! may have written them. Bands of rows are read where rows lie together, else whole matrices.

use super::dense::Quantised;
use super::flat::lies_in_rows;
use super::prove_pieces::prove;
use crate::convert::planned::Planned;
use crate::error::{Cause, Error};
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::{FileDifference, WrongElement};
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use truecast_core::scaled::{Coding, Group, Layout, Part, Parts, Plane, Planes, Zero};
use truecast_core::{CastSpec, DType, Outcome, cast_one};
use truecast_io::Source;
use truecast_io::folder::Folder;
use truecast_kernel::Elements;

/// About the elements of a band.
const BAND: u64 = 1 << 16;

/// A quantised tensor and what became of it.
pub(super) struct Proof<'a> {
    pub folder: &'a Folder,
    pub quantised: &'a Quantised,
    pub planned: &'a Planned,
    /// The result, and the tensor's place in it.
    pub result: (&'a Source, usize),
}

/// The f32 values of a quantised tensor.
pub(super) struct Values<'a> {
    pub folder: &'a Folder,
    pub quantised: &'a Quantised,
}

/// Rows of one matrix of a tensor.
#[derive(PartialEq)]
pub(super) struct Band {
    pub matrix: u64,
    pub rows: Range<u64>,
}

impl Band {
    /// Those of the elements that it holds.
    fn elements(&self, layout: &Layout, wanted: &Range<u64>) -> Range<u64> {
        let [rows, cols] = layout.out();
        let element = |row: u64| (self.matrix * rows + row) * cols;
        element(self.rows.start).max(wanted.start)..element(self.rows.end).min(wanted.end)
    }
}

impl Proof<'_> {
    /// What differs in these elements.
    pub fn compare(
        &self,
        stretches: &[Stretch],
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<Option<FileDifference>, Error> {
        let layout = &self.quantised.layout;
        let pieces = stretches.iter().flat_map(|stretch| {
            let wanted = stretch.first..stretch.first + stretch.len;
            bands(layout, wanted.clone()).map(move |band| (band.elements(layout, &wanted), band))
        });
        let mut seen = 0;
        let bytes = |seen: u64| (self.quantised.bytes as f64 * seen as f64 / layout.elements().max(1) as f64) as u64;
        let of_piece = |(elements, band): &(Range<u64>, Band)| self.band(band, elements.clone());
        let found = prove(pieces, Found::new(), of_piece, Found::merge, |some| {
            let before = bytes(seen);
            seen += some.iter().map(|(elements, _)| elements.end - elements.start).sum::<u64>();
            progress(bytes(seen) - before)
        })?;
        let tensor = || self.planned.target.name.clone();
        if let Some(index) = found.refused {
            return Ok(Some(FileDifference::Refused { tensor: tensor(), index }));
        }
        let types = (DType::F32, self.planned.target.dtype);
        let count = found.count;
        Ok(found.first.map(|(_, first)| FileDifference::Elements { tensor: tensor(), count, first, types }))
    }

    fn band(&self, band: &Band, Range { start: from, end: to }: Range<u64>) -> Result<Found<WrongElement>, Error> {
        let cast = self.planned.cast.unwrap_or(CastSpec::copy(DType::F32));
        let values = Values { folder: self.folder, quantised: self.quantised }.of_band(band, from..to)?;
        // Elements narrower than a byte begin with one.
        let begin = from / 8 * 8;
        let target = &self.planned.target;
        let bytes = |len| target.dtype.bytes_in(target.layout, len).expect("a container's layout fits its type");
        let (source, at) = self.result;
        let mut dst = zeros(bytes(to - begin))?;
        source.read_at(at, bytes(begin), &mut dst)?;
        let dst = Elements::with_layout(target.dtype, target.layout, (to - begin) as usize, &dst[..]);
        let dst = dst.expect("the buffer was made for these elements");
        let mut found = Found::new();
        for (index, value) in (from..to).zip(values) {
            let actual = dst.storage((index - begin) as usize);
            match cast_one(&cast, value.into()) {
                Outcome::Defined(code) | Outcome::Undefined { code, .. } => {
                    if code != actual {
                        let element = || WrongElement { index, source: value.into(), expected: code, actual };
                        found.wrong(index, element);
                    }
                }
                Outcome::Refused { .. } => found.refuse(index),
            }
        }
        Ok(found)
    }
}

impl<'a> Values<'a> {
    /// A few rows can be read without the rest of their matrix.
    pub fn are_rows_together(&self) -> bool {
        are_rows_together(&self.quantised.layout)
    }

    /// Bits of these elements.
    ///
    /// # Errors
    /// Reading; codes that have no value.
    pub fn of(&self, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let layout = &self.quantised.layout;
        let mut all = Vec::with_capacity((elements.end - elements.start) as usize);
        for band in bands(layout, elements.clone()) {
            all.extend(self.of_band(&band, band.elements(layout, &elements))?);
        }
        Ok(all)
    }

    /// Bits of some elements of a band.
    fn of_band(&self, band: &Band, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let layout = &self.quantised.layout;
        let whole = !are_rows_together(layout);
        self.held(band.matrix, if whole { 0..layout.rows } else { band.rows.clone() })?.of(elements)
    }

    /// A matrix that is read as a whole.
    ///
    /// # Errors
    /// Reading; no memory.
    pub fn matrix(&self, matrix: u64) -> Result<HeldRows<'a>, Error> {
        self.held(matrix, 0..self.quantised.layout.rows)
    }

    fn held(&self, matrix: u64, stored: Range<u64>) -> Result<HeldRows<'a>, Error> {
        let layout = &self.quantised.layout;
        let mut parts = Vec::new();
        for (part, _) in &self.quantised.parts {
            if let Some(range) = bytes_of(layout, *part, matrix, &stored) {
                parts.push((*part, self.read(*part, range)?));
            }
        }
        let [out_rows, out_cols] = layout.out();
        let rows = stored.end - stored.start;
        let kept = [layout.kept[0].saturating_sub(stored.start).min(rows), layout.kept[1]];
        let first = if layout.transposed { 0 } else { stored.start };
        Ok(HeldRows {
            values: Values { folder: self.folder, quantised: self.quantised },
            parts,
            layout: Layout { matrices: 1, rows, kept, ..*layout },
            before: (matrix * out_rows + first) * out_cols,
        })
    }

    fn read(&self, part: Part, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let stored = self.quantised.stored(part);
        let source = &self.folder.shards()[stored.shard].source;
        let mut bytes = zeros(range.end - range.start)?;
        source.read_at(stored.tensor, range.start, &mut bytes)?;
        Ok(bytes)
    }
}

/// Stored rows that were read.
pub(super) struct HeldRows<'a> {
    values: Values<'a>,
    parts: Vec<(Part, Vec<u8>)>,
    /// Of the rows.
    layout: Layout,
    /// Elements of the tensor before them.
    before: u64,
}

impl HeldRows<'_> {
    /// Bits of these elements of the tensor.
    ///
    /// # Errors
    /// Codes that have no value.
    pub fn of(&self, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let get = |part| self.parts.iter().find(|(of, _)| *of == part).map_or(&[][..], |(_, bytes)| bytes);
        let parts = Parts {
            codes: get(Part::Codes),
            scales: get(Part::Scales),
            global: get(Part::Global),
            zeros: get(Part::Zeros),
            biases: get(Part::Biases),
            index: get(Part::Index),
        };
        let Values { folder, quantised } = &self.values;
        let value = |index| {
            let value = self.layout.value(&parts, index - self.before);
            value.map_err(|cause| Error::tensor(folder.path(), &quantised.name, Cause::Scaled(cause)))
        };
        elements.map(value).collect()
    }
}

/// The bands that hold these elements. Where only some rows are read, a band does not begin within a block unless it ends
/// in the same.
fn bands(layout: &Layout, elements: Range<u64>) -> impl Iterator<Item = Band> + use<> {
    let [out_rows, out_cols] = layout.out();
    let is_empty = elements.is_empty() || out_cols == 0 || out_rows == 0;
    let (together, blocks) = (are_rows_together(layout), blocks(layout));
    let mut row = elements.start / out_cols.max(1);
    let end = if is_empty { row } else { elements.end.div_ceil(out_cols) };
    std::iter::from_fn(move || {
        if row >= end {
            return None;
        }
        let (matrix, first) = (row / out_rows, row % out_rows);
        let mut last = (first + (end - row)).min(out_rows);
        if together {
            last = last.min(first + (BAND / out_cols).max(1));
            for block in blocks.iter().filter(|block| !first.is_multiple_of(**block)) {
                last = last.min(first.next_multiple_of(*block));
            }
        }
        row += last - first;
        Some(Band { matrix, rows: first..last })
    })
}

/// Rows that share an entry of a grid.
fn blocks(layout: &Layout) -> Vec<u64> {
    let planes = layout.planes();
    let of = |planes: &Planes| [Some(planes.scales.block[0]), planes.global.map(|global| global.block[0])];
    planes.map_or(Vec::new(), |planes| of(planes).into_iter().flatten().collect())
}

/// Every plane has the bytes of a row together, row after row.
pub(super) fn are_rows_together(layout: &Layout) -> bool {
    let Some(planes) = layout.planes() else { return !layout.transposed };
    let grid = layout.grid(planes.scales.block);
    let zeros = match planes.zero {
        Zero::Grid { plane, .. } => lies_in_rows(&plane, grid),
        _ => true,
    };
    !layout.transposed
        && planes.group != Group::OfRow
        && lies_in_rows(&planes.codes, [layout.rows, layout.cols])
        && lies_in_rows(&planes.scales.plane, grid)
        && zeros
}

/// The bytes of a part that hold some rows of a matrix; `None` of a part that the layout does not have.
pub(super) fn bytes_of(layout: &Layout, part: Part, matrix: u64, rows: &Range<u64>) -> Option<Range<u64>> {
    let rows_of = |plane: &Plane, shape: [u64; 2], rows: Range<u64>| {
        let whole = plane.bytes(shape)?;
        // All of a matrix, however it lies.
        if rows == (0..shape[0]) {
            return Some(matrix * whole..(matrix + 1) * whole);
        }
        let row = plane.bytes([1, shape[1]])?;
        Some(matrix * whole + rows.start * row..matrix * whole + rows.end * row)
    };
    let shape = [layout.rows, layout.cols];
    if let Coding::Blocks { block, factor } = layout.coding {
        return match part {
            Part::Codes => {
                let row = block.bytes_of([1, layout.cols])?;
                let first = matrix * layout.rows;
                Some((first + rows.start) * row..(first + rows.end) * row)
            }
            Part::Global if factor => Some(matrix * 4..(matrix + 1) * 4),
            _ => None,
        };
    }
    let planes = layout.planes()?;
    let on_grid = |plane: &Plane, block: [u64; 2]| {
        rows_of(plane, layout.grid(block), rows.start / block[0]..rows.end.div_ceil(block[0]))
    };
    let block = planes.scales.block;
    match part {
        Part::Codes => rows_of(&planes.codes, shape, rows.clone()),
        Part::Scales | Part::Biases => on_grid(&planes.scales.plane, block),
        Part::Global => on_grid(&Plane::of(DType::F32), planes.global?.block),
        Part::Zeros => match planes.zero {
            Zero::Grid { plane, .. } => on_grid(&plane, block),
            _ => None,
        },
        Part::Index => {
            let len = if planes.group == Group::OfRow { layout.rows } else { layout.cols };
            Some(matrix * len * 4..(matrix + 1) * len * 4)
        }
    }
}
