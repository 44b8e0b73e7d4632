//! Jobs for the tensors of a checkpoint. Each submodule implements one kind of job: its output tensors, its source
//! bytes, the reading, computation and placement of a piece, and its report.

mod copy;
mod dequantize;
mod quantize;
#[cfg(test)]
mod tests;
mod transcode;

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::select::Choice;
use crate::files::stream::{Item, room};
use crate::request::Request;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;
use truecast_io::{FileFormat, Tensor, TensorReader};
use truecast_kernel::Counts;
use truecast_kernel::measure::Sample;

pub(crate) use copy::Known;
pub(crate) use transcode::{PlaneOperation, Transcode};

/// A piece of a job's work.
pub(crate) struct Piece<'a> {
    pub planned: &'a Planned,
    pub operations: &'a Operations,
    /// Largest magnitude of each matrix, for jobs that need it before the first piece.
    pub amax: &'a [f32],
    pub item: &'a Item,
    pub first: u64,
    pub len: u64,
}

impl Piece<'_> {
    /// Selects the elements of the tensor whose errors are measured.
    fn sample(&self) -> Sample {
        self.operations.measure.of(self.item.len)
    }

    fn failed(&self, folder: &Folder) -> impl Fn(Cause) -> Error {
        |cause| Error::tensor(folder.path(), &self.planned.name, cause)
    }
}

/// Access to source pieces, which are read in order within a tensor.
pub(crate) struct SourceReader<'a> {
    pub folder: &'a Folder,
    open: Option<TensorReader>,
}

impl<'a> SourceReader<'a> {
    pub fn of(folder: &'a Folder) -> SourceReader<'a> {
        SourceReader { folder, open: None }
    }

    /// Fills `bytes` with the next bytes of a tensor, or with its first bytes if `is_first`.
    fn next(&mut self, at: Stored, is_first: bool, bytes: &mut [u8]) -> Result<(), Error> {
        let reader = match self.open.take().filter(|_| !is_first) {
            Some(reader) => reader,
            None => at.source(self.folder).reader(at.tensor)?,
        };
        Ok(self.open.insert(reader).read(bytes)?)
    }
}

/// A job, by its kind.
pub(crate) enum JobKind<'a> {
    /// Copies or casts elements.
    Cast(Stored),
    /// Writes known bytes.
    Known(&'a [u8]),
    Dequantize(&'a Quantized),
    Quantize(&'a Scaled),
    Transcode(&'a Transcode),
}

/// Callback that writes bytes. Its arguments are the number of the output tensor, the offset in it, and the bytes.
pub(crate) type Put<'a> = &'a mut dyn FnMut(usize, u64, &[u8]) -> Result<(), Error>;

/// Work that computes one output tensor, or several that belong together. The default methods suit elements that are
/// copied or cast.
pub(crate) trait Job: Debug + Send + Sync {
    fn kind(&self) -> JobKind<'_>;

    /// Description for the stream.
    fn item(&self, planned: &Planned, index: usize) -> Item {
        planned.item(index)
    }

    /// Source bytes to read.
    fn bytes_in(&self, planned: &Planned) -> u64 {
        planned.from.bytes_in(planned.src_layout, planned.target.len()).unwrap_or(0)
    }

    /// Type of the GGUF blocks that the job copies or makes.
    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        None
    }

    /// Source type in reports, if it differs from the planned source type.
    fn from(&self) -> Option<DType> {
        None
    }

    /// Plans the work, to find errors before anything is written.
    fn plan(&self, planned: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.cast(planned).map(drop)
    }

    /// Reads the source of a piece into the start of `buffer`. Returns the number of bytes.
    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error>;

    /// Computes a piece from its source. Returns the errors, and the number of bytes at the start of `dst`.
    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let Piece { planned, operations, item, first, len, .. } = *piece;
        let action = operations.cast(planned)?;
        let dst = room(dst, item.dst_bytes(len))?;
        let counts = action.run(planned, first, len as usize, src, dst, piece.sample())?;
        Ok((ErrorSums { counts, ..ErrorSums::default() }, dst.len()))
    }

    /// Offset of an element in the output tensor.
    fn offset(&self, item: &Item, first: u64) -> u64 {
        item.dst_bytes(first)
    }

    fn place(&self, piece: &Piece<'_>, bytes: &[u8], put: Put<'_>) -> Result<(), Error> {
        put(0, self.offset(piece.item, piece.first), bytes)
    }

    /// Returns the counts of the tensor, if they are known in advance.
    fn counts(&self, _: &Planned) -> Option<Counts> {
        None
    }

    /// Adds to the tensor's report.
    fn report(&self, _: &mut TensorReport) {}
}

impl dyn Job {
    /// The quantization, if any.
    pub fn scaled(&self) -> Option<&Scaled> {
        if let JobKind::Quantize(scaled) = self.kind() { Some(scaled) } else { None }
    }

    /// Returns the source tensor whose elements are copied or cast. If a job has no such tensor, the index no longer
    /// states the number of parameters.
    pub fn stored(&self) -> Option<Stored> {
        if let JobKind::Cast(at) = self.kind() { Some(at) } else { None }
    }
}

/// Converts a count to elements. With a block type, `counted` is in bytes of copied blocks; otherwise it is in
/// elements.
pub(crate) fn elements_in(block: Option<Block>, counted: u64) -> u64 {
    block.map_or(counted, |block| counted / block.bytes() * block.elements())
}

/// Work for one or several tensors of the result.
#[derive(Clone, Debug)]
pub(crate) struct TensorJob {
    /// Types and cast. For a quantized source, `from` is the type of the codes, and `cast` starts from f32; for a
    /// quantized result, `target` represents all output tensors, with the type of the codes.
    pub planned: Planned,
    pub job: Arc<dyn Job>,
}

impl TensorJob {
    /// Job for a plain tensor that stays plain; checks that a file at `path` accepts it.
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

    /// Description for the stream.
    pub fn item(&self, index: usize) -> Item {
        self.job.item(&self.planned, index)
    }

    /// The output tensors.
    pub fn targets(&self) -> impl Iterator<Item = &Tensor> + Clone {
        let (one, several) = match self.job.scaled() {
            Some(scaled) => (None, &scaled.outputs[..]),
            None => (Some(&self.planned.target), &[][..]),
        };
        one.into_iter().chain(several.iter().map(|output| &output.tensor))
    }

    /// Source bytes to read.
    pub fn bytes_in(&self) -> u64 {
        self.job.bytes_in(&self.planned)
    }

    /// Bytes of the output tensors.
    pub fn bytes_out(&self) -> u64 {
        self.targets().map(Tensor::bytes).sum()
    }

    /// Type of blocks that are copied byte for byte; `None` for other work.
    pub fn kept_block(&self, folder: &Folder) -> Option<Block> {
        self.job.stored().and_then(|_| self.job.block(folder, &self.planned))
    }

    /// The tensor's report.
    pub fn report(&self, counts: Counts) -> TensorReport {
        let mut row = TensorReport::new(self.planned.clone(), counts);
        self.job.report(&mut row);
        row
    }
}
