//! How files are read.

use truecast_core::DType;

/// How a source is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Reinterprets the elements of an array, as [`Source::open`](crate::Source::open) says.
    pub from: Option<DType>,
    /// How strictly ONNX files are read.
    pub onnx: OnnxOptions,
}

/// How strictly ONNX files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnnxOptions {
    /// Accepts the rows of `docs/spec/onnx.md §3.5` and §3.6 that say so.
    pub lenient: bool,
    /// Accepts external data behind links that lead out of the model's folder (§3.7 rule 3).
    pub follow_links: bool,
}
