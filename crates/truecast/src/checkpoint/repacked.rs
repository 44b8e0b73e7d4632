//! A tensor of the result that holds the entries of one of the source in another packing or type: how it is cut into pieces,
//! and where they lie.

use super::dense::read_into;
use super::stored::Stored;
use crate::error::{Cause, Error};
use crate::stream::{Item, room};
use truecast_core::scaled::{Change, Packing, Part, Repacking, ScaledError};
use truecast_io::folder::Folder;
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::Repacker;

/// A plane of the source, and the one that is made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfPlane {
    pub how: Repacking,
    pub matrices: u64,
    /// Each entry has a code there, whatever it is.
    pub is_total: bool,
}

impl OfPlane {
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

/// A plane of a quantised tensor that is packed anew.
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
type Rows = (u64, std::ops::Range<u64>);

impl Repacked {
    /// Settles how the plane is cut.
    ///
    /// # Errors
    /// Planes that do not fit each other.
    pub fn new(part: Part, (from, bytes): (Stored, u64), of: &OfPlane) -> Result<Repacked, ScaledError> {
        let granule = Repacker::new(&of.how, &CastOptions::default())?.granule();
        let unit = if of.how.transposed { COLUMNS.next_multiple_of(granule) } else { granule };
        Ok(Repacked { part, from, bytes, how: of.how, matrices: of.matrices, unit })
    }

    /// As the stream sees it: cut between rows, and between matrices.
    pub fn item(&self, index: usize) -> Item {
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

    /// Where entries begin in the tensor that is written.
    pub fn offset(&self, first: u64) -> u64 {
        let Repacking { to, to_shape: [rows, cols], .. } = self.how;
        let (matrix, of) = self.rows(first, 0);
        let bytes = |rows| to.bytes([rows, cols]).unwrap_or(0);
        matrix * bytes(rows) + bytes(of.start)
    }

    /// Reads what some entries are made of into the beginning of `buffer`. Returns how many bytes that are.
    pub fn read(
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
    pub fn run(
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
        let (item, mut src, mut dst) = (self.item(0), Vec::new(), Vec::new());
        let mut first = 0;
        while first < item.len {
            let step = ((1 << 18) / item.unit).max(1) * item.unit;
            let len = step.min(item.len - first).min(item.period - first % item.period);
            let read = self.read(&repacker, folder, (first, len), &mut src)?;
            let (made, wrong) = self.run(&repacker, (first, len), &src[..read], &mut dst).map_err(failed)?;
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
