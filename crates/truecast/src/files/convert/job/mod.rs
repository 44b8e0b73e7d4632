//! Jobs for the tensors of a checkpoint. Each submodule implements one kind of job.

mod copy;
mod dequantize;
mod quantize;
#[cfg(test)]
mod tests;
mod transcode;

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::operations::Operations;
use crate::files::convert::options::Measuring;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::{Magnitudes, TensorReport};
use crate::files::select::Choice;
use crate::files::stream::{Item, room};
use crate::request::Request;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;
use truecast_io::{FileFormat, Tensor, TensorReader};
use truecast_kernel::measure::{BLOCK, Sample};
use truecast_kernel::{Counts, Elements};

pub(crate) use copy::Known;
pub(crate) use transcode::{PlaneOperation, Transcode};

pub(crate) struct Piece<'a> {
    pub planned: &'a Planned,
    pub operations: &'a Operations,
    /// Largest magnitude of each matrix. Empty unless the job asks for it.
    pub amax: &'a [f32],
    pub item: &'a Item,
    pub first: u64,
    pub len: u64,
}

impl Piece<'_> {
    fn sample(&self) -> Sample {
        self.operations.measure.sample(self.item.len)
    }

    /// Elements of a plain tensor that are counted by power of two: fewer than the measured ones, to save time.
    fn counted(&self) -> Sample {
        match self.operations.measure {
            Measuring::Sample => Sample::of(self.item.len.saturating_mul(4)),
            all_or_none => all_or_none.sample(self.item.len),
        }
    }

    /// Magnitudes to be counted, if any.
    fn magnitudes(&self) -> Option<Magnitudes> {
        self.operations.magnitudes.then(Magnitudes::default)
    }

    fn failed(&self, folder: &Folder) -> impl Fn(Cause) -> Error {
        |cause| Error::tensor(folder.path(), &self.planned.name, cause)
    }
}

/// Reader of source pieces, which are read in order within a tensor.
pub(crate) struct SourceReader<'a> {
    pub folder: &'a Folder,
    open: Option<TensorReader>,
}

