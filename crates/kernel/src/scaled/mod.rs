//! Scaled and packed elements, fast. Formally equivalent to [`truecast_core::scaled::Layout::value`] followed by a cast.
//!
//! A [`Dequantiser`] is planned once and then runs over [`Window`]s: boxes of a stored matrix whose bytes somebody else
//! has read. All values are made in one way, by `values`: decoded codes, an operation with their scales in f32, and the
//! conversion from f32 that [`crate::Caster`] makes too. Where few codes share a scale among many elements, that way makes
//! a table of their results, and elements are looked up (`lookup`).
//!
//! Read in this order: `cut`, `unpack`, `blocks`, `values`, `short`, `products`, `grid`, `lookup`, `dequantise`, `quantise`,
//! `repack`, `gather`.
//! Reference: `docs/kernels.md §15`.

mod blocks;
mod cut;
mod dequantise;
pub(crate) mod divided;
mod gather;
mod grid;
pub(crate) mod lookup;
pub(crate) mod nibbles;
mod products;
mod quantise;
mod repack;
mod short;
pub(crate) mod stepped;
mod unpack;
mod values;

pub use cut::{Read, Window};
pub use dequantise::Dequantiser;
pub use gather::gather;
pub use quantise::{PartsMut, Quantiser};
pub use repack::Repacker;
