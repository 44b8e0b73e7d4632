//! Verifies codes and scales against their source without code of the writer. f32 arithmetic (`codes`) accepts most
//! blocks; the reference definition (`truecast_core::scaled`) decides the other blocks. Blocks are compared whole,
//! because every element affects the scale.

use crate::files::convert::quantize::flat::ON_GRID;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::band::{Band, GridBlock, Position, bands};
use crate::files::convert::recompute::codes::{Block, Quick};
use crate::files::convert::recompute::job_check::{CheckCaches, JobCheck};
use crate::files::convert::recompute::planes::StoredPlanes;
use crate::files::convert::recompute::source::SourceValues;
use crate::files::error::Error;
use crate::files::verify::Methods;
use crate::files::verify::difference::{FileDifference, WrongElement};
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use crate::files::verify::written::Written;
use std::cell::RefCell;
use std::ops::ControlFlow;
use truecast_core::scaled::{Part, Planes, ScaledError, Search, Zero};
use truecast_schemes::Content;

thread_local! {
    /// Codes of a band. The buffer is reused, because the allocator would return such buffers to the system.
    static CODES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

struct ScaledProof<'a> {
    scaled: &'a Scaled,
    written: &'a Written<'a>,
    planes: Planes,
    source: SourceValues<'a>,
    stored: StoredPlanes<'a>,
    global: u32,
    quick: Option<Quick>,
    /// Largest magnitude of each matrix, if the scale depends on nothing else. The matrix then need not be in memory.
    matrix_amax: Option<Vec<u32>>,
}

/// Values and codes of a band, and the largest magnitude of its matrix if known.
struct ReadBand {
    band: Band,
    values: Vec<u32>,
    codes: Vec<u32>,
    amax: Option<u32>,
}

/// Compares the written parts of a quantized tensor with a recomputation from its source.
pub(crate) fn compare(scaled: &Scaled, check: JobCheck<'_>) -> Result<Findings, Error> {
    let JobCheck { written, caches, progress } = check;
    let refused = |index| vec![FileDifference::Refused { tensor: written.planned.name.to_string(), index }];
    let planes = *scaled.layout.planes().expect("a scheme with scales has planes");
    let is_one_scale = is_one_scale(scaled, &planes);
    let needs_amax = is_one_scale || planes.global.is_some();
    let amaxes = if needs_amax { matrix_amaxes(scaled, &written, caches)? } else { Ok(Vec::new()) };
    let amaxes = match amaxes {
        Ok(amaxes) => amaxes,
        Err(not_finite) => return Ok((refused(not_finite), Methods::default())),
    };
    let global = match planes.global {
        Some(global) => global.rule.of_amax(amaxes[0]).map_err(|cause| written.failed(cause))?,
        None => 1f32.to_bits(),
    };
    let proof = ScaledProof {
        scaled,
        written: &written,
        planes,
        source: SourceValues::new(written.folder, scaled),
        stored: StoredPlanes { scaled, written: &written },
        global,
        quick: Quick::new(&planes, &scaled.how, global, &mut caches.roundings),
        matrix_amax: is_one_scale.then_some(amaxes),
    };
    let mut differences = proof.constants()?;
    differences.extend(proof.copies()?);
    differences.extend(proof.global_scale()?);
    differences.extend(proof.padding_bits()?);
    let mut seen = proof.elements(progress)?;
    if let Some(index) = seen.elements.refused {
        return Ok((refused(index), seen.by));
    }
    if let Some((index, first)) = &mut seen.elements.first {
        first.source = proof.source.code(*index)?;
    }
    let (found, by) = seen.findings(ON_GRID.map(|part| proof.name(part)), (scaled.dtype, written.planned.target.dtype));
    differences.extend(found.into_iter().map(|found| proof.in_real_output(found, |part| proof.entries(part))));
    Ok((differences, by))
}

