//! Expected output of a job, and access to its files.

use super::difference::FileDifference;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::scan::{Chunk, Side, Stretch, scan};
use crate::files::stream::zeros;
use std::ops::{ControlFlow, Range};
use truecast_core::CastSpec;
use truecast_core::scaled::ScaledError;
use truecast_io::Source;
use truecast_io::folder::Folder;

pub(crate) struct Written<'a> {
    pub folder: &'a Folder,
    pub planned: &'a Planned,
    /// Tensors with the same global scale, including this one.
    pub shared: Vec<&'a Scaled>,
    pub result: &'a Source,
    pub places: Vec<usize>,
    pub stretches: &'a [Stretch],
}

impl Written<'_> {
    pub fn read(&self, output: usize, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut read = zeros(bytes.end - bytes.start)?;
        self.result.read_at(self.places[output], bytes.start, &mut read)?;
        Ok(read)
    }

    pub fn compare_bytes(&self, output: usize, tensor: &str, expected: &[u8]) -> Result<Option<FileDifference>, Error> {
        let actual = self.read(output, 0..expected.len() as u64)?;
        Ok(FileDifference::of_bytes(tensor, expected, &actual))
    }

    pub fn failed(&self, cause: ScaledError) -> Error {
        Error::tensor(self.folder.path(), &self.planned.name, Cause::Scaled(cause))
    }

    pub(super) fn cast(&self) -> CastSpec {
        self.planned.cast.unwrap_or(CastSpec::copy(self.planned.from))
    }

    /// Passes chunks of the source tensor and the first output tensor to `work`; see [`scan`].
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
