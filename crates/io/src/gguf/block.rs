//! Block types of the format. `truecast_core::scaled` has the types of several elements.

use std::fmt;
use std::sync::Arc;

use truecast_core::scaled::BlockType;
use truecast_core::{DType, Layout};

use crate::tensor::Tensor;

/// Type of a tensor's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(Content);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    Element(DType),
    Scaled(BlockType),
}

/// Number in files, name and type of single elements.
const ELEMENTS: [(u32, &str, DType); 8] = [
    (0, "F32", DType::F32),
    (1, "F16", DType::F16),
    (24, "I8", DType::I8),
    (25, "I16", DType::I16),
    (26, "I32", DType::I32),
    (27, "I64", DType::I64),
    (28, "F64", DType::F64),
    (30, "BF16", DType::Bf16),
];

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
        let elements = ELEMENTS.into_iter().map(|(.., dtype)| Content::Element(dtype));
        elements.chain(BlockType::ALL.map(Content::Scaled)).map(Block)
    }

    /// Number in files, and name.
    fn row(self) -> (u32, &'static str) {
        match self.0 {
            Content::Element(dtype) => {
                let row = ELEMENTS.into_iter().find(|row| row.2 == dtype);
                row.map(|(id, name, _)| (id, name)).expect("blocks are made from rows")
            }
            Content::Scaled(block) => (block.id(), block.name()),
        }
    }

    /// Number in files.
    pub fn id(self) -> u32 {
        self.row().0
    }

    /// Name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Number of elements in a block.
    pub fn elements(self) -> u64 {
        self.scaled().map_or(1, BlockType::elements)
    }

    /// Number of bytes in a block.
    pub fn bytes(self) -> u64 {
        match self.0 {
            Content::Element(dtype) => u64::from(dtype.storage_bits().unwrap_or(0)) / 8,
            Content::Scaled(block) => block.bytes(),
        }
    }

    /// Element type of blocks that hold a single element.
    pub fn dtype(self) -> Option<DType> {
        match self.0 {
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
        Block(Content::Scaled(block))
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
        match self.0 {
            Content::Scaled(block) => Some(block),
            Content::Element(_) => None,
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
