//! A tensor of the result that holds the entries of planes of a quantized one, each in another packing or type: one plane by
//! itself, or codes and scales in the blocks of a GGUF file. The entries are checked by the definition
//! (`truecast_core::scaled::Repacking`), which shares no code with what may have written them; bits that belong to no entry are
//! 0.

use crate::files::convert::dequantize::dequantizer::{Quantized, read_all};
use crate::files::convert::job::{Job, JobCheck, JobChecked, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::flat::lies_in_rows;
use crate::files::convert::recompute::pieces::prove;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::{Item, room, zeros};
use crate::files::verify::coverage::elements_of;
use crate::files::verify::difference::FileDifference;
use crate::files::verify::found::Found;
use crate::files::verify::written::Written;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Change, Code, Gathering, Part, Repacking, ScaledError};
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Counts};
use truecast_schemes::{Family, Scheme};

/// A plane of the source, and what is made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneOperation {
    pub part: Part,
    pub from: Stored,
    pub how: Repacking,
}

/// Codes and scales in blocks: what a report says of them.
#[derive(Clone, Debug)]
pub(crate) struct InBlocks {
    pub source: Quantized,
    /// What became of the values.
    pub counts: Counts,
}

/// Planes whose entries are written anew, all into one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Transcode {
    /// The first decides how the tensor is cut; the others have as many rows.
    planes: Vec<PlaneOperation>,
    matrices: u64,
    /// Bytes of the planes in the source.
    bytes: u64,
    /// Rows that are made together.
    unit: u64,
    pub blocks: Option<InBlocks>,
}

/// Columns of a transposed matrix are read so many together.
const COLUMNS: u64 = 64;

/// Rows of a matrix of the result.
type Rows = (u64, Range<u64>);
/// What makes each plane.
type Repackers = [Arc<Repacker>];

impl Transcode {
    /// Settles how the planes are cut.
    ///
    /// # Errors
    /// Planes that do not fit each other.
    pub fn new(folder: &Folder, planes: Vec<PlaneOperation>, matrices: u64) -> Result<Transcode, ScaledError> {
        let how = planes[0].how;
        let granule = Repacker::new(&how, &CastOptions::default())?.granule();
        let unit = if how.transposed { COLUMNS.next_multiple_of(granule) } else { granule };
        let bytes = planes.iter().map(|plane| plane.from.header(folder).bytes()).sum();
        Ok(Transcode { planes, matrices, bytes, unit, blocks: None })
    }

    /// As the stream sees it: cut between rows, and between matrices.
    fn cut(&self, index: usize) -> Item {
        let Repacking { from, to, to_shape: [rows, cols], transposed, .. } = self.planes[0].how;
        let matrix = rows * cols;
        let bits = |bits: u64| u32::try_from(bits.div_ceil(matrix.max(1))).unwrap_or(u32::MAX).min(1 << 16);
        let dst_bits = bits(to.bytes([rows, cols]).unwrap_or(0).saturating_mul(8));
        // Rows that were columns are made of entries in slots of whole bytes.
        let slots = if transposed { 2 * from.code.bits().next_multiple_of(8) } else { 0 };
        let src_bits = bits(self.bytes * 8 / self.matrices.max(1)).max(from.code.bits()) + slots;
        let (len, unit) = (self.matrices * matrix, (self.unit.min(rows) * cols).max(1));
        let period = if self.matrices > 1 { matrix } else { u64::MAX };
        Item { index, len, src_bits, dst_bits, unit, period }
    }

    fn rows(&self, first: u64, len: u64) -> Rows {
        let [rows, cols] = self.planes[0].how.to_shape;
        let (matrix, row) = (first / (rows * cols), first / cols % rows);
        (matrix, row..row + len / cols)
    }

    fn repackers<E>(&self, new: impl Fn(&Repacking) -> Result<Arc<Repacker>, E>) -> Result<Vec<Arc<Repacker>>, E> {
        self.planes.iter().map(|plane| new(&plane.how)).collect()
    }

    /// Reads what some rows are made of into the beginning of `buffer`. Returns how many bytes that are.
    fn read_rows(
        &self,
        repackers: &Repackers,
        folder: &Folder,
        (matrix, rows): &Rows,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let read = |(plane, repacker): (&PlaneOperation, &Arc<Repacker>)| {
            Some((plane.from, repacker.read(plane.part, *matrix, rows.clone())?))
        };
        let reads: Vec<_> = self.planes.iter().zip(repackers).filter_map(read).collect();
        read_all(folder, &reads, buffer)
    }

