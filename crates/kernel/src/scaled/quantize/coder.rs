//! Rows with the scales of their blocks, to codes.

use super::element::Element;
use super::rows::{Found, Rows};
use super::scales::{self, Scaler};
use super::source::{F32, Ratios, Source, by_source, how, may_be_nearly_divided};
use super::steps::{Stepper, Tables};
use crate::level::{Level, Task};
use crate::pipeline::Scratch;
use crate::scaled::block_quotient::Divided;
use truecast_core::DType;
use truecast_core::scaled::{Planes, Quantization, ScaledError};

/// Elements whose quotients are made at a time.
const TILE: usize = 1024;

/// Bytes that encoders look ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = crate::x86::AHEAD;
#[cfg(not(target_arch = "x86_64"))]
const AHEAD: usize = 0;

/// How rows are coded, planned once.
#[derive(Debug)]
pub(super) struct Coder {
    pub scaler: Scaler,
    pub element: Element,
    stepper: Option<Stepper>,
    level: Level,
}

/// What blocks are quantized with.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// Scales as they are stored.
    pub stored: Vec<u8>,
    /// What elements are divided by, or multiplied.
    divisors: Vec<F32>,
    /// Zero points, or inverses of the divisors.
    others: Vec<F32>,
    how: u8,
}

impl Operands {
    /// Zero points, of a layout that has them.
    pub fn zeros(&self) -> &[F32] {
        if self.how == how::DIVIDE_ADD { &self.others } else { &[] }
    }
}

