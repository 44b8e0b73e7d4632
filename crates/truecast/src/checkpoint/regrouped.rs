//! A tensor of the result that holds codes or scales of a tensor whose scales are powers of two, in blocks of another size or
//! codes of another type (`regrouper`): how it is cut into pieces, and where they lie.

use super::dense::Quantised;
use super::regrouper::{Alike, Blocks, Regrouper, Strip};
use crate::error::{Cause, Error};
use crate::stream::{Item, room};
use std::ops::Range;
use truecast_core::scaled::Part;
use truecast_io::folder::Folder;
use truecast_kernel::CastOptions;

/// Codes or scales of the result.
#[derive(Clone, Debug)]
pub(crate) struct Regrouped {
    pub source: Quantised,
    pub alike: Alike,
}

impl Regrouped {
    /// As the stream sees it: cut between rows of blocks, and between matrices.
    pub fn item(&self, index: usize) -> Item {
        let Blocks { matrices, rows, cols, .. } = self.alike.blocks;
        let matrix = rows * cols;
        // Codes and scales in slots of whole bytes stand between what is read and what is made.
        let src_bits = self.source.bits();
        let dst_bits = if self.alike.part == Part::Codes { 8 } else { 1 } + 8;
        let period = if matrices > 1 { matrix } else { u64::MAX };
        Item {
            index,
            len: matrices * matrix,
            src_bits,
            dst_bits,
            unit: (self.alike.blocks.unit() * cols).max(1),
            period,
        }
    }

    /// Bytes of the part of the source that it takes the place of.
    pub fn bytes(&self) -> u64 {
        self.source.layout.part_bytes(self.alike.part).ok().flatten().unwrap_or(0)
    }

    /// Rows of which matrix some elements are.
    fn rows(&self, first: u64, len: u64) -> (u64, Range<u64>) {
        let Blocks { rows, cols, .. } = self.alike.blocks;
        let (matrix, row) = (first / (rows * cols), first / cols % rows);
        (matrix, row..row + len / cols)
    }

    /// Where what elements become begins in the tensor that is written.
    pub fn offset(&self, first: u64) -> u64 {
        let (matrix, rows) = self.rows(first, 0);
        if self.alike.part == Part::Codes {
            return first;
        }
        let Blocks { rows: all, new, .. } = self.alike.blocks;
        let [of_matrix, cols] = self.alike.blocks.grid(new, all);
        (matrix * of_matrix + rows.start / new[0]) * cols * self.alike.entry()
    }

    /// Reads what some elements are made of into the beginning of `buffer`. Returns how many bytes that are.
    pub fn read(
        &self,
        regrouper: &Regrouper,
        folder: &Folder,
        (first, len): (u64, u64),
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        self.read_parts(regrouper, folder, (first, len), self.alike.needs_codes(), buffer)
    }

    fn read_parts(
        &self,
        regrouper: &Regrouper,
        folder: &Folder,
        (first, len): (u64, u64),
        codes: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let (matrix, rows) = self.rows(first, len);
        let reads = regrouper.reads(matrix, &rows, codes);
        self.source.read(folder, reads.iter().flatten(), buffer)
    }

    /// Makes the part of some elements that were read. How many bytes `dst` begins with.
    pub fn run(
        &self,
        regrouper: &Regrouper,
        (first, len): (u64, u64),
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<usize, Cause> {
        let rows = self.rows(first, len);
        let grid = self.alike.blocks.grid(self.alike.blocks.new, rows.1.end - rows.1.start);
        let entries = if self.alike.part == Part::Codes { len } else { grid[0] * grid[1] };
        let dst = room(dst, entries * self.alike.entry())?;
        regrouper.strip(rows, src, self.alike.needs_codes(), |strip| regrouper.put(strip, dst))?;
        Ok(dst.len())
    }

    /// Gives the blocks of the whole tensor, as many rows as are read together, to `look`, until that has seen enough: with the
    /// matrix and its first row.
    ///
    /// # Errors
    /// Reading.
    pub fn look(
        &self,
        folder: &Folder,
        mut look: impl FnMut([u64; 2], &Regrouper, &Strip<'_>) -> bool,
    ) -> Result<(), Error> {
        let failed = |cause: Cause| Error::tensor(folder.path(), &self.source.name, cause);
        let regrouper = Regrouper::new(&self.alike, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (item, mut src) = (self.item(0), Vec::new());
        let mut first = 0;
        while first < item.len {
            let step = ((1 << 18) / item.unit).max(1) * item.unit;
            let len = step.min(item.len - first).min(item.period - first % item.period);
            let read = self.read_parts(&regrouper, folder, (first, len), true, &mut src)?;
            let (matrix, rows) = self.rows(first, len);
            let row = rows.start;
            let seen = |strip: &Strip<'_>| Ok(look([matrix, row], &regrouper, strip));
            if !regrouper.strip((matrix, rows), &src[..read], true, seen).map_err(failed)? {
                return Ok(());
            }
            first += len;
        }
        Ok(())
    }
}
