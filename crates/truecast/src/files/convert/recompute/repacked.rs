//! Verifies a rewritten plane by the reference definition (`truecast_core::scaled::Repacking`). Padding bits must be 0.

use crate::files::convert::job::{PlaneOperation, Transcode};
use crate::files::convert::quantize::flat::rows_together;
use crate::files::convert::recompute::job_check::JobCheck;
use crate::files::error::Error;
use crate::files::stream::zeros;
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use crate::files::verify::written::Written;
use std::borrow::Cow;
use std::ops::Range;
use truecast_core::scaled::Repacking;
use truecast_io::folder::Folder;

const BAND: u64 = 1 << 16;

pub(crate) fn compare(job: &Transcode, check: JobCheck<'_>) -> Result<Findings, Error> {
    let JobCheck { written, progress, .. } = check;
    let [rows, cols] = job.plane.how.to_shape;
    let bytes_per_entry = job.bytes as f64 / (job.matrices * rows * cols).max(1) as f64;
    let mut seen = Seen::new();
    for matrix in 0..job.matrices {
        let held = whole(&job.plane, written.folder, matrix)?;
        let compare = |rows| compare_rows(job, &written, held.as_deref(), matrix, &rows);
        seen = seen.merge(compare_pieces(bands(job), compare, bytes_per_entry, progress)?);
    }
    let target = &written.planned.target;
    Ok(seen.findings([&target.name; 3], (target.dtype, target.dtype)))
}

/// Reads a whole source matrix if its rows are columns of the result.
fn whole(plane: &PlaneOperation, folder: &Folder, matrix: u64) -> Result<Option<Vec<u8>>, Error> {
    let all = 0..plane.how.from_shape[0];
    plane.how.transposed.then(|| source_rows(plane, folder, matrix, &all)).transpose()
}

fn source_rows(plane: &PlaneOperation, folder: &Folder, matrix: u64, rows: &Range<u64>) -> Result<Vec<u8>, Error> {
    let Repacking { from, from_shape: [all, cols], .. } = plane.how;
    let bytes = |rows| from.bytes([rows, cols]).unwrap_or(0);
    let first = matrix * bytes(all) + bytes(rows.start);
    plane.from.read(folder, first..first + bytes(rows.end - rows.start))
}

fn bands(job: &Transcode) -> impl Iterator<Item = Range<u64>> + use<> {
    let [rows, cols] = job.plane.how.to_shape;
    let step = (BAND / cols.max(1)).max(1).next_multiple_of(job.unit);
    (0..rows).step_by(step as usize).map(move |row| row..(row + step).min(rows))
}

fn compare_rows(
    job: &Transcode,
    written: &Written<'_>,
    held: Option<&[u8]>,
    matrix: u64,
    rows: &Range<u64>,
) -> Result<Seen, Error> {
    let how = &job.plane.how;
    let Repacking { to, to_shape: [_, cols], .. } = *how;
    let (n, begin) = (rows.end - rows.start, job.start(matrix, rows.start));
    let mut expected = zeros(to.bytes([n, cols]).unwrap_or(0))?;
    let actual = written.read(0, begin..begin + expected.len() as u64)?;
    let mut seen = Seen::new();
    seen.by.definition = n * cols;
    let (stored, source) = match held {
        Some(whole) => (0..how.from_shape[0], Cow::Borrowed(whole)),
        None => {
            let (all, granule) = (how.from_shape[0], rows_together(&how.from, how.from_shape[0]));
            let stored = (rows.start / granule * granule).min(all)..rows.end.next_multiple_of(granule).min(all);
            (stored.clone(), Cow::Owned(source_rows(&job.plane, written.folder, matrix, &stored)?))
        }
    };
    let (from_shape, shape) = ([stored.end - stored.start, how.from_shape[1]], [n, cols]);
    for at in rows.clone().flat_map(|row| (0..cols).map(move |col| [row, col])) {
        let Some([row, col]) = how.source(at) else { continue };
        let code = how.from.get(from_shape, [row - stored.start, col], &source);
        match how.code(code) {
            Some(code) => {
                let place = [at[0] - rows.start, at[1]];
                to.packing.set(to.code.bits(), shape, place, &mut expected, code);
            }
            // An entry without a code is reported at the first byte of the rows.
            None => seen.entries[0].wrong(begin, || (code, code)),
        }
    }
    seen.wrong_bytes(begin, &expected, &actual);
    Ok(seen)
}
