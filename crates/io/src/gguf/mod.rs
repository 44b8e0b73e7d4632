//! The GGUF container: its header, read and written, and block types (`docs/spec/checkpoints.md §9`).
//!
//! A tensor of this format is a row of blocks, of which most hold codes with scales of their own, so it is no
//! [`Tensor`](crate::Tensor) of one element type: [`Folder::of_file`](crate::folder::Folder::of_file) lists its bytes. What a
//! block means is in `truecast_core::scaled`.

mod block;
mod keys;
mod new;
mod parse;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use truecast_core::DType;

pub use crate::error::gguf::HeaderError;
pub use block::Block;
pub use keys::{Keys, differing_keys};
pub use new::{NewFile, NewTensor};

use crate::error::ReadError;
use crate::window::Window;

/// A header that keeps every rule of `docs/spec/checkpoints.md §9.1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// 2 or 3.
    pub version: u32,
    /// Offsets of tensors are multiples of it.
    pub alignment: u64,
    /// Keys and values, in the order of the file.
    pub metadata: Vec<(String, Value)>,
    /// Where the value of each key lies in the file, its type first.
    pub values: Vec<Range<u64>>,
    /// Tensors, in the order of their data.
    pub tensors: Vec<BlockTensor>,
    /// The offset of the first tensor's data in the file.
    pub data_start: u64,
}

/// A value of the metadata. What an array holds is not kept: vocabularies have a hundred thousand entries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // Named as in the page.
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    String(String),
    /// An array of so many entries.
    Array {
        entries: u64,
    },
}

/// A tensor of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTensor {
    /// Its name: data, never a path.
    pub name: Arc<str>,
    /// The type of its blocks.
    pub block: Block,
    /// The dimensions in elements, row-major: reversed as the file has them. Empty for a scalar.
    pub shape: Arc<[u64]>,
    /// Where its data begins in the file.
    pub offset: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
}

/// As text, which reads back as the same value; of an array how long it is.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(n) => write!(f, "{n}"),
            Value::Signed(n) => write!(f, "{n}"),
            // Most are f32, which have fewer digits.
            Value::Float(x) if f64::from(*x as f32) == *x => write!(f, "{:?}", *x as f32),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::String(text) => f.write_str(text),
            Value::Array { entries } => write!(f, "an array of {entries}"),
        }
    }
}

impl BlockTensor {
    /// The element type, if its blocks are single elements.
    pub fn dtype(&self) -> Option<DType> {
        self.block.dtype()
    }

    /// The shape in bytes: as many rows, each of its bytes; in elements, if its blocks are single ones.
    pub(crate) fn stored_shape(&self) -> Arc<[u64]> {
        self.block.stored_shape(&self.shape)
    }

    /// Elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

/// Reads the header of a file of `file_bytes` bytes.
pub(crate) fn read(file: Window, file_bytes: u64) -> Result<Header, ReadError<HeaderError>> {
    parse::read(file, file_bytes)
}

/// The path names such a file.
pub fn is_named(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}
