//! A tensor of the result that holds the entries of one of the source in another packing or type. The entries are checked by
//! the definition (`truecast_core::scaled::Repacking`), which shares no code with what may have written them; bits that belong
//! to no entry are 0.

use crate::convert::dequantize::dequantizer::read_into;
use crate::convert::job::{Check, Checked, Job, Piece, SourceReader};
use crate::convert::operations::Operations;
use crate::convert::planned::Planned;
use crate::convert::quantize::error_meter::ErrorSums;
use crate::convert::quantize::flat::lies_in_rows;
use crate::convert::recompute::pieces::prove;
use crate::convert::stored::Stored;
use crate::error::{Cause, Error};
use crate::report::TensorReport;
use crate::stream::{Item, room, zeros};
use crate::verify::coverage::elements_of;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Change, Code, Packing, Part, Repacking, ScaledError};
use truecast_io::Source;
use truecast_io::folder::Folder;
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Counts};

/// A plane of the source, and the one that is made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneMapping {
    pub how: Repacking,
    pub matrices: u64,
    /// Each entry has a code there, whatever it is.
    pub is_total: bool,
}

impl PlaneMapping {
    /// The bytes of both are the same.
    pub fn is_same(&self) -> bool {
        let Repacking { from, from_shape, to, to_shape, kept, transposed, change } = self.how;
        let cols = [1, from_shape[1]];
        let are_rows = |a, b| matches!((a, b), (Packing::Rows { .. }, Packing::Rows { .. }));
        let is_packed_alike =
            from.packing == to.packing || are_rows(from.packing, to.packing) && from.bytes(cols) == to.bytes(cols);
        !transposed && change == Change::None && from_shape == to_shape && kept == to_shape && is_packed_alike
    }
}

/// A plane of a quantized tensor that is packed anew.
#[derive(Clone, Debug)]
pub(crate) struct Repacked {
    pub part: Part,
    /// In the source.
    pub from: Stored,
    /// Bytes there.
    pub bytes: u64,
    pub how: Repacking,
    pub matrices: u64,
    /// Rows that are made together.
    unit: u64,
}

/// Columns of a transposed matrix are read so many together.
const COLUMNS: u64 = 64;

/// Rows of a matrix of the result.
type Rows = (u64, Range<u64>);

impl Repacked {
    /// Settles how the plane is cut.
    ///
    /// # Errors
    /// Planes that do not fit each other.
    pub fn new(part: Part, (from, bytes): (Stored, u64), of: &PlaneMapping) -> Result<Repacked, ScaledError> {
        let granule = Repacker::new(&of.how, &CastOptions::default())?.granule();
        let unit = if of.how.transposed { COLUMNS.next_multiple_of(granule) } else { granule };
        Ok(Repacked { part, from, bytes, how: of.how, matrices: of.matrices, unit })
    }

    /// As the stream sees it: cut between rows, and between matrices.
    fn cut(&self, index: usize) -> Item {
        let Repacking { from, to, to_shape: [rows, cols], transposed, .. } = self.how;
        let matrix = rows * cols;
        let bits = |bits: u64| u32::try_from(bits.div_ceil(matrix.max(1))).unwrap_or(u32::MAX).min(1 << 16);
        // Rows that were columns are made of entries in slots of whole bytes.
        let slots = if transposed { 2 * from.code.bits().next_multiple_of(8) } else { 0 };
        let src_bits = bits(self.bytes * 8 / self.matrices.max(1)).max(from.code.bits()) + slots;
        let dst_bits = bits(to.bytes([rows, cols]).unwrap_or(0).saturating_mul(8));
        let period = if self.matrices > 1 { matrix } else { u64::MAX };
        Item {
            index,
            len: self.matrices * matrix,
            src_bits,
            dst_bits,
            unit: (self.unit.min(rows) * cols).max(1),
            period,
        }
    }

