//! Scaled and packed elements: the value of an element, and the encoding of a block.
//!
//! A [`Layout`] describes one logical tensor as data: its matrices, the positions of codes ([`Packing`]), its scales,
//! zero points and biases, and the order of combining them ([`Form`]). [`Layout::value`] is the definition of reading,
//! [`Planes::quantize`] of writing; `truecast-kernel` does both fast. Grouping the tensors of a checkpoint and finding
//! their layout is done elsewhere.
//!
//! Source: `docs/spec/checkpoints.md` §3, §4, §6, §7, §9. Every operation is integer arithmetic on
//! [`Exact`](crate::Exact) values with the roundings stated in the page, so that the floating-point environment does
//! not matter.
//!
//! | file | contents | read with |
//! |---|---|---|
//! | `packing` | positions of fields in the stored bytes | §3.7 to §3.9, §4.4.2, §4.5, §4.9 to §4.11 |
//! | `part` | the stored parts of a tensor | §3.1 |
//! | `layout` | the description of a tensor | §3.1, §4 |
//! | `arithmetic` | product, quotient, sum; rounded to a format | §0.3 |
//! | `dequantize` | codes and scales to the value of an element | §3.2, §3.5, §3.6, §6 |
//! | `blocks` | the blocks of GGUF files | §9.2 to §9.5 |
//! | `gguf` | fields of these blocks | §9.2 |
//! | `book` | code books of bitsandbytes | §4.16 |
//! | `quantize` | values to a scale and codes | §3.6, §7, §9.3, §9.4 |
//! | `repack` | entries in another packing or type | §8 |
//! | `error` | errors of layouts and of stored bytes | |

mod arithmetic;
mod blocks;
mod book;
mod dequantize;
mod error;
pub mod gguf;
mod layout;
mod packing;
mod part;
mod quantize;
mod repack;

pub use blocks::{BlockTerms, BlockType, DOUBLED_E2M1};
pub use book::Book;
pub use dequantize::{Terms, value_of};
pub use error::ScaledError;
pub use layout::{Code, Coding, Form, Global, GlobalRule, Group, Layout, Plane, Planes, Scales, Zero};
pub use packing::Packing;
pub use part::{Part, Parts};
pub use quantize::{MxScale, NonFinite, Quantization, Quantized, Search, amax};
pub use repack::{Change, Repacking};
