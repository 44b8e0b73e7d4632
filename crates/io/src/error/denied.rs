//! Reasons why a container cannot hold a tensor.

use truecast_core::{DType, Layout};

use crate::tensor::{FileFormat, MAX_RANK};

/// A type that a container cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dtype} cannot be stored in .{}; choose another type or container", kind.extension())]
#[allow(missing_docs)] // The messages name them.
pub struct NoForm {
    pub kind: FileFormat,
    pub dtype: DType,
}

/// Reason why a container's rules forbid a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum DeniedTensor {
    #[error(transparent)]
    NoForm(#[from] NoForm),
    #[error("name occurs twice; rename one")]
    DuplicateName,
    #[error("name is reserved; rename it")]
    ReservedName,
    /// A zip archive stores the length in 16 bits; other readers accept no longer name.
    #[error("name of {bytes} bytes is too long for such a file; rename it")]
    NameTooLong { bytes: usize },
    /// Source: `docs/spec/checkpoints.md §1.6` V14.
    #[error("{rank} dimensions exceed the limit of {MAX_RANK}")]
    RankTooHigh { rank: usize },
    /// Source: `docs/spec/checkpoints.md §9.1`.
    #[error("{rank} dimensions exceed the limit of {most} of a .gguf file")]
    RankOfGguf { rank: usize, most: usize },
    /// Source: `docs/spec/checkpoints.md §9.1`.
    #[error("a .gguf file holds at most {most} tensors")]
    TooMany { most: u64 },
    /// Source: `docs/spec/checkpoints.md §1.6` V13, V15.
    #[error("shape is too big")]
    ShapeTooBig,
    /// Source: `docs/spec/checkpoints.md §9.2`.
    #[error("rows of {columns} elements are not a whole number of blocks of {block}")]
    PartialBlock { columns: u64, block: u64 },
    /// Source: `docs/spec/checkpoints.md §1.4`.
    #[error("{len} elements of {bits} bits are {} bytes; .safetensors needs whole bytes: choose a wider type", *len as f64 * f64::from(*bits) / 8.0)]
    PartialByte { len: u64, bits: u32 },
    /// Source: `docs/spec/checkpoints.md §1.4`: PyTorch cannot read such a tensor.
    #[error("last dimension of an f4e2m1 tensor is odd; choose a wider type")]
    OddLastDimension,
    #[error("{bytes} bytes exceed the 2 GiB of a protobuf message; choose a narrower type or another container")]
    MessageTooLong { bytes: u64 },
    #[error("external COMPLEX128 cannot be copied; store it inside the model")]
    Opaque,
    #[error("layout {found:?}, expected {expected:?}; use the layout from layout_for")]
    Layout { found: Layout, expected: Layout },
}
