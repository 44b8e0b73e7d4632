//! Checks codes and scales against their source elements, without code of the writer: by arithmetic (`codes`),
//! and by the definition (`truecast_core::scaled`) for uncertain blocks. Compares whole blocks, since every element
//! affects the scale. `units` selects blocks; `source` reads elements, `planes` reads codes and scales.

use crate::files::convert::quantize::flat::ON_GRID;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::codes::{Block, Quick, Roundings};
use crate::files::convert::recompute::pieces::{of_elements, prove};
use crate::files::convert::recompute::planes::StoredPlanes;
use crate::files::convert::recompute::units::{Unit, units};
use crate::files::error::Error;
use crate::files::verify::Methods;
use crate::files::verify::difference::{FileDifference, WrongElement};
use crate::files::verify::found::Found;
use crate::files::verify::written::Written;
use std::ops::ControlFlow;
use truecast_core::scaled::{Part, Planes, ScaledError, Search, Zero};
use truecast_schemes::Content;

/// A tensor of the source and its result.
pub(crate) struct ScaledProof<'a, 'p> {
    pub scaled: &'p Scaled,
    pub of: Written<'a, 'p>,
}

type OfPart = (Part, Found<(u64, u64)>);

struct UnitDifferences {
    codes: Found<WrongElement>,
    parts: Vec<OfPart>,
    by: Methods,
}

impl ScaledProof<'_, '_> {
    /// Differences in the blocks with these elements, and the methods of comparison.
    pub fn compare(
        &self,
        roundings: &mut Roundings,
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<(Vec<FileDifference>, Methods), Error> {
        let mut differences = Vec::new();
        let refused = |index| FileDifference::Refused { tensor: self.of.planned.name.to_string(), index };
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
            for of in self.of.shared.iter().copied().chain([self.scaled]) {
                match self.of.source.amax(of)? {
                    Ok(found) => amaxes.iter_mut().zip(found).for_each(|(amax, found)| *amax = (*amax).max(found)),
                    Err(ScaledError::NotFinite { index }) => return Ok((vec![refused(index)], Methods::default())),
                    Err(cause) => return Err(self.of.failed(cause)),
                }
            }
        }
        if let (Some(of), Some(at)) = (planes.global, self.scaled.output(Part::Global)) {
            global = of.rule.of_amax(amaxes[0]).map_err(|cause| self.of.failed(cause))?;
            self.bytes(at, &global.to_le_bytes(), &mut differences)?;
        }
        let written = StoredPlanes::new(self.scaled, &self.of)?;
        for part in ON_GRID {
            differences.extend(FileDifference::of_found(&self.name(part), &written.filling(part)?));
        }
        let layout = &self.scaled.layout;
        let block = if self.is_one_scale(&planes) { [1, layout.cols] } else { planes.scales.block };
        let units = self.of.stretches.iter().flat_map(|stretch| units(layout, block, stretch));
        let quick = Quick::new(&planes, &self.scaled.how, global, roundings);
        let of_unit = |unit: &Unit| self.unit(&planes, quick.as_ref(), unit, global, &amaxes, &written);
        let seen = prove(units, UnitDifferences::new(), of_unit, UnitDifferences::merge, |some| {
            let elements: u64 = some.iter().map(|unit| unit.kept(layout.kept)).sum();
            progress(elements * u64::from(self.scaled.dtype.storage_bits().unwrap_or(8)) / 8)
        })?;
        if let Some(index) = seen.codes.refused {
            return Ok((vec![refused(index)], seen.by));
        }
        let mut codes = seen.codes;
        if let Some((index, first)) = &mut codes.first {
            first.source = self.of.source.code(self.scaled, *index)?;
        }
        let types = (self.scaled.dtype, self.of.planned.target.dtype);
        differences.extend(of_elements(&self.name(Part::Codes), codes, types));
        for (part, found) in seen.parts {
            differences.extend(FileDifference::of_found(&self.name(part), &found));
        }
        Ok((differences, seen.by))
    }

    fn name(&self, part: Part) -> String {
        let output = self.scaled.output(part).map(|at| &self.scaled.outputs[at].tensor);
        output.map_or_else(|| self.of.planned.name.clone(), |tensor| tensor.name.clone()).to_string()
    }

    /// Compares an output with known bytes.
    fn bytes(&self, at: usize, expected: &[u8], differences: &mut Vec<FileDifference>) -> Result<(), Error> {
        let found = self.of.read(at, 0..expected.len() as u64)?;
        differences.extend(FileDifference::of_bytes(&self.scaled.outputs[at].tensor.name, expected, &found));
        Ok(())
    }

    /// True if a matrix's scale depends on its largest magnitude only: the matrix need not be in memory.
    fn is_one_scale(&self, planes: &Planes) -> bool {
        let [rows, cols] = planes.scales.block;
        let layout = &self.scaled.layout;
        let is_formula = self.scaled.how.search == Search::Formula && !matches!(planes.zero, Zero::Grid { .. });
        // Small matrices of a stack are recomputed as a whole.
        let is_large = layout.matrices == 1 || self.scaled.needs_amax;
        is_formula && is_large && rows >= layout.rows && cols >= layout.cols
    }

