//! Job that rewrites a plane of a quantized tensor in another packing or type. The definition
//! (`truecast_core::scaled::Repacking`), which shares no code with the writer, checks the entries; padding bits are 0.

use crate::files::convert::dequantize::dequantizer::read_all;
use crate::files::convert::job::{Job, JobCheck, JobFindings, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::flat::rows_together;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::{Item, room, zeros};
use crate::files::verify::coverage::elements_of;
use crate::files::verify::seen::{Seen, compare_pieces};
use crate::files::verify::written::Written;
use std::borrow::Cow;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Change, Code, Part, Repacking, ScaledError};
use truecast_io::folder::Folder;
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Counts};

/// A plane of the source, and its new form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneOperation {
    pub part: Part,
    pub from: Stored,
    pub how: Repacking,
}

/// Rewrites the entries of a plane.
#[derive(Clone, Debug)]
pub(crate) struct Transcode {
    plane: PlaneOperation,
    matrices: u64,
    /// Bytes of the plane in the source.
    bytes: u64,
    /// Rows per unit of work.
    unit: u64,
}

/// Columns of a transposed matrix that are read together.
const COLUMNS: u64 = 64;

/// Matrix and rows of the result.
struct Rows {
    matrix: u64,
    rows: Range<u64>,
}

impl Transcode {
    /// Plans the units of a plane with this number of bytes.
    ///
    /// # Errors
    /// A packing that does not fit the plane.
    pub fn new(plane: PlaneOperation, matrices: u64, bytes: u64) -> Result<Transcode, ScaledError> {
        let how = plane.how;
        let granule = Repacker::new(&how, &CastOptions::default())?.granule();
        let unit = if how.transposed { COLUMNS.next_multiple_of(granule) } else { granule };
        Ok(Transcode { plane, matrices, bytes, unit })
    }

    /// Description for the stream: cut between rows, and between matrices.
    fn cut(&self, index: usize) -> Item {
        let Repacking { from, to, to_shape: [rows, cols], transposed, .. } = self.plane.how;
        let matrix = rows * cols;
        let bits = |bits: u64| u32::try_from(bits.div_ceil(matrix.max(1))).unwrap_or(u32::MAX).min(1 << 16);
        let dst_bits = bits(to.bytes([rows, cols]).unwrap_or(0).saturating_mul(8));
        // Transposition unpacks entries into slots of whole bytes.
        let slots = if transposed { 2 * from.code.bits().next_multiple_of(8) } else { 0 };
        let src_bits = bits(self.bytes * 8 / self.matrices.max(1)).max(from.code.bits()) + slots;
        let (len, unit) = (self.matrices * matrix, (self.unit.min(rows) * cols).max(1));
        let period = if self.matrices > 1 { matrix } else { u64::MAX };
        Item { index, len, src_bits, dst_bits, unit, period }
    }

    /// Offset of a row in the result: the first of a unit.
    fn start(&self, matrix: u64, row: u64) -> u64 {
        let Repacking { to, to_shape: [rows, cols], .. } = self.plane.how;
        let bytes = |rows| to.bytes([rows, cols]).unwrap_or(0);
        matrix * bytes(rows) + bytes(row)
    }

    fn rows(&self, first: u64, len: u64) -> Rows {
        let [rows, cols] = self.plane.how.to_shape;
        let row = first / cols % rows;
        Rows { matrix: first / (rows * cols), rows: row..row + len / cols }
    }

    /// Reads the source of some rows into the start of `buffer`. Returns the number of bytes.
    fn read_rows(
        &self,
        repacker: &Repacker,
        folder: &Folder,
        Rows { matrix, rows }: &Rows,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let read = repacker.read(self.plane.part, *matrix, rows.clone()).map(|read| (self.plane.from, read));
        read_all(folder, read.as_slice(), buffer)
    }

    /// Packs entries into `dst`. Returns the number of bytes, and true if every entry has a code.
    fn run_rows(
        &self,
        repacker: &Repacker,
        rows: &Range<u64>,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<(usize, bool), Cause> {
        let dst = room(dst, repacker.bytes(rows.end - rows.start))?;
        let read = repacker.read(self.plane.part, 0, rows.clone()).map_or(0, |read| read.bytes());
        let is_right = repacker.run(rows.clone(), &src[..read as usize], dst)?.is_none();
        Ok((dst.len(), is_right))
    }

    /// True if every entry has a code, and the resulting bytes satisfy the condition.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn are_all(&self, folder: &Folder, is_such: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        let failed = |cause: Cause| {
            let at = self.plane.from;
            Error::tensor(at.source(folder).path(), &at.header(folder).name, cause)
        };
        let repacker = Repacker::new(&self.plane.how, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (item, mut src, mut dst) = (self.cut(0), Vec::new(), Vec::new());
        let mut first = 0;
        while first < item.len {
            let step = ((1 << 18) / item.unit).max(1) * item.unit;
            let len = step.min(item.len - first).min(item.period - first % item.period);
            let rows = self.rows(first, len);
            let read = self.read_rows(&repacker, folder, &rows, &mut src)?;
            let (made, is_right) = self.run_rows(&repacker, &rows.rows, &src[..read], &mut dst).map_err(failed)?;
            if !is_right || !is_such(&dst[..made]) {
                return Ok(false);
            }
            first += len;
        }
        Ok(true)
    }
}

