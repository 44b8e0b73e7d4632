//! Reads planes of a written tensor for proofs: entries, and bits outside entries. `scaled` computes the expectation.

use crate::files::convert::quantize::flat::{ON_GRID, lies_in_rows};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::fields::Fields;
use crate::files::error::Error;
use crate::files::stream::zeros;
use crate::files::verify::found::Found;
use crate::files::verify::written::Written;
use std::ops::Range;
use truecast_core::scaled::{Part, Plane};

/// The planes of a written tensor.
pub(crate) struct StoredPlanes<'a> {
    scaled: &'a Scaled,
    of: &'a Written<'a>,
    /// Whole planes, if their rows are not contiguous.
    held: Vec<(Part, Vec<u8>)>,
}

impl<'a> StoredPlanes<'a> {
    /// Reads the planes that must be read as a whole.
    pub fn new(scaled: &'a Scaled, of: &'a Written<'a>) -> Result<StoredPlanes<'a>, Error> {
        let mut written = StoredPlanes { scaled, of, held: Vec::new() };
        for part in ON_GRID {
            let Some((plane, shape)) = written.plane(part) else { continue };
            if let (false, Some(at)) = (lies_in_rows(&plane, shape), scaled.output(part)) {
                written.held.push((part, of.read(at, 0..scaled.outputs[at].tensor.bytes())?));
            }
        }
        Ok(written)
    }

    /// The plane of a part, with its rows and columns.
    fn plane(&self, part: Part) -> Option<(Plane, [u64; 2])> {
        let (plane, block) = self.scaled.layout.plane(part)?;
        Some((plane, self.scaled.layout.grid(block)))
    }

    /// Nonzero bytes among the padding of words at the end of a row, and of tiles.
    pub fn filling(&self, part: Part) -> Result<Found<(u64, u64)>, Error> {
        let mut wrong = Found::new();
        let (Some(at), Some((plane, shape))) = (self.scaled.output(part), self.plane(part)) else { return Ok(wrong) };
        // Whole matrices, or equal rows.
        let whole = self.held.iter().find(|(of, _)| *of == part);
        let [rows, cols] = if whole.is_some() { shape } else { [1, shape[1]] };
        let bits = plane.code.bits();
        let mut free = zeros(plane.bytes([rows, cols]).unwrap_or(0))?;
        free.fill(0xff_u8);
        for at in (0..rows).flat_map(|row| (0..cols).map(move |col| [row, col])) {
            plane.packing.set(bits, [rows, cols], at, &mut free, 0);
        }
        let Some(begin) = free.iter().position(|free| *free != 0) else { return Ok(wrong) };
        let size = free.len();
        let total = self.scaled.outputs[at].tensor.bytes();
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
                for first in (0..total).step_by(step) {
                    look(first, &self.of.read(at, first..total.min(first + step as u64))?);
                }
            }
        }
        Ok(wrong)
    }

    /// The entries in a box of a plane, row by row.
    pub fn entries(&self, part: Part, matrix: u64, rows: &Range<u64>, cols: &Range<u64>) -> Result<Vec<u32>, Error> {
        let (plane, shape) = self.plane(part).expect("only planes have entries");
        let bits = plane.code.bits();
        let matrix_bytes = plane.bytes(shape).unwrap_or(0);
        let (tall, wide) = ((rows.end - rows.start) as usize, (cols.end - cols.start) as usize);
        let mut all = vec![0; tall * wide];
        if let Some((_, bytes)) = self.held.iter().find(|(of, _)| *of == part) {
            let fields = Fields { plane, shape, bytes: &bytes[(matrix * matrix_bytes) as usize..] };
            for (row, entries) in rows.clone().zip(all.chunks_mut(wide.max(1))) {
                fields.read(row, cols.clone(), entries);
            }
            return Ok(all);
        }
        let at = self.scaled.output(part).expect("every part has its tensor");
        let row_bytes = plane.bytes([1, shape[1]]).unwrap_or(0);
        // Eight fields fill whole bytes.
        let octets = cols.start / 8..cols.end.div_ceil(8);
        let (first, end) = (octets.start * u64::from(bits), (octets.end * u64::from(bits)).min(row_bytes));
        let local = cols.start - octets.start * 8..cols.end - octets.start * 8;
        // Whole rows are contiguous.
        let together = if first == 0 && end == row_bytes { tall } else { 1 };
        let groups = all.chunks_mut((together * wide).max(1));
        for (row, entries) in rows.clone().step_by(together.max(1)).zip(groups) {
            let begin = matrix * matrix_bytes + row * row_bytes + first;
            let bytes = self.of.read(at, begin..begin + (end - first) * together as u64)?;
            let each = bytes.chunks((end - first).max(1) as usize);
            for (bytes, entries) in each.zip(entries.chunks_mut(wide.max(1))) {
                Fields { plane, shape: [1, shape[1]], bytes }.read(0, local.clone(), entries);
            }
        }
        Ok(all)
    }
}
