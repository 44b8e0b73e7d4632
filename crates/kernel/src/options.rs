//! Options for running a conversion.

use crate::level::Level;
use std::num::NonZeroUsize;

/// Options for running a conversion. None of them changes a bit of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastOptions {
    /// Instruction-set level.
    pub level: Level,
    /// Number of threads to divide the work among. Pieces run on the current rayon pool, or on the caller's thread if this
    /// is 1.
    pub threads: NonZeroUsize,
    /// Counts that are taken.
    pub counting: Counting,
    /// Bytes of results above which they are stored past the caches, if the loop has such stores and they pay. With
    /// `None`, the limit is the last-level cache for results, or four times its size for source and results together.
    pub stream_above_bytes: Option<usize>,
}

/// Counts that [`Caster::cast`](crate::Caster::cast) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Nothing: [`Counts`](crate::Counts) holds the number of elements only.
    Off,
    /// Everything that [`Counts`](crate::Counts) has.
    Full,
}

impl Default for CastOptions {
    /// Returns options with the strongest level, every core, and no counting.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { level: Level::detect(), threads, counting: Counting::Off, stream_above_bytes: None }
    }
}
