//! Rows with the scales of their blocks, to codes.

use super::element::Element;
use super::found::Found;
use super::scales::{self, Scaler};
use super::source::{F32, Ratios, Source, by_source, how, may_be_nearly_divided};
use super::thresholds::{Tables, Thresholds};
use crate::level::{Level, Task};
use crate::pipeline::Scratch;
use crate::scaled::rows::{CodesMut, Divided, NextRows, Rows};
use crate::scaled::threshold_table::Stepped;
use truecast_core::DType;
use truecast_core::scaled::{Planes, Quantization, ScaledError};

/// Elements whose quotients are made at a time.
const TILE: usize = 1024;

/// Bytes that encoders look ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = crate::x86::AHEAD;
#[cfg(not(target_arch = "x86_64"))]
const AHEAD: usize = 0;

/// Encodes rows, planned once.
#[derive(Debug)]
pub(super) struct Coder {
    pub scaler: Scaler,
    pub element: Element,
    thresholds: Option<Thresholds>,
    level: Level,
}

/// Scales of blocks, and the operands that follow from them.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// Scales as they are stored.
    pub stored: Vec<u8>,
    pub global: f32,
    /// Elements are divided by these, or multiplied.
    divisors: Vec<F32>,
    /// Zero points, or inverses of the divisors.
    others: Vec<F32>,
    how: u8,
}

impl Operands {
    /// No blocks, with a global scale.
    pub fn with_global(global: f32) -> Operands {
        Operands { global, ..Operands::default() }
    }

    /// Zero points, of a layout that has them.
    pub fn zeros(&self) -> &[F32] {
        if self.how == how::DIVIDE_ADD { &self.others } else { &[] }
    }

    /// The two operands of each block.
    fn pairs(&self) -> [&[F32]; 2] {
        [&self.divisors, if self.others.is_empty() { &self.divisors } else { &self.others }]
    }
}

