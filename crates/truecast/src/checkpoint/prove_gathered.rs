//! Blocks of NVFP4 made anew of codes and scales by the definition (`truecast_core::scaled::Gathering`), which shares no code
//! with what may have written them.

use super::flat::lies_in_rows;
use super::gathered::Gathered;
use super::prove::{Band, bytes_of};
use super::prove_pieces;
use crate::error::{Cause, Error};
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use truecast_core::scaled::{Gathering, Part, Plane, ScaledError};
use truecast_io::Source;
use truecast_io::folder::Folder;

/// About the elements of a band.
const BAND: u64 = 1 << 16;
/// Where a plane does not lie in rows, it is read for each band: there are not many.
const MOST_BANDS: u64 = 16;

/// Blocks that were made.
pub(super) struct GatheredProof<'a> {
    pub folder: &'a Folder,
    pub gathered: &'a Gathered,
    /// The result, the tensor's place in it and its name.
    pub result: (&'a Source, usize, &'a str),
}

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

impl GatheredProof<'_> {
    /// What differs in these bytes of the result, and how many elements were made: all of the rows that hold them.
    pub fn compare(
        &self,
        stretches: &[Stretch],
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<(Option<FileDifference>, u64), Error> {
        let cols = self.gathered.cols;
        let mut bands: Vec<Band> =
            stretches.iter().flat_map(|some| self.bands(some.first..some.first + some.len)).collect();
        bands.dedup();
        let mut elements = 0;
        let done = |some: &[Band]| {
            let rows: u64 = some.iter().map(|band| band.rows.end - band.rows.start).sum();
            elements += rows * cols;
            progress((self.gathered.bytes() as f64 * rows as f64 / self.gathered.rows as f64) as u64)
        };
        let found = prove_pieces::prove(bands, Found::new(), |band| self.band(band), Found::merge, done)?;
        Ok((FileDifference::of_found(self.result.2, &found), elements))
    }

    /// Bytes of a row of the result.
    fn row_bytes(&self) -> u64 {
        self.gathered.offset(self.gathered.cols)
    }

    /// The bands that hold bytes of the result; they are the same whatever is asked for.
    fn bands(&self, bytes: Range<u64>) -> impl Iterator<Item = Band> + use<> {
        let layout = &self.gathered.source.layout;
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
    fn held(&self, part: Part, (plane, shape): (Plane, [u64; 2]), band: &Band) -> Result<Held, Error> {
        let source = &self.gathered.source;
        let rows = if lies_in_rows(&plane, shape) { band.rows.clone() } else { 0..source.layout.rows };
        let range = bytes_of(&source.layout, part, band.matrix, &rows).ok_or_else(|| self.failed())?;
        let at = source.stored(part);
        let mut bytes = zeros(range.end - range.start)?;
        self.folder.shards()[at.shard].source.read_at(at.tensor, range.start, &mut bytes)?;
        Ok(Held { plane, shape: [rows.end - rows.start, shape[1]], first: rows.start, bytes })
    }

    fn failed(&self) -> Error {
        let cause = ScaledError::Layout { why: "codes and scales do not lie in planes" };
        Error::tensor(self.folder.path(), &self.gathered.source.name, Cause::Scaled(cause))
    }

    /// Bytes of some rows of the result that are not what they should be.
    fn band(&self, band: &Band) -> Result<Found<(u64, u64)>, Error> {
        let (layout, cols) = (&self.gathered.source.layout, self.gathered.cols);
        let planes = layout.planes().ok_or_else(|| self.failed())?;
        let grid = layout.grid(planes.scales.block);
        let codes = self.held(Part::Codes, (planes.codes, [layout.rows, layout.cols]), band)?;
        let scales = self.held(Part::Scales, (planes.scales.plane, grid), band)?;
        let begin = (band.matrix * layout.out()[0] + band.rows.start) * self.row_bytes();
        let mut actual = zeros((band.rows.end - band.rows.start) * self.row_bytes())?;
        self.result.0.read_at(self.result.1, begin, &mut actual)?;
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
