//! Plain elements to scaled ones (`docs/spec/checkpoints.md §7`). Formally equivalent to
//! [`truecast_core::scaled::Planes::quantize`] and [`truecast_core::scaled::BlockType::quantize`], block after block.
//!
//! Some columns of the rows that share scales are taken at a time, few enough to stay in the second-level cache
//! (`planes`): the largest magnitude of each block is found (`source`, `found`), scales are made for all of these
//! blocks at once (`scales`), then each row is divided by them and encoded (`element`, `coder`), and its codes are
//! counted (`counts`). `search` tries other scales; `blocks` makes those of GGUF files.

mod blocks;
mod coder;
mod counts;
mod element;
mod found;
mod planes;
mod quantizer;
mod scales;
mod search;
mod source;
mod thresholds;

pub use counts::BlockCounts;
pub use quantizer::{PartsMut, Quantizer};
