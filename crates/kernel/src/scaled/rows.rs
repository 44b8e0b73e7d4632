//! Rows of plain elements whose blocks share operands, as loops and kernels take them (`docs/kernels.md §15`).

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "kernels of x86-64 take it"))]

use crate::stage::slot_bytes;
use truecast_core::DType;

/// A value of f32, as bytes.
pub(crate) type F32 = [u8; 4];

/// The operation on an element `x` with the operands `t` and `u` of its block.
pub(crate) mod how {
    /// `x * t`.
    pub const TIMES: u8 = 0;
    /// `x / t`.
    pub const DIVIDE: u8 = 1;
    /// `x / t + u`.
    pub const DIVIDE_ADD: u8 = 2;
    /// `x / t`, except for its last bits, by `u = 1 / t`: `nearly_divided` of `scaled::quantize::source`.
    pub const RECIPROCAL: u8 = 3;
}

/// Some columns of rows. The first element of each row begins a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub dtype: DType,
    /// The first element, and at least as far as the last.
    pub bytes: &'a [u8],
    /// Bytes from a row to the next.
    pub stride: usize,
    pub cols: usize,
    pub n_rows: usize,
    /// Elements of a row that share operands.
    pub block: usize,
}

impl<'a> Rows<'a> {
    /// Elements without gaps, as one row.
    pub fn single(dtype: DType, bytes: &'a [u8], block: usize) -> Rows<'a> {
        Rows { dtype, bytes, stride: bytes.len(), cols: bytes.len() / slot_bytes(dtype), n_rows: 1, block }
    }

    /// The same elements in f32, without gaps.
    pub fn widened(self, bytes: &'a [u8]) -> Rows<'a> {
        Rows { dtype: DType::F32, bytes, stride: 4 * self.cols, ..self }
    }

    /// The bytes of a row.
    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.cols * slot_bytes(self.dtype)]
    }

    /// The bytes from the first element to the last.
    pub fn span(&self) -> &'a [u8] {
        &self.bytes[..(self.n_rows - 1) * self.stride + self.row(0).len()]
    }

    /// Blocks of a row.
    pub fn n_blocks(&self) -> usize {
        self.cols.div_ceil(self.block)
    }

    /// The same rows for kernels, which take whole groups of 64 elements: a block that fills a row may continue.
    pub fn in_groups(self) -> Rows<'a> {
        Rows { block: if self.block < self.cols { self.block } else { self.cols.next_multiple_of(64) }, ..self }
    }
}

/// Rows that are needed next: kernels prefetch them with the rows that they read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextRows<'a> {
    /// Empty: nothing is prefetched.
    pub bytes: &'a [u8],
    pub stride: usize,
}

/// Rows of codes, or columns of results, to be written.
#[derive(Debug)]
pub(crate) struct CodesMut<'a> {
    pub bytes: &'a mut [u8],
    /// Bytes from a row to the next.
    pub stride: usize,
    /// Whether codes may go past the caches; other threads see them after a fence of this one.
    pub streams: bool,
}

impl CodesMut<'_> {
    /// The same codes, reborrowed.
    pub fn reborrow(&mut self) -> CodesMut<'_> {
        CodesMut { bytes: &mut *self.bytes, ..*self }
    }
}

/// Rows of bf16, f16 or f32 with the operands of their blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divided<'a> {
    pub rows: Rows<'a>,
    /// One of [`how`].
    pub how: u8,
    pub t: &'a [F32],
    /// As many.
    pub u: &'a [F32],
    pub next: NextRows<'a>,
}
