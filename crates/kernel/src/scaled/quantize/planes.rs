//! Codes with scales: the rows that share scales, some columns at a time.

use super::coder::{self, Coder, Operands};
use super::counts::{Block, BlockCounts, Counter, Fields, Scale};
use super::found::{Found, Widener};
use super::search::Search;
use super::source::{F32, Source, ZeroElements, by_source, is_source};
use crate::caches::Caches;
use crate::options::{CastOptions, Counting};
use crate::pipeline::{ArraySize, Stores};
use crate::scaled::cut::Cut;
use crate::scaled::rows::{CodesMut, NextRows, Rows};
use crate::scaled::values::Decoder;
use crate::stage::{Streaming, slot_bytes};
use crate::stream;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{self, Layout, Packing, Plane, Planes, Quantization, ScaledError, Zero};

/// Codes with scales, planned once.
#[derive(Debug)]
pub(super) struct PlanesQuantizer {
    pub planes: Planes,
    layout: Layout,
    how: Quantization,
    exec: CastOptions,
    coder: Coder,
    decoder: Decoder,
    counter: Option<Counter>,
}

/// A part that is written, and its place in the stored matrix.
pub(super) struct PartMut<'a> {
    pub cut: &'a Cut,
    pub bytes: &'a mut [u8],
}

/// The parts that are written.
pub(super) struct Parts<'a> {
    pub codes: PartMut<'a>,
    pub scales: PartMut<'a>,
    pub zeros: Option<PartMut<'a>>,
}

impl PlanesQuantizer {
    pub fn new(
        planes: Planes,
        layout: &Layout,
        how: &Quantization,
        exec: &CastOptions,
    ) -> Result<PlanesQuantizer, ScaledError> {
        let level = exec.level;
        // The definition says whether there is such a quantization at all.
        planes.quantize(how, 1.0f32.to_bits(), &[1.0f32.to_bits()])?;
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let (coder, decoder) = (Coder::new(&planes, how, level)?, Decoder::new(planes.codes.code, minus, level)?);
        coder.element.prepare(layout.elements());
        let counts = exec.counting == Counting::Full;
        let counter = counts.then(|| Counter::for_planes(&planes, level)).transpose()?;
        Ok(PlanesQuantizer { planes, layout: *layout, how: *how, exec: *exec, coder, decoder, counter })
    }

    /// Whether one scale serves a whole matrix, and depends only on its largest magnitude.
    pub fn has_one_scale(&self) -> bool {
        let [rows, cols] = self.planes.scales.block;
        let formula = self.how.search == scaled::Search::Formula && !matches!(self.planes.zero, Zero::Grid { .. });
        formula && rows > 1 && rows >= self.layout.rows && cols >= self.layout.cols
    }

    /// Quantizes rows of whole blocks of elements `src`. `amax` is the largest magnitude, if there is one scale.
    pub fn run(
        &self,
        widener: &Widener,
        rows: Range<u64>,
        src: &[u8],
        amax: f32,
        global: f32,
        mut parts: Parts<'_>,
    ) -> Result<BlockCounts, ScaledError> {
        self.fill_gaps(&mut parts);
        let (size, cols) = (slot_bytes(widener.src), self.layout.cols as usize);
        let block = usize::try_from(self.planes.scales.block[1]).unwrap_or(usize::MAX).min(cols);
        let caches = Caches::of_this_machine();
        let budget = (caches.l2 / 4) as usize;
        // Several rows of blocks are read in place where they come back from the last-level cache.
        let whole_rows = if self.how.search == scaled::Search::Formula { (caches.llc / 16) as usize } else { 0 };
        let matrix_amax = self.has_one_scale().then_some(amax);
        let rows_of_bytes = |bytes: usize| (bytes / (cols * size)).max(1) as u64;
        let joins = self.joins_rows(parts.zeros.is_some());
        let step = match self.planes.scales.block[0] {
            _ if matrix_amax.is_some() => rows_of_bytes(budget),
            1 if joins => rows_of_bytes(JOINED),
            rows => rows,
        };
        let code_bytes = parts.codes.bytes.len();
        let stores = Stores::new(
            &self.exec,
            ArraySize { element: size, total: src.len() },
            ArraySize { element: 1, total: code_bytes },
            Streaming::Itself,
        );
        // Codes whose nibbles change places, or that are counted, are read again.
        let is_read_again = self.planes.codes.packing == Packing::HighFirst || self.counter.is_some();
        let streams = stores.by_stage && !is_read_again;
        let buffers = Buffers { operands: Operands::with_global(global), ..Buffers::default() };
        let mut strip = Strip {
            quantizer: self,
            widener,
            matrix_amax,
            streams,
            parts,
            next: &[],
            is_ahead: false,
            buffers,
            counts: BlockCounts::default(),
        };
        let mut row = rows.start;
        while row < rows.end {
            let end = rows.end.min(row.saturating_add(step));
            let (first, n) = ((row - rows.start) as usize * cols, (end - row) as usize);
            let (all, src) = (&src[first * size..], &src[first * size..][..n * cols * size]);
            let (n, cols) = if joins { (1, n * cols) } else { (n, cols) };
            // A row alone stays in a cache by itself.
            let is_whole = n == 1 || n * cols * size <= whole_rows;
            let blocks = (budget / (n * size).saturating_mul(block)).max(1);
            let width = if is_whole { cols } else { blocks.saturating_mul(block).min(cols) };
            for col in (0..cols).step_by(width) {
                let bytes = &src[col * size..];
                let rows = Rows {
                    dtype: widener.src,
                    bytes,
                    stride: cols * size,
                    cols: width.min(cols - col),
                    n_rows: n,
                    block,
                };
                let next = if col + width < cols { col + width } else { n * cols };
                // The CPU itself prefetches the lines that follow whole rows.
                strip.next = if n > 1 && width == cols { &[] } else { &all[next * size..] };
                if !strip.columns([row, col as u64], &rows) {
                    // The first of all columns, if there is one.
                    widener.amax(self.how.nonfinite, src, first)?;
                    strip.columns_with_others([row, col as u64], &rows);
                }
            }
            row = end;
        }
        if streams {
            stream::fence();
        }
        Ok(strip.counts)
    }

