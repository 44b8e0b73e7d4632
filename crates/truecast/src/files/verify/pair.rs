//! A tensor of the source beside what became of it.

use super::difference::FileDifference;
use crate::files::convert::planned::Planned;
use crate::files::error::Error;
use crate::files::scan::{Chunk, Side, Stretch, scan};
use std::ops::ControlFlow;
use truecast_core::CastSpec;
use truecast_io::Source;

/// A tensor and what became of it.
pub(crate) struct Pair<'a> {
    pub source: &'a Source,
    /// Index in the source.
    pub index: usize,
    pub tensor: &'a Planned,
    pub result: &'a Source,
    /// Index in the result.
    pub at: usize,
    /// What is recomputed.
    pub stretches: &'a [Stretch],
}

impl Pair<'_> {
    /// What was asked for; of a tensor that was copied, a copy.
    pub(super) fn cast(&self) -> CastSpec {
        self.tensor.cast.unwrap_or(CastSpec::copy(self.tensor.from))
    }

    /// Gives chunks of both sides to `work`, as [`scan`].
    pub(super) fn scan<T: Send>(
        &self,
        start: impl Fn() -> T + Sync,
        work: impl Fn(&mut T, Chunk<'_, 2>) + Sync,
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<Vec<T>, Error> {
        let Pair { source, index, tensor, result, at, stretches } = *self;
        let sides = [
            Side { source, index, dtype: tensor.from },
            Side { source: result, index: at, dtype: tensor.target.dtype },
        ];
        scan(sides, stretches, start, work, progress)
    }

    pub(super) fn refused(&self, index: u64) -> FileDifference {
        FileDifference::Refused { tensor: self.tensor.target.name.to_string(), index }
    }
}
