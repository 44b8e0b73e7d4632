//! Options for running a conversion.

use crate::level::Level;
use std::num::NonZeroUsize;

/// Options for running a conversion. No option changes a bit of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastOptions {
    /// Instruction-set level.
    pub level: Level,
    /// Number of threads. Work runs on the current rayon pool, or on the caller's thread if this number is 1.
    pub threads: NonZeroUsize,
    /// Counts to take.
    pub counting: Counting,
    /// Minimum size in bytes of results that are stored past the caches, in loops where such stores are faster. The
    /// default, `None`, is the last-level cache for results, or four times that cache for source and results.
    pub stream_above_bytes: Option<usize>,
}

/// Counts from [`Caster::cast`](crate::Caster::cast).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Only the number of elements.
    Off,
    /// All fields of [`Counts`](crate::Counts).
    Full,
}

impl Default for CastOptions {
    /// The strongest level, every core, and no counting.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { level: Level::detect(), threads, counting: Counting::Off, stream_above_bytes: None }
    }
}
