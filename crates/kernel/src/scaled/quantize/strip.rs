//! The rows of a row of the grid, some columns at a time: what is found in them, scales, codes.

use super::coder::{Coder, Operands, Room};
use super::counts::{Block, BlockCounts, Counter, Fields};
use super::rows::{Found, Rows, Widener};
use super::search::Search;
use super::source::{F32, Source, ZeroElements, by_source, is_source};
use crate::caches::Caches;
use crate::options::{CastOptions, Counting};
use crate::pipeline::Stores;
use crate::scaled::cut::Cut;
use crate::scaled::values::Decoder;
use crate::stage::{Streaming, slot_bytes};
use crate::stream;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{self, Layout, Packing, Plane, Planes, Quantization, ScaledError, Zero};

/// Codes with scales, planned once.
#[derive(Debug)]
pub(super) struct OfPlanes {
    pub planes: Planes,
    layout: Layout,
    how: Quantization,
    exec: CastOptions,
    coder: Coder,
    decoder: Decoder,
    counter: Option<Counter>,
}

/// Parts that are written, where they lie.
pub(super) struct Parts<'a> {
    pub codes: (&'a Cut, &'a mut [u8]),
    pub scales: (&'a Cut, &'a mut [u8]),
    pub zeros: Option<(&'a Cut, &'a mut [u8])>,
}

impl OfPlanes {
    pub fn new(
        planes: Planes,
        layout: &Layout,
        how: &Quantization,
        exec: &CastOptions,
    ) -> Result<OfPlanes, ScaledError> {
        let level = exec.level;
        // The definition says whether there is such a quantization at all.
        planes.quantize(how, 1.0f32.to_bits(), &[1.0f32.to_bits()])?;
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let (coder, decoder) = (Coder::new(&planes, how, level)?, Decoder::new(planes.codes.code, minus, level)?);
        coder.element.prepare(layout.elements());
        let counts = exec.counting == Counting::Full;
        let counter = counts.then(|| Counter::of_planes(&planes, level)).transpose()?;
        Ok(OfPlanes { planes, layout: *layout, how: *how, exec: *exec, coder, decoder, counter })
    }

    /// One scale serves a whole matrix, and depends on nothing but its largest magnitude.
    pub fn has_one_scale(&self) -> bool {
        let [rows, cols] = self.planes.scales.block;
        let formula = self.how.search == scaled::Search::Formula && !matches!(self.planes.zero, Zero::Grid { .. });
        formula && rows > 1 && rows >= self.layout.rows && cols >= self.layout.cols
    }

