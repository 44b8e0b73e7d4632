//! Elements divided by what their blocks share, as a kernel written by hand takes them (`docs/kernels.md §15`).

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "kernels of x86-64 take it"))]

use truecast_core::DType;

/// A value of f32, as bytes.
pub(crate) type F32 = [u8; 4];

/// What becomes of an element `x`, with the operands `t` and `u` of its block.
pub(crate) mod how {
    /// `x * t`.
    pub const TIMES: u8 = 0;
    /// `x / t`.
    pub const DIVIDE: u8 = 1;
    /// `x / t + u`.
    pub const DIVIDE_ADD: u8 = 2;
    /// `x / t`, but for its last bits, by `u = 1 / t`: `nearly_divided` of `scaled::quantize::source`.
    pub const RECIPROCAL: u8 = 3;
}

/// Rows of bf16, f16 or f32 with the same operands, of which the first element begins a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divided<'a> {
    pub dtype: DType,
    /// From the first element to the last.
    pub src: &'a [u8],
    /// Bytes from a row to the next.
    pub stride: usize,
    /// Elements of a row.
    pub cols: usize,
    /// Elements that share operands.
    pub block: usize,
    /// One of [`how`].
    pub how: u8,
    pub t: &'a [F32],
    /// As many.
    pub u: &'a [F32],
    /// What is needed after these rows, as rows that are so many bytes apart; none: nothing is asked for.
    pub next: (&'a [u8], usize),
}
