//! Scales near those of the formula, and the best of each block (`docs/spec/checkpoints.md §7.7`).

use super::coder::{Coder, Operands, Room};
use super::rows::Found;
use crate::scaled::values::{Decoder, spread};
use truecast_core::DType;
use truecast_core::scaled::{Planes, Quantisation};

/// What is searched: rows in f32 without gaps, and what belongs to them.
pub(super) struct Search<'a> {
    pub coder: &'a Coder,
    pub decoder: &'a Decoder,
    pub planes: &'a Planes,
    pub how: &'a Quantisation,
    pub x: &'a [u8],
    pub cols: usize,
    /// Elements of a row that share a scale.
    pub block: usize,
    pub found: &'a Found,
    pub seen: u32,
    pub global: f32,
}

impl Search<'_> {
    /// Tries the scales of all blocks at once, and makes those of `best` the best ones. Returns codes, one in each byte.
    pub fn run(&self, best: &mut Operands, room: &mut Room) -> Vec<u8> {
        let size = self.coder.scaler.size();
        let code = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        let formula = best.stored.clone();
        let near: Vec<Vec<u64>> = formula.chunks_exact(size).map(|s| self.planes.near(self.how, code(s))).collect();
        let mut best_codes = vec![0; self.x.len() / 4];
        let mut tried_codes = best_codes.clone();
        let mut least = self.attempt(best, &mut best_codes, room);
        let mut tried = Operands::default();
        for k in 0..near.iter().map(Vec::len).max().unwrap_or(0) {
            tried.stored.clone_from(&formula);
            for (scale, near) in tried.stored.chunks_exact_mut(size).zip(&near) {
                if let Some(code) = near.get(k) {
                    scale.copy_from_slice(&code.to_le_bytes()[..size]);
                }
            }
            self.coder.complete((DType::F32, self.found, self.seen), self.global, &mut tried, room);
            let errors = self.attempt(&tried, &mut tried_codes, room);
            for (i, (error, least)) in errors.iter().zip(&mut least).enumerate() {
                if error < least {
                    *least = *error;
                    best.stored[i * size..][..size].copy_from_slice(&tried.stored[i * size..][..size]);
                    let cols = i * self.block..((i + 1) * self.block).min(self.cols);
                    for (best, tried) in best_codes.chunks_mut(self.cols).zip(tried_codes.chunks(self.cols)) {
                        best[cols.clone()].copy_from_slice(&tried[cols.clone()]);
                    }
                }
            }
        }
        self.coder.complete((DType::F32, self.found, self.seen), self.global, best, room);
        best_codes
    }

    /// Codes with some scales, and the sum of squared errors of each block.
    fn attempt(&self, operands: &Operands, codes: &mut [u8], room: &mut Room) -> Vec<f64> {
        let (cols, block) = (self.cols, self.block);
        let mut multipliers = Vec::new();
        self.coder.scaler.multipliers(&operands.stored, self.global, &mut multipliers, &mut room.scales);
        let mut errors = vec![0.0; multipliers.len()];
        let (mut values, mut of_columns, mut zeros) = (vec![0; 4 * cols], vec![0; 4 * cols], Vec::new());
        spread(multipliers.as_flattened(), block, 0, &mut of_columns);
        if !operands.zeros().is_empty() {
            zeros = vec![0; 4 * cols];
            spread(operands.zeros().as_flattened(), block, 0, &mut zeros);
            let half = self.coder.element.half();
            zeros.as_chunks_mut::<4>().0.iter_mut().for_each(|z| *z = (f32::from_le_bytes(*z) + half).to_le_bytes());
        }
        for (x, codes) in self.x.chunks(4 * cols).zip(codes.chunks_mut(cols)) {
            self.coder.row_to_bytes((DType::F32, x), block, operands, codes, room);
            self.decoder.run(codes, &mut values, &mut room.scratch);
            for (i, x) in x.as_chunks::<4>().0.iter().enumerate() {
                let of = |values: &[u8]| {
                    f32::from_le_bytes([values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]])
                };
                let x = f32::from_le_bytes(*x);
                let c = if zeros.is_empty() { of(&values) } else { of(&values) - of(&zeros) };
                let error = f64::from(c * of(&of_columns)) - f64::from(x);
                errors[i / block] += if x.is_finite() { error * error } else { 0.0 };
            }
        }
        errors
    }
}