    /// Whether rows may be taken as one long row: no block crosses rows, and results have no gaps.
    fn joins_rows(&self, has_zeros: bool) -> bool {
        let Planes { codes, scales, .. } = &self.planes;
        let (cols, bits) = (self.layout.cols, u64::from(codes.code.bits()));
        let whole = match codes.packing {
            Packing::Rows { .. } if codes.packing != Packing::BYTES => (cols * bits).is_multiple_of(32),
            Packing::Rows { .. } => (cols * bits).is_multiple_of(8),
            Packing::HighFirst => cols.is_multiple_of(2),
            _ => false,
        };
        let blocks = scales.block[0] == 1 && cols.is_multiple_of(scales.block[1].min(cols));
        blocks && whole && !has_zeros && scales.plane.packing == Packing::BYTES
    }

    /// Bits that belong to no entry are zero.
    fn fill_gaps(&self, parts: &mut Parts<'_>) {
        let Plane { code, packing } = self.planes.codes;
        if packing == Packing::WORDS {
            let bits = self.layout.cols * u64::from(code.bits());
            let (used, all) = (bits.div_ceil(8) as usize, bits.div_ceil(32) as usize * 4);
            if used != all {
                parts.codes.bytes.chunks_mut(all).for_each(|row| row[used..].fill(0));
            }
        }
        if self.planes.scales.plane.packing != Packing::BYTES {
            parts.scales.bytes.fill(0);
        }
        if let Some(zeros) = &mut parts.zeros {
            zeros.bytes.fill(0);
        }
    }
}

/// Bytes of rows that are taken as one.
const JOINED: usize = 64 << 10;

/// Buffers of one run.
#[derive(Debug, Default)]
struct Buffers {
    /// Some columns of rows, without gaps: rows that are a power of two apart share few sets of a cache.
    copy: Vec<u8>,
    found: Found,
    operands: Operands,
    coder: coder::Buffers,
    /// Effective scale of each block; used only for counting.
    multipliers: Vec<F32>,
}

/// One run over rows, some columns at a time.
struct Strip<'a> {
    quantizer: &'a PlanesQuantizer,
    widener: &'a Widener,
    /// The largest magnitude of a matrix that has one scale.
    matrix_amax: Option<f32>,
    /// Codes go past the caches.
    streams: bool,
    parts: Parts<'a>,
    /// From the first element of the columns that are taken next.
    next: &'a [u8],
    /// The columns that are next were prefetched.
    is_ahead: bool,
    buffers: Buffers,
    counts: BlockCounts,
}

