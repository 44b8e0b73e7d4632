//! Plain elements to scaled ones (`docs/spec/checkpoints.md §7`, §9.3, §9.4). Formally equivalent to
//! [`truecast_core::scaled::Planes::quantize`] and [`truecast_core::scaled::BlockType::quantize`], block after block.
//!
//! A `plan` has the steps, and runs them over strips of rows (`strips`) that stay in the second-level cache: the
//! largest magnitude of each block (`load`, `source`), scales of all these blocks at once (`scales`), division and
//! encoding (`encode`, `element`, `thresholds`), counts (`count`, `counts`), and the places of the parts (`parts`).
//! Results of a step, for the next ones, are in `blocks`. `search` tries other scales.

mod blocks;
mod count;
mod counts;
mod element;
mod encode;
mod load;
mod parts;
mod plan;
mod quantizer;
mod scales;
mod search;
mod source;
mod strips;
mod thresholds;

pub use counts::BlockCounts;
pub use quantizer::{PartsMut, Quantizer};
