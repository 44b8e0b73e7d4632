//! A tensor of a GGUF file that holds codes and scales of planes of the source in blocks (`gatherer`). The blocks are checked by
//! the definition (`truecast_core::scaled::Gathering`), which shares no code with what may have written them.

use crate::convert::dequantize::dequantizer::Quantized;
use crate::convert::job::{Check, Checked, Job, Piece, PlaneMapping, SourceReader};
use crate::convert::operations::Operations;
use crate::convert::planned::Planned;
use crate::convert::quantize::error_meter::ErrorSums;
use crate::convert::quantize::flat::lies_in_rows;
use crate::convert::recompute::pieces;
use crate::convert::recompute::{Band, bytes_of};
use crate::convert::relayout::gatherer::{Alike, Gatherer, PARTS, Rows};
use crate::error::{Cause, Error};
use crate::report::TensorReport;
use crate::stream::{Item, zeros};
use crate::verify::coverage::elements_of;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use truecast_core::scaled::{Gathering, Part, Plane, ScaledError};
use truecast_io::Source;
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;
use truecast_kernel::{CastOptions, Counts};
use truecast_schemes::{Family, Scheme};

/// Blocks of the result.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    pub source: Quantized,
    pub alike: Alike,
    /// Of all matrices together.
    pub rows: u64,
    pub cols: u64,
    /// The name of what it becomes.
    to_scheme: Arc<str>,
    /// What became of the values.
    pub counts: Counts,
}

impl Gathered {
    /// The tensor, with codes and scales as rows of nibbles and of bytes, those of all matrices as one.
    pub fn new(source: Quantized, planes: &[PlaneMapping; 2]) -> Gathered {
        let to_scheme = Scheme::of(Family::Gguf(Gathering::BLOCK)).to_string().into();
        let [of_matrix, cols] = source.layout.out();
        let rows = of_matrix * source.layout.matrices;
        Gathered {
            alike: Alike { how: planes.map(|of| of.how), is_same: [planes[0].is_same(), planes[1].is_same()] },
            rows,
            cols,
            to_scheme,
            counts: Counts::default(),
            source,
        }
    }

    /// Bytes of the parts of the source that it takes the place of.
    fn bytes(&self) -> u64 {
        let bytes = |part| self.source.layout.part_bytes(part).ok().flatten().unwrap_or(0);
        PARTS.map(bytes).iter().sum()
    }

    fn rows_of(&self, (first, len): (u64, u64)) -> Rows {
        first / self.cols..(first + len) / self.cols
    }

    /// Where what elements become begins in the tensor that is written.
    fn place_of(&self, first: u64) -> u64 {
        first / Gathering::BLOCK.elements() * Gathering::BLOCK.bytes()
    }

    fn read_rows(
        &self,
        gatherer: &Gatherer,
        folder: &Folder,
        rows: &Rows,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let reads = gatherer.reads(rows);
        self.source.read(folder, reads.iter().flatten(), buffer)
    }

    /// Gives codes and scales of some rows to `look`, piece by piece with the first row of each, until it has seen enough.
    ///
    /// # Errors
    /// Reading.
    pub fn look(
        &self,
        folder: &Folder,
        rows: Rows,
        mut look: impl FnMut(u64, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let failed = |cause: Cause| Error::tensor(folder.path(), &self.source.name, cause);
        let gatherer = Gatherer::new(&self.alike, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (step, mut src) = (((1 << 20) / self.cols.max(1)).max(1), Vec::new());
        let mut row = rows.start;
        while row < rows.end {
            let end = (row + step).min(rows.end);
            let piece = row..end;
            let read = self.read_rows(&gatherer, folder, &piece, &mut src)?;
            let seen = gatherer.planes(&piece, &src[..read], |codes, scales| Ok(look(row, codes, scales)));
            if seen.map_err(failed)?.is_break() {
                return Ok(());
            }
            row = end;
        }
        Ok(())
    }
}

impl Job for Gathered {
    /// Cut between rows.
    fn item(&self, _: &Planned, index: usize) -> Item {
        // Codes and scales as rows stand between what is read and what is made.
        let (src_bits, dst_bits) = (self.source.bits().saturating_sub(32) + 5, 5);
        Item { index, len: self.rows * self.cols, src_bits, dst_bits, unit: self.cols.max(1), period: u64::MAX }
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes()
    }

    fn sources(&self) -> Vec<usize> {
        PARTS.map(|part| self.source.stored(part).shard).to_vec()
    }

    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        Some(Block::of_scaled(Gathering::BLOCK))
    }

    fn plan(&self, _: &Planned, operations: &Operations<'_>) -> Result<(), Cause> {
        operations.gather(&self.alike).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let gatherer = piece.operations.gather(&self.alike).map_err(piece.failed(from.folder))?;
        self.read_rows(&gatherer, from.folder, &self.rows_of((piece.first, piece.len)), buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let gatherer = piece.operations.gather(&self.alike)?;
        Ok((ErrorSums::default(), gatherer.run(&self.rows_of((piece.first, piece.len)), src, dst)?))
    }

    fn offset(&self, _: &Item, first: u64) -> u64 {
        self.place_of(first)
    }

    fn counts(&self, _: &Planned) -> Option<Counts> {
        Some(self.counts)
    }

    /// The tensor as it is read, not the bytes of its blocks.
    fn report(&self, row: &mut TensorReport) {
        let code = self.source.layout.code_type();
        (row.from, row.to, row.bytes_in, row.converted) = (code, code, self.bytes(), true);
        (row.scheme, row.to_scheme) = (Some(self.source.scheme.clone()), Some(self.to_scheme.clone()));
        row.elements = self.rows * self.cols;
        if let Some(columns) = Arc::make_mut(&mut row.shape).last_mut() {
            *columns = self.cols;
        }
    }

    fn check<'p>(&'p self, check: Check<'_, 'p>) -> Checked {
        let Check { folder, planned, result: (result, at), stretches, methods, progress, .. } = check;
        let mut bands: Vec<Band> =
            stretches.iter().flat_map(|some| self.bands(some.first..some.first + some.len)).collect();
        bands.dedup();
        let done = |some: &[Band]| {
            let rows: u64 = some.iter().map(|band| band.rows.end - band.rows.start).sum();
            methods.definition += rows * self.cols;
            progress((self.bytes() as f64 * rows as f64 / self.rows as f64) as u64)
        };
        let of_band = |band: &Band| self.wrong(folder, (result, at[0]), band);
        let found = pieces::prove(bands, Found::new(), of_band, Found::merge, done)?;
        let difference = FileDifference::of_found(&planned.target.name, &found);
        Ok((difference.into_iter().collect(), elements_of(stretches)))
    }
}

/// About the elements of a band.
const BAND: u64 = 1 << 16;
/// Where a plane does not lie in rows, it is read for each band: there are not many.
const MOST_BANDS: u64 = 16;

/// A part of the source: some of its rows, or all.
struct Held {
    plane: Plane,
    shape: [u64; 2],
    first: u64,
    bytes: Vec<u8>,
}

impl Held {
    fn get(&self, [row, col]: [u64; 2]) -> u8 {
        self.plane.get(self.shape, [row - self.first, col], &self.bytes) as u8
    }
}

impl Gathered {
    /// Bytes of a row of the result.
    fn row_bytes(&self) -> u64 {
        self.place_of(self.cols)
    }

