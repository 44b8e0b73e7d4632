//! What a job should have written, and how it is read again.

use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::source::SourceValues;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::scan::{Chunk, Side, Stretch, scan};
use crate::files::stream::zeros;
use std::ops::{ControlFlow, Range};
use truecast_core::CastSpec;
use truecast_core::scaled::ScaledError;
use truecast_io::Source;
use truecast_io::folder::Folder;

/// What a job should have written.
pub(crate) struct Written<'a, 'p> {
    pub folder: &'p Folder,
    pub planned: &'a Planned,
    /// The tensors that have a global scale in common with it, itself among them.
    pub shared: Vec<&'p Scaled>,
    /// The file of the result, and the places of the tensors in it.
    pub result: &'a Source,
    pub places: Vec<usize>,
    pub stretches: &'a [Stretch],
    pub source: &'a SourceValues<'p>,
}

impl Written<'_, '_> {
    /// Bytes of one of the tensors of the result.
    pub fn read(&self, output: usize, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut read = zeros(bytes.end - bytes.start)?;
        self.result.read_at(self.places[output], bytes.start, &mut read)?;
        Ok(read)
    }

    pub fn failed(&self, cause: ScaledError) -> Error {
        Error::tensor(self.folder.path(), &self.planned.name, Cause::Scaled(cause))
    }
    /// What was asked for; of a tensor that was copied, a copy.
    pub(super) fn cast(&self) -> CastSpec {
        self.planned.cast.unwrap_or(CastSpec::copy(self.planned.from))
    }

    /// Gives chunks of a tensor of the source and of the first that was written to `work`, as [`scan`].
    pub(super) fn scan<T: Send>(
        &self,
        from: Stored,
        start: impl Fn() -> T + Sync,
        work: impl Fn(&mut T, Chunk<'_, 2>) + Sync,
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<Vec<T>, Error> {
        let sides = [
            Side { source: from.source(self.folder), index: from.tensor, dtype: self.planned.from },
            Side { source: self.result, index: self.places[0], dtype: self.planned.target.dtype },
        ];
        scan(sides, self.stretches, start, work, progress)
    }
}
