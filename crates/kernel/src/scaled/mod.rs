//! Scaled and packed elements. Formally equivalent to [`truecast_core::scaled::Layout::value`], then a cast. Reference:
//! `docs/kernels.md §15`.
//!
//! A [`Dequantizer`] is planned once and runs over [`Window`]s: boxes of a stored matrix whose bytes the caller has
//! read. `values` computes results; for few codes per scale, the results become a table (`lookup`).

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
