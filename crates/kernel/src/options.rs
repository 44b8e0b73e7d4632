//! Options for running a conversion.

use crate::level::Level;
use std::num::NonZeroUsize;

/// Options for running a conversion. None of them changes a bit of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastOptions {
    /// Instruction-set level.
    pub level: Level,
    /// Most pieces that work is cut into at once. They run on the current rayon pool.
    pub threads: NonZeroUsize,
    /// Counts that are taken.
    pub counting: Counting,
    /// Results that take more bytes than this are stored past the caches, where the loop can and that pays; `None`:
    /// results larger than the last-level cache, or, together with their sources, four times as large or more.
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
    /// The strongest level, every core, no counting.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { level: Level::detect(), threads, counting: Counting::Off, stream_above_bytes: None }
    }
}
