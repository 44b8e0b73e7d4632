//! Tables of steps for the blocks of some rows, where a kernel encodes elements by them.

use super::element::Element;
use super::rows::{Found, Rows};
use super::scales::{self, Scaler};
use crate::level::Level;
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use truecast_core::DType;
use truecast_core::scaled::Code;

/// Elements of a block that is worth a table of its own.
const WORTH_A_TABLE: usize = 4096;

/// The tables of one run, and of which blocks they are.
#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: Vec<Steps>,
    firsts: Vec<u16>,
    which: Vec<u8>,
    /// Of each code of a scale with this global scale.
    by_code: Option<(f32, Box<ByCode>)>,
}

/// Of each code of a scale: where its table begins, which it is (from bit 16 on), and [`NO_TABLE`].
type ByCode = [u32; 256];
const NO_TABLE: u32 = 1 << 24;

/// How tables are made.
#[derive(Debug)]
pub(super) struct Stepper {
    shape: Shape,
    level: Level,
}

impl Stepper {
    /// None, where no kernel takes them.
    pub fn new(code: Code, level: Level) -> Option<Stepper> {
        let Code::Float(dtype) = code else { return None };
        Shape::of(dtype).filter(|_| level.kernels().has_thresholds()).map(|shape| Stepper { shape, level })
    }

    /// Encodes rows with stored scales, packed, and returns how many elements of each row that were, from the first on.
    pub fn rows(
        &self,
        rows: &Rows<'_>,
        (block, next): (usize, (&[u8], usize)),
        (scaler, element): (&Scaler, &Element),
        (found, stored, global): (&Found, &[u8], f32),
        (to, stride, streams): (&mut [u8], usize, bool),
        (tables, room): (&mut Tables, &mut scales::Room),
    ) -> usize {
        let of_block = rows.rows * block.min(rows.cols);
        if rows.dtype != DType::Bf16 || !self.make(tables, scaler, (found, stored, global), of_block, room) {
            return 0;
        }
        let Tables { tables, firsts, which, .. } = tables;
        let Rows { stride: src_stride, cols, .. } = *rows;
        let src = &rows.bytes[..(rows.rows - 1) * src_stride + rows.row(0).len()];
        let block = if block < cols { block } else { cols.next_multiple_of(64) };
        let of =
            Stepped { src, stride: src_stride, cols, block, shape: &self.shape, firsts, which, tables, streams, next };
        let done = self.level.kernels().encode_by_thresholds(&of, (&mut *to, stride));
        element.finish(done, to, stride);
        done
    }

    /// Makes the tables of all blocks; false, if there is none for one of them.
    fn make(
        &self,
        tables: &mut Tables,
        scaler: &Scaler,
        (found, stored, global): (&Found, &[u8], f32),
        of_block: usize,
        room: &mut scales::Room,
    ) -> bool {
        let Tables { tables, firsts, which, by_code } = tables;
        firsts.clear();
        which.clear();
        let all = if scaler.has_inverses() {
            // Powers of two differ in where their tables begin.
            tables.clear();
            self.level.kernels().add_thresholds(&self.shape, &[1.0], tables);
            let divisors = || scaler.powers(stored).zip(&found.largest);
            firsts.extend(divisors().map(|(t, most)| if *most == 0 { u16::MAX } else { self.shape.first(t) }));
            divisors().fold(true, |all, (t, most)| all & ((*most == 0) | self.shape.takes(t)))
        } else if scaler.size() == 1 {
            if by_code.as_ref().is_none_or(|(of, _)| *of != global) {
                *by_code = Some((global, Box::new(self.by_code(tables, scaler, global, room))));
            }
            let Some((_, by_code)) = by_code else { return false };
            firsts.resize(stored.len(), 0);
            which.resize(stored.len(), 0);
            let mut any = 0;
            for ((first, which), code) in firsts.iter_mut().zip(which.iter_mut()).zip(stored) {
                let of_code = by_code[usize::from(*code)];
                (*first, *which) = (of_code as u16, (of_code >> 16) as u8);
                any |= of_code;
            }
            any & NO_TABLE == 0
        } else if of_block >= WORTH_A_TABLE && found.largest.len() <= 256 {
            let mut divisors = Vec::new();
            scaler.divisors(stored, global, &mut divisors, room);
            let divisors: Vec<f32> = divisors.into_iter().map(f32::from_le_bytes).collect();
            let all = divisors.iter().all(|t| self.shape.takes(*t));
            if all {
                tables.clear();
                self.level.kernels().add_thresholds(&self.shape, &divisors, tables);
                firsts.extend(divisors.iter().map(|t| self.shape.first(*t)));
                which.extend((0..divisors.len()).map(|i| i as u8));
            }
            all
        } else {
            false
        };
        firsts.extend([0; 3]);
        if !which.is_empty() {
            which.extend([0; 3]);
        }
        all
    }

    /// Tables for the codes of a scale of one byte: those whose divisors differ by a power of two share one.
    fn by_code(&self, tables: &mut Vec<Steps>, scaler: &Scaler, global: f32, room: &mut scales::Room) -> ByCode {
        let (codes, mut divisors): (Vec<u8>, _) = ((0..=u8::MAX).collect(), Vec::new());
        scaler.divisors(&codes, global, &mut divisors, room);
        let mut of_tables: Vec<f32> = Vec::new();
        let mut by_code = [NO_TABLE; 256];
        let fraction = |t: f32| t.to_bits() & 0x007f_ffff;
        for (code, t) in divisors.into_iter().map(f32::from_le_bytes).enumerate().filter(|(_, t)| self.shape.takes(*t))
        {
            let table = of_tables.iter().position(|of| fraction(*of) == fraction(t)).unwrap_or_else(|| {
                of_tables.push(t);
                of_tables.len() - 1
            });
            by_code[code] = u32::from(self.shape.first(t)) | (table as u32) << 16;
        }
        tables.clear();
        self.level.kernels().add_thresholds(&self.shape, &of_tables, tables);
        by_code
    }
}
