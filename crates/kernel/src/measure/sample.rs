//! [`Sample`]: selection of blocks for measured errors.

use super::BLOCK;

/// Minimum number of measured elements in a large array.
const MEASURED: u64 = 1 << 20;

/// Selection of blocks with measured errors: one block in `one_in`, chosen by index (`docs/spec/checkpoints.md §10`).
///
/// # Examples
/// ```
/// use truecast_kernel::measure::{BLOCK, Sample};
/// let sample = Sample::of(1 << 24);
/// let taken = (0..256).filter(|block| sample.takes(block * BLOCK as u64)).count();
/// assert_eq!((sample.one_in(), taken), (16, 16));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    one_in: u64,
}

impl Sample {
    /// Every block.
    pub const ALL: Sample = Sample { one_in: 1 };
    /// No block.
    pub const NONE: Sample = Sample { one_in: 0 };

    /// Returns the sample for an array: between 1 Mi and 2 Mi elements, or all elements of a smaller array.
    #[must_use]
    pub fn of(elements: u64) -> Sample {
        Sample { one_in: (elements / MEASURED).max(1) }
    }

    /// Returns the number of blocks per measured block; 0 if no block is measured.
    #[must_use]
    pub fn one_in(self) -> u64 {
        self.one_in
    }

    /// Returns whether the sample includes the block of an element. The sample has one of every `one_in` blocks, at
    /// varying positions.
    #[must_use]
    pub fn takes(self, element: u64) -> bool {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let block = element / BLOCK as u64;
        match self.one_in {
            0 => false,
            n => ((block / n + 1).wrapping_mul(GOLDEN) >> 32) % n == block % n,
        }
    }
}
