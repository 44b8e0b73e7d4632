//! Scales near the formula's, and the best of each block (`docs/spec/checkpoints.md §7.7`).

use super::coder::{Buffers, Coder, Operands};
use super::found::Found;
use super::source::F32;
use crate::level::{Level, Task};
use crate::scaled::rows::Rows;
use crate::scaled::values::Decoder;
use truecast_core::DType;
use truecast_core::scaled::{Planes, Quantization};

/// Rows in f32 without gaps, and their coder.
pub(super) struct Search<'a> {
    pub level: Level,
    pub coder: &'a Coder,
    pub decoder: &'a Decoder,
    pub planes: &'a Planes,
    pub how: &'a Quantization,
    pub rows: Rows<'a>,
    pub found: &'a Found,
}

impl Search<'_> {
    /// Tries scales for all blocks at once, and leaves the best in `best`. Returns their codes, one in each byte.
    pub fn run(&self, best: &mut Operands, buffers: &mut Buffers) -> Vec<u8> {
        let size = self.coder.scaler.size();
        let code = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        let formula = best.stored.clone();
        let near: Vec<Vec<u64>> = formula.chunks_exact(size).map(|s| self.planes.near(self.how, code(s))).collect();
        let Rows { cols, block, n_rows, .. } = self.rows;
        let mut best_codes = vec![0; n_rows * cols];
        let mut tried_codes = best_codes.clone();
        let mut least = self.attempt(best, &mut best_codes, buffers);
        let mut tried = Operands::with_global(best.global);
        for k in 0..near.iter().map(Vec::len).max().unwrap_or(0) {
            tried.stored.clone_from(&formula);
            for (scale, near) in tried.stored.chunks_exact_mut(size).zip(&near) {
                if let Some(code) = near.get(k) {
                    scale.copy_from_slice(&code.to_le_bytes()[..size]);
                }
            }
            self.coder.complete(DType::F32, self.found, &mut tried, &mut buffers.scales);
            let errors = self.attempt(&tried, &mut tried_codes, buffers);
            for (i, (error, least)) in errors.iter().zip(&mut least).enumerate() {
                if error < least {
                    *least = *error;
                    best.stored[i * size..][..size].copy_from_slice(&tried.stored[i * size..][..size]);
                    let within = i * block..((i + 1) * block).min(cols);
                    for (best, tried) in best_codes.chunks_mut(cols).zip(tried_codes.chunks(cols)) {
                        best[within.clone()].copy_from_slice(&tried[within.clone()]);
                    }
                }
            }
        }
        self.coder.complete(DType::F32, self.found, best, &mut buffers.scales);
        best_codes
    }

    /// Codes with some scales, and the sum of squared errors of each block.
    fn attempt(&self, operands: &Operands, codes: &mut [u8], buffers: &mut Buffers) -> Vec<f64> {
        let Rows { cols, block, .. } = self.rows;
        let mut multipliers = Vec::new();
        self.coder.scaler.multipliers(&operands.stored, operands.global, &mut multipliers, &mut buffers.scales);
        let mut errors = vec![0.0; multipliers.len()];
        let (mut values, mut minus) = (vec![0; 4 * cols], vec![[0; 4]; multipliers.len()]);
        let half = self.coder.element.half();
        for (minus, zero) in minus.iter_mut().zip(operands.zeros()) {
            *minus = (f32::from_le_bytes(*zero) + half).to_le_bytes();
        }
        for (row, codes) in codes.chunks_mut(cols).enumerate() {
            let row = Rows::single(DType::F32, self.rows.row(row), block);
            self.coder.row_to_bytes(&row, operands, codes, buffers);
            self.decoder.run(codes, &mut values, &mut buffers.scratch);
            let (x, values) = (row.bytes.as_chunks().0, values.as_chunks().0);
            let (multipliers, minus, errors) = (&multipliers[..], &minus[..], &mut errors[..]);
            self.level.run(Errors { x, values, block, multipliers, minus, errors });
        }
        errors
    }
}

/// The squared errors of a row, added to the sums of its blocks.
struct Errors<'a> {
    x: &'a [F32],
    /// Values of the codes.
    values: &'a [F32],
    block: usize,
    /// Effective scale of each block, and its zero point, which is subtracted first.
    multipliers: &'a [F32],
    minus: &'a [F32],
    errors: &'a mut [f64],
}

/// Blocks whose sums grow at the same time: each waits for its last sum.
const TOGETHER: usize = 8;

/// Elements of a block whose squares are made at once.
const SQUARES: usize = 16;

impl Task for Errors<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Errors { x, values, block, multipliers, minus, errors } = self;
        let operands = multipliers.chunks(TOGETHER).zip(minus.chunks(TOGETHER));
        let elements = x.chunks(TOGETHER * block).zip(values.chunks(TOGETHER * block));
        for (((x, values), (multipliers, minus)), errors) in elements.zip(operands).zip(errors.chunks_mut(TOGETHER)) {
            for first in (0..block.min(x.len())).step_by(SQUARES) {
                let n = SQUARES.min(block - first);
                // Elements that a short block does not have add zero, which changes no sum.
                let mut squares = [[0.0; SQUARES]; TOGETHER];
                for (i, squares) in squares.iter_mut().enumerate().take(errors.len()) {
                    let at = (i * block + first).min(x.len());
                    let end = (at + n).min(x.len());
                    let (m, z) = (f32::from_le_bytes(multipliers[i]), f32::from_le_bytes(minus[i]));
                    squared_errors(&x[at..end], &values[at..end], m, z, squares);
                }
                for j in 0..SQUARES {
                    for (error, squares) in errors.iter_mut().zip(&squares) {
                        *error += squares[j];
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn squared_errors(x: &[F32], values: &[F32], multiplier: f32, minus: f32, squares: &mut [f64; SQUARES]) {
    let square = |x: F32, value: F32| {
        let x = f32::from_le_bytes(x);
        let error = f64::from((f32::from_le_bytes(value) - minus) * multiplier) - f64::from(x);
        if x.is_finite() { error * error } else { 0.0 }
    };
    if let (Some(x), Some(values)) = (x.first_chunk::<SQUARES>(), values.first_chunk::<SQUARES>()) {
        for i in 0..SQUARES {
            squares[i] = square(x[i], values[i]);
        }
        return;
    }
    for ((to, x), value) in squares.iter_mut().zip(x).zip(values) {
        *to = square(*x, *value);
    }
}