    fn unit(
        &self,
        planes: &Planes,
        quick: Option<&Quick>,
        unit: &Unit,
        global: u32,
        amaxes: &[u32],
        written: &StoredPlanes<'_, '_>,
    ) -> Result<UnitDifferences, Error> {
        let layout = &self.scaled.layout;
        let Unit { matrix, rows, cols } = unit;
        let [kept_rows, kept_cols] = layout.kept;
        let is_one = self.is_one_scale(planes);
        let [block_rows, block_cols] = planes.scales.block;
        // Padding is zeros.
        let (wide, used) = ((cols.end - cols.start) as usize, cols.start.min(kept_cols)..cols.end.min(kept_cols));
        let mut source: Vec<u32> = Vec::new();
        // Whole rows are contiguous.
        let together = if used == (0..kept_cols) && wide as u64 == kept_cols { rows.end - rows.start } else { 1 };
        for row in rows.clone().step_by(together as usize).filter(|row| *row < kept_rows) {
            let first = (matrix * kept_rows + row) * kept_cols;
            let last = first + (together.min(kept_rows - row) - 1) * kept_cols;
            let values = self.of.source.of(self.scaled, first + used.start..last + used.end)?;
            if source.is_empty() {
                source = values;
            } else {
                source.extend(values);
            }
            source.resize(source.len().next_multiple_of(wide), 0);
        }
        source.resize((rows.end - rows.start) as usize * wide, 0);
        let index_of = |local: usize| {
            let (row, col) = (rows.start + (local / wide) as u64, cols.start + (local % wide) as u64);
            let is_kept = row < kept_rows && col < kept_cols;
            is_kept.then_some((matrix * kept_rows + row) * kept_cols + col)
        };
        let actual = written.entries(Part::Codes, *matrix, rows, cols)?;
        let grid = layout.grid(planes.scales.block);
        let grid_rows = rows.start / block_rows..rows.end.div_ceil(block_rows);
        let grid_cols = cols.start / block_cols..cols.end.div_ceil(block_cols);
        let on_grid = |part| written.entries(part, *matrix, &grid_rows, &grid_cols);
        let scales = on_grid(Part::Scales)?;
        let zeros = match planes.zero {
            Zero::Grid { .. } => Some(on_grid(Part::Zeros)?),
            _ => None,
        };
        // Use the matrix-wide amax in place of rows that are not loaded.
        let largest = is_one.then(|| amaxes[*matrix as usize]);
        let mut seen = UnitDifferences::new();
        // Wrong codes of padding.
        let mut of_codes = Found::new();
        let (mut of_scales, mut of_zeros) = (Found::new(), Found::new());
        let on_grid = grid_rows.clone().flat_map(|row| grid_cols.clone().map(move |col| (row, col)));
        for (i, (grid_row, grid_col)) in on_grid.enumerate() {
            let of_rows =
                (grid_row * block_rows).max(rows.start)..(grid_row + 1).saturating_mul(block_rows).min(rows.end);
            let from = ((grid_col * block_cols).max(cols.start) - cols.start) as usize;
            let to = (((grid_col + 1) * block_cols).min(cols.end) - cols.start) as usize;
            let local = (of_rows.start - rows.start) as usize..(of_rows.end - rows.start) as usize;
            let kept = Unit { matrix: *matrix, rows: of_rows, cols: cols.start + from as u64..cols.start + to as u64 };
            let kept = kept.kept(layout.kept);
            let zero = zeros.as_ref().map(|zeros| zeros[i]);
            let first = local.start * wide + from;
            let (values, codes) = (&source[first..], &actual[first..]);
            let block = Block { values, codes, wide, size: [local.len(), to - from] };
            if let Some(quick) = quick.filter(|quick| quick.holds(block, largest, scales[i], zero)) {
                *(if quick.has_intervals() { &mut seen.by.intervals } else { &mut seen.by.arithmetic }) += kept;
                continue;
            }
            seen.by.definition += kept;
            let places: Vec<usize> = local.flat_map(|row| (from..to).map(move |col| row * wide + col)).collect();
            let values: Vec<u32> = largest.into_iter().chain(places.iter().map(|at| source[*at])).collect();
            let made = match planes.quantize(&self.scaled.how, global, &values) {
                Ok(made) => made,
                Err(ScaledError::NotFinite { index }) => {
                    let at = places[index as usize - usize::from(is_one)];
                    seen.codes.refuse(index_of(at).unwrap_or(0));
                    return Ok(seen);
                }
                Err(cause) => return Err(self.of.failed(cause)),
            };
            let entry = (matrix * grid[0] + grid_row) * grid[1] + grid_col;
            if made.scale != u64::from(scales[i]) {
                of_scales.wrong(entry, || (made.scale, scales[i].into()));
            }
            if let Some(zero) = zero.filter(|zero| u64::from(*zero) != made.zero) {
                of_zeros.wrong(entry, || (made.zero, zero.into()));
            }
            let wrong = places.iter().zip(&made.codes[usize::from(is_one)..]);
            for (at, expected) in wrong.filter(|(at, expected)| u64::from(actual[**at]) != **expected) {
                let (expected, actual) = (*expected, actual[*at].into());
                let Some(index) = index_of(*at) else {
                    let (row, col) = (rows.start + (at / wide) as u64, cols.start + (at % wide) as u64);
                    of_codes.wrong((matrix * layout.rows + row) * layout.cols + col, || (expected, actual));
                    continue;
                };
                // The source code is read later, for the first difference only.
                seen.codes.wrong(index, || WrongElement { index, source: 0, expected, actual });
            }
        }
        seen.parts = vec![(Part::Codes, of_codes), (Part::Scales, of_scales), (Part::Zeros, of_zeros)];
        Ok(seen)
    }
}

impl UnitDifferences {
    fn new() -> UnitDifferences {
        UnitDifferences { codes: Found::new(), parts: Vec::new(), by: Methods::default() }
    }

    fn merge(self, other: UnitDifferences) -> UnitDifferences {
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
        let mut by = self.by;
        by.add(&other.by);
        UnitDifferences { codes: self.codes.merge(other.codes), parts, by }
    }
}
