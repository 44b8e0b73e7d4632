//! Code books of bitsandbytes. Source: `docs/spec/checkpoints.md §4.16`.

use crate::format::NF4;

/// Code book: list of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Book {
    /// The 16 values of NF4.
    Nf4,
    /// The 16 values of bitsandbytes' FP4: sign, and three bits in a special order.
    Fp4,
    /// 256 f32 values, stored with the tensor ([`Part::Book`](super::Part::Book)).
    Stored,
}

/// 0, 1/192, 2/3, 1, 1/3, 1/2, 1/6, 1/4 as f32 bits.
const FP4: [u32; 8] = [0, 0x3baa_aaab, 0x3f2a_aaab, 0x3f80_0000, 0x3eaa_aaab, 0x3f00_0000, 0x3e2a_aaab, 0x3e80_0000];

impl Book {
    /// Number of values in [`Book::Stored`].
    pub const STORED: u64 = 256;

    /// Number of bits in a code.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Book::Nf4 | Book::Fp4 => 4,
            Book::Stored => 8,
        }
    }

    /// Returns the values of the 16 codes as f32 bits; `None` for [`Book::Stored`].
    ///
    /// # Examples
    /// ```
    /// use truecast_core::scaled::Book;
    /// let value = |book: Book, code: usize| book.values().map(|all| f32::from_bits(all[code]));
    /// assert_eq!((value(Book::Nf4, 0), value(Book::Fp4, 11), value(Book::Stored, 0)), (Some(-1.0), Some(-1.0), None));
    /// ```
    #[must_use]
    pub fn values(self) -> Option<[u32; 16]> {
        match self {
            Book::Nf4 => Some(NF4.values),
            Book::Fp4 => Some(core::array::from_fn(|code| FP4[code % 8] | ((code as u32 / 8) << 31))),
            Book::Stored => None,
        }
    }
}
