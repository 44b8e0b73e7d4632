//! Counts of the blocks of a tensor that was quantized (`docs/spec/checkpoints.md §10`).

use serde::ser::SerializeMap;

/// What became of elements that share a scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks that have elements of the tensor.
    pub blocks: u64,
    /// Those of which every element has its value, and a zero its sign.
    pub blocks_lossless: u64,
    /// The scale is the largest finite one of its type, and an element lies beyond what codes reach with it.
    pub scale_saturated: u64,
    /// The scale is zero.
    pub scale_zero: u64,
    /// The scale is NaN.
    pub scale_nan: u64,
    /// Rows that were added.
    pub pad_rows: u64,
    /// Columns that were added.
    pub pad_cols: u64,
}

impl Blocks {
    /// Of more blocks; rows and columns that were added stay what they are.
    pub fn add(&mut self, more: &Blocks) {
        self.blocks += more.blocks;
        self.blocks_lossless += more.blocks_lossless;
        self.scale_saturated += more.scale_saturated;
        self.scale_zero += more.scale_zero;
        self.scale_nan += more.scale_nan;
    }

    pub(super) fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let all = [
            ("blocks", self.blocks),
            ("blocks_lossless", self.blocks_lossless),
            ("scale_saturated", self.scale_saturated),
            ("scale_zero", self.scale_zero),
            ("scale_nan", self.scale_nan),
            ("pad_rows", self.pad_rows),
            ("pad_cols", self.pad_cols),
        ];
        all.iter().try_for_each(|(name, count)| map.serialize_entry(name, count))
    }
}