    /// Quantizes rows of whole blocks, whose elements are `src`. `amax` is the largest magnitude, where there is one scale;
    /// `global` the global scale.
    pub fn run(
        &self,
        widener: &Widener,
        (rows, src): (Range<u64>, &[u8]),
        (amax, global): (f32, f32),
        mut parts: Parts<'_>,
    ) -> Result<BlockCounts, ScaledError> {
        self.fill_gaps(&mut parts);
        let (size, cols) = (slot_bytes(widener.src), self.layout.cols as usize);
        let block = usize::try_from(self.planes.scales.block[1]).unwrap_or(usize::MAX).min(cols);
        let caches = Caches::of_this_machine();
        let budget = (caches.l2 / 4) as usize;
        // Several rows of blocks are read as they lie where they come back from the last-level cache.
        let of_whole_rows = if self.how.search == scaled::Search::Formula { (caches.llc / 16) as usize } else { 0 };
        let amax = self.has_one_scale().then_some(amax);
        let at_once = |bytes: usize| (bytes / (cols * size)).max(1) as u64;
        let joins = self.joins_rows(parts.zeros.is_some());
        let step = match self.planes.scales.block[0] {
            _ if amax.is_some() => at_once(budget),
            1 if joins => at_once(JOINED),
            rows => rows,
        };
        let codes = parts.codes.1.len();
        let stores = Stores::of(&self.exec, (size, src.len()), (1, codes), Streaming::Itself);
        // Codes whose nibbles change places, or that are counted, are read again.
        let is_read_again = self.planes.codes.packing == Packing::HighFirst || self.counter.is_some();
        let streams = stores.by_stage && !is_read_again;
        let mut strip = Strip {
            of: self,
            widener,
            amax,
            global,
            streams,
            parts,
            next: &[],
            is_ahead: false,
            copy: Vec::new(),
            found: Found::default(),
            operands: Operands::default(),
            room: Room::default(),
            multipliers: Vec::new(),
            counts: BlockCounts::default(),
        };
        let mut row = rows.start;
        while row < rows.end {
            let end = rows.end.min(row.saturating_add(step));
            let (first, n) = ((row - rows.start) as usize * cols, (end - row) as usize);
            let (all, src) = (&src[first * size..], &src[first * size..][..n * cols * size]);
            let (n, cols) = if joins { (1, n * cols) } else { (n, cols) };
            // A row alone stays in a cache by itself.
            let is_whole = n == 1 || n * cols * size <= of_whole_rows;
            let blocks = (budget / (n * size).saturating_mul(block)).max(1);
            let width = if is_whole { cols } else { blocks.saturating_mul(block).min(cols) };
            for col in (0..cols).step_by(width) {
                let (bytes, of_strip) = (&src[col * size..], width.min(cols - col));
                let rows = Rows { dtype: widener.src, bytes, stride: cols * size, cols: of_strip, rows: n };
                let next = if col + width < cols { col + width } else { n * cols };
                // Of rows as they lie the CPU asks for the next lines itself.
                strip.next = if n > 1 && width == cols { &[] } else { &all[next * size..] };
                if !strip.columns([row, col as u64], &rows, block) {
                    // The first of all columns, if there is one.
                    widener.amax(self.how.nonfinite, src, first)?;
                    strip.columns_with_others([row, col as u64], &rows, block);
                }
            }
            row = end;
        }
        if streams {
            stream::fence();
        }
        Ok(strip.counts)
    }

    /// Whether rows are as good as one long row: blocks are of a row each, and what is written of rows lies without gaps.
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
                parts.codes.1.chunks_mut(all).for_each(|row| row[used..].fill(0));
            }
        }
        if self.planes.scales.plane.packing != Packing::BYTES {
            parts.scales.1.fill(0);
        }
        if let Some((_, zeros)) = &mut parts.zeros {
            zeros.fill(0);
        }
    }
}

/// Bytes of rows that are taken as one.
const JOINED: usize = 64 << 10;

/// One run over rows.
struct Strip<'a> {
    of: &'a OfPlanes,
    widener: &'a Widener,
    /// The largest magnitude of a matrix that has one scale.
    amax: Option<f32>,
    global: f32,
    /// Codes go past the caches.
    streams: bool,
    parts: Parts<'a>,
    /// From the first element of the columns that are taken next.
    next: &'a [u8],
    /// Encoding asked for the columns that are next.
    is_ahead: bool,
    /// Some columns of rows, without gaps: rows that are a power of two apart share few sets of a cache.
    copy: Vec<u8>,
    found: Found,
    operands: Operands,
    room: Room,
    /// What codes of blocks are multiplied by, for those who count.
    multipliers: Vec<F32>,
    counts: BlockCounts,
}

