//! The safetensors container: type names, header reader, header writer. [`crate::reader`] and [`crate::writer`]
//! stream the data. Read first: `docs/spec/checkpoints.md §1`.

mod emit;
mod parse;

use std::collections::BTreeMap;

use truecast_core::DType;

use crate::tensor::Tensor;

pub use crate::error::safetensors::{HeaderError, MAX_HEADER_BYTES, METADATA_KEY};
pub use emit::canonical_order;
pub(crate) use emit::{data_order, emit, refusal};

/// Names of `docs/spec/checkpoints.md §1.3`; the index is the type's rank in the canonical order.
pub const NAMES: [(&str, DType); 22] = [
    ("BOOL", DType::Bool),
    ("F4", DType::F4E2M1),
    ("F6_E2M3", DType::F6E2M3),
    ("F6_E3M2", DType::F6E3M2),
    ("U8", DType::U8),
    ("I8", DType::I8),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E4M3", DType::F8E4M3Fn),
    ("F8_E8M0", DType::F8E8M0),
    ("F8_E4M3FNUZ", DType::F8E4M3Fnuz),
    ("F8_E5M2FNUZ", DType::F8E5M2Fnuz),
    ("I16", DType::I16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::Bf16),
    ("I32", DType::I32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::I64),
    ("U64", DType::U64),
];

/// Name of a type in headers; `None` if safetensors lacks the type.
pub fn name_of(dtype: DType) -> Option<&'static str> {
    NAMES.iter().find(|(_, d)| *d == dtype).map(|(name, _)| *name)
}

fn rank_of(dtype: DType) -> Option<usize> {
    NAMES.iter().position(|(_, d)| *d == dtype)
}

/// A header that satisfies every rule of `docs/spec/checkpoints.md §1.6`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tensors in data order.
    pub tensors: Vec<Tensor>,
    /// Start of each tensor's data in the data buffer, in the order of `tensors`.
    pub begins: Vec<u64>,
    /// `__metadata__`; empty if the header has none.
    pub metadata: BTreeMap<String, String>,
}