impl Strip<'_> {
    /// Quantizes some columns from the start of a block. False, with nothing done, if an element is not finite.
    fn columns(&mut self, at: [u64; 2], rows: &Rows<'_>) -> bool {
        let (mut copy, level) = (std::mem::take(&mut self.buffers.copy), self.quantizer.exec.level);
        let has_gaps = rows.n_rows > 1 && rows.stride > rows.row(0).len();
        let ahead = if self.is_ahead || (rows.n_rows > 1 && !has_gaps) { 0 } else { rows.stride };
        let Buffers { found, coder, .. } = &mut self.buffers;
        let original = *rows;
        let wide;
        let rows = if rows.n_rows > 1 && is_source(rows.dtype) && self.parts.zeros.is_none() {
            found.look_at_rows(level, rows, ahead, has_gaps.then_some(&mut copy))
        } else {
            let rows = if is_source(rows.dtype) {
                *rows
            } else {
                wide = self.widener.all(rows, &mut coder.scratch);
                Rows { dtype: DType::F32, bytes: &wide, stride: 4 * rows.cols, ..*rows }
            };
            let ahead = if rows.n_rows > 1 { 0 } else { ahead };
            found.look(level, &rows, ahead, self.parts.zeros.is_some());
            rows
        };
        let finite = found.is_finite();
        if finite {
            self.quantize(at, &rows);
            self.count(at, if is_source(original.dtype) { &rows } else { &original }, true);
        }
        self.buffers.copy = copy;
        finite
    }

    /// The same with elements that are not finite: the finite ones make the scales, and NaN is zero (§3.6).
    fn columns_with_others(&mut self, at: [u64; 2], rows: &Rows<'_>) {
        let mut x = self.widener.all(rows, &mut self.buffers.coder.scratch);
        self.widener.to_zero(false, &mut x);
        let mut finite = x.clone();
        self.widener.to_zero(true, &mut finite);
        let wide = |bytes| Rows { dtype: DType::F32, bytes, stride: 4 * rows.cols, ..*rows };
        self.buffers.found.look(self.quantizer.exec.level, &wide(&finite), 0, self.parts.zeros.is_some());
        self.quantize(at, &wide(&x));
        self.count(at, rows, false);
    }

    /// Makes the parts of columns in which [`Found`] was found.
    fn quantize(&mut self, [row, col]: [u64; 2], rows: &Rows<'_>) {
        let PlanesQuantizer { planes, coder, decoder, how, layout, exec, .. } = self.quantizer;
        let Buffers { found, operands, coder: buffers, .. } = &mut self.buffers;
        if let Some(amax) = self.matrix_amax {
            found.largest[0] = amax.to_bits();
        }
        coder.scaler.scales(found, operands.global, &mut operands.stored, &mut buffers.scales);
        let PartMut { cut, bytes } = &mut self.parts.codes;
        let packed = coder.element.bytes(rows.cols);
        let place = |i: usize| cut.byte_of([row + i as u64, col]);
        if how.search == scaled::Search::Mse {
            let x = self.widener.all(rows, &mut buffers.scratch);
            coder.complete(rows.dtype, found, operands, &mut buffers.scales);
            let rows = Rows { dtype: DType::F32, bytes: &x, stride: 4 * rows.cols, ..*rows };
            let search = Search { level: exec.level, coder, decoder, planes, how, rows, found };
            for (i, codes) in search.run(operands, buffers).chunks(rows.cols).enumerate() {
                coder.element.pack_codes(codes, &mut bytes[place(i)..][..packed]);
            }
        } else {
            let stride = if rows.n_rows > 1 { place(1) - place(0) } else { packed };
            let bytes = &mut bytes[place(0)..][..(rows.n_rows - 1) * stride + packed];
            let to = CodesMut { bytes, stride, streams: self.streams };
            let next = NextRows { bytes: self.next, stride: layout.cols as usize * slot_bytes(self.widener.src) };
            self.is_ahead = coder.rows(rows, next, found, operands, to, buffers);
        }
        self.store_scales([row / planes.scales.block[0], col / planes.scales.block[1]]);
    }

    /// Counts columns whose parts are made.
    fn count(&mut self, at: [u64; 2], rows: &Rows<'_>, is_finite: bool) {
        let Some(counter) = &self.quantizer.counter else { return };
        match rows.dtype {
            DType::F64 => {
                let x = rows.bytes.as_chunks().0;
                self.counts.needs_values = true;
                self.count_blocks(counter, at, rows, is_finite, |i| f64::from_le_bytes(x[i]), |_, _| true);
            }
            dtype => by_source!(dtype, S => {
                let x = S::elements(rows.bytes);
                let above = |at: Range<usize>, limit| S::any_above(&x[at], limit);
                let row_elements = rows.stride / slot_bytes(dtype);
                let level = self.quantizer.exec.level;
                let zeros = |i: usize| level.run(ZeroElements::<S> { x: &x[i * row_elements..][..rows.cols] });
                self.counts.zero_in += (0..rows.n_rows).map(zeros).sum::<u64>();
                self.count_blocks(counter, at, rows, is_finite, |i| S::value(x[i]).into(), above);
            }),
        }
    }

    /// The same with a function that gives the element at an index, and one that looks quickly at a range of them.
    fn count_blocks(
        &mut self,
        counter: &Counter,
        [row, col]: [u64; 2],
        rows: &Rows<'_>,
        is_finite: bool,
        x: impl Fn(usize) -> f64,
        above: impl Fn(Range<usize>, f32) -> bool,
    ) {
        let PlanesQuantizer { planes, coder, layout, .. } = self.quantizer;
        let Buffers { found, operands, coder: buffers, multipliers, .. } = &mut self.buffers;
        let (PartMut { cut, bytes }, counts) = (&self.parts.codes, &mut self.counts);
        let (packed, first) = (coder.element.bytes(rows.cols), cut.byte_of([row, col]));
        let stride = if rows.n_rows > 1 { cut.byte_of([row + 1, col]) - first } else { packed };
        for i in 0..rows.n_rows {
            counter.small_codes(planes.codes, &bytes[first + i * stride..][..packed], rows.cols, counts);
        }
        coder.scaler.multipliers(&operands.stored, operands.global, multipliers, &mut buffers.scales);
        let has_zero_points = matches!(planes.zero, Zero::Grid { .. });
        counts.needs_values |= !is_finite || has_zero_points || layout.kept != [layout.rows, layout.cols];
        let (zeros, half) = (operands.zeros(), coder.element.half());
        let fields = Fields::new(planes.codes);
        let code = |row: usize, col: usize| fields.get(&bytes[first + row * stride..], col);
        let row_elements = rows.stride / slot_bytes(rows.dtype);
        let x = |row: usize, col: usize| x(row * row_elements + col);
        let above = |row: usize, cols: Range<usize>, limit: f32| {
            above(row * row_elements + cols.start..row * row_elements + cols.end, limit)
        };
        for (i, stored) in operands.stored.chunks_exact(coder.scaler.size()).enumerate() {
            // Joined rows are one after the other.
            let at = col + (i * rows.block) as u64;
            let (block_row, block_col) = (row + at / layout.cols, at % layout.cols);
            if block_row >= layout.kept[0] || block_col >= layout.kept[1] {
                continue;
            }
            let value = f32::from_le_bytes(multipliers[i]);
            counts.needs_values |= !counter.is_usual(value);
            let first = i * rows.block;
            let len = rows.block.min(rows.cols - first).min((layout.kept[1] - block_col) as usize);
            let largest = if self.matrix_amax.is_some() { found.most } else { found.largest[i] };
            let block = Block {
                rows: 0..rows.n_rows.min((layout.kept[0] - block_row) as usize),
                cols: first..first + len,
                x: &x,
                code: &code,
                scale: Scale { stored, value },
                minus: zeros.get(i).map_or(0.0, |zero| f32::from_le_bytes(*zero) + half),
                largest: if is_finite { f32::from_bits(largest) } else { f32::NAN },
                above: Some(&above),
            };
            match self.matrix_amax {
                None => counter.block(&block, counts),
                Some(_) => counter.rows_of_block(&block, row == 0, counts),
            }
        }
    }

    /// Writes scales and zero points of blocks that follow each other in a row of the grid.
    fn store_scales(&mut self, [row, first]: [u64; 2]) {
        let PlanesQuantizer { planes, coder, .. } = self.quantizer;
        let operands = &self.buffers.operands;
        let (stored, size) = (&operands.stored, coder.scaler.size());
        // Entries that follow each other where they are stored.
        let together = match planes.scales.plane.packing {
            Packing::Rows { .. } => stored.len(),
            Packing::Swizzled if first.is_multiple_of(4) => 4,
            _ => size,
        };
        let PartMut { cut, bytes } = &mut self.parts.scales;
        for (i, scales) in stored.chunks(together).enumerate() {
            let at = cut.byte_of([row, first + (i * together / size) as u64]);
            bytes[at..at + scales.len()].copy_from_slice(scales);
        }
        if let Some(PartMut { cut, bytes }) = &mut self.parts.zeros {
            let half = coder.element.half();
            for (i, zero) in operands.zeros().iter().enumerate() {
                let stored = (f32::from_le_bytes(*zero) + half) as i32 as u64;
                cut.set([row, first + i as u64], bytes, stored);
            }
        }
    }
}
