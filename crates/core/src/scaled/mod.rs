//! Scaled and packed elements. Source: `docs/spec/checkpoints.md` §3, §4, §6, §7, §9.
//!
//! [`Layout::value`] defines the value of an element, [`Planes::quantize`] the encoding of a block. `truecast-kernel`
//! has the fast versions.
//! All arithmetic is integer arithmetic on [`Exact`](crate::Exact) values, so the floating-point environment does not
//! matter. Only [`ggml`] computes with f32, in a given order.

mod arithmetic;
mod blocks;
mod book;
pub mod codebooks;
mod dequantize;
mod error;
pub mod ggml;
pub mod gguf;
mod layout;
mod packing;
mod part;
mod quantize;
mod repack;

pub use blocks::BlockTerms;
pub use book::Book;
pub use dequantize::{Terms, value_of};
pub use error::ScaledError;
pub use gguf::{BlockType, DOUBLED_E2M1, Numbers};
pub use layout::{Code, Coding, Form, Global, GlobalRule, Group, Layout, Plane, Planes, Scales, Zero};
pub use packing::Packing;
pub use part::{Part, Parts};
pub use quantize::{MxScale, NonFinite, Quantization, Quantized, Search, amax};
pub use repack::{Change, Repacking};
