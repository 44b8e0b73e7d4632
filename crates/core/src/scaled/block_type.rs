//! Block types of GGUF files: names, numbers and sizes (§9.2).

/// Block type of a GGUF file (§9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // Names as in the files.
#[allow(non_camel_case_types)]
pub enum BlockType {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ2_XXS,
    IQ2_XS,
    IQ3_XXS,
    IQ1_S,
    IQ4_NL,
    IQ3_S,
    IQ2_S,
    IQ4_XS,
    IQ1_M,
    TQ1_0,
    TQ2_0,
    Mxfp4,
    Nvfp4,
    Q1_0,
    Q2_0,
}

/// Name, number in a file, elements per block, bytes per block, elements that share `d1`.
const TABLE: [(BlockType, &str, u32, u64, u64, u64); 27] = [
    (BlockType::Q4_0, "Q4_0", 2, 32, 18, 32),
    (BlockType::Q4_1, "Q4_1", 3, 32, 20, 32),
    (BlockType::Q5_0, "Q5_0", 6, 32, 22, 32),
    (BlockType::Q5_1, "Q5_1", 7, 32, 24, 32),
    (BlockType::Q8_0, "Q8_0", 8, 32, 34, 32),
    (BlockType::Q8_1, "Q8_1", 9, 32, 36, 32),
    (BlockType::Q2_K, "Q2_K", 10, 256, 84, 16),
    (BlockType::Q3_K, "Q3_K", 11, 256, 110, 16),
    (BlockType::Q4_K, "Q4_K", 12, 256, 144, 32),
    (BlockType::Q5_K, "Q5_K", 13, 256, 176, 32),
    (BlockType::Q6_K, "Q6_K", 14, 256, 210, 16),
    (BlockType::Q8_K, "Q8_K", 15, 256, 292, 256),
    (BlockType::IQ2_XXS, "IQ2_XXS", 16, 256, 66, 32),
    (BlockType::IQ2_XS, "IQ2_XS", 17, 256, 74, 16),
    (BlockType::IQ3_XXS, "IQ3_XXS", 18, 256, 98, 32),
    (BlockType::IQ1_S, "IQ1_S", 19, 256, 50, 32),
    (BlockType::IQ4_NL, "IQ4_NL", 20, 32, 18, 32),
    (BlockType::IQ3_S, "IQ3_S", 21, 256, 110, 32),
    (BlockType::IQ2_S, "IQ2_S", 22, 256, 82, 16),
    (BlockType::IQ4_XS, "IQ4_XS", 23, 256, 136, 32),
    (BlockType::IQ1_M, "IQ1_M", 29, 256, 56, 16),
    (BlockType::TQ1_0, "TQ1_0", 34, 256, 54, 256),
    (BlockType::TQ2_0, "TQ2_0", 35, 256, 66, 256),
    (BlockType::Mxfp4, "MXFP4", 39, 32, 17, 32),
    (BlockType::Nvfp4, "NVFP4", 40, 64, 36, 16),
    (BlockType::Q1_0, "Q1_0", 41, 128, 18, 128),
    (BlockType::Q2_0, "Q2_0", 42, 64, 18, 64),
];

impl BlockType {
    /// Every type, in ascending order of numbers.
    pub const ALL: [BlockType; TABLE.len()] = {
        let mut all = [BlockType::Q4_0; TABLE.len()];
        let mut i = 0;
        while i < all.len() {
            assert!(TABLE[i].0 as usize == i, "rows stand in the order of the enum");
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Number in files.
    #[must_use]
    pub const fn id(self) -> u32 {
        TABLE[self as usize].2
    }

    /// Number of elements in a block.
    #[must_use]
    pub const fn elements(self) -> u64 {
        TABLE[self as usize].3
    }

    /// Number of bytes in a block.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        TABLE[self as usize].4
    }

    /// Number of consecutive elements that share a scale and a bias.
    #[must_use]
    pub const fn group(self) -> u64 {
        TABLE[self as usize].5
    }

    /// Returns the type with a number in files.
    #[must_use]
    pub fn of_id(id: u32) -> Option<BlockType> {
        BlockType::ALL.into_iter().find(|block| block.id() == id)
    }

    /// Size of a matrix in bytes; `None` if `cols` is not a whole number of blocks.
    #[must_use]
    pub fn bytes_of(self, [rows, cols]: [u64; 2]) -> Option<u64> {
        let blocks = cols.is_multiple_of(self.elements()).then(|| (cols / self.elements()).checked_mul(rows))??;
        blocks.checked_mul(self.bytes()).filter(|bytes| *bytes <= 1 << 60)
    }
}