    /// Packs entries that were read. How many bytes `dst` begins with, and whether each entry has a code there.
    fn run_rows(
        &self,
        repackers: &Repackers,
        (_, rows): &Rows,
        mut src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<(usize, bool), Cause> {
        let dst = room(dst, repackers[0].bytes(rows.end - rows.start))?;
        let mut is_right = true;
        for (plane, repacker) in self.planes.iter().zip(repackers) {
            let read = repacker.read(plane.part, 0, rows.clone()).map_or(0, |read| read.bytes());
            let (now, rest) = src.split_at(read as usize);
            is_right &= repacker.run(rows.clone(), now, dst)?.is_none();
            src = rest;
        }
        Ok((dst.len(), is_right))
    }

    /// Gives the bytes that elements become to `look`, piece by piece with the first element of each. It says whether to go on;
    /// an entry that has no code there ends it too. Whether every piece was looked at.
    ///
    /// # Errors
    /// Reading.
    pub fn look(
        &self,
        folder: &Folder,
        elements: Range<u64>,
        mut look: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<bool, Error> {
        let failed = |cause: Cause| {
            let at = self.planes[0].from;
            Error::tensor(at.source(folder).path(), &at.header(folder).name, cause)
        };
        let new = |how: &Repacking| Ok(Arc::new(Repacker::new(how, &CastOptions::default())?));
        let repackers = self.repackers(new).map_err(|cause: ScaledError| failed(cause.into()))?;
        let (item, mut src, mut dst) = (self.cut(0), Vec::new(), Vec::new());
        let mut first = elements.start;
        while first < elements.end {
            let step = ((1 << 18) / item.unit).max(1) * item.unit;
            let len = step.min(elements.end - first).min(item.period - first % item.period);
            let rows = self.rows(first, len);
            let read = self.read_rows(&repackers, folder, &rows, &mut src)?;
            let (made, is_right) = self.run_rows(&repackers, &rows, &src[..read], &mut dst).map_err(failed)?;
            if !is_right || !look(first, &dst[..made]) {
                return Ok(false);
            }
            first += len;
        }
        Ok(true)
    }

    /// Every entry has a code there, and the bytes are such.
    pub fn are_all(&self, folder: &Folder, is_such: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        self.look(folder, 0..self.cut(0).len, |_, bytes| is_such(bytes))
    }
}

/// Elements that are the same elsewhere: nothing of them is left out of a measure.
fn copied(elements: u64) -> Counts {
    Counts { finite_pairs: elements, ..Counts::copied(elements) }
}

impl Job for Transcode {
    fn item(&self, _: &Planned, index: usize) -> Item {
        let item = self.cut(index);
        // Codes and scales as rows stand between what is read and what is made.
        let between = if self.blocks.is_some() { item.dst_bits } else { 0 };
        Item { src_bits: item.src_bits + between, ..item }
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes
    }

    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        self.blocks.as_ref().map(|_| Block::of_scaled(Gathering::BLOCK))
    }

    fn from(&self) -> Option<DType> {
        match (self.planes[0].how.change, self.planes[0].how.from.code) {
            (Change::Float, Code::Float(dtype)) => Some(dtype),
            _ => None,
        }
    }

    fn plan(&self, _: &Planned, operations: &Operations<'_>) -> Result<(), Cause> {
        self.repackers(|how| operations.repack(how)).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let repackers = self.repackers(|how| piece.operations.repack(how)).map_err(piece.failed(from.folder))?;
        self.read_rows(&repackers, from.folder, &self.rows(piece.first, piece.len), buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let repackers = self.repackers(|how| piece.operations.repack(how))?;
        let (bytes, is_right) = self.run_rows(&repackers, &self.rows(piece.first, piece.len), src, dst)?;
        let changed = ScaledError::Layout { why: "its file was changed while it was converted" };
        if is_right { Ok((ErrorSums::default(), bytes)) } else { Err(changed.into()) }
    }

    fn counts(&self, planned: &Planned) -> Option<Counts> {
        Some(self.blocks.as_ref().map_or_else(|| copied(planned.target.len()), |blocks| blocks.counts))
    }

    fn offset(&self, _: &Item, first: u64) -> u64 {
        let Repacking { to, to_shape: [rows, cols], .. } = self.planes[0].how;
        let (matrix, of) = self.rows(first, 0);
        let bytes = |rows| to.bytes([rows, cols]).unwrap_or(0);
        matrix * bytes(rows) + bytes(of.start)
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.converted) = (self.bytes, row.from != row.to);
        // The tensor as it is read, not the bytes of its blocks.
        if let Some(InBlocks { source, .. }) = &self.blocks {
            let (code, [_, cols]) = (source.layout.code_type(), source.layout.out());
            let to_scheme = Scheme::of(Family::Gguf(Gathering::BLOCK)).to_string().into();
            (row.from, row.to, row.converted, row.elements) = (code, code, true, source.layout.elements());
            (row.scheme, row.to_scheme) = (Some(source.scheme.clone()), Some(to_scheme));
            if let Some(columns) = Arc::make_mut(&mut row.shape).last_mut() {
                *columns = cols;
            }
        }
    }

    fn check<'p>(&'p self, check: JobCheck<'_, 'p>) -> JobChecked {
        let JobCheck { of, methods, progress, .. } = check;
        let Repacking { to, to_shape: [rows, cols], .. } = self.planes[0].how;
        let mut found = Found::new();
        for matrix in 0..self.matrices {
            let held = self.planes.iter().map(|plane| plane.whole(of.folder, matrix)).collect::<Result<Vec<_>, _>>()?;
            let bands = self.bands().into_iter().filter(|band| {
                // Of blocks, those that hold what is asked for.
                let [first, end] = [band.start, band.end].map(|row| to.bytes([row, cols]).unwrap_or(0));
                self.blocks.is_none()
                    || of.stretches.iter().any(|some| some.first < end && some.first + some.len > first)
            });
            let of_band = |rows: &Range<u64>| self.wrong(&of, &held, (matrix, rows));
            found = prove(bands, found, of_band, Found::merge, |some| {
                let seen: u64 = some.iter().map(|band| band.end - band.start).sum();
                methods.definition += seen * cols;
                progress((self.bytes as f64 * seen as f64 / (self.matrices * rows) as f64) as u64)
            })?;
        }
        let difference = FileDifference::of_found(&of.planned.target.name, &found);
        Ok((difference.into_iter().collect(), elements_of(of.stretches)))
    }
}

