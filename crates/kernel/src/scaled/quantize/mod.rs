//! Plain elements to scaled elements (`docs/spec/checkpoints.md §7`, §9.3, §9.4). Formally equivalent to
//! [`truecast_core::scaled::Planes::quantize`] and [`truecast_core::scaled::BlockType::quantize`] for each block.
//!
//! Blocks that ggml's rule makes (§9.11) have a file of their own, `ggml`. For all others start with `plan`: the steps, each over a strip of rows that stays in L2. Results between the steps are in `blocks`.

mod blocks;
mod count;
mod counts;
mod element;
mod encode;
mod ggml;
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
