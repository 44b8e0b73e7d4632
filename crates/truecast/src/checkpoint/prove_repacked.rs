//! Entries in another packing or type recomputed by the definition (`truecast_core::scaled::Repacking`), which shares no code
//! with what may have written them; bits that belong to no entry are 0.

use super::flat::lies_in_rows;
use super::prove_pieces::prove;
use super::repacked::Repacked;
use crate::error::Error;
use crate::stream::zeros;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use truecast_core::scaled::Repacking;
use truecast_io::Source;
use truecast_io::folder::Folder;

/// About the entries of a band.
const BAND: u64 = 1 << 16;

/// A plane of the source and what became of it.
pub(super) struct RepackedProof<'a> {
    pub folder: &'a Folder,
    pub repacked: &'a Repacked,
    /// The result, the tensor's place in it and its name.
    pub result: (&'a Source, usize, &'a str),
}

/// Bytes of rows of the source.
struct Rows<'a> {
    bytes: &'a [u8],
    /// The first of them.
    first: u64,
    count: u64,
}

impl RepackedProof<'_> {
    /// What differs, and how many entries were recomputed: all.
    pub fn compare(
        &self,
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<(Option<FileDifference>, u64), Error> {
        let Repacked { how, matrices, from, .. } = self.repacked;
        let Repacking { from: plane, from_shape, to, to_shape: [rows, cols], transposed, .. } = *how;
        let is_read_in_bands = lies_in_rows(&plane, from_shape) && !transposed;
        let band = if lies_in_rows(&to, [rows, cols]) { (BAND / cols.max(1)).max(1) } else { rows };
        let source = &self.folder.shards()[from.shard].source;
        let matrix_bytes = plane.bytes(from_shape).unwrap_or(0);
        let mut found = Found::new();
        for matrix in 0..*matrices {
            let mut whole = Vec::new();
            if !is_read_in_bands {
                whole = zeros(matrix_bytes)?;
                source.read_at(from.tensor, matrix * matrix_bytes, &mut whole)?;
            }
            let of_band = |&first: &u64| {
                let rows = first..(first + band).min(rows);
                if !is_read_in_bands {
                    return self.band(matrix, rows, &Rows { bytes: &whole, first: 0, count: from_shape[0] });
                }
                let (from_row, to_row) = (rows.start.min(from_shape[0]), rows.end.min(from_shape[0]));
                let row_bytes = plane.bytes([1, from_shape[1]]).unwrap_or(0);
                let mut bytes = zeros((to_row - from_row) * row_bytes)?;
                source.read_at(from.tensor, matrix * matrix_bytes + from_row * row_bytes, &mut bytes)?;
                self.band(matrix, rows, &Rows { bytes: &bytes, first: from_row, count: to_row - from_row })
            };
            let bands = (0..rows).step_by(band.max(1) as usize);
            let n_bands = rows.div_ceil(band.max(1)).max(1);
            found = prove(bands, found, of_band, Found::merge, |some| {
                progress(self.repacked.bytes / matrices * some.len() as u64 / n_bands)
            })?;
        }
        let difference = FileDifference::of_found(self.result.2, &found);
        Ok((difference, matrices * rows * cols))
    }

    /// Bytes of some rows of the result that are not what they should be.
    fn band(&self, matrix: u64, rows: Range<u64>, source: &Rows<'_>) -> Result<Found<(u64, u64)>, Error> {
        let how = &self.repacked.how;
        let (to, [all, cols]) = (how.to, how.to_shape);
        let shape = [rows.end - rows.start, cols];
        let from_shape = [source.count, how.from_shape[1]];
        let bytes = |rows: u64| to.bytes([rows, cols]).unwrap_or(0);
        let (mut expected, mut actual) = (zeros(bytes(shape[0]))?, zeros(bytes(shape[0]))?);
        let begin = matrix * bytes(all) + bytes(rows.start);
        self.result.0.read_at(self.result.1, begin, &mut actual)?;
        let mut found = Found::new();
        for at in rows.clone().flat_map(|row| (0..cols).map(move |col| [row, col])) {
            let Some([row, col]) = how.source(at) else { continue };
            let code = how.from.get(from_shape, [row - source.first, col], source.bytes);
            match how.code(code) {
                Some(code) => {
                    let place = [at[0] - rows.start, at[1]];
                    to.packing.set(to.code.bits(), shape, place, &mut expected, code);
                }
                // It has no code there: whatever stands there is wrong.
                None => found.wrong(begin, || (code, code)),
            }
        }
        for (index, (expected, actual)) in (begin..).zip(expected.into_iter().zip(actual)) {
            if expected != actual {
                found.wrong(index, || (expected.into(), actual.into()));
            }
        }
        Ok(found)
    }
}