/// About the entries of a band.
const BAND: u64 = 1 << 16;

impl PlaneOperation {
    /// Rows are read as they are needed.
    fn is_read_in_rows(&self) -> bool {
        lies_in_rows(&self.how.from, self.how.from_shape) && !self.how.transposed
    }

    /// A matrix of the source, if it is read as a whole.
    fn whole(&self, folder: &Folder, matrix: u64) -> Result<Option<Vec<u8>>, Error> {
        let all = 0..self.how.from_shape[0];
        (!self.is_read_in_rows()).then(|| self.stored(folder, matrix, &all)).transpose()
    }

    /// Rows of a matrix of the source.
    fn stored(&self, folder: &Folder, matrix: u64, rows: &Range<u64>) -> Result<Vec<u8>, Error> {
        let Repacking { from, from_shape: [all, cols], .. } = self.how;
        let bytes = |rows| from.bytes([rows, cols]).unwrap_or(0);
        let first = matrix * bytes(all) + bytes(rows.start);
        self.from.read(folder, first..first + bytes(rows.end - rows.start))
    }
}

impl Transcode {
    /// Rows of a matrix that are recomputed together: all, where the result does not lie in rows.
    fn bands(&self) -> Vec<Range<u64>> {
        let Repacking { to, to_shape: [rows, cols], .. } = self.planes[0].how;
        let (of_matrix, least) = match &self.blocks {
            Some(InBlocks { source, .. }) if self.planes.iter().all(PlaneOperation::is_read_in_rows) => {
                (source.layout.out()[0], 1)
            }
            Some(InBlocks { source, .. }) => (source.layout.out()[0], rows.div_ceil(16)),
            None if lies_in_rows(&to, [rows, cols]) => (rows, 1),
            None => (rows, rows),
        };
        let step = (BAND / cols.max(1)).max(least).max(1);
        let of_one = |first: u64| {
            let end = first + of_matrix;
            (first..end).step_by(step as usize).map(move |row| row..(row + step).min(end))
        };
        (0..rows).step_by(of_matrix.max(1) as usize).flat_map(of_one).collect()
    }

    /// Bytes of some rows of the result that are not what they should be.
    fn wrong(
        &self,
        of: &Written<'_, '_>,
        held: &[Option<Vec<u8>>],
        (matrix, rows): (u64, &Range<u64>),
    ) -> Result<Found<(u64, u64)>, Error> {
        let Repacking { to, to_shape: [all, cols], .. } = self.planes[0].how;
        let (n, bytes) = (rows.end - rows.start, |rows: u64| to.bytes([rows, cols]).unwrap_or(0));
        let begin = matrix * bytes(all) + bytes(rows.start);
        let (mut expected, actual) = (zeros(bytes(n))?, of.read(0, begin..begin + bytes(n))?);
        let mut found = Found::new();
        for (plane, whole) in self.planes.iter().zip(held) {
            let PlaneOperation { how, .. } = plane;
            let (stored, source) = match whole {
                Some(whole) => (0..how.from_shape[0], Cow::Borrowed(whole)),
                None => {
                    let stored = rows.start.min(how.from_shape[0])..rows.end.min(how.from_shape[0]);
                    (stored.clone(), Cow::Owned(plane.stored(of.folder, matrix, &stored)?))
                }
            };
            let (from_shape, shape) = ([stored.end - stored.start, how.from_shape[1]], [n, how.to_shape[1]]);
            for at in rows.clone().flat_map(|row| (0..shape[1]).map(move |col| [row, col])) {
                let Some([row, col]) = how.source(at) else { continue };
                let code = how.from.get(from_shape, [row - stored.start, col], &source);
                match how.code(code) {
                    Some(code) => {
                        let place = [at[0] - rows.start, at[1]];
                        how.to.packing.set(how.to.code.bits(), shape, place, &mut expected, code);
                    }
                    // It has no code there: whatever stands there is wrong.
                    None => found.wrong(begin, || (code, code)),
                }
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
