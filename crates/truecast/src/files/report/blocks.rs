//! Counts of blocks of a quantized tensor (`docs/spec/checkpoints.md §10`).

use serde::ser::SerializeMap;
use truecast_kernel::scaled::BlockCounts;

/// Counts of blocks and of padding. A block is the elements that share a scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Counts of blocks.
    pub counts: BlockCounts,
    /// Number of padding rows.
    pub pad_rows: u64,
    /// Number of padding columns.
    pub pad_cols: u64,
}

impl Blocks {
    pub(super) fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let all = [
            ("blocks", self.counts.blocks),
            ("blocks_lossless", self.counts.blocks_lossless),
            ("scale_saturated", self.counts.scale_saturated),
            ("scale_zero", self.counts.scale_zero),
            ("blocks_to_zero", self.counts.blocks_to_zero),
            ("scale_nan", self.counts.scale_nan),
            ("pad_rows", self.pad_rows),
            ("pad_cols", self.pad_cols),
        ];
        all.iter().try_for_each(|(name, count)| map.serialize_entry(name, count))
    }
}
