//! Codes and scales recomputed from dense elements by the definition (`truecast_core::scaled`), which shares no code with what
//! may have written them. Whole blocks are recomputed, since every element of one decides its scale.

use super::element::little_endian;
use super::flat::lies_in_rows;
use super::plan::Plan;
use super::prove::Values;
use super::prove_pieces::prove;
use super::scaled::Scaled;
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::error::{Cause, Error};
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::{FileDifference, WrongElement};
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};
use truecast_core::scaled::{Part, Plane, Planes, ScaledError, Search, Zero, amax};
use truecast_core::{CastSpec, DType, cast_one};
use truecast_io::Source;
use truecast_schemes::Content;

/// Elements that are read together where a whole tensor is.
const PIECE: u64 = 1 << 20;
/// About the elements of a unit.
const UNIT: u64 = 1 << 14;

/// A dense tensor of the source and what became of it.
pub(super) struct ScaledProof<'a> {
    pub plan: &'a Plan,
    pub scaled: &'a Scaled,
    pub planned: &'a Planned,
    /// The result, and the places of the outputs in it.
    pub result: (&'a Source, Vec<usize>),
    /// The values of the last matrix of a quantised source whose rows cannot be read one by one.
    pub last: Mutex<Option<Last>>,
}

/// A matrix of a quantised tensor, and its values as bits of f32.
pub(super) type Last = (Stored, u64, Arc<Vec<u32>>);

/// Blocks of one row of the grid, or of several as wide as the matrix; rows of elements where one scale serves them all.
struct Unit {
    matrix: u64,
    rows: Range<u64>,
    cols: Range<u64>,
}

/// What was found of a part.
type OfPart = (Part, Found<(u64, u64)>);

struct Seen {
    codes: Found<WrongElement>,
    parts: Vec<OfPart>,
    elements: u64,
}

/// Planes that do not lie row after row, as a whole.
type Held = Vec<(Part, Vec<u8>)>;

impl Unit {
    /// Its elements that are not filling.
    fn kept(&self, [rows, cols]: [u64; 2]) -> u64 {
        let len = |of: &Range<u64>, kept: u64| of.end.min(kept).saturating_sub(of.start);
        len(&self.rows, rows) * len(&self.cols, cols)
    }
}