/// Unchanged elements, which measures do not leave out.
fn copied(elements: u64) -> Counts {
    Counts { finite_pairs: elements, ..Counts::copied(elements) }
}

impl Job for Transcode {
    fn item(&self, _: &Planned, index: usize) -> Item {
        self.cut(index)
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes
    }

    fn from(&self) -> Option<DType> {
        match (self.plane.how.change, self.plane.how.from.code) {
            (Change::Float, Code::Float(dtype)) => Some(dtype),
            _ => None,
        }
    }

    fn plan(&self, _: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.repack(&self.plane.how).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let repacker = piece.operations.repack(&self.plane.how).map_err(piece.failed(from.folder))?;
        self.read_rows(&repacker, from.folder, &self.rows(piece.first, piece.len), buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let repacker = piece.operations.repack(&self.plane.how)?;
        let (bytes, is_right) = self.run_rows(&repacker, &self.rows(piece.first, piece.len).rows, src, dst)?;
        let changed = ScaledError::Layout { why: "its file was changed while it was converted" };
        if is_right { Ok((ErrorSums::default(), bytes)) } else { Err(changed.into()) }
    }

    fn counts(&self, planned: &Planned) -> Option<Counts> {
        Some(copied(planned.target.len()))
    }

    fn offset(&self, _: &Item, first: u64) -> u64 {
        let at = self.rows(first, 0);
        self.start(at.matrix, at.rows.start)
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.converted) = (self.bytes, row.from != row.to);
    }

    fn check(&self, check: JobCheck<'_>) -> Result<JobFindings, Error> {
        let JobCheck { of, progress, .. } = check;
        let [rows, cols] = self.plane.how.to_shape;
        let bytes_per_entry = self.bytes as f64 / (self.matrices * rows * cols).max(1) as f64;
        let mut seen = Seen::new();
        for matrix in 0..self.matrices {
            let held = self.plane.whole(of.folder, matrix)?;
            let compare = |rows| self.compare(&of, held.as_deref(), matrix, &rows);
            seen = seen.merge(compare_pieces(self.bands(), compare, bytes_per_entry, progress)?);
        }
        let (elements, by, target) = (elements_of(of.stretches), seen.by, &of.planned.target);
        Ok(JobFindings { differences: seen.differences([&target.name; 3], (target.dtype, target.dtype)), elements, by })
    }
}

/// Approximate number of entries per band.
const BAND: u64 = 1 << 16;

impl PlaneOperation {
    /// A matrix of the source, if its rows are columns of the result.
    fn whole(&self, folder: &Folder, matrix: u64) -> Result<Option<Vec<u8>>, Error> {
        let all = 0..self.how.from_shape[0];
        self.how.transposed.then(|| self.stored(folder, matrix, &all)).transpose()
    }

    fn stored(&self, folder: &Folder, matrix: u64, rows: &Range<u64>) -> Result<Vec<u8>, Error> {
        let Repacking { from, from_shape: [all, cols], .. } = self.how;
        let bytes = |rows| from.bytes([rows, cols]).unwrap_or(0);
        let first = matrix * bytes(all) + bytes(rows.start);
        self.from.read(folder, first..first + bytes(rows.end - rows.start))
    }
}

impl Transcode {
    /// Bands of rows for the check.
    fn bands(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let [rows, cols] = self.plane.how.to_shape;
        let step = (BAND / cols.max(1)).max(1).next_multiple_of(self.unit);
        (0..rows).step_by(step as usize).map(move |row| row..(row + step).min(rows))
    }

    /// Compares some rows of the result.
    fn compare(&self, of: &Written<'_>, held: Option<&[u8]>, matrix: u64, rows: &Range<u64>) -> Result<Seen, Error> {
        let how = &self.plane.how;
        let Repacking { to, to_shape: [_, cols], .. } = *how;
        let (n, begin) = (rows.end - rows.start, self.start(matrix, rows.start));
        let mut expected = zeros(to.bytes([n, cols]).unwrap_or(0))?;
        let actual = of.read(0, begin..begin + expected.len() as u64)?;
        let mut seen = Seen::new();
        seen.by.definition = n * cols;
        let (stored, source) = match held {
            Some(whole) => (0..how.from_shape[0], Cow::Borrowed(whole)),
            None => {
                let (all, granule) = (how.from_shape[0], rows_together(&how.from, how.from_shape[0]));
                let stored = (rows.start / granule * granule).min(all)..rows.end.next_multiple_of(granule).min(all);
                (stored.clone(), Cow::Owned(self.plane.stored(of.folder, matrix, &stored)?))
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
                // Without a code every byte is wrong.
                None => seen.entries[0].wrong(begin, || (code, code)),
            }
        }
        seen.wrong_bytes(begin, &expected, &actual);
        Ok(seen)
    }
}
