//! Block types of GGUF files: names, numbers and sizes (§9.2).

#[derive(Clone, Copy)]
struct Row {
    id: u32,
    name: &'static str,
    elements: u64,
    bytes: u64,
    group: u64,
}

/// Defines the types from rows: number in files, name, elements per block, bytes per block, elements that share `d1`.
macro_rules! block_types {
    ($($block:ident = $id:literal, $name:literal, $elements:literal, $bytes:literal, $group:literal;)*) => {
        /// Block type of a GGUF file (§9.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs)] // Names as in the files.
        #[allow(non_camel_case_types)]
        pub enum BlockType { $($block),* }

        impl BlockType {
            /// Every type, in ascending order of numbers.
            pub const ALL: [BlockType; [$($id),*].len()] = [$(BlockType::$block),*];

            const fn row(self) -> Row {
                match self {
                    $(BlockType::$block => Row { id: $id, name: $name, elements: $elements, bytes: $bytes, group: $group }),*
                }
            }
        }
    };
}

block_types! {
    Q4_0 = 2, "Q4_0", 32, 18, 32;
    Q4_1 = 3, "Q4_1", 32, 20, 32;
    Q5_0 = 6, "Q5_0", 32, 22, 32;
    Q5_1 = 7, "Q5_1", 32, 24, 32;
    Q8_0 = 8, "Q8_0", 32, 34, 32;
    Q8_1 = 9, "Q8_1", 32, 36, 32;
    Q2_K = 10, "Q2_K", 256, 84, 16;
    Q3_K = 11, "Q3_K", 256, 110, 16;
    Q4_K = 12, "Q4_K", 256, 144, 32;
    Q5_K = 13, "Q5_K", 256, 176, 32;
    Q6_K = 14, "Q6_K", 256, 210, 16;
    Q8_K = 15, "Q8_K", 256, 292, 256;
    IQ2_XXS = 16, "IQ2_XXS", 256, 66, 32;
    IQ2_XS = 17, "IQ2_XS", 256, 74, 16;
    IQ3_XXS = 18, "IQ3_XXS", 256, 98, 32;
    IQ1_S = 19, "IQ1_S", 256, 50, 32;
    IQ4_NL = 20, "IQ4_NL", 32, 18, 32;
    IQ3_S = 21, "IQ3_S", 256, 110, 32;
    IQ2_S = 22, "IQ2_S", 256, 82, 16;
    IQ4_XS = 23, "IQ4_XS", 256, 136, 32;
    IQ1_M = 29, "IQ1_M", 256, 56, 16;
    TQ1_0 = 34, "TQ1_0", 256, 54, 256;
    TQ2_0 = 35, "TQ2_0", 256, 66, 256;
    Mxfp4 = 39, "MXFP4", 32, 17, 32;
    Nvfp4 = 40, "NVFP4", 64, 36, 16;
    Q1_0 = 41, "Q1_0", 128, 18, 128;
    Q2_0 = 42, "Q2_0", 64, 18, 64;
}

impl BlockType {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Number in files.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.row().id
    }

    /// Number of elements in a block.
    #[must_use]
    pub const fn elements(self) -> u64 {
        self.row().elements
    }

    /// Number of bytes in a block.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.row().bytes
    }

    /// Number of consecutive elements that share a scale and a bias.
    #[must_use]
    pub const fn group(self) -> u64 {
        self.row().group
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