impl ScaledProof<'_> {
    /// What differs in the blocks of planes that hold these elements, as many as there are elements; and how many elements those are.
    pub fn compare(
        &self,
        stretches: &[Stretch],
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<(Vec<FileDifference>, u64), Error> {
        let mut differences = Vec::new();
        let refused = |index| FileDifference::Refused { tensor: self.planned.name.clone(), index };
        for (at, output) in self.scaled.outputs.iter().enumerate() {
            if let Content::Bytes(expected) = &output.content {
                self.bytes(at, expected, &mut differences)?;
            }
        }
        let planes = *self.scaled.layout.planes().expect("what is written has planes");
        let mut global = 1f32.to_bits();
        let mut amaxes = Vec::new();
        if planes.global.is_some() || self.is_one_scale(&planes) {
            amaxes = vec![0; self.scaled.layout.matrices as usize];
            for at in self.plan.shared(self.scaled).iter().chain([&self.scaled.from]) {
                let of = self.plan.scaled(*at).unwrap_or(self.scaled);
                match self.amax(of)? {
                    Ok(found) => amaxes.iter_mut().zip(found).for_each(|(amax, found)| *amax = (*amax).max(found)),
                    Err(index) => return Ok((vec![refused(index)], 0)),
                }
            }
        }
        if let (Some(of), Some(at)) = (planes.global, self.scaled.output(Part::Global)) {
            global = of.rule.of_amax(amaxes[0]).map_err(|cause| self.failed(cause))?;
            self.bytes(at, &global.to_le_bytes(), &mut differences)?;
        }
        let held = self.held(&planes)?;
        for (part, plane) in planes_of(&planes) {
            self.filling(part, plane, &planes, &held, &mut differences)?;
        }
        let units = stretches.iter().flat_map(|stretch| self.units(&planes, stretch));
        let nothing = Seen { codes: Found::new(), parts: Vec::new(), elements: 0 };
        let of_unit = |unit: &Unit| self.unit(&planes, unit, (global, &amaxes), &held);
        let seen = prove(units, nothing, of_unit, Seen::merge, |some| {
            let elements: u64 = some.iter().map(|unit| unit.kept(self.scaled.layout.kept)).sum();
            progress(elements * u64::from(self.scaled.dtype.storage_bits().unwrap_or(8)) / 8)
        })?;
        if let Some(index) = seen.codes.refused {
            return Ok((vec![refused(index)], seen.elements));
        }
        if let Some((_, first)) = seen.codes.first {
            let types = (self.scaled.dtype, self.planned.target.dtype);
            let (tensor, count) = (self.name(Part::Codes), seen.codes.count);
            differences.push(FileDifference::Elements { tensor, count, first, types });
        }
        for (part, found) in seen.parts {
            differences.extend(FileDifference::of_found(&self.name(part), &found));
        }
        Ok((differences, seen.elements))
    }

    fn name(&self, part: Part) -> String {
        let output = self.scaled.output(part).map(|at| &self.scaled.outputs[at].tensor);
        output.map_or_else(|| self.planned.name.clone(), |tensor| tensor.name.clone())
    }

    pub(super) fn failed(&self, cause: ScaledError) -> Error {
        Error::tensor(self.plan.folder().path(), &self.planned.name, Cause::Scaled(cause))
    }

    /// An output whose bytes are known as a whole.
    fn bytes(&self, at: usize, expected: &[u8], differences: &mut Vec<FileDifference>) -> Result<(), Error> {
        let mut found = zeros(expected.len() as u64)?;
        self.result.0.read_at(self.result.1[at], 0, &mut found)?;
        differences.extend(FileDifference::of_bytes(&self.scaled.outputs[at].tensor.name, expected, &found));
        Ok(())
    }

    /// The scale of a matrix depends on nothing but its largest magnitude: it need not be held to be recomputed.
    fn is_one_scale(&self, planes: &Planes) -> bool {
        let [rows, cols] = planes.scales.block;
        let layout = &self.scaled.layout;
        let is_formula = self.scaled.how.search == Search::Formula && !matches!(planes.zero, Zero::Grid { .. });
        // Small ones of a stack are recomputed as a whole.
        let is_large = layout.matrices == 1 || self.scaled.needs_amax;
        is_formula && is_large && rows >= layout.rows && cols >= layout.cols
    }

    /// The largest magnitude of each matrix, as bits of f32; or the first element that is refused.
    fn amax(&self, scaled: &Scaled) -> Result<Result<Vec<u32>, u64>, Error> {
        let mut all = vec![0; scaled.layout.matrices as usize];
        for (matrix, largest) in all.iter_mut().enumerate() {
            let first = matrix as u64 * scaled.matrix();
            let mut at = 0;
            while at < scaled.matrix() {
                let now = PIECE.min(scaled.matrix() - at);
                let values = self.source(scaled, first + at..first + at + now)?;
                match amax(scaled.how.nonfinite, &values.iter().map(|(_, bits)| *bits).collect::<Vec<_>>()) {
                    Ok(found) => *largest = found.max(*largest),
                    Err(ScaledError::NotFinite { index }) => return Ok(Err(first + at + index)),
                    Err(cause) => return Err(self.failed(cause)),
                }
                at += now;
            }
        }
        Ok(Ok(all))
    }

    /// Elements of the source with their values, as bits of f32.
    pub(super) fn source(&self, scaled: &Scaled, elements: Range<u64>) -> Result<Vec<(u64, u32)>, Error> {
        if let Some(quantised) = &scaled.source {
            let values = Values { folder: self.plan.folder(), quantised };
            let bits = match values.are_rows_together() {
                true => values.of(elements)?,
                false => self.of_matrices(scaled.from, &values, elements)?,
            };
            return Ok(bits.into_iter().map(|bits| (bits.into(), bits)).collect());
        }
        let Stored { shard, tensor } = scaled.from;
        let size = scaled.dtype.storage_bits().unwrap_or(8) as u64 / 8;
        let mut bytes = zeros((elements.end - elements.start) * size)?;
        self.plan.folder().shards()[shard].source.read_at(tensor, elements.start * size, &mut bytes)?;
        let widened = CastSpec { src: scaled.dtype, ..CastSpec::copy(DType::F32) };
        let value = |code: &[u8]| {
            let code = little_endian(code);
            let bits = match scaled.dtype {
                DType::F32 => code,
                DType::Bf16 => code << 16,
                _ => cast_one(&widened, code).code().unwrap_or(0x7fc0_0000),
            };
            (code, bits as u32)
        };
        Ok(bytes.chunks_exact(size as usize).map(value).collect())
    }

    /// The same elements of a tensor of which whole matrices are read.
    fn of_matrices(&self, at: Stored, values: &Values<'_>, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let [rows, cols] = values.quantised.layout.out();
        let (size, mut all) = (rows * cols, Vec::with_capacity((elements.end - elements.start) as usize));
        for matrix in elements.start / size..elements.end.div_ceil(size) {
            let whole = matrix * size..(matrix + 1) * size;
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let bits = match &*last {
                Some((of, known, bits)) if (*of, *known) == (at, matrix) => bits.clone(),
                _ => last.insert((at, matrix, Arc::new(values.of(whole.clone())?))).2.clone(),
            };
            drop(last);
            let (from, to) = (elements.start.max(whole.start), elements.end.min(whole.end));
            all.extend(&bits[(from - whole.start) as usize..(to - whole.start) as usize]);
        }
        Ok(all)
    }

    /// What is recomputed of a stretch: all of a whole tensor; of a sample as many elements, the last block of the tensor for
    /// the last of them.
    fn units(&self, planes: &Planes, stretch: &Stretch) -> impl Iterator<Item = Unit> + use<> {
        let layout = self.scaled.layout;
        let [kept_rows, kept_cols] = layout.kept;
        let [rows, cols] = if self.is_one_scale(planes) { [1, layout.cols] } else { planes.scales.block };
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
            // Rows of blocks as a whole, or blocks of one.
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

    /// Rows and columns of the plane of a part.
    fn shape(&self, planes: &Planes, part: Part) -> [u64; 2] {
        let layout = &self.scaled.layout;
        if part == Part::Codes { [layout.rows, layout.cols] } else { layout.grid(planes.scales.block) }
    }

    /// Planes that do not lie row after row.
    fn held(&self, planes: &Planes) -> Result<Held, Error> {
        let mut held = Vec::new();
        for (part, plane) in planes_of(planes) {
            if let (false, Some(at)) = (lies_in_rows(&plane, self.shape(planes, part)), self.scaled.output(part)) {
                let mut bytes = zeros(self.scaled.outputs[at].tensor.bytes())?;
                self.result.0.read_at(self.result.1[at], 0, &mut bytes)?;
                held.push((part, bytes));
            }
        }
        Ok(held)
    }

    /// Bits that belong to no entry are 0: those that fill up words at the end of a row, and tiles.
    fn filling(
        &self,
        part: Part,
        plane: Plane,
        planes: &Planes,
        held: &Held,
        differences: &mut Vec<FileDifference>,
    ) -> Result<(), Error> {
        let Some(at) = self.scaled.output(part) else { return Ok(()) };
        let shape = self.shape(planes, part);
        // Whole matrices, or rows that are alike.
        let whole = held.iter().find(|(of, _)| *of == part);
        let [rows, cols] = if whole.is_some() { shape } else { [1, shape[1]] };
        let bits = plane.code.bits();
        let mut free = zeros(plane.bytes([rows, cols]).unwrap_or(0))?;
        free.fill(0xff_u8);
        for at in (0..rows).flat_map(|row| (0..cols).map(move |col| [row, col])) {
            plane.packing.set(bits, [rows, cols], at, &mut free, 0);
        }
        let Some(begin) = free.iter().position(|free| *free != 0) else { return Ok(()) };
        let size = free.len();
        let total = self.scaled.outputs[at].tensor.bytes();
        let mut wrong = Found::new();
        let mut look = |first: u64, bytes: &[u8]| {
            for (i, of_one) in bytes.chunks(size).enumerate() {
                for (at, (byte, free)) in of_one.iter().zip(&free).enumerate().skip(begin) {
                    if byte & free != 0 {
                        wrong.wrong(first + (i * size + at) as u64, || (0, u64::from(byte & free)));
                    }
                }
            }
        };
        match whole {
            Some((_, all)) => look(0, all),
            None => {
                let step = ((1 << 18) / size).max(1) * size;
                let mut bytes = zeros(total.min(step as u64))?;
                for first in (0..total).step_by(step) {
                    let bytes = &mut bytes[..step.min((total - first) as usize)];
                    self.result.0.read_at(self.result.1[at], first, bytes)?;
                    look(first, bytes);
                }
            }
        }
        differences.extend(FileDifference::of_found(&self.name(part), &wrong));
        Ok(())
    }

    /// The entries of a box of a plane, row after row.
    fn entries(
        &self,
        (part, plane): (Part, Plane),
        shape: [u64; 2],
        (matrix, rows, cols): (u64, &Range<u64>, &Range<u64>),
        held: &Held,
    ) -> Result<Vec<u64>, Error> {
        let bits = plane.code.bits();
        let matrix_bytes = plane.bytes(shape).unwrap_or(0);
        let mut all = Vec::with_capacity(((rows.end - rows.start) * (cols.end - cols.start)) as usize);
        if let Some((_, bytes)) = held.iter().find(|(of, _)| *of == part) {
            let of_matrix = &bytes[(matrix * matrix_bytes) as usize..];
            for row in rows.clone() {
                let entry = |col| plane.packing.get(bits, shape, [row, col], of_matrix);
                all.extend(cols.clone().map(entry));
            }
            return Ok(all);
        }
        let at = self.scaled.output(part).expect("every part has its tensor");
        let row_bytes = plane.bytes([1, shape[1]]).unwrap_or(0);
        // Eight fields fill whole bytes.
        let octets = cols.start / 8..cols.end.div_ceil(8);
        let (first, end) = (octets.start * u64::from(bits), (octets.end * u64::from(bits)).min(row_bytes));
        let field = |col, bytes: &[u8]| plane.packing.get(bits, [1, shape[1]], [0, col - octets.start * 8], bytes);
        // Whole rows lie together.
        let together = if first == 0 && end == row_bytes { rows.end - rows.start } else { 1 };
        let mut bytes = zeros((end - first) * together)?;
        for row in rows.clone().step_by(together as usize) {
            self.result.0.read_at(self.result.1[at], matrix * matrix_bytes + row * row_bytes + first, &mut bytes)?;
            for of_row in bytes.chunks((end - first) as usize) {
                all.extend(cols.clone().map(|col| field(col, of_row)));
            }
        }
        Ok(all)
    }

    fn unit(&self, planes: &Planes, unit: &Unit, (global, amaxes): (u32, &[u32]), held: &Held) -> Result<Seen, Error> {
        let layout = &self.scaled.layout;
        let Unit { matrix, rows, cols } = unit;
        let [kept_rows, kept_cols] = layout.kept;
        let is_one = self.is_one_scale(planes);
        let [block_rows, block_cols] = planes.scales.block;
        // What fills up the tensor is zeros.
        let (wide, used) = ((cols.end - cols.start) as usize, cols.start.min(kept_cols)..cols.end.min(kept_cols));
        let mut source: Vec<(u64, u32)> = Vec::with_capacity((rows.end - rows.start) as usize * wide);
        // Whole rows lie together.
        let together = if used == (0..kept_cols) && wide as u64 == kept_cols { rows.end - rows.start } else { 1 };
        for row in rows.clone().step_by(together as usize).filter(|row| *row < kept_rows) {
            let first = (matrix * kept_rows + row) * kept_cols;
            let last = first + (together.min(kept_rows - row) - 1) * kept_cols;
            source.extend(self.source(self.scaled, first + used.start..last + used.end)?);
            source.resize(source.len().next_multiple_of(wide), (0, 0));
        }
        source.resize((rows.end - rows.start) as usize * wide, (0, 0));
        let index_of = |local: usize| {
            let (row, col) = (rows.start + (local / wide) as u64, cols.start + (local % wide) as u64);
            let is_kept = row < kept_rows && col < kept_cols;
            is_kept.then_some((matrix * kept_rows + row) * kept_cols + col)
        };
        let actual =
            self.entries((Part::Codes, planes.codes), [layout.rows, layout.cols], (*matrix, rows, cols), held)?;
        let grid = layout.grid(planes.scales.block);
        let grid_rows = rows.start / block_rows..rows.end.div_ceil(block_rows);
        let grid_cols = cols.start / block_cols..cols.end.div_ceil(block_cols);
        let on_grid = |part, plane| self.entries((part, plane), grid, (*matrix, &grid_rows, &grid_cols), held);
        let scales = on_grid(Part::Scales, planes.scales.plane)?;
        let zeros = match planes.zero {
            Zero::Grid { plane, .. } => Some(on_grid(Part::Zeros, plane)?),
            _ => None,
        };
        let mut seen = Seen { codes: Found::new(), parts: Vec::new(), elements: 0 };
        // Of what fills up the tensor.
        let mut of_codes = Found::new();
        let (mut of_scales, mut of_zeros) = (Found::new(), Found::new());
        let on_grid = grid_rows.clone().flat_map(|row| grid_cols.clone().map(move |col| (row, col)));
        for (i, (grid_row, grid_col)) in on_grid.enumerate() {
            let of_rows =
                (grid_row * block_rows).max(rows.start)..(grid_row + 1).saturating_mul(block_rows).min(rows.end);
            let from = (grid_col * block_cols).max(cols.start) - cols.start;
            let to = ((grid_col + 1) * block_cols).min(cols.end) - cols.start;
            let local = (of_rows.start - rows.start) as usize..(of_rows.end - rows.start) as usize;
            let places: Vec<usize> =
                local.flat_map(|row| (from as usize..to as usize).map(move |col| row * wide + col)).collect();
            // One that has the largest magnitude stands for the rows that are not here.
            let largest = is_one.then(|| amaxes[*matrix as usize]);
            let values: Vec<u32> = largest.into_iter().chain(places.iter().map(|at| source[*at].1)).collect();
            let made = match planes.quantise(&self.scaled.how, global, &values) {
                Ok(made) => made,
                Err(ScaledError::NotFinite { index }) => {
                    let at = places[index as usize - usize::from(is_one)];
                    seen.codes.refuse(index_of(at).unwrap_or(0));
                    return Ok(seen);
                }
                Err(cause) => return Err(self.failed(cause)),
            };
            let entry = (matrix * grid[0] + grid_row) * grid[1] + grid_col;
            if made.scale != scales[i] {
                of_scales.wrong(entry, || (made.scale, scales[i]));
            }
            if let Some(zeros) = zeros.as_ref().filter(|zeros| zeros[i] != made.zero) {
                of_zeros.wrong(entry, || (made.zero, zeros[i]));
            }
            for (at, expected) in places.iter().zip(&made.codes[usize::from(is_one)..]) {
                let Some(index) = index_of(*at) else {
                    if *expected != actual[*at] {
                        let (row, col) = (rows.start + (at / wide) as u64, cols.start + (at % wide) as u64);
                        of_codes.wrong((matrix * layout.rows + row) * layout.cols + col, || (*expected, actual[*at]));
                    }
                    continue;
                };
                seen.elements += 1;
                if *expected != actual[*at] {
                    let (source, expected, actual) = (source[*at].0, *expected, actual[*at]);
                    seen.codes.wrong(index, || WrongElement { index, source, expected, actual });
                }
            }
        }
        seen.parts = vec![(Part::Codes, of_codes), (Part::Scales, of_scales), (Part::Zeros, of_zeros)];
        Ok(seen)
    }
}

impl Seen {
    fn merge(self, other: Seen) -> Seen {
        let mut parts = self.parts;
        for (part, found) in other.parts {
            match parts.iter().position(|(of, _)| *of == part) {
                Some(at) => {
                    let (_, before) = parts.swap_remove(at);
                    parts.push((part, before.merge(found)));
                }
                None => parts.push((part, found)),
            }
        }
        Seen { codes: self.codes.merge(other.codes), parts, elements: self.elements + other.elements }
    }
}

fn planes_of(planes: &Planes) -> impl Iterator<Item = (Part, Plane)> {
    let zeros = match planes.zero {
        Zero::Grid { plane, .. } => Some((Part::Zeros, plane)),
        _ => None,
    };
    [(Part::Codes, planes.codes), (Part::Scales, planes.scales.plane)].into_iter().chain(zeros)
}
