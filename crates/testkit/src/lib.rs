//! Code shared by the tests of several crates. It depends on no crate of the workspace, so that each may use it; code
//! shared within one crate's tests is in that crate's `tests`.

pub mod digits;
pub mod elements;
pub mod flatbuffer;
pub mod folder;
pub mod formats;
pub mod gguf;
pub mod gguf_model;
pub mod json;
pub mod memory;
pub mod npy;
pub mod proto;
pub mod quantized;
pub mod random;
pub mod safetensors;
pub mod timing;
