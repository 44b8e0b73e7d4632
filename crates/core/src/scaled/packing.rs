//! Positions of fields in the stored bytes of a matrix.
//!
//! A field has 1 to 32 bits. The stored matrix is `[rows, cols]`. Bit 0 of a byte is the least significant bit.
//! Words are little-endian: bit `n` of word `w` is bit `32 w + n` of the bytes.

/// Order of fields in stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// Row after row. A row is one little-endian bit stream and begins at a multiple of `align` bytes.
    /// `align` is 4 for streams of 32-bit words, else 1; the low nibble comes first.
    /// Source: `docs/spec/checkpoints.md §3.7, §3.9`.
    Rows {
        /// Alignment of a row in bytes, 1 or 4.
        align: u8,
    },
    /// Nibbles, row after row, the high nibble first. Source: §3.7.
    HighFirst,
    /// Rows of 32-bit words. A word has `32 / bits` fields, and its upper bits are zero. Source: §4.4.2.
    Padded,
    /// A column is one bit stream, cut into words. Row `i` of the stored words has word `i` of every column.
    /// 32-bit words: GPTQ (§4.10), zero points of pack-quantized (§4.4.1). 8-bit words: INT4 of ModelOpt (§4.5).
    Columns {
        /// Bits per word, 8 or 32.
        word: u8,
    },
    /// Columns of 32-bit words. A word has `32 / bits` fields. Source: §4.4.2.
    PaddedColumns,
    /// A word has eight nibbles of a row. Column `8 j + r` is in nibble `[0, 4, 1, 5, 2, 6, 3, 7][r]`. Source: §4.9.
    Awq,
    /// Packing of `Columns { word: 32 }` with nibbles in the order of `Awq`. Source: §4.19.
    AwqColumns,
    /// Two-bit field `i` of byte row `r` is row `i * rows/4 + r`. Source: §4.11.
    Planes,
    /// Bytes in tiles. A tile has 128 rows and 4 columns, padded with zeros. Source: §3.8.
    Swizzled,
}

/// Nibble of column `r % 8` (§4.9).
const AWQ_NIBBLE: [u64; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

impl Packing {
    /// Rows of bytes without gaps. Every type with whole bytes has this packing.
    pub const BYTES: Packing = Packing::Rows { align: 1 };
    /// Rows of 32-bit words.
    pub const WORDS: Packing = Packing::Rows { align: 4 };

    /// Every packing.
    pub const ALL: [Packing; 11] = [
        Packing::BYTES,
        Packing::WORDS,
        Packing::HighFirst,
        Packing::Padded,
        Packing::Columns { word: 8 },
        Packing::Columns { word: 32 },
        Packing::PaddedColumns,
        Packing::Awq,
        Packing::AwqColumns,
        Packing::Planes,
        Packing::Swizzled,
    ];

    /// Bytes of a matrix; `None` beyond 2^60, or if these fields cannot have this packing.
    #[must_use]
    pub fn bytes(self, bits: u32, [rows, cols]: [u64; 2]) -> Option<u64> {
        // Every element takes at least a bit. Below, no product overflows.
        rows.checked_mul(cols)?;
        let (rows, cols, wide) = (u128::from(rows), u128::from(cols), u128::from(bits));
        let per_word = 32 / wide.max(1);
        let bytes = match self {
            Packing::Rows { align: align @ (1 | 4) } => {
                rows * u128::from(row_bits(bits, cols as u64, align.into())?) / 8
            }
            Packing::HighFirst if bits == 4 => rows * cols.div_ceil(2),
            Packing::Padded if bits <= 8 => rows * cols.div_ceil(per_word) * 4,
            Packing::Columns { word: word @ (8 | 32) } if bits <= u32::from(word) => {
                (rows * wide).div_ceil(word.into()) * cols * u128::from(word / 8)
            }
            Packing::PaddedColumns if bits <= 8 => rows.div_ceil(per_word) * cols * 4,
            Packing::Awq if bits == 4 && cols % 8 == 0 => rows * cols / 2,
            Packing::AwqColumns if bits == 4 && rows % 8 == 0 => rows * cols / 2,
            Packing::Planes if bits == 2 && rows % 4 == 0 => rows / 4 * cols,
            Packing::Swizzled if bits == 8 => rows.div_ceil(128) * 128 * cols.div_ceil(4) * 4,
            _ => return None,
        };
        u64::try_from(bytes).ok().filter(|bytes| *bytes <= 1 << 60)
    }

    /// Returns the position of bit `n` of field `[row, col]`, in bits from the start of the matrix.
    /// The matrix must pass [`Packing::bytes`].
    #[must_use]
    pub fn bit(self, bits: u32, [rows, cols]: [u64; 2], [row, col]: [u64; 2], n: u32) -> u64 {
        let (wide, n) = (u64::from(bits), u64::from(n));
        let per_word = 32 / wide;
        match self {
            Packing::Rows { align } => row * row_bits(bits, cols, align.into()).unwrap_or(0) + col * wide + n,
            Packing::HighFirst => row * cols.div_ceil(2) * 8 + (col ^ 1) * 4 + n,
            Packing::Padded => (row * cols.div_ceil(per_word) + col / per_word) * 32 + col % per_word * wide + n,
            Packing::Columns { word } => {
                let (word, at) = (u64::from(word), row * wide + n);
                (at / word * cols + col) * word + at % word
            }
            Packing::PaddedColumns => (row / per_word * cols + col) * 32 + row % per_word * wide + n,
            Packing::Awq => row * cols * 4 + (col / 8) * 32 + AWQ_NIBBLE[(col % 8) as usize] * 4 + n,
            Packing::AwqColumns => (row / 8 * cols + col) * 32 + AWQ_NIBBLE[(row % 8) as usize] * 4 + n,
            Packing::Planes => (row % (rows / 4) * cols + col) * 8 + row / (rows / 4) * 2 + n,
            Packing::Swizzled => {
                let tile = row / 128 * cols.div_ceil(4) + col / 4;
                (tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4) * 8 + n
            }
        }
    }

    /// Reads field `at`.
    ///
    /// # Panics
    /// If `bytes` is too short.
    #[must_use]
    pub fn get(self, bits: u32, shape: [u64; 2], at: [u64; 2], bytes: &[u8]) -> u64 {
        (0..bits).fold(0, |field, n| {
            let bit = self.bit(bits, shape, at, n);
            field | u64::from(bytes[(bit / 8) as usize] >> (bit % 8) & 1) << n
        })
    }

    /// Writes field `at`; other fields are unchanged.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub fn set(self, bits: u32, shape: [u64; 2], at: [u64; 2], bytes: &mut [u8], field: u64) {
        for n in 0..bits {
            let bit = self.bit(bits, shape, at, n);
            let byte = &mut bytes[(bit / 8) as usize];
            *byte = *byte & !(1 << (bit % 8)) | ((field >> n & 1) as u8) << (bit % 8);
        }
    }
}

/// Bits per row, padded to whole bytes or words.
fn row_bits(bits: u32, cols: u64, align: u64) -> Option<u64> {
    cols.checked_mul(bits.into())?.checked_next_multiple_of(8 * align)
}
