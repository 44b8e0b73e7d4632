//! What becomes of the tensors of a checkpoint. A kind of work is one file here: which tensors it makes, of which bytes of the
//! source, how a piece is read, made and placed, what a report says of it, and how the result is checked.

mod copy;
mod dequantize;
mod quantize;
mod transcode;

use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::codes::Roundings;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::select::Choice;
use crate::files::stream::{Item, room};
use crate::files::verify::Methods;
use crate::files::verify::difference::FileDifference;
use crate::files::verify::elements::Prepared;
use crate::files::verify::written::Written;
use crate::request::Request;
use std::fmt::Debug;
use std::ops::ControlFlow;
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

/// A piece of what a job makes.
pub(crate) struct Piece<'a> {
    pub planned: &'a Planned,
    pub operations: &'a Operations,
    /// The largest magnitude of each matrix, where it is needed before the first piece.
    pub amax: &'a [f32],
    pub item: &'a Item,
    pub first: u64,
    pub len: u64,
}

impl Piece<'_> {
    /// The elements of the tensor whose errors are measured.
    fn sample(&self) -> Sample {
        self.operations.measure.of(self.item.len)
    }

    fn failed(&self, folder: &Folder) -> impl Fn(Cause) -> Error {
        |cause| Error::tensor(folder.path(), &self.planned.name, cause)
    }
}

/// Where pieces are read: those of a tensor in their order.
pub(crate) struct SourceReader<'a> {
    pub folder: &'a Folder,
    open: Option<TensorReader>,
}

impl<'a> SourceReader<'a> {
    pub fn of(folder: &'a Folder) -> SourceReader<'a> {
        SourceReader { folder, open: None }
    }

    /// Fills `bytes` with the next ones of a tensor, or its first.
    fn next(&mut self, at: Stored, is_first: bool, bytes: &mut [u8]) -> Result<(), Error> {
        let reader = match self.open.take().filter(|_| !is_first) {
            Some(reader) => reader,
            None => at.source(self.folder).reader(at.tensor)?,
        };
        Ok(self.open.insert(reader).read(bytes)?)
    }
}

/// What was written, and what is used to compare it.
pub(crate) struct JobCheck<'a, 'p> {
    pub of: Written<'a, 'p>,
    pub prepared: &'a mut Prepared,
    pub roundings: &'a mut Roundings,
    pub methods: &'a mut Methods,
    pub progress: &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
}

/// What differs, and how many elements were compared.
pub(crate) type JobChecked = Result<(Vec<FileDifference>, u64), Error>;

/// Takes bytes, with the number of the tensor and the offset in it where they belong.
pub(crate) type Put<'a> = &'a mut dyn FnMut(usize, u64, &[u8]) -> Result<(), Error>;

/// How one tensor of the result is made, or several that belong together. What is not said otherwise is right for elements
/// that are copied or cast.
pub(crate) trait Job: Debug + Send + Sync {
    /// As the stream sees it.
    fn item(&self, planned: &Planned, index: usize) -> Item {
        planned.item(index)
    }

    /// Bytes of the source that it reads.
    fn bytes_in(&self, planned: &Planned) -> u64 {
        planned.from.bytes_in(planned.src_layout, planned.target.len()).unwrap_or(0)
    }

    /// What is quantized, if something is.
    fn scaled(&self) -> Option<&Scaled> {
        None
    }

    /// The tensor of the source whose elements it copies, casts or changes one by one: where none is, an index no longer says
    /// how many parameters there are.
    fn stored(&self) -> Option<Stored> {
        None
    }

    /// The blocks of a GGUF file that it copies or makes.
    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        None
    }

    /// The type of what is read, where a report tells another than that of the result.
    fn from(&self) -> Option<DType> {
        None
    }

    /// Plans it, so that what cannot be done is known before anything is written.
    fn plan(&self, planned: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.cast(planned).map(drop)
    }

    /// Reads what a piece is made of into the beginning of `buffer`. Returns how many bytes that are.
    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error>;

    /// Makes a piece of what was read. What it cost, and how many bytes `dst` begins with.
    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let Piece { planned, operations, item, first, len, .. } = *piece;
        let action = operations.cast(planned)?;
        let dst = room(dst, item.dst_bytes(len))?;
        let counts = action.run(planned, (first, len as usize), src, dst, piece.sample())?;
        Ok((ErrorSums { counts, ..ErrorSums::default() }, dst.len()))
    }

    /// Where elements begin in the tensor that is written.
    fn offset(&self, item: &Item, first: u64) -> u64 {
        item.dst_bytes(first)
    }

    /// Gives the bytes of a piece to `put`.
    fn place(&self, piece: &Piece<'_>, bytes: &[u8], put: Put<'_>) -> Result<(), Error> {
        put(0, self.offset(piece.item, piece.first), bytes)
    }

    /// The counts of the tensor, where they were known before.
    fn counts(&self, _: &Planned) -> Option<Counts> {
        None
    }

    /// What a report says of it beyond its types and counts.
    fn report(&self, _: &mut TensorReport) {}

    /// Compares what was written with what should have been, without code that may have written it.
    fn check<'p>(&'p self, check: JobCheck<'_, 'p>) -> JobChecked;
}

/// So many elements are meant where bytes are counted: of blocks that are copied.
pub(crate) fn elements_in(block: Option<Block>, counted: u64) -> u64 {
    block.map_or(counted, |block| counted / block.bytes() * block.elements())
}

/// What makes tensors of the result that belong together.
#[derive(Clone, Debug)]
pub(crate) struct TensorJob {
    /// What it becomes. Of a quantized tensor `from` is the type of its codes, and `cast` goes from f32; of one that is to be
    /// quantized `target` stands for all that it becomes, with the type of the codes.
    pub planned: Planned,
    pub job: Arc<dyn Job>,
}

impl TensorJob {
    /// What becomes of a tensor that is not quantized and will not be: a file here decides whether it takes it.
    pub fn of_plain(
        at: Stored,
        tensor: &Tensor,
        choice: Choice,
        (into, path): (FileFormat, &Path),
        request: &Request,
    ) -> Result<TensorJob, Error> {
        Ok(TensorJob { planned: Planned::new(tensor, choice, into, path, request)?, job: Arc::new(at) })
    }

    /// As the stream sees it.
    pub fn item(&self, index: usize) -> Item {
        self.job.item(&self.planned, index)
    }

    /// The tensors of the result.
    pub fn targets(&self) -> impl Iterator<Item = &Tensor> + Clone {
        let (one, several) = match self.job.scaled() {
            Some(scaled) => (None, &scaled.outputs[..]),
            None => (Some(&self.planned.target), &[][..]),
        };
        one.into_iter().chain(several.iter().map(|output| &output.tensor))
    }

    /// Bytes of the source that it reads.
    pub fn bytes_in(&self) -> u64 {
        self.job.bytes_in(&self.planned)
    }

    /// Bytes of the tensors of the result.
    pub fn bytes_out(&self) -> u64 {
        self.targets().map(Tensor::bytes).sum()
    }

    /// The type of the blocks that are copied, byte for byte; `None` if something else is done.
    pub fn kept_block(&self, folder: &Folder) -> Option<Block> {
        self.job.stored().and_then(|_| self.job.block(folder, &self.planned))
    }

    /// What a report says of it.
    pub fn report(&self, counts: Counts) -> TensorReport {
        let mut row = TensorReport::new(self.planned.clone(), counts);
        self.job.report(&mut row);
        row
    }
}
