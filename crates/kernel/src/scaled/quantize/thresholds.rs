//! Threshold tables for the blocks of some rows.

use super::blocks::{Blocks, ScaleBuffers, Tables};
use super::scales::Scaler;
use crate::level::Level;
use crate::scaled::threshold_table::{Shape, Steps};
use truecast_core::scaled::Code;

/// Minimum number of elements of a block with a separate table.
const WORTH_A_TABLE: usize = 4096;

const NO_TABLE: u32 = 1 << 24;

#[derive(Debug)]
pub(super) struct Thresholds {
    pub shape: Shape,
    level: Level,
}

impl Thresholds {
    /// `None` without a kernel.
    pub fn new(code: Code, level: Level) -> Option<Thresholds> {
        let Code::Float(dtype) = code else { return None };
        Shape::new(dtype).filter(|_| level.kernels().has_thresholds()).map(|shape| Thresholds { shape, level })
    }

    /// Makes the tables of all blocks of `block_elements` elements. Returns false if a block cannot have a table.
    pub fn make(&self, scaler: &Scaler, block_elements: usize, blocks: &mut Blocks) -> bool {
        let Blocks { amax, stored, global, tables, scales: buffers, .. } = blocks;
        tables.firsts.clear();
        tables.indices.clear();
        let all = if scaler.has_inverses() {
            // The tables of divisors that are powers of two differ only in the first bits.
            tables.steps.clear();
            self.level.kernels().add_thresholds(&self.shape, &[1.0], &mut tables.steps);
            let divisors = || scaler.powers(stored).zip(&*amax);
            tables.firsts.extend(divisors().map(|(t, most)| if *most == 0 { u16::MAX } else { self.shape.first(t) }));
            divisors().fold(true, |all, (t, most)| all & ((*most == 0) | self.shape.takes(t)))
        } else if scaler.size() == 1 {
            let Tables { steps, firsts, indices, by_code } = tables;
            let by_code = by_code.get_or_insert_with(|| self.by_code(steps, scaler, *global, buffers));
            firsts.resize(stored.len(), 0);
            indices.resize(stored.len(), 0);
            let mut any = 0;
            for ((first, index), code) in firsts.iter_mut().zip(indices.iter_mut()).zip(&*stored) {
                let table = by_code[usize::from(*code)];
                (*first, *index) = (table as u16, (table >> 16) as u8);
                any |= table;
            }
            any & NO_TABLE == 0
        } else if block_elements >= WORTH_A_TABLE && amax.len() <= 256 {
            let mut divisors = Vec::new();
            scaler.divisors(stored, *global, &mut divisors, buffers);
            let divisors: Vec<f32> = divisors.into_iter().map(f32::from_le_bytes).collect();
            let all = divisors.iter().all(|t| self.shape.takes(*t));
            if all {
                tables.steps.clear();
                self.level.kernels().add_thresholds(&self.shape, &divisors, &mut tables.steps);
                tables.firsts.extend(divisors.iter().map(|t| self.shape.first(*t)));
                tables.indices.extend((0..divisors.len()).map(|i| i as u8));
            }
            all
        } else {
            false
        };
        tables.firsts.extend([0; 3]);
        if !tables.indices.is_empty() {
            tables.indices.extend([0; 3]);
        }
        all
    }

    /// Makes tables for the codes of a one-byte scale. Divisors that differ by a power of two share a table.
    fn by_code(
        &self,
        steps: &mut Vec<Steps>,
        scaler: &Scaler,
        global: f32,
        buffers: &mut ScaleBuffers,
    ) -> Box<[u32; 256]> {
        let (codes, mut divisors): (Vec<u8>, _) = ((0..=u8::MAX).collect(), Vec::new());
        scaler.divisors(&codes, global, &mut divisors, buffers);
        let mut distinct: Vec<f32> = Vec::new();
        let mut tables = Box::new([NO_TABLE; 256]);
        let fraction = |t: f32| t.to_bits() & 0x007f_ffff;
        for (code, t) in divisors.into_iter().map(f32::from_le_bytes).enumerate().filter(|(_, t)| self.shape.takes(*t))
        {
            let table = distinct.iter().position(|other| fraction(*other) == fraction(t)).unwrap_or_else(|| {
                distinct.push(t);
                distinct.len() - 1
            });
            tables[code] = u32::from(self.shape.first(t)) | (table as u32) << 16;
        }
        steps.clear();
        self.level.kernels().add_thresholds(&self.shape, &distinct, steps);
        tables
    }
}
