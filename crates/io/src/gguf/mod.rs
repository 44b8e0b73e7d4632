//! The GGUF container: its header, read and written, and block types (`docs/spec/checkpoints.md §9`).
//!
//! A tensor of this format is a row of blocks, of which most hold codes with scales of their own, so it is no
//! [`Tensor`](crate::Tensor) of one element type: [`Folder::of_file`](crate::folder::Folder::of_file) lists its bytes. What a
//! block means is in `truecast_core::scaled`.

mod block;
mod keys;
mod new;
mod parse;

use std::collections::HashMap;
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
use crate::tensor::checked_len;
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
    /// An array of so many entries. Of a few integers, those that are not negative.
    Array {
        entries: u64,
        few: Vec<u64>,
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
            Value::Array { entries, .. } => write!(f, "an array of {entries}"),
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

/// What the keys of original shapes begin with; the name of a tensor follows.
pub(crate) const ORIGINAL_SHAPE: &str = "comfy.gguf.orig_shape.";
/// What the keys about the parts of a model begin with.
pub const SPLIT: &str = "split.";

impl Header {
    /// The shapes that tensors had before they were stored, as keys state them (`docs/spec/checkpoints.md §9.9`).
    ///
    /// # Errors
    /// [`HeaderError::OriginalShape`].
    pub fn original_shapes(&self) -> Result<HashMap<Arc<str>, Arc<[u64]>>, HeaderError> {
        let tensors: HashMap<&str, &BlockTensor> = self.tensors.iter().map(|tensor| (&*tensor.name, tensor)).collect();
        let mut shapes = HashMap::new();
        for (key, value) in &self.metadata {
            let Some(tensor) = key.strip_prefix(ORIGINAL_SHAPE).and_then(|name| tensors.get(name)) else { continue };
            let stated = match value {
                Value::Array { entries, few } if *entries == few.len() as u64 => Some(few),
                _ => None,
            };
            let shape = stated.filter(|shape| checked_len(shape) == Some(tensor.len())).ok_or_else(|| {
                let (tensor, stored) = (tensor.name.to_string(), tensor.shape.to_vec());
                HeaderError::OriginalShape { tensor, stored, stated: stated.cloned() }
            })?;
            shapes.insert(tensor.name.clone(), shape.as_slice().into());
        }
        Ok(shapes)
    }

    /// The number that a key states.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self.metadata.iter().find(|(known, _)| known == key)?.1 {
            Value::Unsigned(n) => Some(n),
            Value::Signed(n) => u64::try_from(n).ok(),
            _ => None,
        }
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
