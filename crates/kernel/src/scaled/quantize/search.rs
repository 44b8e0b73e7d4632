//! Search for the best scale of each block near the formula's scale (`docs/spec/checkpoints.md §7.7`).

use super::blocks::Blocks;
use super::plan::BlockPlan;
use super::source::F32;
use crate::level::Task;
use crate::scaled::rows::{CodesMut, NextRows, Rows};

impl BlockPlan {
    /// Tries scales for all blocks at once. Stores the best scales in `blocks`, and the packed codes in `to`.
    pub fn search(&self, rows: &Rows<'_>, to: CodesMut<'_>, blocks: &mut Blocks) {
        let wide = self.load.all(rows, &mut blocks.scratch);
        let rows = &rows.widened(&wide);
        let size = self.scale.size();
        let code = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        let formula = blocks.stored.clone();
        let near: Vec<Vec<u64>> = formula.chunks_exact(size).map(|s| self.planes.near(&self.how, code(s))).collect();
        let Rows { cols, block, n_rows, .. } = *rows;
        let (mut best, mut best_codes) = (formula.clone(), vec![0; n_rows * cols]);
        let mut tried_codes = best_codes.clone();
        let mut least = self.attempt(rows, &mut best_codes, blocks);
        for k in 0..near.iter().map(Vec::len).max().unwrap_or(0) {
            blocks.stored.clone_from(&formula);
            for (scale, near) in blocks.stored.chunks_exact_mut(size).zip(&near) {
                if let Some(code) = near.get(k) {
                    scale.copy_from_slice(&code.to_le_bytes()[..size]);
                }
            }
            let errors = self.attempt(rows, &mut tried_codes, blocks);
            for (i, (error, least)) in errors.iter().zip(&mut least).enumerate() {
                if error < least {
                    *least = *error;
                    best[i * size..][..size].copy_from_slice(&blocks.stored[i * size..][..size]);
                    let within = i * block..((i + 1) * block).min(cols);
                    for (best, tried) in best_codes.chunks_mut(cols).zip(tried_codes.chunks(cols)) {
                        best[within.clone()].copy_from_slice(&tried[within.clone()]);
                    }
                }
            }
        }
        blocks.stored = best;
        self.find_operands(rows.dtype, blocks);
        for (codes, to) in best_codes.chunks(cols).zip(to.bytes.chunks_mut(to.stride)) {
            self.encode.pack(codes, &mut to[..self.encode.packed_bytes(cols)]);
        }
    }

    /// Codes with the stored scales, and the sum of squared errors of each block.
    fn attempt(&self, rows: &Rows<'_>, codes: &mut [u8], blocks: &mut Blocks) -> Vec<f64> {
        let Rows { cols, block, .. } = *rows;
        let to = CodesMut { bytes: codes, stride: cols, streams: false };
        self.divide_and_encode(rows, NextRows::default(), 8, to, blocks);
        self.scale.multipliers(blocks);
        let (mut errors, mut values) = (vec![0.0; blocks.multipliers.len()], vec![0; 4 * cols]);
        let half = self.encode.half();
        let zero = |zero: &F32| (f32::from_le_bytes(*zero) + half).to_le_bytes();
        let mut minus: Vec<F32> = blocks.zeros().iter().map(zero).collect();
        minus.resize(errors.len(), [0; 4]);
        for (row, codes) in codes.chunks(cols).enumerate() {
            self.decode.run(codes, &mut values, &mut blocks.scratch);
            let (x, values) = (rows.row(row).as_chunks().0, values.as_chunks().0);
            let (multipliers, minus, errors) = (&blocks.multipliers[..], &minus[..], &mut errors[..]);
            self.level().run(Errors { x, values, block, multipliers, minus, errors });
        }
        errors
    }
}

struct Errors<'a> {
    x: &'a [F32],
    values: &'a [F32],
    block: usize,
    /// Effective scale of each block. The zero point (`minus`) is subtracted first.
    multipliers: &'a [F32],
    minus: &'a [F32],
    errors: &'a mut [f64],
}

/// Number of blocks summed at the same time, because each addition waits for the previous sum.
const TOGETHER: usize = 8;

/// Number of squares computed at once in a block.
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
                // Missing elements of a short block add zero, which does not change the sum.
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
