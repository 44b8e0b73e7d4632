//! Interface of the hand-written kernels, and the kernels of each level.
//!
//! A level overrides the methods for which it has kernels. The methods are called once for a plan, a tile or a stage,
//! never in a loop over elements.

use crate::level::Level;
use crate::measure::found::{Added, ByteCodes, Next, Small, Special, Sums};
use crate::measure::limits::Range;
use crate::numbers::op::Op;
use crate::numbers::split::Split;
use crate::scaled::lookup::{Codes, Table256, Tables};
use crate::scaled::rows::{CodesMut, Divided};
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::stage::Stage;

/// The stage of a kernel, if there is one.
pub(crate) type Kernel = Option<Box<dyn Stage>>;

/// Values of 4 or 8 bytes, in the default floating-point environment.
pub(crate) type Values<'a> = (usize, &'a [u8]);

/// The kernels of a level. The default of each method: no kernel.
#[allow(unused_variables)] // what an answer of "none" does not look at
pub(crate) trait Kernels {
    /// Returns the kernel that computes these operations, one after the other, in one loop.
    fn of(&self, ops: &[Op]) -> Kernel {
        None
    }

    /// Returns the kernel that looks up 256 results of `bytes` bytes, by bytes or by packed codes of `code_bits` bits.
    fn table(&self, results: &[u64; 256], bytes: usize, code_bits: u32) -> Kernel {
        None
    }

    /// Whether there is a lookup of [`Split`] tables.
    fn has_split(&self) -> bool {
        false
    }

    /// Whether [`Kernels::look_up`] can pack the results of elements of `src_bytes` bytes to `bits` bits.
    fn split_packs(&self, src_bytes: usize, bits: u32) -> bool {
        false
    }

    /// Looks up the results of `n` elements of 16 bits or f32, and stores them past the caches if `streams`. `src` and
    /// `dst` come with their bits per element. Returns false and does nothing if there is no lookup, or no such stores
    /// for these buffers.
    fn look_up(&self, split: &Split, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        false
    }

    /// Looks up elements with tables of 16 results of two bytes; returns the number of leading elements done.
    fn lookup16(&self, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8], streams: bool) -> usize {
        0
    }

    /// Whether there is a lookup with tables of 256 results of two bytes.
    fn has_lookup256(&self) -> bool {
        false
    }

    /// Looks up codes of rows with the same tables of 256 results of two bytes; returns the number of leading elements
    /// done in each row.
    fn lookup256(&self, rows: &mut [(&[u8], &mut [u8])], block: usize, tables: &[Table256], streams: bool) -> usize {
        0
    }

    /// Transposes rows of groups of eight bytes, `stride` bytes apart, into columns; returns the number of leading
    /// columns done.
    fn transpose8(&self, rows: &[u8], stride: usize, n_cols: usize, columns: CodesMut<'_>) -> usize {
        0
    }

    /// Computes the largest magnitudes of blocks of 16-bit elements, as many as `magnitudes` has room for, and
    /// prefetches the line `ahead` bytes after the start of each block. Returns the number of leading blocks computed.
    fn block_amax(&self, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
        0
    }

    /// Divides and encodes elements of rows by the tables of bf16, to codes of `bits` bits. Returns the number of
    /// leading elements done in each row.
    fn encode_quotients(&self, divided: &Divided<'_>, split: &Split, bits: usize, dst: CodesMut<'_>) -> usize {
        0
    }

    /// Whether there are [`Kernels::encode_by_thresholds`] and its tables.
    fn has_thresholds(&self) -> bool {
        false
    }

    /// Adds the threshold tables of divisors.
    fn add_thresholds(&self, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {}

    /// Encodes elements of rows by threshold tables; returns the number of leading elements done in each row.
    fn encode_by_thresholds(&self, stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
        0
    }

    /// Adds pairs of values to `sums`, for [`crate::measure`].
    fn add(&self, masked: bool, x: Values<'_>, y: Values<'_>, next: [Next; 2], sums: &mut Sums) -> Added {
        Added::NoKernel
    }

    /// As [`Kernels::add`], for a conversion that keeps values: `y` is `x`.
    fn add_values(&self, masked: bool, values: Values<'_>, next: [Next; 2], sums: &mut Sums) -> Added {
        Added::NoKernel
    }

    /// Counts small results for [`crate::measure`]; `None` without a kernel.
    fn small_results(&self, masked: bool, x: Values<'_>, y: Values<'_>, min_normal: f64) -> Option<Small> {
        None
    }

    /// As [`Kernels::small_results`], by the codes of finite values.
    fn small_codes(&self, codes: &ByteCodes, x: &[u8], y: &[u8]) -> Option<Small> {
        None
    }

    /// Counts values that are not finite or out of range for [`crate::measure`]; `None` without a kernel.
    fn specials(&self, x: Values<'_>, y: Values<'_>, range: &Range) -> Option<Special> {
        None
    }
}

/// A level without kernels.
struct NoKernels;

impl Kernels for NoKernels {}

impl Level {
    /// Returns the kernels of this level.
    pub(crate) fn kernels(&self) -> &dyn Kernels {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(token) => token,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(token) => token,
            #[cfg(target_arch = "aarch64")]
            Level::Neon(token) => token,
            _ => &NoKernels,
        }
    }
}
