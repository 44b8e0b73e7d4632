//! Interface of the hand-written kernels, and the kernels of each level.
//!
//! A level overrides a method to add a kernel. A method is called once per plan, tile or stage, never per element.

use crate::level::Level;
use crate::measure::found::{Added, ByteCodes, Next, Small, Special, Sums};
use crate::measure::limits::Range;
use crate::numbers::op::Op;
use crate::numbers::split::Split;
use crate::scaled::lookup::{Codes, Table256, Tables};
use crate::scaled::rows::{CodesMut, Divided};
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::stage::Stage;

/// Stage of a kernel; `None` without a kernel.
pub(crate) type Kernel = Option<Box<dyn Stage>>;

/// Bytes per value, 4 or 8, and the values. For kernels in the default floating-point environment.
pub(crate) type Values<'a> = (usize, &'a [u8]);

/// Kernels of a level. By default, a method has no kernel.
#[allow(unused_variables)] // what an answer of "none" does not look at
pub(crate) trait Kernels {
    /// Kernel that runs a sequence of operations in one loop.
    fn operations(&self, ops: &[Op]) -> Kernel {
        None
    }

    /// Kernel that looks up one of 256 results of `bytes` bytes. Sources are bytes, or packed codes of `code_bits`
    /// bits.
    fn table(&self, results: &[u64; 256], bytes: usize, code_bits: u32) -> Kernel {
        None
    }

    fn has_split(&self) -> bool {
        false
    }

    /// Whether [`Kernels::look_up`] can pack results to `bits` bits if elements take `src_bytes` bytes.
    fn split_packs(&self, src_bytes: usize, bits: u32) -> bool {
        false
    }

    /// Looks up the results of `n` elements of 16 bits, or of `n` f32. With `streams`, results are stored past the
    /// caches. The number in `src` and in `dst` is the bits per element. Returns false, without any effect, if these
    /// buffers have no such lookup or no such stores.
    fn look_up(&self, split: &Split, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        false
    }

    /// Looks up elements in tables of 16 two-byte results; returns the number of leading elements done.
    fn lookup16(&self, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8], streams: bool) -> usize {
        0
    }

    fn has_lookup256(&self) -> bool {
        false
    }

    /// Looks up rows of codes. All rows share tables of 256 two-byte results. Returns the number of leading elements
    /// done in each row.
    fn lookup256(&self, rows: &mut [(&[u8], &mut [u8])], block: usize, tables: &[Table256], streams: bool) -> usize {
        0
    }

    /// Transposes rows of 8-byte groups, `stride` bytes apart, into columns; returns the number of leading columns
    /// done.
    fn transpose8(&self, rows: &[u8], stride: usize, n_cols: usize, columns: CodesMut<'_>) -> usize {
        0
    }

    /// Computes the largest magnitude of each block of 16-bit elements, for `magnitudes.len()` blocks. Prefetches the
    /// line `ahead` bytes after the start of each block. Returns the number of leading blocks done.
    fn block_amax(&self, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
        0
    }

    /// Divides and encodes elements of rows with the bf16 tables, to codes of `bits` bits. Returns the number of
    /// leading elements done in each row.
    fn encode_quotients(&self, divided: &Divided<'_>, split: &Split, bits: usize, dst: CodesMut<'_>) -> usize {
        0
    }

    fn has_thresholds(&self) -> bool {
        false
    }

    /// Appends the threshold tables for `divisors`.
    fn add_thresholds(&self, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {}

    /// Encodes elements of rows with threshold tables. Returns the number of leading elements that are encoded in each
    /// row.
    fn encode_by_thresholds(&self, stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
        0
    }

    /// Adds pairs of values to `sums`, for [`crate::measure`].
    fn add(&self, masked: bool, x: Values<'_>, y: Values<'_>, next: [Next; 2], sums: &mut Sums) -> Added {
        Added::NoKernel
    }

    /// [`Kernels::add`] for a conversion that keeps values, so that `y` is `x`.
    fn add_values(&self, masked: bool, values: Values<'_>, next: [Next; 2], sums: &mut Sums) -> Added {
        Added::NoKernel
    }

    /// Counts small results for [`crate::measure`]; `None` without a kernel.
    fn small_results(&self, masked: bool, x: Values<'_>, y: Values<'_>, min_normal: f64) -> Option<Small> {
        None
    }

    /// [`Kernels::small_results`] by the codes of finite values.
    fn small_codes(&self, codes: &ByteCodes, x: &[u8], y: &[u8]) -> Option<Small> {
        None
    }

    /// Counts nonfinite and out-of-range values for [`crate::measure`]; `None` without a kernel.
    fn specials(&self, x: Values<'_>, y: Values<'_>, range: &Range) -> Option<Special> {
        None
    }
}

struct NoKernels;

impl Kernels for NoKernels {}

impl Level {
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
