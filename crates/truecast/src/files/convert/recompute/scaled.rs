//! Verifies codes and scales against their source without code of the writer. f32 arithmetic (`codes`) accepts most
//! blocks; the reference definition (`truecast_core::scaled`) decides the other blocks. Blocks are compared whole,
//! because every element affects the scale.

use crate::files::convert::quantize::flat::ON_GRID;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::codes::{Block, Quick};
use crate::files::convert::recompute::job_check::{CheckCaches, JobCheck};
use crate::files::convert::recompute::planes::StoredPlanes;
use crate::files::convert::recompute::source::SourceValues;
use crate::files::convert::recompute::units::{Unit, units};
use crate::files::error::Error;
use crate::files::verify::Methods;
use crate::files::verify::difference::{FileDifference, WrongElement};
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use crate::files::verify::written::Written;
use std::cell::RefCell;
use truecast_core::scaled::{Part, Planes, ScaledError, Search, Zero};
use truecast_schemes::Content;

thread_local! {
    /// Codes of a unit. The buffer is reused, because the allocator would return such buffers to the system.
    static CODES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

struct ScaledProof<'a> {
    scaled: &'a Scaled,
    of: &'a Written<'a>,
    planes: Planes,
    source: SourceValues<'a>,
    written: StoredPlanes<'a>,
    global: u32,
    quick: Option<Quick>,
    /// Largest magnitude of each matrix, if the scale depends on this magnitude only. The matrix then need not be in
    /// memory.
    amaxes: Option<Vec<u32>>,
}

/// Compares the written parts of a quantized tensor with a recomputation from its source.
pub(crate) fn compare(scaled: &Scaled, check: JobCheck<'_>) -> Result<Findings, Error> {
    let JobCheck { of, caches, progress } = check;
    let name = |part| {
        let output = scaled.outputs.get(scaled.outputs_of(part).start);
        output.map_or(&*of.planned.name, |output| &*output.tensor.name)
    };
    let refused = |index| vec![FileDifference::Refused { tensor: of.planned.name.to_string(), index }];
    let mut differences = compare_constants(scaled, &of)?;
    differences.extend(compare_copies(scaled, &of)?);
    let layout = &scaled.layout;
    let planes = *layout.planes().expect("what is written has planes");
    let is_one_scale = is_one_scale(scaled, &planes);
    let amaxes = if planes.global.is_some() || is_one_scale {
        match matrix_amaxes(scaled, &of, caches)? {
            Ok(amaxes) => Some(amaxes),
            Err(not_finite) => return Ok((refused(not_finite), Methods::default())),
        }
    } else {
        None
    };
    let mut global = 1f32.to_bits();
    if let (Some(rule), Some(amaxes)) = (planes.global, &amaxes) {
        global = rule.rule.of_amax(amaxes[0]).map_err(|cause| of.failed(cause))?;
        let first = scaled.outputs_of(Part::Global).start;
        differences.extend(of.compare_bytes(first, name(Part::Global), &global.to_le_bytes())?);
    }
    let proof = ScaledProof {
        scaled,
        of: &of,
        planes,
        source: SourceValues::new(of.folder, scaled),
        written: StoredPlanes { scaled, of: &of },
        global,
        quick: Quick::new(&planes, &scaled.how, global, &mut caches.roundings),
        amaxes: amaxes.filter(|_| is_one_scale),
    };
    for part in ON_GRID {
        let found = FileDifference::of_found(name(part), &proof.written.filling(part)?);
        differences.extend(found.map(|found| in_layer(scaled, found, |part| layout.part_bytes(part).ok().flatten())));
    }
    let block = if is_one_scale { [1, layout.cols] } else { planes.scales.block };
    let units = of.stretches.iter().flat_map(|stretch| units(layout, block, stretch));
    let mut seen = compare_pieces(units, |unit| proof.unit(&unit), proof.source.bytes_per_element(), progress)?;
    if let Some(index) = seen.elements.refused {
        return Ok((refused(index), seen.by));
    }
    if let Some((index, first)) = &mut seen.elements.first {
        first.source = proof.source.code(*index)?;
    }
    let (found, by) = seen.findings(ON_GRID.map(name), (scaled.dtype, of.planned.target.dtype));
    let entries = |part| {
        let [rows, cols] = layout.grid(layout.plane(part)?.1);
        Some(layout.matrices * rows * cols)
    };
    differences.extend(found.into_iter().map(|found| in_layer(scaled, found, entries)));
    Ok((differences, by))
}

/// Compares outputs with constant contents, such as shapes and markers.
fn compare_constants(scaled: &Scaled, of: &Written<'_>) -> Result<Vec<FileDifference>, Error> {
    let mut differences = Vec::new();
    for (at, output) in scaled.outputs.iter().enumerate() {
        if let Content::Bytes(expected) = &output.content {
            differences.extend(of.compare_bytes(at, &output.tensor.name, expected)?);
        }
    }
    Ok(differences)
}

/// Compares the copies of parts that several outputs store.
fn compare_copies(scaled: &Scaled, of: &Written<'_>) -> Result<Vec<FileDifference>, Error> {
    let mut differences = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| scaled.is_repeated(*part)) {
        let outputs = scaled.outputs_of(part);
        let first = of.read(outputs.start, 0..scaled.outputs[outputs.start].tensor.bytes())?;
        for at in outputs.skip(1) {
            differences.extend(of.compare_bytes(at, &scaled.outputs[at].tensor.name, &first)?);
        }
    }
    Ok(differences)
}

