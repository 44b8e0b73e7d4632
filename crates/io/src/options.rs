//! Options for reading files.

use truecast_core::DType;

/// Options for reading a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Type in which an array's elements are read, see [`Source::open`](crate::Source::open).
    pub from: Option<DType>,
    /// Strictness for ONNX files.
    pub onnx: OnnxOptions,
}

/// Strictness for ONNX files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnnxOptions {
    /// Accepts the deviations of `docs/spec/onnx.md §3.5` and §3.6 that are marked as lenient.
    pub lenient: bool,
    /// Accepts external data through links out of the model's folder (§3.7 rule 3).
    pub follow_links: bool,
}
