//! The GGUF container: header and block types (`docs/spec/checkpoints.md §9`).
//!
//! Blocks of most types hold codes with their own scales, so [`Folder::of_file`](crate::folder::Folder::of_file)
//! lists such a tensor as bytes. `truecast_core::scaled` decodes blocks.

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
pub use keys::{KeyValue, Keys, differing_keys};
pub use new::{NewFile, NewTensor};

use crate::error::ReadError;
use crate::tensor::{Tensor, checked_len};
use crate::window::Window;

/// A header that satisfies every rule of `docs/spec/checkpoints.md §9.1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// 2 or 3.
    pub version: u32,
    /// Alignment of tensor offsets.
    pub alignment: u64,
    /// Keys and values, in file order.
    pub metadata: Vec<(String, Value)>,
    /// Ranges of the file that hold the values. A range begins with the type of its value.
    pub values: Vec<Range<u64>>,
    /// Tensors in data order.
    pub tensors: Vec<BlockTensor>,
    /// Offset in the file at which the first tensor's data begins.
    pub data_start: u64,
}

/// A metadata value. Entries of most arrays are not kept: a vocabulary has a hundred thousand.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // Named as in the specification.
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    String(String),
    /// `few` holds the entries if the array is short and has integers, none of them negative.
    Array {
        entries: u64,
        few: Vec<u64>,
    },
}

/// A tensor of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTensor {
    /// Name: data, never a path.
    pub name: Arc<str>,
    /// Block type.
    pub block: Block,
    /// Dimensions in elements, row-major (in the file the order is reversed). Empty for a scalar.
    pub shape: Arc<[u64]>,
    /// Offset of the data in the file.
    pub offset: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
}

/// Text from which the value can be read again. For an array, the text is its length.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(n) => write!(f, "{n}"),
            Value::Signed(n) => write!(f, "{n}"),
            // Most values are stored as f32, for which the f32 text is shorter.
            Value::Float(x) if f64::from(*x as f32) == *x => write!(f, "{:?}", *x as f32),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::String(text) => f.write_str(text),
            Value::Array { entries, .. } => write!(f, "an array of {entries}"),
        }
    }
}

impl BlockTensor {
    /// Element type of blocks that hold a single element.
    pub fn dtype(&self) -> Option<DType> {
        self.block.dtype()
    }

    /// Entry for the tensor in a container. Blocks of several elements become rows of `u8` bytes.
    pub fn listed(&self) -> Tensor {
        self.block.listed(&self.name, &self.shape)
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

/// Prefix of the keys that state original shapes; the tensor's name follows.
pub(crate) const ORIGINAL_SHAPE: &str = "comfy.gguf.orig_shape.";
/// Prefix of keys about a model's parts.
pub const SPLIT: &str = "split.";

impl Header {
    /// Original shapes that keys state, by tensor (`docs/spec/checkpoints.md §9.9`).
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

    /// Value of a key, if the value is an integer and not negative.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self.metadata.iter().find(|(known, _)| known == key)?.1 {
            Value::Unsigned(n) => Some(n),
            Value::Signed(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }
}

pub(crate) fn read(file: Window, file_bytes: u64) -> Result<Header, ReadError<HeaderError>> {
    parse::read(file, file_bytes)
}

/// Whether the path has the format's extension.
pub fn is_named(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}
