//! Checkpoints converted by the library, with the arithmetic of `docs/spec/checkpoints.md` written out here.

mod blocks;
mod experts;
mod files;
mod folders;
mod gguf;
mod quantized;
mod relayout;
mod repack;
mod requantize;
mod targets;
mod work;
mod writing;