/// Returns the largest magnitude of each matrix as f32 bits, over all tensors that share the scale; or the index of an
/// element that is not finite.
fn matrix_amaxes(
    scaled: &Scaled,
    written: &Written<'_>,
    caches: &mut CheckCaches,
) -> Result<Result<Vec<u32>, u64>, Error> {
    let mut amaxes = vec![0; scaled.layout.matrices as usize];
    for scaled in written.shared.iter().copied().chain([scaled]) {
        match SourceValues::new(written.folder, scaled).amax(&mut caches.amaxes)? {
            Ok(found) => amaxes.iter_mut().zip(found).for_each(|(amax, found)| *amax = (*amax).max(found)),
            Err(ScaledError::NotFinite { index }) => return Ok(Err(index)),
            Err(cause) => return Err(written.failed(cause)),
        }
    }
    Ok(Ok(amaxes))
}

/// True if one scale covers each matrix and depends only on its largest magnitude. The matrix is then checked in bands.
fn is_one_scale(scaled: &Scaled, planes: &Planes) -> bool {
    let ([rows, cols], layout) = (planes.scales.block, &scaled.layout);
    let is_formula = scaled.how.search == Search::Formula && !matches!(planes.zero, Zero::Grid { .. });
    // Pieces of a stack of small matrices have whole matrices; bands are not needed.
    let is_large = layout.matrices == 1 || scaled.needs_amax;
    is_formula && is_large && rows >= layout.rows && cols >= layout.cols
}

