//! Code that tests of several crates share. Depends on no crate of the workspace, so that every crate can use it.

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
