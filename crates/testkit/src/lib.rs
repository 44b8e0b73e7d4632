//! What the tests of several crates share. Nothing here depends on a crate of the workspace, so that each may use it;
//! what one crate's tests share among themselves lies in that crate's `tests`.

pub mod digits;
pub mod elements;
pub mod flatbuffer;
pub mod formats;
pub mod gguf;
pub mod memory;
pub mod npy;
pub mod proto;
pub mod random;
pub mod safetensors;
pub mod timing;