impl<'a> SourceReader<'a> {
    pub fn of(folder: &'a Folder) -> SourceReader<'a> {
        SourceReader { folder, open: None }
    }

    /// Reads the next bytes of a tensor, or the first bytes if `is_first`.
    fn next(&mut self, at: Stored, is_first: bool, bytes: &mut [u8]) -> Result<(), Error> {
        let reader = match self.open.take().filter(|_| !is_first) {
            Some(reader) => reader,
            None => at.source(self.folder).reader(at.tensor)?,
        };
        Ok(self.open.insert(reader).read(bytes)?)
    }
}

pub(crate) enum JobKind<'a> {
    Cast(Stored),
    Known(&'a [u8]),
    Dequantize(&'a Quantized),
    Quantize(&'a Scaled),
    Transcode(&'a Transcode),
}

/// Writes bytes. Arguments: index of the output tensor, offset in the tensor, bytes.
pub(crate) type Put<'a> = &'a mut dyn FnMut(usize, u64, &[u8]) -> Result<(), Error>;

/// Computes one or several output tensors. The default methods copy or cast elements.
pub(crate) trait Job: Debug + Send + Sync {
    fn kind(&self) -> JobKind<'_>;

    fn item(&self, planned: &Planned, index: usize) -> Item {
        planned.item(index)
    }

    fn bytes_in(&self, planned: &Planned) -> u64 {
        planned.from.bytes_in(planned.src_layout, planned.target.len()).unwrap_or(0)
    }

    /// Type of the GGUF blocks that the job writes.
    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        None
    }

    /// Source type in reports, if it is not the planned source type.
    fn from(&self) -> Option<DType> {
        None
    }

    /// Plans the work, so that errors come before anything is written.
    fn plan(&self, planned: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.cast(planned).map(drop)
    }

    /// Reads the source bytes of a piece into the start of `buffer`. Returns their number.
    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error>;

    /// Computes a piece into the start of `dst`. Returns errors and number of bytes.
    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let Piece { planned, operations, item, first, len, .. } = *piece;
        let action = operations.cast(planned)?;
        let dst = room(dst, item.dst_bytes(len))?;
        let Some(mut all) = piece.magnitudes() else {
            let counts = action.run(planned, first, len as usize, src, dst, piece.sample())?;
            return Ok((ErrorSums { counts, ..ErrorSums::default() }, dst.len()));
        };
        // Blocks are counted while they are in the cache.
        let (mut counts, mut at) = (Vec::new(), 0);
        while at < len {
            let Planned { target, from, src_layout, .. } = planned;
            let step = (len - at).min(BLOCK as u64);
            let src = &src[item.src_bytes(at) as usize..item.src_bytes(at + step) as usize];
            let dst = &mut dst[item.dst_bytes(at) as usize..item.dst_bytes(at + step) as usize];
            counts.extend(action.run(planned, first + at, step as usize, src, dst, piece.sample())?);
            let codes = Elements::with_layout(*from, *src_layout, step as usize, src)?;
            let results = Elements::with_layout(target.dtype, target.layout, step as usize, &*dst)?;
            let results = if planned.cast.is_none() { codes } else { results };
            all.add([codes, results], first + at, piece.counted(), NonZeroUsize::MIN);
            at += step;
        }
        let magnitudes = Some(all);
        Ok((ErrorSums { counts, magnitudes, ..ErrorSums::default() }, dst.len()))
    }

    /// Offset in bytes that an element has in the output tensor.
    fn offset(&self, item: &Item, first: u64) -> u64 {
        item.dst_bytes(first)
    }

    fn place(&self, piece: &Piece<'_>, bytes: &[u8], put: Put<'_>) -> Result<(), Error> {
        put(0, self.offset(piece.item, piece.first), bytes)
    }

    /// Counts of the tensor, if they are known without data.
    fn counts(&self, _: &Planned) -> Option<Counts> {
        None
    }

    fn report(&self, _: &mut TensorReport) {}
}

impl dyn Job {
    pub fn scaled(&self) -> Option<&Scaled> {
        if let JobKind::Quantize(scaled) = self.kind() { Some(scaled) } else { None }
    }

    /// Source tensor, if the job copies or casts one. Any other job changes the number of parameters, which the index
    /// then omits.
    pub fn stored(&self) -> Option<Stored> {
        if let JobKind::Cast(at) = self.kind() { Some(at) } else { None }
    }
}

/// Converts a count to elements. `counted` is in bytes of blocks if `block` is set, otherwise in elements.
pub(crate) fn elements_in(block: Option<Block>, counted: u64) -> u64 {
    block.map_or(counted, |block| counted / block.bytes() * block.elements())
}

#[derive(Clone, Debug)]
pub(crate) struct TensorJob {
    /// Types and cast. A quantized source has the type of its codes as `from`, and a cast from f32. A quantized result
    /// has the type of its codes in `target`.
    pub planned: Planned,
    pub job: Arc<dyn Job>,
}

impl TensorJob {
    /// Job for a plain tensor that remains plain. Checks that the file at `path` supports the type.
    pub fn of_plain(
        at: Stored,
        tensor: &Tensor,
        choice: Choice,
        into: FileFormat,
        path: &Path,
        request: &Request,
    ) -> Result<TensorJob, Error> {
        Ok(TensorJob { planned: Planned::new(tensor, choice, into, path, request)?, job: Arc::new(at) })
    }

    pub fn item(&self, index: usize) -> Item {
        self.job.item(&self.planned, index)
    }

    pub fn targets(&self) -> impl Iterator<Item = &Tensor> + Clone {
        let (one, several) = match self.job.scaled() {
            Some(scaled) => (None, &scaled.outputs[..]),
            None => (Some(&self.planned.target), &[][..]),
        };
        one.into_iter().chain(several.iter().map(|output| &output.tensor))
    }

    pub fn bytes_in(&self) -> u64 {
        self.job.bytes_in(&self.planned)
    }

    pub fn bytes_out(&self) -> u64 {
        self.targets().map(Tensor::bytes).sum()
    }

    /// Type of blocks that are copied unchanged; `None` for other jobs.
    pub fn kept_block(&self, folder: &Folder) -> Option<Block> {
        self.job.stored().and_then(|_| self.job.block(folder, &self.planned))
    }

    pub fn report(&self, counts: Counts) -> TensorReport {
        let mut row = TensorReport::new(self.planned.clone(), counts);
        self.job.report(&mut row);
        row
    }
}
