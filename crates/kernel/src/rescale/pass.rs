//! Passes over a tile, and their results.

use std::fmt::Debug;

/// Result of a pass over a tile.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub saturated: u64,
    /// Whether some element fails a requirement.
    pub failed: bool,
}

/// A pass over a tile.
pub(super) trait Pass: Debug + Send + Sync {
    /// Rescales a tile that begins `first` elements after the start of a row.
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally;
}
