//! The block types of the format: number, name, elements and bytes of a block. As gguf-py 0.19.0 has them.

use std::fmt;

use truecast_core::DType;

/// The type of a tensor's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(&'static Row);

#[derive(PartialEq, Eq, Hash)]
struct Row {
    id: u32,
    name: &'static str,
    elements: u64,
    bytes: u64,
    dtype: Option<DType>,
}

const fn blocks(id: u32, name: &'static str, elements: u64, bytes: u64) -> Row {
    Row { id, name, elements, bytes, dtype: None }
}

const fn single(id: u32, name: &'static str, bytes: u64, dtype: DType) -> Row {
    Row { id, name, elements: 1, bytes, dtype: Some(dtype) }
}

static TABLE: [Row; 34] = [
    single(0, "F32", 4, DType::F32),
    single(1, "F16", 2, DType::F16),
    blocks(2, "Q4_0", 32, 18),
    blocks(3, "Q4_1", 32, 20),
    blocks(6, "Q5_0", 32, 22),
    blocks(7, "Q5_1", 32, 24),
    blocks(8, "Q8_0", 32, 34),
    blocks(9, "Q8_1", 32, 40),
    blocks(10, "Q2_K", 256, 84),
    blocks(11, "Q3_K", 256, 110),
    blocks(12, "Q4_K", 256, 144),
    blocks(13, "Q5_K", 256, 176),
    blocks(14, "Q6_K", 256, 210),
    blocks(15, "Q8_K", 256, 292),
    blocks(16, "IQ2_XXS", 256, 66),
    blocks(17, "IQ2_XS", 256, 74),
    blocks(18, "IQ3_XXS", 256, 98),
    blocks(19, "IQ1_S", 256, 50),
    blocks(20, "IQ4_NL", 32, 18),
    blocks(21, "IQ3_S", 256, 110),
    blocks(22, "IQ2_S", 256, 82),
    blocks(23, "IQ4_XS", 256, 136),
    single(24, "I8", 1, DType::I8),
    single(25, "I16", 2, DType::I16),
    single(26, "I32", 4, DType::I32),
    single(27, "I64", 8, DType::I64),
    single(28, "F64", 8, DType::F64),
    blocks(29, "IQ1_M", 256, 56),
    single(30, "BF16", 2, DType::Bf16),
    blocks(34, "TQ1_0", 256, 54),
    blocks(35, "TQ2_0", 256, 66),
    blocks(39, "MXFP4", 32, 17),
    blocks(40, "NVFP4", 64, 36),
    blocks(41, "Q1_0", 128, 18),
];

impl Block {
    /// The type with a number in a file.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::gguf::Block;
    /// let block = Block::of_id(8).unwrap();
    /// assert_eq!((block.name(), block.elements(), block.bytes()), ("Q8_0", 32, 34));
    /// assert_eq!(Block::of_id(4), None); // was taken out of the format
    /// ```
    pub fn of_id(id: u32) -> Option<Block> {
        TABLE.iter().find(|row| row.id == id).map(Block)
    }

    /// Every type.
    pub fn all() -> impl Iterator<Item = Block> {
        TABLE.iter().map(Block)
    }

    /// Its number.
    pub fn id(self) -> u32 {
        self.0.id
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Elements of a block.
    pub fn elements(self) -> u64 {
        self.0.elements
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        self.0.bytes
    }

    /// The element type, if a block is one element.
    pub fn dtype(self) -> Option<DType> {
        self.0.dtype
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