    fn rows(&self, first: u64, len: u64) -> Rows {
        let [rows, cols] = self.how.to_shape;
        let (matrix, row) = (first / (rows * cols), first / cols % rows);
        (matrix, row..row + len / cols)
    }

    /// Reads what some entries are made of into the beginning of `buffer`. Returns how many bytes that are.
    fn read_piece(
        &self,
        repacker: &Repacker,
        folder: &Folder,
        (first, len): (u64, u64),
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let (matrix, rows) = self.rows(first, len);
        let Some(read) = repacker.read(self.part, matrix, rows) else { return Ok(0) };
        let bytes = room(buffer, read.bytes())?;
        read_into(folder, self.from, &read, bytes)?;
        Ok(bytes.len())
    }

    /// Packs entries that were read. How many bytes `dst` begins with, and the first entry that has no code there.
    fn run_piece(
        &self,
        repacker: &Repacker,
        (first, len): (u64, u64),
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<(usize, Option<[u64; 2]>), Cause> {
        let (_, rows) = self.rows(first, len);
        let dst = room(dst, repacker.bytes(rows.end - rows.start))?;
        Ok((dst.len(), repacker.run(rows, src, dst)?))
    }

    /// Gives the bytes of the result piece by piece to `look`, which says whether that is enough; so does an entry that has
    /// no code there. Whether every piece was looked at.
    fn all(&self, folder: &Folder, mut look: impl FnMut(&[u8]) -> bool) -> Result<bool, Error> {
        let failed = |cause: Cause| {
            let source = &folder.shards()[self.from.shard].source;
            Error::tensor(source.path(), &source.tensors()[self.from.tensor].name, cause)
        };
        let repacker = Repacker::new(&self.how, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (item, mut src, mut dst) = (self.cut(0), Vec::new(), Vec::new());
        let mut first = 0;
        while first < item.len {
            let step = ((1 << 18) / item.unit).max(1) * item.unit;
            let len = step.min(item.len - first).min(item.period - first % item.period);
            let read = self.read_piece(&repacker, folder, (first, len), &mut src)?;
            let (made, wrong) = self.run_piece(&repacker, (first, len), &src[..read], &mut dst).map_err(failed)?;
            if wrong.is_some() || !look(&dst[..made]) {
                return Ok(false);
            }
            first += len;
        }
        Ok(true)
    }

    /// Every entry has a code there. Of a file that is gone that was known before.
    pub fn is_possible(&self, folder: &Folder) -> Result<bool, Error> {
        if folder.shards()[self.from.shard].is_gone { Ok(true) } else { self.all(folder, |_| true) }
    }

    /// Every entry becomes zero.
    pub fn is_nothing(&self, folder: &Folder) -> Result<bool, Error> {
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if folder.shards()[self.from.shard].is_gone { Ok(true) } else { self.all(folder, is_zero) }
    }
}

impl Job for Repacked {
    fn item(&self, _: &Planned, index: usize) -> Item {
        self.cut(index)
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes
    }

    fn sources(&self) -> Vec<usize> {
        vec![self.from.shard]
    }

    fn from(&self) -> Option<DType> {
        match (self.how.change, self.how.from.code) {
            (Change::Float, Code::Float(dtype)) => Some(dtype),
            _ => None,
        }
    }

    fn plan(&self, _: &Planned, operations: &Operations<'_>) -> Result<(), Cause> {
        operations.repack(&self.how).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let repacker = piece.operations.repack(&self.how).map_err(piece.failed(from.folder))?;
        self.read_piece(&repacker, from.folder, (piece.first, piece.len), buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let repacker = piece.operations.repack(&self.how)?;
        let (bytes, wrong) = self.run_piece(&repacker, (piece.first, piece.len), src, dst)?;
        let changed = ScaledError::Layout { why: "its file was changed while it was converted" };
        wrong.map_or(Ok((ErrorSums::default(), bytes)), |_| Err(changed.into()))
    }

    fn counts(&self, planned: &Planned) -> Option<Counts> {
        Some(Counts::copied(planned.target.len()))
    }

    fn offset(&self, _: &Item, first: u64) -> u64 {
        let Repacking { to, to_shape: [rows, cols], .. } = self.how;
        let (matrix, of) = self.rows(first, 0);
        let bytes = |rows| to.bytes([rows, cols]).unwrap_or(0);
        matrix * bytes(rows) + bytes(of.start)
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.converted) = (self.bytes, row.from != row.to);
    }

    fn check<'p>(&'p self, check: Check<'_, 'p>) -> Checked {
        let Check { folder, planned, result: (result, at), stretches, methods, progress, .. } = check;
        let Repacked { how, matrices, from, .. } = self;
        let Repacking { from: plane, from_shape, to, to_shape: [rows, cols], transposed, .. } = *how;
        let is_read_in_bands = lies_in_rows(&plane, from_shape) && !transposed;
        let band = if lies_in_rows(&to, [rows, cols]) { (BAND / cols.max(1)).max(1) } else { rows };
        let source = &folder.shards()[from.shard].source;
        let matrix_bytes = plane.bytes(from_shape).unwrap_or(0);
        let mut found = Found::new();
        for matrix in 0..*matrices {
            let mut whole = Vec::new();
            if !is_read_in_bands {
                whole = zeros(matrix_bytes)?;
                source.read_at(from.tensor, matrix * matrix_bytes, &mut whole)?;
            }
            let wrong = |rows, source: &SourceRows<'_>| self.wrong((result, at[0]), matrix, rows, source);
            let of_band = |&first: &u64| {
                let rows = first..(first + band).min(rows);
                if !is_read_in_bands {
                    return wrong(rows, &SourceRows { bytes: &whole, first: 0, count: from_shape[0] });
                }
                let (from_row, to_row) = (rows.start.min(from_shape[0]), rows.end.min(from_shape[0]));
                let row_bytes = plane.bytes([1, from_shape[1]]).unwrap_or(0);
                let mut bytes = zeros((to_row - from_row) * row_bytes)?;
                source.read_at(from.tensor, matrix * matrix_bytes + from_row * row_bytes, &mut bytes)?;
                wrong(rows, &SourceRows { bytes: &bytes, first: from_row, count: to_row - from_row })
            };
            let bands = (0..rows).step_by(band.max(1) as usize);
            let n_bands = rows.div_ceil(band.max(1)).max(1);
            found = prove(bands, found, of_band, Found::merge, |some| {
                progress(self.bytes / matrices * some.len() as u64 / n_bands)
            })?;
        }
        // All of them are recomputed.
        methods.definition += matrices * rows * cols;
        let difference = FileDifference::of_found(&planned.target.name, &found);
        Ok((difference.into_iter().collect(), elements_of(stretches)))
    }
}

/// About the entries of a band.
const BAND: u64 = 1 << 16;

/// Bytes of rows of the source.
struct SourceRows<'a> {
    bytes: &'a [u8],
    /// The first of them.
    first: u64,
    count: u64,
}

impl Repacked {
    /// Bytes of some rows of the result that are not what they should be.
    fn wrong(
        &self,
        (result, at): (&Source, usize),
        matrix: u64,
        rows: Range<u64>,
        source: &SourceRows<'_>,
    ) -> Result<Found<(u64, u64)>, Error> {
        let how = &self.how;
        let (to, [all, cols]) = (how.to, how.to_shape);
        let shape = [rows.end - rows.start, cols];
        let from_shape = [source.count, how.from_shape[1]];
        let bytes = |rows: u64| to.bytes([rows, cols]).unwrap_or(0);
        let (mut expected, mut actual) = (zeros(bytes(shape[0]))?, zeros(bytes(shape[0]))?);
        let begin = matrix * bytes(all) + bytes(rows.start);
        result.read_at(at, begin, &mut actual)?;
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
