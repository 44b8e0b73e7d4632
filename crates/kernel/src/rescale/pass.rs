//! Passes over a tile, and their results.

use std::fmt::Debug;

#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub saturated: u64,
    pub failed: bool,
}

pub(super) trait Pass: Debug + Send + Sync {
    /// Rescales a tile that begins `first` elements after the start of a row.
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally;
}