impl ScaledProof<'_> {
    /// Name of the first output of a part.
    fn name(&self, part: Part) -> &str {
        let output = self.scaled.outputs.get(self.scaled.outputs_of(part).start);
        output.map_or(&self.written.planned.name, |output| &output.tensor.name)
    }

    /// Number of entries of a part on a grid.
    fn entries(&self, part: Part) -> Option<u64> {
        let layout = &self.scaled.layout;
        let [rows, cols] = layout.grid(layout.plane(part)?.1);
        Some(layout.matrices * rows * cols)
    }

    /// Compares outputs with constant contents, such as shapes and markers.
    fn constants(&self) -> Result<Vec<FileDifference>, Error> {
        let mut differences = Vec::new();
        for (at, output) in self.scaled.outputs.iter().enumerate() {
            if let Content::Bytes(expected) = &output.content {
                differences.extend(self.written.compare_bytes(at, &output.tensor.name, expected)?);
            }
        }
        Ok(differences)
    }

    /// Compares the copies of parts that several outputs store.
    fn copies(&self) -> Result<Vec<FileDifference>, Error> {
        let (scaled, mut differences) = (self.scaled, Vec::new());
        for part in Part::ALL.into_iter().filter(|part| scaled.is_repeated(*part)) {
            let outputs = scaled.outputs_of(part);
            let first = self.written.read(outputs.start, 0..scaled.outputs[outputs.start].tensor.bytes())?;
            for at in outputs.skip(1) {
                differences.extend(self.written.compare_bytes(at, &scaled.outputs[at].tensor.name, &first)?);
            }
        }
        Ok(differences)
    }

    fn global_scale(&self) -> Result<Option<FileDifference>, Error> {
        if self.planes.global.is_none() {
            return Ok(None);
        }
        let first = self.scaled.outputs_of(Part::Global).start;
        self.written.compare_bytes(first, self.name(Part::Global), &self.global.to_le_bytes())
    }

    fn padding_bits(&self) -> Result<Vec<FileDifference>, Error> {
        let mut differences = Vec::new();
        for part in ON_GRID {
            let found = FileDifference::of_found(self.name(part), &self.stored.padding_bits(part)?);
            let bytes = |part| self.scaled.layout.part_bytes(part).ok().flatten();
            differences.extend(found.map(|found| self.in_real_output(found, bytes)));
        }
        Ok(differences)
    }

    fn elements(&self, progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send)) -> Result<Seen, Error> {
        let layout = &self.scaled.layout;
        let block = if self.matrix_amax.is_some() { [1, layout.cols] } else { self.planes.scales.block };
        let bands = self.written.stretches.iter().flat_map(|stretch| bands(layout, block, stretch));
        compare_pieces(bands, |band| self.band(band), self.source.bytes_per_element(), progress)
    }

    fn band(&self, band: Band) -> Result<Seen, Error> {
        let (size, matrix, width) = (self.planes.scales.block, band.matrix, band.width());
        let codes = self.stored.entries(Part::Codes, matrix, &band.rows, &band.cols, CODES.take())?;
        let [grid_rows, grid_cols] = band.grid(size);
        let on_grid = |part| self.stored.entries(part, matrix, &grid_rows, &grid_cols, Vec::new());
        let scales = on_grid(Part::Scales)?;
        let zeros = match self.planes.zero {
            Zero::Grid { .. } => Some(on_grid(Part::Zeros)?),
            _ => None,
        };
        let amax = self.matrix_amax.as_ref().map(|amaxes| amaxes[matrix as usize]);
        let read = ReadBand { values: band.values(&self.source)?, band, codes, amax };
        let mut seen = Seen::new();
        for (i, block) in read.band.blocks(size).enumerate() {
            let (scale, zero) = (scales[i], zeros.as_ref().map(|zeros| zeros[i]));
            let first = block.rows.start * width + block.cols.start;
            let (values, codes) = (&read.values[first..], &read.codes[first..]);
            let stored = Block { values, codes, width, size: [block.rows.len(), block.cols.len()] };
            match &self.quick {
                Some(quick) if quick.holds(stored, amax, scale, zero) => *quick.counter(&mut seen.by) += block.kept,
                _ => self.by_definition(&read, &block, scale, zero, &mut seen)?,
            }
            if seen.elements.refused.is_some() {
                return Ok(seen);
            }
        }
        CODES.set(read.codes);
        Ok(seen)
    }

    fn by_definition(
        &self,
        ReadBand { band, values, codes, amax }: &ReadBand,
        block: &GridBlock,
        scale: u32,
        zero: Option<u32>,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        seen.by.definition += block.kept;
        let entries = block.entries(band);
        // If the block is part of a matrix with one scale, the largest magnitude of the matrix is one more value.
        let values: Vec<u32> = amax.iter().copied().chain(entries.iter().map(|local| values[*local])).collect();
        let added = usize::from(amax.is_some());
        let expected = match self.planes.quantize(&self.scaled.how, self.global, &values) {
            Ok(expected) => expected,
            Err(ScaledError::NotFinite { index }) => {
                let position = band.position(entries[index as usize - added]);
                let (Position::Kept(index) | Position::Padding(index)) = position;
                seen.elements.refuse(index);
                return Ok(());
            }
            Err(cause) => return Err(self.written.failed(cause)),
        };
        let [padding, scales, zeros] = &mut seen.entries;
        if expected.scale != u64::from(scale) {
            scales.wrong(block.entry, || (expected.scale, scale.into()));
        }
        if let Some(zero) = zero.filter(|zero| u64::from(*zero) != expected.zero) {
            zeros.wrong(block.entry, || (expected.zero, zero.into()));
        }
        for (local, &expected) in entries.iter().zip(&expected.codes[added..]) {
            let actual = u64::from(codes[*local]);
            if actual == expected {
                continue;
            }
            match band.position(*local) {
                Position::Padding(index) => padding.wrong(index, || (expected, actual)),
                // `compare` reads the source code, only for the first difference.
                Position::Kept(index) => {
                    seen.elements.wrong(index, || WrongElement { index, source: 0, expected, actual });
                }
            }
        }
        Ok(())
    }

    /// Names the output that has the wrong entry, for a part that several outputs store together. `total`: number of
    /// entries of a part.
    fn in_real_output(&self, mut difference: FileDifference, total: impl Fn(Part) -> Option<u64>) -> FileDifference {
        let (FileDifference::Elements { tensor, first: WrongElement { index, .. }, .. }
        | FileDifference::Part { tensor, index, .. }) = &mut difference
        else {
            return difference;
        };
        let outputs = &self.scaled.outputs;
        let content = outputs.iter().find(|output| *output.tensor.name == **tensor).map(|output| &output.content);
        let Some(Content::Part(part)) = content else { return difference };
        let outputs_of_part = self.scaled.outputs_of(*part);
        if outputs_of_part.len() > 1 && !self.scaled.is_repeated(*part) {
            let each = total(*part).map_or(1, |total| total / outputs_of_part.len() as u64).max(1);
            *tensor = outputs[outputs_of_part.start + (*index / each) as usize].tensor.name.to_string();
            *index %= each;
        }
        difference
    }
}
