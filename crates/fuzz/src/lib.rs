//! Readers of untrusted bytes; each is a function that must not panic for any input.
//!
//! The programs of `fuzz/` search for inputs; `tests/kept.rs` runs the kept inputs. A reader that needs a path gets one
//! file that is rewritten for each input.
#![forbid(unsafe_code)]

use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Detection, Error, Stored};

mod arrays;
mod configuration;
mod folder_index;
mod gguf_file;
mod gguf_header;
mod input_file;
mod json;
mod markers;
mod npy_header;
mod npz;
mod onnx;
mod openvino_ir;
mod patterns;
mod records;
mod safetensors;
mod text;
mod tile;
mod tosa_graph;
mod words;

pub use arrays::{npy_array, npy_tosa};
pub use configuration::configuration;
pub use folder_index::folder_index;
pub use gguf_file::gguf_file;
pub use gguf_header::gguf_header;
pub use json::json;
pub use markers::markers;
pub use npy_header::npy_header;
pub use npz::npz;
pub use onnx::{onnx, onnx_graph};
pub use openvino_ir::openvino_ir;
pub use patterns::patterns;
pub use records::{activation_ranges, manifest, report};
pub use safetensors::{safetensors_file, safetensors_header};
pub use text::text;
pub use tile::{tile_bytecode, tile_text};
pub use tosa_graph::tosa_graph;
pub use words::words;

/// Function that reads the input.
pub type Target = fn(&[u8]);

macro_rules! by_name {
    ($($target:ident)*) => { [$((stringify!($target), $target)),*] };
}

/// All targets with their names.
pub const TARGETS: [(&str, Target); 24] = by_name! {
    activation_ranges configuration folder_index gguf_file gguf_header json manifest markers npy_array npy_header
    npy_tosa npz onnx onnx_graph openvino_ir patterns report safetensors_file safetensors_header text tile_bytecode
    tile_text tosa_graph words
};

/// Checks that a message has no control characters.
fn harmless(said: impl std::fmt::Display) {
    let said = said.to_string();
    assert!(!said.chars().any(char::is_control), "{said:?}");
}

fn accepted<T, E: std::fmt::Display>(read: Result<T, E>) -> Option<T> {
    read.map_err(harmless).ok()
}

fn stored(name: &str, dtype: DType, shape: &[u64]) -> Stored {
    Stored { tensor: Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: shape.into() }, shard: 0 }
}

/// Checks that the parts of each detected group have the sizes of their tensors.
fn parts_fit(found: Result<Detection, Error>, tensors: &[Stored]) {
    let Some(found) = accepted(found) else { return };
    for group in &found.groups {
        for &(part, number) in &group.parts {
            let expected = group.layout.part_bytes(part).expect("a layout that was checked");
            assert_eq!(expected, Some(tensors[number].tensor.bytes()), "{}", group.name);
        }
    }
}
