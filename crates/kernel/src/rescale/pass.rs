//! What a pass over a tile is, and what comes of it.

use std::fmt::Debug;

/// What came of a tile.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub saturated: u64,
    /// A requirement does not hold for some element.
    pub failed: bool,
}

/// A pass over a tile.
pub(super) trait Pass: Debug + Send + Sync {
    /// Rescales the elements from `first` on.
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally;
}
