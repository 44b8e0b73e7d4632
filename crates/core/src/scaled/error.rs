//! Errors of layouts and of the bytes of a tensor.

use super::part::Part;

/// Why a scaled tensor cannot be read or written.
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
    /// A part has another size than its layout says.
    #[error("{}: expected {expected} bytes, got {got}", part.name())]
    Size {
        part: Part,
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        got: u64,
    },
    /// A tensor is given as another number of arrays than its form requires.
    #[error("the tensor needs {expected} arrays, got {got}")]
    Arrays {
        /// Arrays of the form.
        expected: usize,
        /// Arrays given.
        got: usize,
    },
    /// The results need another number of bytes.
    #[error("the results need {expected} bytes, the buffer has {got}")]
    Results {
        /// Bytes needed.
        expected: u64,
        /// Bytes given.
        got: u64,
    },
    /// An element has a code that its scheme excludes (§4.11).
    #[error("element {index} has the code {code}, which has no value")]
    Code {
        /// Index of the element in the tensor.
        index: u64,
        code: u64,
    },
    /// A block has a scale that its scheme excludes (§9.4).
    #[error("the block of element {index} has the scale {scale:#04x}, which has no value")]
    Scale {
        /// Index of an element of the block.
        index: u64,
        /// The code of the scale.
        scale: u64,
    },
    /// Elements of this type are not quantized.
    #[error("only f32, f16, bf16 and f64 are quantized, not {dtype}")]
    Source { dtype: crate::DType },
    /// No scaled format carries NaN or infinities (§3.6).
    #[error("element {index} is NaN or infinite, or beyond f32; no scaled format can hold it")]
    NotFinite {
        /// Index of the first such element in the input.
        index: u64,
    },
    /// A row or column is in a group that does not exist.
    #[error("row or column {index} is in group {group}, but the layout has {groups} groups")]
    Index {
        index: u64,
        group: i64,
        /// Number of groups.
        groups: u64,
    },
}
