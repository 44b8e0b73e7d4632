//! Errors in layouts and stored bytes.

use super::part::Part;

/// Error in a layout or in the parts of a scaled tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum ScaledError {
    /// The fields of a layout contradict each other.
    #[error("the layout is not valid: {why}")]
    Layout { why: &'static str },
    /// A matrix of this shape cannot have this packing.
    #[error("a matrix {shape:?} cannot have its {} in this packing", part.name())]
    Shape {
        part: Part,
        /// Rows and columns of the stored matrix.
        shape: [u64; 2],
    },
    /// The size of a part contradicts the layout.
    #[error("{}: expected {expected} bytes, got {got}", part.name())]
    Size {
        part: Part,
        /// Required bytes.
        expected: u64,
        /// Given bytes.
        got: u64,
    },
    /// The number of arrays contradicts the form.
    #[error("the tensor needs {expected} arrays, got {got}")]
    Arrays {
        /// Required arrays.
        expected: usize,
        /// Given arrays.
        got: usize,
    },
    /// The output buffer has the wrong size.
    #[error("the results need {expected} bytes, the buffer has {got}")]
    Results {
        /// Required bytes.
        expected: u64,
        /// Given bytes.
        got: u64,
    },
    /// An element has an excluded code (§4.11).
    #[error("element {index} has the code {code}, which has no value")]
    Code {
        /// Index of the element in the tensor.
        index: u64,
        code: u64,
    },
    /// A block has an excluded scale (§9.4).
    #[error("the block of element {index} has the scale {scale:#04x}, which has no value")]
    Scale {
        /// Index of an element in the block.
        index: u64,
        /// Code of the scale.
        scale: u64,
    },
    /// The source type cannot be quantized.
    #[error("only f32, f16, bf16 and f64 are quantized, not {dtype}")]
    Source { dtype: crate::DType },
    /// NaN or infinity in the input, which scaled formats do not carry (§3.6).
    #[error("element {index} is NaN or infinite, or beyond f32; no scaled format can hold it")]
    NotFinite {
        /// Index of the first NaN or infinity.
        index: u64,
    },
    /// A row or column has a group out of bounds.
    #[error("row or column {index} is in group {group}, but the layout has {groups} groups")]
    Index {
        index: u64,
        group: i64,
        /// Number of groups.
        groups: u64,
    },
}
