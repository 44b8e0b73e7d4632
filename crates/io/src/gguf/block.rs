//! Block types of the format. `truecast_core::scaled` has the types of several elements.

use std::fmt;
use std::sync::Arc;

use truecast_core::scaled::BlockType;
use truecast_core::{DType, Layout};

use crate::tensor::Tensor;

/// Type of a tensor's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(&'static Row);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    id: u32,
    name: &'static str,
    elements: u64,
    bytes: u64,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    Element(DType),
    Scaled(BlockType),
}

const fn single(id: u32, name: &'static str, bytes: u64, dtype: DType) -> Row {
    Row { id, name, elements: 1, bytes, content: Content::Element(dtype) }
}

const fn scaled(block: BlockType) -> Row {
    let (id, name, elements, bytes) = (block.id(), block.name(), block.elements(), block.bytes());
    Row { id, name, elements, bytes, content: Content::Scaled(block) }
}

static SINGLE: [Row; 8] = [
    single(0, "F32", 4, DType::F32),
    single(1, "F16", 2, DType::F16),
    single(24, "I8", 1, DType::I8),
    single(25, "I16", 2, DType::I16),
    single(26, "I32", 4, DType::I32),
    single(27, "I64", 8, DType::I64),
    single(28, "F64", 8, DType::F64),
    single(30, "BF16", 2, DType::Bf16),
];

static SCALED: [Row; BlockType::ALL.len()] = {
    let (mut rows, mut i) = ([scaled(BlockType::ALL[0]); BlockType::ALL.len()], 1);
    while i < rows.len() {
        rows[i] = scaled(BlockType::ALL[i]);
        i += 1;
    }
    rows
};

impl Block {
    /// Block type with this number in files.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::gguf::Block;
    /// let block = Block::of_id(8).unwrap();
    /// assert_eq!((block.name(), block.elements(), block.bytes()), ("Q8_0", 32, 34));
    /// assert_eq!(Block::of_id(4), None); // was taken out of the format
    /// ```
    pub fn of_id(id: u32) -> Option<Block> {
        Block::all().find(|block| block.id() == id)
    }

    /// Lists every type.
    pub fn all() -> impl Iterator<Item = Block> {
        SINGLE.iter().chain(&SCALED).map(Block)
    }

    /// Number in files.
    pub fn id(self) -> u32 {
        self.0.id
    }

    /// Name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Number of elements in a block.
    pub fn elements(self) -> u64 {
        self.0.elements
    }

    /// Number of bytes in a block.
    pub fn bytes(self) -> u64 {
        self.0.bytes
    }

    /// Element type of blocks that hold a single element.
    pub fn dtype(self) -> Option<DType> {
        match self.0.content {
            Content::Element(dtype) => Some(dtype),
            Content::Scaled(_) => None,
        }
    }

    /// Block type whose blocks are single elements of this type. `None` if the format has none.
    pub fn of_dtype(dtype: DType) -> Option<Block> {
        Block::all().find(|block| block.dtype() == Some(dtype))
    }

    /// Returns the block type for blocks of several elements.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::scaled::BlockType;
    /// use truecast_io::gguf::Block;
    /// assert_eq!(Block::of_scaled(BlockType::Q8_0), Block::of_id(8).unwrap());
    /// ```
    pub fn of_scaled(block: BlockType) -> Block {
        Block::all().find(|row| row.scaled() == Some(block)).expect("every such type has a row")
    }

    /// Entry for a tensor of such blocks in a container. Blocks of several elements become rows of `u8` bytes.
    pub(crate) fn listed(self, name: &Arc<str>, shape: &Arc<[u64]>) -> Tensor {
        let dtype = self.dtype().unwrap_or(DType::U8);
        Tensor { name: name.clone(), dtype, layout: Layout::Packed, shape: self.stored_shape(shape) }
    }

    /// Shape whose row length is in bytes. If blocks are single elements, the shape stays in elements.
    fn stored_shape(self, shape: &Arc<[u64]>) -> Arc<[u64]> {
        let mut shape = shape.clone();
        if self.dtype().is_none()
            && let Some(columns) = Arc::make_mut(&mut shape).last_mut()
        {
            *columns = *columns / self.elements() * self.bytes();
        }
        shape
    }

    /// Definition of blocks of several elements; `None` for single elements.
    pub fn scaled(self) -> Option<BlockType> {
        match self.0.content {
            Content::Scaled(block) => Some(block),
            Content::Element(_) => None,
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}
