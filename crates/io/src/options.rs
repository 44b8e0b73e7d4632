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
    /// Links that external data may go through (§3.7 rule 3).
    pub links: Links,
}

/// Links that a reader of a model or checkpoint follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Links to files of the folder, or to blobs of its Hugging Face cache.
    #[default]
    Inside,
    /// Links to any place.
    All,
}

/// An option that follows all links, or none that leads out.
impl From<bool> for Links {
    fn from(follows_all: bool) -> Links {
        if follows_all { Links::All } else { Links::Inside }
    }
}