/// Returns the largest magnitude of each matrix as f32 bits, over all tensors that share the scale; or the index of an
/// element that is not finite.
fn matrix_amaxes(scaled: &Scaled, of: &Written<'_>, caches: &mut CheckCaches) -> Result<Result<Vec<u32>, u64>, Error> {
    let mut amaxes = vec![0; scaled.layout.matrices as usize];
    for scaled in of.shared.iter().copied().chain([scaled]) {
        match SourceValues::new(of.folder, scaled).amax(&mut caches.amaxes)? {
            Ok(found) => amaxes.iter_mut().zip(found).for_each(|(amax, found)| *amax = (*amax).max(found)),
            Err(ScaledError::NotFinite { index }) => return Ok(Err(index)),
            Err(cause) => return Err(of.failed(cause)),
        }
    }
    Ok(Ok(amaxes))
}

/// Replaces the name of a part's first output by the name of the output with the wrong entry. `total`: number of
/// entries of a part.
fn in_layer(scaled: &Scaled, mut difference: FileDifference, total: impl Fn(Part) -> Option<u64>) -> FileDifference {
    let (FileDifference::Elements { tensor, first: WrongElement { index, .. }, .. }
    | FileDifference::Part { tensor, index, .. }) = &mut difference
    else {
        return difference;
    };
    let content = scaled.outputs.iter().find(|output| *output.tensor.name == **tensor).map(|output| &output.content);
    let Some(Content::Part(part)) = content else { return difference };
    let outputs = scaled.outputs_of(*part);
    if outputs.len() > 1 && !scaled.is_repeated(*part) {
        let each = total(*part).map_or(1, |total| total / outputs.len() as u64).max(1);
        *tensor = scaled.outputs[outputs.start + (*index / each) as usize].tensor.name.to_string();
        *index %= each;
    }
    difference
}

fn is_one_scale(scaled: &Scaled, planes: &Planes) -> bool {
    let ([rows, cols], layout) = (planes.scales.block, &scaled.layout);
    let is_formula = scaled.how.search == Search::Formula && !matches!(planes.zero, Zero::Grid { .. });
    // Small matrices of a stack are recomputed whole.
    let is_large = layout.matrices == 1 || scaled.needs_amax;
    is_formula && is_large && rows >= layout.rows && cols >= layout.cols
}

impl ScaledProof<'_> {
    fn unit(&self, unit: &Unit) -> Result<Seen, Error> {
        let ScaledProof { scaled, planes, written, .. } = self;
        let (layout, Unit { matrix, rows, cols }) = (&scaled.layout, unit);
        let [kept_rows, kept_cols] = layout.kept;
        let [block_rows, block_cols] = planes.scales.block;
        let (wide, used) = ((cols.end - cols.start) as usize, cols.start.min(kept_cols)..cols.end.min(kept_cols));
        let mut source: Vec<u32> = Vec::new();
        let together = if used == (0..kept_cols) && wide as u64 == kept_cols { rows.end - rows.start } else { 1 };
        for row in rows.clone().step_by(together as usize).filter(|row| *row < kept_rows) {
            let first = (matrix * kept_rows + row) * kept_cols;
            let last = first + (together.min(kept_rows - row) - 1) * kept_cols;
            let values = self.source.read(first + used.start..last + used.end)?;
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
        let actual = written.entries(Part::Codes, *matrix, rows, cols, CODES.take())?;
        let grid = layout.grid(planes.scales.block);
        let grid_rows = rows.start / block_rows..rows.end.div_ceil(block_rows);
        let grid_cols = cols.start / block_cols..cols.end.div_ceil(block_cols);
        let on_grid = |part| written.entries(part, *matrix, &grid_rows, &grid_cols, Vec::new());
        let scales = on_grid(Part::Scales)?;
        let zeros = match planes.zero {
            Zero::Grid { .. } => Some(on_grid(Part::Zeros)?),
            _ => None,
        };
        // Largest magnitude of the matrix, which may not be in memory as a whole.
        let largest = self.amaxes.as_ref().map(|amaxes| amaxes[*matrix as usize]);
        let mut seen = Seen::new();
        let [of_padding, of_scales, of_zeros] = &mut seen.entries;
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
            if let Some(quick) = self.quick.as_ref().filter(|quick| quick.holds(block, largest, scales[i], zero)) {
                *(if quick.has_intervals() { &mut seen.by.intervals } else { &mut seen.by.arithmetic }) += kept;
                continue;
            }
            seen.by.definition += kept;
            let places: Vec<usize> = local.flat_map(|row| (from..to).map(move |col| row * wide + col)).collect();
            let values: Vec<u32> = largest.into_iter().chain(places.iter().map(|at| source[*at])).collect();
            let made = match planes.quantize(&scaled.how, self.global, &values) {
                Ok(made) => made,
                Err(ScaledError::NotFinite { index }) => {
                    let at = places[index as usize - usize::from(largest.is_some())];
                    seen.elements.refuse(index_of(at).unwrap_or(0));
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
            let wrong = places.iter().zip(&made.codes[usize::from(largest.is_some())..]);
            for (at, expected) in wrong.filter(|(at, expected)| u64::from(actual[**at]) != **expected) {
                let (expected, actual) = (*expected, actual[*at].into());
                let Some(index) = index_of(*at) else {
                    let (row, col) = (rows.start + (at / wide) as u64, cols.start + (at % wide) as u64);
                    of_padding.wrong((matrix * layout.rows + row) * layout.cols + col, || (expected, actual));
                    continue;
                };
                // The source code is read later, only for the first difference.
                seen.elements.wrong(index, || WrongElement { index, source: 0, expected, actual });
            }
        }
        CODES.set(actual);
        Ok(seen)
    }
}
