//! Conversions of checkpoints by the library, with independent code for the arithmetic of `docs/spec/checkpoints.md`.

mod blocks;
mod experts;
mod files;
mod folders;
mod gguf;
mod pipelines;
mod quantized;
mod relayout;
mod repack;
mod requantize;
mod targets;
mod work;
mod writing;
