//! Reads planes of a written tensor for verification: entries, and padding bits.

use crate::files::convert::quantize::flat::rows_together;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::fields::Fields;
use crate::files::error::Error;
use crate::files::stream::zeros;
use crate::files::verify::found::Found;
use crate::files::verify::written::Written;
use std::ops::Range;
use truecast_core::scaled::{Packing, Part, Plane};

pub(crate) struct StoredPlanes<'a> {
    pub scaled: &'a Scaled,
    pub written: &'a Written<'a>,
}

impl StoredPlanes<'_> {
    fn plane(&self, part: Part) -> Option<(Plane, [u64; 2])> {
        let (plane, block) = self.scaled.layout.plane(part)?;
        Some((plane, self.scaled.layout.grid(block)))
    }

    fn read(&self, part: Part, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut read = Vec::new();
        for (output, first, len) in self.scaled.places(part, bytes.start, bytes.end - bytes.start) {
            let now = self.written.read(output, first..first + len)?;
            if read.is_empty() {
                read = now;
            } else {
                read.extend(now);
            }
        }
        Ok(read)
    }

    /// Finds nonzero padding bits at the end of rows and in tiles.
    pub fn padding_bits(&self, part: Part) -> Result<Found<(u64, u64)>, Error> {
        let mut wrong = Found::new();
        let outputs = self.scaled.outputs_of(part);
        let Some((plane, shape)) = self.plane(part).filter(|_| !outputs.is_empty()) else { return Ok(wrong) };
        // Rows with equal padding, or else whole matrices.
        let [rows, cols] = if rows_together(&plane, shape[0]) == 1 { [1, shape[1]] } else { shape };
        let bits = plane.code.bits();
        let bytes = plane.bytes([rows, cols]).unwrap_or(0);
        if bytes * 8 == rows * cols * u64::from(bits) {
            return Ok(wrong); // no padding
        }
        let mut free = zeros(bytes)?;
        free.fill(0xff_u8);
        for at in (0..rows).flat_map(|row| (0..cols).map(move |col| [row, col])) {
            plane.packing.set(bits, [rows, cols], at, &mut free, 0);
        }
        let Some(begin) = free.iter().position(|free| *free != 0) else { return Ok(wrong) };
        let (size, total) = (free.len(), self.scaled.layout.part_bytes(part).ok().flatten().unwrap_or(0));
        let step = ((1 << 18) / size).max(1) * size;
        for first in (0..total).step_by(step) {
            let bytes = self.read(part, first..total.min(first + step as u64))?;
            for (i, of_one) in bytes.chunks(size).enumerate() {
                for (at, (byte, free)) in of_one.iter().zip(&free).enumerate().skip(begin) {
                    if byte & free != 0 {
                        wrong.wrong(first + (i * size + at) as u64, || (0, u64::from(byte & free)));
                    }
                }
            }
        }
        Ok(wrong)
    }

    /// Reads a rectangle of entries, row by row, into `all`.
    pub fn entries(
        &self,
        part: Part,
        matrix: u64,
        rows: &Range<u64>,
        cols: &Range<u64>,
        mut all: Vec<u32>,
    ) -> Result<Vec<u32>, Error> {
        let (plane, shape) = self.plane(part).expect("only planes have entries");
        let (granule, width) = (rows_together(&plane, shape[0]), (cols.end - cols.start) as usize);
        all.resize((rows.end - rows.start) as usize * width, 0);
        let each = rows.clone().zip(all.chunks_mut(width.max(1)));
        let row_bytes = |rows| plane.bytes([rows, shape[1]]).unwrap_or(0);
        let begin = |row| matrix * row_bytes(shape[0]) + row_bytes(row);
        if matches!(plane.packing, Packing::Rows { .. } | Packing::HighFirst) && *cols != (0..shape[1]) {
            let (octets, bits) = (cols.start / 8..cols.end.div_ceil(8), u64::from(plane.code.bits()));
            let (first, end) = (octets.start * bits, (octets.end * bits).min(row_bytes(1)));
            for (row, entries) in each {
                let bytes = self.read(part, begin(row) + first..begin(row) + end)?;
                let fields = Fields { plane, shape: [1, shape[1]], bytes: &bytes };
                fields.read(0, cols.start - octets.start * 8..cols.end - octets.start * 8, entries);
            }
            return Ok(all);
        }
        let (first, end) = (rows.start / granule * granule, rows.end.next_multiple_of(granule).min(shape[0]));
        let bytes = self.read(part, begin(first)..begin(end))?;
        let fields = Fields { plane, shape: [end - first, shape[1]], bytes: &bytes };
        each.for_each(|(row, entries)| fields.read(row - first, cols.clone(), entries));
        Ok(all)
    }
}