/// Destination of a row's codes.
enum Codes<'a> {
    Packed(&'a mut [u8]),
    /// One in each byte.
    Bytes(&'a mut [u8]),
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    ratios: Vec<u8>,
    codes: Vec<u8>,
    pub scales: scales::Buffers,
    pub scratch: Scratch,
    tables: Tables,
}

impl Coder {
    pub fn new(planes: &Planes, how: &Quantization, level: Level) -> Result<Coder, ScaledError> {
        let (scaler, element) = (Scaler::new(planes, how, level)?, Element::new(planes.codes, level)?);
        Ok(Coder { scaler, element, thresholds: Thresholds::new(planes.codes.code, level), level })
    }

    /// Makes the operands of blocks with stored scales.
    pub fn complete(&self, dtype: DType, found: &Found, operands: &mut Operands, buffers: &mut scales::Buffers) {
        let Operands { stored, global, divisors, others, how } = operands;
        self.scaler.divisors(stored, *global, divisors, buffers);
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
                let inverses = Inverses { divisors, most: f32::from_bits(found.most), inverses: others };
                if self.level.run(inverses) {
                    *how = how::RECIPROCAL;
                }
            }
        }
    }

    /// Packed codes of rows with stored scales. Returns whether the next rows were prefetched.
    pub fn rows(
        &self,
        rows: &Rows<'_>,
        next: NextRows<'_>,
        found: &Found,
        operands: &mut Operands,
        mut to: CodesMut<'_>,
        buffers: &mut Buffers,
    ) -> bool {
        let mut done = self.by_thresholds(rows, next, found, operands, to.reborrow(), buffers);
        if done < rows.cols {
            self.complete(rows.dtype, found, operands, &mut buffers.scales);
            if done == 0 {
                done = self.in_one_loop(rows, next, operands, self.element.bits(), to.reborrow());
            }
        }
        self.element.finish(done, to.reborrow());
        if done < rows.cols {
            let packed = self.element.bytes(rows.cols);
            for (i, to) in to.bytes.chunks_mut(to.stride).enumerate() {
                let row = Rows { bytes: rows.row(i), n_rows: 1, ..*rows };
                self.rest_of_row(&row, done, operands, Codes::Packed(&mut to[..packed]), buffers);
            }
        }
        done > 0 && !next.bytes.is_empty()
    }

    /// As [`Coder::rows`] by threshold tables; returns the number of leading elements done in each row.
    fn by_thresholds(
        &self,
        rows: &Rows<'_>,
        next: NextRows<'_>,
        found: &Found,
        operands: &Operands,
        to: CodesMut<'_>,
        buffers: &mut Buffers,
    ) -> usize {
        let Some(thresholds) = self.thresholds.as_ref().filter(|_| rows.dtype == DType::Bf16) else { return 0 };
        let (tables, block_elements) = (&mut buffers.tables, rows.n_rows * rows.block.min(rows.cols));
        if !thresholds.make(tables, &self.scaler, found, operands, block_elements, &mut buffers.scales) {
            return 0;
        }
        let Tables { steps, firsts, which, .. } = tables;
        let stepped = Stepped { rows: rows.in_groups(), shape: &thresholds.shape, firsts, which, tables: steps, next };
        self.level.kernels().encode_by_thresholds(&stepped, to)
    }

    /// Codes of a row, one in each byte.
    pub fn row_to_bytes(&self, row: &Rows<'_>, operands: &Operands, to: &mut [u8], buffers: &mut Buffers) {
        let stride = to.len();
        let codes = CodesMut { bytes: &mut *to, stride, streams: false };
        let done = self.in_one_loop(row, NextRows::default(), operands, 8, codes);
        self.rest_of_row(row, done, operands, Codes::Bytes(to), buffers);
    }

    /// Codes of a row from an element on.
    fn rest_of_row(&self, row: &Rows<'_>, done: usize, operands: &Operands, mut to: Codes<'_>, buffers: &mut Buffers) {
        let Rows { dtype, bytes: src, cols: n, block, .. } = *row;
        if let Codes::Packed(to) = &mut to
            && block < n
            && !block.is_multiple_of(8)
        {
            let mut codes = vec![0; n];
            self.rest_of_row(row, 0, operands, Codes::Bytes(&mut codes), buffers);
            self.element.pack_codes(&codes, to);
            return;
        }
        let Buffers { ratios, codes, scratch, .. } = buffers;
        // Encoders prefetch the bytes that follow their source; these are to stay in the first-level cache.
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
                    let src = &S::elements(src)[at..at + len];
                    match self.element.ratio_bytes() {
                        2 => self.ratios::<S, 2>(src, block, operands, at / block, ratios.as_chunks_mut().0),
                        _ => self.ratios::<S, 4>(src, block, operands, at / block, ratios.as_chunks_mut().0),
                    }
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

    /// Encodes whole groups of elements to codes of `bits` bits, without a pass through memory between quotients and
    /// codes. Returns the number of leading elements done in each row.
    fn in_one_loop(
        &self,
        rows: &Rows<'_>,
        next: NextRows<'_>,
        operands: &Operands,
        bits: usize,
        to: CodesMut<'_>,
    ) -> usize {
        let [t, u] = operands.pairs();
        self.element.encode_quotients(&Divided { rows: rows.in_groups(), how: operands.how, t, u, next }, bits, to)
    }

    /// Quotients of elements, of which the first begins the block `first`.
    fn ratios<S: Source, const N: usize>(
        &self,
        src: &[S::Element],
        block: usize,
        operands: &Operands,
        first: usize,
        ratios: &mut [[u8; N]],
    ) {
        let (level, [t, u]) = (self.level, operands.pairs().map(|all| &all[first..]));
        match operands.how {
            how::TIMES => level.run(Ratios::<S, { how::TIMES }, N> { src, block, t, u, ratios }),
            how::DIVIDE => level.run(Ratios::<S, { how::DIVIDE }, N> { src, block, t, u, ratios }),
            how::DIVIDE_ADD => level.run(Ratios::<S, { how::DIVIDE_ADD }, N> { src, block, t, u, ratios }),
            _ => level.run_with_fused_products(Ratios::<S, { how::RECIPROCAL }, N> { src, block, t, u, ratios }),
        }
    }
}

/// Inverses of divisors, and whether each may replace division.
struct Inverses<'a> {
    divisors: &'a [F32],
    /// The largest magnitude of any element.
    most: f32,
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
            all &= may_be_nearly_divided(s, self.most);
        }
        all
    }
}
