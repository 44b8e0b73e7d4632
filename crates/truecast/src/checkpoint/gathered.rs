//! A tensor of a GGUF file that holds codes and scales of planes of the source in blocks (`gatherer`): how it is cut into
//! pieces, and where they lie.

use super::dense::Quantised;
use super::gatherer::{Alike, Gatherer, PARTS, Rows};
use super::repacked::OfPlane;
use crate::error::{Cause, Error};
use crate::report::TensorReport;
use crate::stream::Item;
use std::ops::ControlFlow;
use std::sync::Arc;
use truecast_core::scaled::Gathering;
use truecast_io::folder::Folder;
use truecast_kernel::{CastOptions, Counts};
use truecast_schemes::{Family, Scheme};

/// Blocks of the result.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    pub source: Quantised,
    pub alike: Alike,
    /// Of all matrices together.
    pub rows: u64,
    pub cols: u64,
    /// The name of what it becomes.
    to_scheme: Arc<str>,
    /// What became of the values.
    pub counts: Counts,
}

impl Gathered {
    /// The tensor, with codes and scales as rows of nibbles and of bytes, those of all matrices as one.
    pub fn new(source: Quantised, planes: &[OfPlane; 2]) -> Gathered {
        let to_scheme = Scheme::of(Family::Gguf(Gathering::BLOCK)).to_string().into();
        let [of_matrix, cols] = source.layout.out();
        let rows = of_matrix * source.layout.matrices;
        Gathered { alike: Alike::new(planes), rows, cols, to_scheme, counts: Counts::default(), source }
    }

    /// As the stream sees it: cut between rows.
    pub fn item(&self, index: usize) -> Item {
        // Codes and scales as rows stand between what is read and what is made.
        let (src_bits, dst_bits) = (self.source.bits().saturating_sub(32) + 5, 5);
        Item { index, len: self.rows * self.cols, src_bits, dst_bits, unit: self.cols.max(1), period: u64::MAX }
    }

    /// Bytes of the parts of the source that it takes the place of.
    pub fn bytes(&self) -> u64 {
        let bytes = |part| self.source.layout.part_bytes(part).ok().flatten().unwrap_or(0);
        PARTS.map(bytes).iter().sum()
    }

    /// What a report says of it: the tensor as it is read, not the bytes of its blocks.
    pub fn report(&self, row: &mut TensorReport) {
        let code = self.source.layout.code_type();
        (row.from, row.to, row.bytes_in, row.converted) = (code, code, self.bytes(), true);
        (row.scheme, row.to_scheme) = (Some(self.source.scheme.clone()), Some(self.to_scheme.clone()));
        row.elements = self.rows * self.cols;
        if let Some(columns) = Arc::make_mut(&mut row.shape).last_mut() {
            *columns = self.cols;
        }
    }

    /// The files that hold them.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        PARTS.map(|part| self.source.stored(part).shard).into_iter()
    }

    fn rows_of(&self, (first, len): (u64, u64)) -> Rows {
        first / self.cols..(first + len) / self.cols
    }

    /// Where what elements become begins in the tensor that is written.
    pub fn offset(&self, first: u64) -> u64 {
        first / Gathering::BLOCK.elements() * Gathering::BLOCK.bytes()
    }

    /// Reads what some elements are made of into the beginning of `buffer`. Returns how many bytes that are.
    pub fn read(
        &self,
        gatherer: &Gatherer,
        folder: &Folder,
        elements: (u64, u64),
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        self.read_rows(gatherer, folder, &self.rows_of(elements), buffer)
    }

    fn read_rows(
        &self,
        gatherer: &Gatherer,
        folder: &Folder,
        rows: &Rows,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let reads = gatherer.reads(rows);
        self.source.read(folder, reads.iter().flatten(), buffer)
    }

    /// Makes the blocks of some elements that were read. How many bytes `dst` begins with.
    pub fn run(
        &self,
        gatherer: &Gatherer,
        elements: (u64, u64),
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<usize, Cause> {
        gatherer.run(&self.rows_of(elements), src, dst)
    }

    /// Gives codes and scales of some rows to `look`, piece by piece with the first row of each, until it has seen enough.
    ///
    /// # Errors
    /// Reading.
    pub fn look(
        &self,
        folder: &Folder,
        rows: Rows,
        mut look: impl FnMut(u64, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let failed = |cause: Cause| Error::tensor(folder.path(), &self.source.name, cause);
        let gatherer = Gatherer::new(&self.alike, &CastOptions::default()).map_err(|cause| failed(cause.into()))?;
        let (step, mut src) = (((1 << 20) / self.cols.max(1)).max(1), Vec::new());
        let mut row = rows.start;
        while row < rows.end {
            let end = (row + step).min(rows.end);
            let piece = row..end;
            let read = self.read_rows(&gatherer, folder, &piece, &mut src)?;
            let seen = gatherer.planes(&piece, &src[..read], |codes, scales| Ok(look(row, codes, scales)));
            if seen.map_err(failed)?.is_break() {
                return Ok(());
            }
            row = end;
        }
        Ok(())
    }
}