/// Where codes of a row go.
enum Codes<'a> {
    Packed(&'a mut [u8]),
    /// One in each byte.
    Bytes(&'a mut [u8]),
}

/// Tiles of one thread.
#[derive(Debug, Default)]
pub(super) struct Room {
    ratios: Vec<u8>,
    codes: Vec<u8>,
    pub scales: scales::Room,
    pub scratch: Scratch,
    tables: Tables,
}

impl Coder {
    pub fn new(planes: &Planes, how: &Quantization, level: Level) -> Result<Coder, ScaledError> {
        let (scaler, element) = (Scaler::new(planes, how, level)?, Element::new(planes.codes, level)?);
        Ok(Coder { scaler, element, stepper: Stepper::new(planes.codes.code, level), level })
    }

    /// Operands of blocks with stored scales. `seen` is the largest magnitude of any element.
    pub fn complete(
        &self,
        (dtype, found, seen): (DType, &Found, u32),
        global: f32,
        operands: &mut Operands,
        room: &mut Room,
    ) {
        let Operands { stored, divisors, others, how } = operands;
        self.scaler.divisors(stored, global, divisors, &mut room.scales);
        others.clear();
        if self.scaler.has_inverses() {
            *how = how::TIMES;
        } else if !found.ranges.is_empty() {
            *how = how::DIVIDE_ADD;
            let [low, high] = self.element.limits();
            let zero = |(s, [lowest, _]): (&F32, &[f32; 2])| {
                (low - lowest / f32::from_le_bytes(*s)).clamp(low, high).round_ties_even().to_le_bytes()
            };
            others.extend(divisors.iter().zip(&found.ranges).map(zero));
        } else {
            *how = how::DIVIDE;
            if matches!(dtype, DType::Bf16 | DType::F16) && self.level.has_fused_products() {
                others.resize(divisors.len(), [0; 4]);
                let inverses = Inverses { divisors, seen: f32::from_bits(seen), inverses: others };
                if self.level.run(inverses) {
                    *how = how::RECIPROCAL;
                }
            }
        }
    }

    /// Packed codes of rows with stored scales, of whose elements `block` share each; those of a row begin so many bytes
    /// after those of the one before. What is needed `next` lies in rows that are so many bytes apart; whether it was asked
    /// for.
    pub fn rows(
        &self,
        rows: &Rows<'_>,
        (block, next): (usize, (&[u8], usize)),
        (found, seen, global): (&Found, u32, f32),
        operands: &mut Operands,
        (to, stride, streams): (&mut [u8], usize, bool),
        room: &mut Room,
    ) -> bool {
        let by_steps = self.stepper.as_ref().map_or(0, |stepper| {
            let (of, known) = ((&self.scaler, &self.element), (found, &operands.stored[..], global));
            stepper.rows(
                rows,
                (block, next),
                of,
                known,
                (&mut *to, stride, streams),
                (&mut room.tables, &mut room.scales),
            )
        });
        if by_steps == rows.cols {
            return !next.0.is_empty();
        }
        self.complete((rows.dtype, found, seen), global, operands, room);
        let packed = self.element.bytes(rows.cols);
        let src = &rows.bytes[..(rows.rows - 1) * rows.stride + rows.row(0).len()];
        let done = match by_steps {
            0 => self.in_one_loop(rows, src, (block, next), operands, (true, (&mut *to, stride))),
            done => done,
        };
        if done < rows.cols {
            for (i, to) in to.chunks_mut(stride).enumerate() {
                let to = Codes::Packed(&mut to[..packed]);
                self.rest_of_row((rows.dtype, rows.row(i)), (block, done), operands, to, room);
            }
        }
        done > 0 && !next.0.is_empty()
    }

    /// Codes of a row, one in each byte.
    pub fn row_to_bytes(
        &self,
        (dtype, src): (DType, &[u8]),
        block: usize,
        operands: &Operands,
        to: &mut [u8],
        room: &mut Room,
    ) {
        let rows = Rows { dtype, bytes: src, stride: src.len(), cols: to.len(), rows: 1 };
        let stride = to.len();
        let done = self.in_one_loop(&rows, src, (block, (&[], 0)), operands, (false, (&mut *to, stride)));
        self.rest_of_row((dtype, src), (block, done), operands, Codes::Bytes(to), room);
    }

    /// Codes of a row from an element on.
    fn rest_of_row(
        &self,
        (dtype, src): (DType, &[u8]),
        (block, done): (usize, usize),
        operands: &Operands,
        mut to: Codes<'_>,
        room: &mut Room,
    ) {
        let n = by_source!(dtype, S => S::elements(src).len());
        if let Codes::Packed(to) = &mut to
            && block < n
            && !block.is_multiple_of(8)
        {
            let mut codes = vec![0; n];
            self.rest_of_row((dtype, src), (block, 0), operands, Codes::Bytes(&mut codes), room);
            self.element.pack_codes(&codes, to);
            return;
        }
        let Room { ratios, codes, scratch, .. } = room;
        // Encoders ask for what follows their source, which is to stay in the first-level cache.
        ratios.resize(TILE * 4 + AHEAD, 0);
        codes.resize(TILE, 0);
        // Whole blocks, or a block in tiles.
        let step = if block < TILE { TILE / block * block } else { block.min(n) };
        for first in (done..n).step_by(step) {
            let end = n.min(first + step);
            for at in (first..end).step_by(TILE) {
                let len = TILE.min(end - at);
                let ratios = &mut ratios[..len * self.element.ratio_bytes()];
                by_source!(dtype, S => {
                    self.ratios::<S>(&S::elements(src)[at..at + len], block, (operands, at / block), ratios);
                });
                match &mut to {
                    Codes::Bytes(to) => self.element.codes(ratios, &mut to[at..at + len], scratch),
                    Codes::Packed(to) => {
                        let to = &mut to[self.element.bytes(at)..self.element.bytes(at + len)];
                        self.element.pack(ratios, &mut codes[..len], to, scratch);
                    }
                }
            }
        }
    }

    /// Whole groups of elements, without a pass through memory between quotients and codes, which may be packed; how many
    /// elements of each row those were.
    fn in_one_loop(
        &self,
        rows: &Rows<'_>,
        src: &[u8],
        (block, next): (usize, (&[u8], usize)),
        of: &Operands,
        (packed, to): (bool, (&mut [u8], usize)),
    ) -> usize {
        let t = &of.divisors[..];
        let u = if of.others.is_empty() { t } else { &of.others[..] };
        let Rows { dtype, stride, cols, .. } = *rows;
        let block = if block < cols { block } else { cols.next_multiple_of(64) };
        self.element.divided(&Divided { dtype, src, stride, cols, block, how: of.how, t, u, next }, packed, to)
    }

    /// Quotients of elements, of which the first begins the block `first`.
    fn ratios<S: Source>(&self, src: &[S::Element], block: usize, (of, first): (&Operands, usize), ratios: &mut [u8]) {
        let t = &of.divisors[first..];
        let u = if of.others.is_empty() { t } else { &of.others[first..] };
        match self.element.ratio_bytes() {
            2 => self.of_bytes::<S, 2>(of.how, src, block, (t, u), ratios.as_chunks_mut().0),
            _ => self.of_bytes::<S, 4>(of.how, src, block, (t, u), ratios.as_chunks_mut().0),
        }
    }

    fn of_bytes<S: Source, const N: usize>(
        &self,
        how: u8,
        src: &[S::Element],
        block: usize,
        (t, u): (&[F32], &[F32]),
        ratios: &mut [[u8; N]],
    ) {
        let level = self.level;
        match how {
            how::TIMES => level.run(Ratios::<S, { how::TIMES }, N> { src, block, t, u, ratios }),
            how::DIVIDE => level.run(Ratios::<S, { how::DIVIDE }, N> { src, block, t, u, ratios }),
            how::DIVIDE_ADD => level.run(Ratios::<S, { how::DIVIDE_ADD }, N> { src, block, t, u, ratios }),
            _ => level.run_with_fused_products(Ratios::<S, { how::RECIPROCAL }, N> { src, block, t, u, ratios }),
        }
    }
}

/// Inverses of divisors, and whether each may stand for division.
struct Inverses<'a> {
    divisors: &'a [F32],
    /// The largest magnitude of any element.
    seen: f32,
    inverses: &'a mut [F32],
}

impl Task for Inverses<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut all = true;
        for (inverse, s) in self.inverses.iter_mut().zip(self.divisors) {
            let s = f32::from_le_bytes(*s);
            *inverse = (1.0 / s).to_le_bytes();
            all &= may_be_nearly_divided(s, self.seen);
        }
        all
    }
}
