//! Progress bars, which WebAssembly in a browser cannot draw.

#[cfg(not(target_family = "wasm"))]
mod bar;
#[cfg(target_family = "wasm")]
mod hidden;

#[cfg(not(target_family = "wasm"))]
pub use bar::{bytes, hashing, steps, take_away};
#[cfg(target_family = "wasm")]
pub use hidden::{bytes, hashing, steps, take_away};
