//! How a file is converted: everything that is asked for.

use crate::request::Request;
use crate::select::Selection;
use truecast_io::Existing;
use truecast_kernel::CastOptions;

/// How to convert a file.
#[derive(Clone, Debug)]
pub struct TensorOptions {
    /// Which tensors become what.
    pub selection: Selection,
    /// The specification that decides.
    pub request: Request,
    /// Bytes that buffers may take in all.
    pub max_memory: u64,
    /// What happens to an existing destination.
    pub existing: Existing,
    /// Level and threads; counting is always on.
    pub exec: CastOptions,
    /// Smaller tensors of a model are kept unless a rule names them.
    pub min_elements: u64,
    /// How strictly ONNX files are read.
    pub onnx: truecast_io::onnx::Options,
}

impl Default for TensorOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            request: Request::default(),
            max_memory: 256 << 20,
            existing: Existing::Refuse,
            exec: CastOptions::default(),
            min_elements: 1024,
            onnx: truecast_io::onnx::Options::default(),
        }
    }
}