    /// The bands that hold bytes of the result; they are the same whatever is asked for.
    fn bands(&self, bytes: Range<u64>) -> impl Iterator<Item = Band> + use<> {
        let layout = &self.source.layout;
        let [rows, cols] = layout.out();
        let are_together = layout.planes().is_some_and(|planes| {
            lies_in_rows(&planes.codes, [layout.rows, layout.cols])
                && lies_in_rows(&planes.scales.plane, layout.grid(planes.scales.block))
        });
        let least = if are_together { 1 } else { rows.div_ceil(MOST_BANDS) };
        let together = (BAND / cols.max(1)).max(least).max(1);
        let of_matrix = rows.div_ceil(together);
        let band = |row: u64| row / rows * of_matrix + row % rows / together;
        let (first, end) = (bytes.start / self.row_bytes(), bytes.end.div_ceil(self.row_bytes()));
        let all = if first < end { band(first)..band(end - 1) + 1 } else { 0..0 };
        all.map(move |at| {
            let first = at % of_matrix * together;
            Band { matrix: at / of_matrix, rows: first..(first + together).min(rows) }
        })
    }

    /// Reads a part of the source as far as some rows need it.
    fn held(&self, folder: &Folder, part: Part, (plane, shape): (Plane, [u64; 2]), band: &Band) -> Result<Held, Error> {
        let source = &self.source;
        let rows = if lies_in_rows(&plane, shape) { band.rows.clone() } else { 0..source.layout.rows };
        let range = bytes_of(&source.layout, part, band.matrix, &rows).ok_or_else(|| self.failed(folder))?;
        let at = source.stored(part);
        let mut bytes = zeros(range.end - range.start)?;
        folder.shards()[at.shard].source.read_at(at.tensor, range.start, &mut bytes)?;
        Ok(Held { plane, shape: [rows.end - rows.start, shape[1]], first: rows.start, bytes })
    }

    fn failed(&self, folder: &Folder) -> Error {
        let cause = ScaledError::Layout { why: "codes and scales do not lie in planes" };
        Error::tensor(folder.path(), &self.source.name, Cause::Scaled(cause))
    }

    /// Bytes of some rows of the result that are not what they should be.
    fn wrong(&self, folder: &Folder, (result, at): (&Source, usize), band: &Band) -> Result<Found<(u64, u64)>, Error> {
        let (layout, cols) = (&self.source.layout, self.cols);
        let planes = layout.planes().ok_or_else(|| self.failed(folder))?;
        let grid = layout.grid(planes.scales.block);
        let codes = self.held(folder, Part::Codes, (planes.codes, [layout.rows, layout.cols]), band)?;
        let scales = self.held(folder, Part::Scales, (planes.scales.plane, grid), band)?;
        let begin = (band.matrix * layout.out()[0] + band.rows.start) * self.row_bytes();
        let mut actual = zeros((band.rows.end - band.rows.start) * self.row_bytes())?;
        result.read_at(at, begin, &mut actual)?;
        let of_block = Gathering::BLOCK.elements();
        let places = band.rows.clone().flat_map(|row| (0..cols).step_by(of_block as usize).map(move |col| [row, col]));
        let mut found = Found::new();
        let blocks = actual.chunks(Gathering::BLOCK.bytes() as usize);
        for (number, ([row, col], actual)) in (0..).zip(places.zip(blocks)) {
            let code = |i: usize| codes.get([row, col + i as u64]);
            let scale = |k: usize| scales.get([row, col / Gathering::GROUP + k as u64]);
            let expected = Gathering::block(&std::array::from_fn(code), std::array::from_fn(scale));
            let first = begin + number * Gathering::BLOCK.bytes();
            for (index, (expected, actual)) in (first..).zip(expected.iter().zip(actual)) {
                if expected != actual {
                    found.wrong(index, || (u64::from(*expected), u64::from(*actual)));
                }
            }
        }
        Ok(found)
    }
}