impl Strip<'_> {
    /// Quantizes some columns, the first of which begins a block. False, and nothing is done, if an element is not finite.
    fn columns(&mut self, at: [u64; 2], rows: &Rows<'_>, block: usize) -> bool {
        let (mut copy, level) = (std::mem::take(&mut self.copy), self.of.exec.level);
        let has_gaps = rows.rows > 1 && rows.stride > rows.row(0).len();
        let ahead = if self.is_ahead || (rows.rows > 1 && !has_gaps) { 0 } else { rows.stride };
        let original = *rows;
        let wide;
        let rows = if rows.rows > 1 && is_source(rows.dtype) && self.parts.zeros.is_none() {
            self.found.look_at_rows(level, rows, (block, ahead), has_gaps.then_some(&mut copy))
        } else {
            let rows = if is_source(rows.dtype) {
                *rows
            } else {
                wide = self.widener.all(rows, &mut self.room.scratch);
                Rows { dtype: DType::F32, bytes: &wide, stride: 4 * rows.cols, ..*rows }
            };
            let ahead = if rows.rows > 1 { 0 } else { ahead };
            self.found.look(level, &rows, (block, ahead), self.parts.zeros.is_some());
            rows
        };
        let finite = self.found.is_finite();
        if finite {
            self.quantize(at, &rows, block);
            self.count(at, if is_source(original.dtype) { &rows } else { &original }, block, true);
        }
        self.copy = copy;
        finite
    }

    /// The same with elements that are not finite: scales are those of the others, and NaN is zero (§3.6).
    fn columns_with_others(&mut self, at: [u64; 2], rows: &Rows<'_>, block: usize) {
        let mut x = self.widener.all(rows, &mut self.room.scratch);
        self.widener.to_zero(false, &mut x);
        let mut finite = x.clone();
        self.widener.to_zero(true, &mut finite);
        let wide = |bytes| Rows { dtype: DType::F32, bytes, stride: 4 * rows.cols, ..*rows };
        self.found.look(self.of.exec.level, &wide(&finite), (block, 0), self.parts.zeros.is_some());
        self.quantize(at, &wide(&x), block);
        self.count(at, rows, block, false);
    }

    /// Makes the parts of columns in which [`Found`] was found.
    fn quantize(&mut self, [row, col]: [u64; 2], rows: &Rows<'_>, block: usize) {
        let OfPlanes { planes, coder, decoder, how, .. } = self.of;
        let seen = self.found.most;
        if let Some(amax) = self.amax {
            self.found.largest[0] = amax.to_bits();
        }
        let (found, operands, room) = (&self.found, &mut self.operands, &mut self.room);
        coder.scaler.scales(found, self.global, &mut operands.stored, &mut room.scales);
        let next = (self.next, self.of.layout.cols as usize * slot_bytes(self.widener.src));
        let (cut, bytes) = (self.parts.codes.0, &mut *self.parts.codes.1);
        let packed = coder.element.bytes(rows.cols);
        let place = |i: usize| cut.byte_of([row + i as u64, col]);
        if how.search == scaled::Search::Mse {
            let x = self.widener.all(rows, &mut room.scratch);
            coder.complete((rows.dtype, found, seen), self.global, operands, room);
            let search = Search {
                level: self.of.exec.level,
                coder,
                decoder,
                planes,
                how,
                x: &x,
                cols: rows.cols,
                block,
                found,
                seen,
                global: self.global,
            };
            for (i, codes) in search.run(operands, room).chunks(rows.cols).enumerate() {
                coder.element.pack_codes(codes, &mut bytes[place(i)..][..packed]);
            }
        } else {
            let stride = if rows.rows > 1 { place(1) - place(0) } else { packed };
            let to = &mut bytes[place(0)..][..(rows.rows - 1) * stride + packed];
            self.is_ahead =
                coder.rows(rows, (block, next), (found, seen, self.global), operands, (to, stride, self.streams), room);
        }
        self.store_scales([row / planes.scales.block[0], col / planes.scales.block[1]]);
    }

    /// Counts columns whose parts are made.
    fn count(&mut self, at: [u64; 2], rows: &Rows<'_>, block: usize, is_finite: bool) {
        let Some(counter) = &self.of.counter else { return };
        let known = (counter, is_finite);
        match rows.dtype {
            DType::F64 => {
                let x = rows.bytes.as_chunks().0;
                self.counts.needs_values = true;
                self.count_blocks(at, rows, block, known, |i| f64::from_le_bytes(x[i]), |_, _| true);
            }
            dtype => by_source!(dtype, S => {
                let x = S::elements(rows.bytes);
                let above = |at: Range<usize>, limit| S::any_above(&x[at], limit);
                let of_row = rows.stride / slot_bytes(dtype);
                let rows_of = |i: usize| &x[i * of_row..][..rows.cols];
                let level = self.of.exec.level;
                let zeros = |i: usize| level.run(ZeroElements::<S> { x: rows_of(i) });
                self.counts.zero_in += (0..rows.rows).map(zeros).sum::<u64>();
                self.count_blocks(at, rows, block, known, |i| S::value(x[i]).into(), above);
            }),
        }
    }

    /// The same with what gives the element at an index, and looks quickly at a range of them.
    fn count_blocks(
        &mut self,
        [row, col]: [u64; 2],
        rows: &Rows<'_>,
        block: usize,
        (counter, is_finite): (&Counter, bool),
        x: impl Fn(usize) -> f64,
        above: impl Fn(Range<usize>, f32) -> bool,
    ) {
        let OfPlanes { planes, coder, layout, .. } = self.of;
        let (cut, bytes, counts) = (self.parts.codes.0, &*self.parts.codes.1, &mut self.counts);
        let (packed, first) = (coder.element.bytes(rows.cols), cut.byte_of([row, col]));
        let stride = if rows.rows > 1 { cut.byte_of([row + 1, col]) - first } else { packed };
        for i in 0..rows.rows {
            counter.small_codes(planes.codes, &bytes[first + i * stride..][..packed], rows.cols, counts);
        }
        let stored = &self.operands.stored;
        coder.scaler.multipliers(stored, self.global, &mut self.multipliers, &mut self.room.scales);
        let has_zero_points = matches!(planes.zero, Zero::Grid { .. });
        counts.needs_values |= !is_finite || has_zero_points || layout.kept != [layout.rows, layout.cols];
        let (zeros, half) = (self.operands.zeros(), coder.element.half());
        let fields = Fields::of(planes.codes);
        let code = |row: usize, col: usize| fields.get(&bytes[first + row * stride..], col);
        let of_row = rows.stride / slot_bytes(rows.dtype);
        let x = |row: usize, col: usize| x(row * of_row + col);
        let above = |row: usize, cols: Range<usize>, limit: f32| {
            above(row * of_row + cols.start..row * of_row + cols.end, limit)
        };
        for (i, scale) in stored.chunks_exact(coder.scaler.size()).enumerate() {
            // Joined rows are one after the other.
            let at = col + (i * block) as u64;
            let (of_row, of_col) = (row + at / layout.cols, at % layout.cols);
            if of_row >= layout.kept[0] || of_col >= layout.kept[1] {
                continue;
            }
            counts.needs_values |= !counter.is_usual(f32::from_le_bytes(self.multipliers[i]));
            let len = block.min(rows.cols - i * block).min((layout.kept[1] - of_col) as usize);
            let largest = if self.amax.is_some() { self.found.most } else { self.found.largest[i] };
            let block = Block {
                rows: 0..rows.rows.min((layout.kept[0] - of_row) as usize),
                cols: i * block..i * block + len,
                x: &x,
                code: &code,
                scale: (scale, f32::from_le_bytes(self.multipliers[i])),
                minus: zeros.get(i).map_or(0.0, |zero| f32::from_le_bytes(*zero) + half),
                largest: if is_finite { f32::from_bits(largest) } else { f32::NAN },
                above: Some(&above),
            };
            match self.amax {
                None => counter.block(&block, counts),
                Some(_) => counter.rows_of_block(&block, row == 0, counts),
            }
        }
    }

    /// Writes scales and zero points of blocks that follow each other in a row of the grid.
    fn store_scales(&mut self, [row, first]: [u64; 2]) {
        let OfPlanes { planes, coder, .. } = self.of;
        let (cut, bytes) = (self.parts.scales.0, &mut *self.parts.scales.1);
        let (stored, size) = (&self.operands.stored, coder.scaler.size());
        // Entries that follow each other where they are stored.
        let together = match planes.scales.plane.packing {
            Packing::Rows { .. } => stored.len(),
            Packing::Swizzled if first.is_multiple_of(4) => 4,
            _ => size,
        };
        for (i, scales) in stored.chunks(together).enumerate() {
            let at = cut.byte_of([row, first + (i * together / size) as u64]);
            bytes[at..at + scales.len()].copy_from_slice(scales);
        }
        if let Some((cut, bytes)) = &mut self.parts.zeros {
            let half = coder.element.half();
            for (i, zero) in self.operands.zeros().iter().enumerate() {
                let stored = (f32::from_le_bytes(*zero) + half) as i32 as u64;
                cut.set([row, first + i as u64], bytes, stored);
            }
        }
    }
}
