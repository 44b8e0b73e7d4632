//! Rows of plain elements whose blocks share operands (`docs/kernels.md §15`).

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "kernels of x86-64 take it"))]

use crate::stage::slot_bytes;
use truecast_core::DType;

/// f32 value as bytes.
pub(crate) type F32 = [u8; 4];

/// Operation on element `x` with operands `t` and `u` of its block.
pub(crate) mod how {
    /// `x * t`.
    pub const TIMES: u8 = 0;
    /// `x / t`.
    pub const DIVIDE: u8 = 1;
    /// `x / t + u`.
    pub const DIVIDE_ADD: u8 = 2;
    /// `x / t` except for the last bits, with `u = 1 / t`: `nearly_divided` of `scaled::quantize::source`.
    pub const RECIPROCAL: u8 = 3;
}

/// Some columns of several rows. The first element of each row begins a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub dtype: DType,
    /// Bytes from the first element to the last, or longer.
    pub bytes: &'a [u8],
    /// Number of bytes from row to row.
    pub stride: usize,
    pub cols: usize,
    pub n_rows: usize,
    /// Number of elements per block.
    pub block: usize,
}

impl<'a> Rows<'a> {
    /// Describes elements without gaps as one row.
    pub fn single(dtype: DType, bytes: &'a [u8], block: usize) -> Rows<'a> {
        Rows { dtype, bytes, stride: bytes.len(), cols: bytes.len() / slot_bytes(dtype), n_rows: 1, block }
    }

    /// Describes the same elements after their conversion to f32. `bytes` has no gaps.
    pub fn widened(self, bytes: &'a [u8]) -> Rows<'a> {
        Rows { dtype: DType::F32, bytes, stride: 4 * self.cols, ..self }
    }

    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.cols * slot_bytes(self.dtype)]
    }

    /// Bytes from the first element to the last.
    pub fn span(&self) -> &'a [u8] {
        &self.bytes[..(self.n_rows - 1) * self.stride + self.row(0).len()]
    }

    pub fn n_blocks(&self) -> usize {
        self.cols.div_ceil(self.block)
    }

    /// Adapts the block length to kernels, which take groups of 64 elements. If a block is a whole row, its length is
    /// rounded up to a multiple of 64.
    pub fn in_groups(self) -> Rows<'a> {
        Rows { block: if self.block < self.cols { self.block } else { self.cols.next_multiple_of(64) }, ..self }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextRows<'a> {
    /// Empty for no prefetch.
    pub bytes: &'a [u8],
    pub stride: usize,
}

#[derive(Debug)]
pub(crate) struct CodesMut<'a> {
    pub bytes: &'a mut [u8],
    /// Number of bytes from row to row.
    pub stride: usize,
    /// Whether codes may be stored past the caches. Other threads see the codes after a fence of this thread.
    pub streams: bool,
}

impl CodesMut<'_> {
    pub fn reborrow(&mut self) -> CodesMut<'_> {
        CodesMut { bytes: &mut *self.bytes, ..*self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Divided<'a> {
    pub rows: Rows<'a>,
    pub how: u8,
    pub t: &'a [F32],
    /// As long as `t`.
    pub u: &'a [F32],
    pub next: NextRows<'a>,
}
