//! Scaled and packed elements, fast. Formally equal to [`truecast_core::scaled::Layout::value`] followed by a cast.
//!
//! A [`Dequantizer`] is planned once and then runs over [`Window`]s: boxes of a stored matrix whose bytes the caller
//! has read. All values are made in one way, by `values`: decoded codes, an operation with their scales in f32, and the
//! conversion from f32 that [`crate::Caster`] makes too. Where few codes share a scale among many elements, that way
//! makes a table of their results, and elements are looked up (`lookup`).
//!
//! Read in this order: `rows`, `cut`, `unpack`, `blocks`, `values`, `ahead`, `products`, `grid`, `lookup`,
//! `dequantize`, `quantize`, `repack`.
//! Reference: `docs/kernels.md §15`.

mod ahead;
mod blocks;
mod cut;
mod dequantize;
mod grid;
pub(crate) mod lookup;
mod products;
mod quantize;
mod repack;
pub(crate) mod rows;
pub(crate) mod threshold_table;
mod unpack;
mod values;

pub use cut::{Read, Window};
pub use dequantize::Dequantizer;
pub use quantize::{BlockCounts, PartsMut, Quantizer};
pub use repack::Repacker;
