//! Job that rewrites a plane of a quantized tensor in another packing or type.

use crate::files::convert::dequantize::dequantizer::read_all;
use crate::files::convert::job::{Job, JobKind, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::{Item, room};
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Change, Code, Part, Repacking, ScaledError};
use truecast_io::folder::Folder;
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Counts};

/// A plane of the source, and the packing that it gets in the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneOperation {
    pub part: Part,
    pub from: Stored,
    pub how: Repacking,
}

#[derive(Clone, Debug)]
pub(crate) struct Transcode {
    pub plane: PlaneOperation,
    pub matrices: u64,
    pub bytes: u64,
    /// Number of rows per unit of work.
    pub unit: u64,
}

/// Number of columns of a transposed matrix that are read together.
const COLUMNS: u64 = 64;

/// Number of elements per step when all results are looked at.
const ELEMENTS_PER_STEP: u64 = 1 << 18;

struct Rows {
    matrix: u64,
    rows: Range<u64>,
}

/// Result of packing.
enum Packed {
    /// Number of bytes.
    Bytes(usize),
    /// An entry has no code in the result.
    NoCode,
}

impl Transcode {
    /// Plans the units of work.
    ///
    /// # Errors
    /// A packing that does not fit the plane.
    pub fn new(plane: PlaneOperation, matrices: u64, bytes: u64) -> Result<Transcode, ScaledError> {
        let how = plane.how;
        let granule = Repacker::new(&how, &CastOptions::default())?.granule();
        let unit = if how.transposed { COLUMNS.next_multiple_of(granule) } else { granule };
        Ok(Transcode { plane, matrices, bytes, unit })
    }

    /// The plane as an item, whose pieces end between rows, and at the end of each matrix.
    fn plane_item(&self, index: usize) -> Item {
        let Repacking { from, to, to_shape: [rows, cols], transposed, .. } = self.plane.how;
        let matrix = rows * cols;
        let bits_per_element = |bits_of_matrix: u64| {
            u32::try_from(bits_of_matrix.div_ceil(matrix.max(1))).unwrap_or(u32::MAX).min(1 << 16)
        };
        let dst_bits = bits_per_element(to.bytes([rows, cols]).unwrap_or(0).saturating_mul(8));
        // Transposition unpacks entries into whole bytes.
        let slots = if transposed { 2 * from.code.bits().next_multiple_of(8) } else { 0 };
        let src_bits = bits_per_element(self.bytes * 8 / self.matrices.max(1)).max(from.code.bits()) + slots;
        let (len, unit) = (self.matrices * matrix, (self.unit.min(rows) * cols).max(1));
        let period = if self.matrices > 1 { matrix } else { u64::MAX };
        Item { index, len, src_bits, dst_bits, unit, period }
    }

    /// Offset in the result of a row that begins a unit.
    pub fn start(&self, matrix: u64, row: u64) -> u64 {
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

    /// Packs entries into the start of `dst`.
    fn run_rows(&self, repacker: &Repacker, rows: &Range<u64>, src: &[u8], dst: &mut Vec<u8>) -> Result<Packed, Cause> {
        let dst = room(dst, repacker.bytes(rows.end - rows.start))?;
        let read = repacker.read(self.plane.part, 0, rows.clone()).map_or(0, |read| read.bytes());
        let missing = repacker.run(rows.clone(), &src[..read as usize], dst)?;
        Ok(if missing.is_none() { Packed::Bytes(dst.len()) } else { Packed::NoCode })
    }

    /// True if every entry has a code in the result, and the resulting bytes satisfy the condition.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn all_results_satisfy(&self, folder: &Folder, condition: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        let failed = |cause: Cause| {
            let at = self.plane.from;
            Error::tensor(at.source(folder).path(), &at.header(folder).name, cause)
        };
        let repacker = Repacker::new(&self.plane.how, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (item, mut src, mut dst) = (self.plane_item(0), Vec::new(), Vec::new());
        let mut first = 0;
        while first < item.len {
            let step = (ELEMENTS_PER_STEP / item.unit).max(1) * item.unit;
            let len = step.min(item.len - first).min(item.period - first % item.period);
            let rows = self.rows(first, len);
            let read = self.read_rows(&repacker, folder, &rows, &mut src)?;
            match self.run_rows(&repacker, &rows.rows, &src[..read], &mut dst).map_err(failed)? {
                Packed::Bytes(bytes) if condition(&dst[..bytes]) => {}
                Packed::Bytes(_) | Packed::NoCode => return Ok(false),
            }
            first += len;
        }
        Ok(true)
    }
}

/// Copies count as finite pairs, so that no measure is incomplete.
fn copied(elements: u64) -> Counts {
    Counts { finite_pairs: elements, ..Counts::copied(elements) }
}

impl Job for Transcode {
    fn kind(&self) -> JobKind<'_> {
        JobKind::Transcode(self)
    }

    fn item(&self, _: &Planned, index: usize) -> Item {
        self.plane_item(index)
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
        match self.run_rows(&repacker, &self.rows(piece.first, piece.len).rows, src, dst)? {
            Packed::Bytes(bytes) => Ok((ErrorSums::default(), bytes)),
            // The plan has only planes whose entries all have a code ([`Transcode::all_results_satisfy`]).
            Packed::NoCode => Err(ScaledError::Layout { why: "its file was changed while it was converted" }.into()),
        }
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
}
