//! Codes and scales recomputed from dense elements by the definition (`truecast_core::scaled`), which shares no code with what
//! may have written them. Whole blocks are recomputed, since every element of one decides its scale.
//!
//! Which blocks those are says `prove_units`; elements are read by `prove_source`, codes and scales by `prove_planes`.

use super::plan::Plan;
use super::prove_pieces::prove;
use super::prove_planes::{Written, planes_of};
use super::prove_source::SourceValues;
use super::prove_units::{Unit, units};
use super::scaled::Scaled;
use crate::convert::planned::Planned;
use crate::error::{Cause, Error};
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::{FileDifference, WrongElement};
use crate::verify::found::Found;
use std::ops::ControlFlow;
use truecast_core::scaled::{Part, Planes, ScaledError, Search, Zero};
use truecast_io::Source;
use truecast_schemes::Content;

/// A dense tensor of the source and what became of it.
pub(super) struct ScaledProof<'a> {
    pub plan: &'a Plan,
    pub scaled: &'a Scaled,
    pub planned: &'a Planned,
    /// The result, and the places of the outputs in it.
    pub result: (&'a Source, Vec<usize>),
    pub source: SourceValues<'a>,
}

/// What was found of a part.
type OfPart = (Part, Found<(u64, u64)>);

struct Seen {
    codes: Found<WrongElement>,
    parts: Vec<OfPart>,
    elements: u64,
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
                match self.source.amax(of)? {
                    Ok(found) => amaxes.iter_mut().zip(found).for_each(|(amax, found)| *amax = (*amax).max(found)),
                    Err(ScaledError::NotFinite { index }) => return Ok((vec![refused(index)], 0)),
                    Err(cause) => return Err(self.failed(cause)),
                }
            }
        }
        if let (Some(of), Some(at)) = (planes.global, self.scaled.output(Part::Global)) {
            global = of.rule.of_amax(amaxes[0]).map_err(|cause| self.failed(cause))?;
            self.bytes(at, &global.to_le_bytes(), &mut differences)?;
        }
        let written = Written::new(self.scaled, &planes, (self.result.0, &self.result.1))?;
        for (part, plane) in planes_of(&planes) {
            differences.extend(FileDifference::of_found(&self.name(part), &written.filling(part, plane)?));
        }
        let layout = &self.scaled.layout;
        let block = if self.is_one_scale(&planes) { [1, layout.cols] } else { planes.scales.block };
        let units = stretches.iter().flat_map(|stretch| units(layout, block, stretch));
        let nothing = Seen { codes: Found::new(), parts: Vec::new(), elements: 0 };
        let of_unit = |unit: &Unit| self.unit(&planes, unit, (global, &amaxes), &written);
        let seen = prove(units, nothing, of_unit, Seen::merge, |some| {
            let elements: u64 = some.iter().map(|unit| unit.kept(layout.kept)).sum();
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

    /// What differs in a unit.
    fn unit(
        &self,
        planes: &Planes,
        unit: &Unit,
        (global, amaxes): (u32, &[u32]),
        written: &Written<'_>,
    ) -> Result<Seen, Error> {
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
            source.extend(self.source.of(self.scaled, first + used.start..last + used.end)?);
            source.resize(source.len().next_multiple_of(wide), (0, 0));
        }
        source.resize((rows.end - rows.start) as usize * wide, (0, 0));
        let index_of = |local: usize| {
            let (row, col) = (rows.start + (local / wide) as u64, cols.start + (local % wide) as u64);
            let is_kept = row < kept_rows && col < kept_cols;
            is_kept.then_some((matrix * kept_rows + row) * kept_cols + col)
        };
        let actual = written.entries((Part::Codes, planes.codes), (*matrix, rows, cols))?;
        let grid = layout.grid(planes.scales.block);
        let grid_rows = rows.start / block_rows..rows.end.div_ceil(block_rows);
        let grid_cols = cols.start / block_cols..cols.end.div_ceil(block_cols);
        let on_grid = |part, plane| written.entries((part, plane), (*matrix, &grid_rows, &grid_cols));
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
