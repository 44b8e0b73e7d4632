//! Computation of a window, row by row, by lookups or by arithmetic.

use super::plan::{Coded, LONG_BLOCK, Lookup, Plan};
use super::source::Source;
use super::tables::Tables;
use super::transposed::{self, COLUMNS, STRIP, Strip};
use crate::environment;
use crate::pipeline::{ArraySize, Stores};
use crate::scaled::ahead::look_ahead;
use crate::scaled::blocks::BlockRow;
use crate::scaled::cut::{Cuts, Stored, Window};
use crate::scaled::grid::Want;
use crate::scaled::lookup::{self, Codes};
use crate::scaled::products::Blocks;
use crate::scaled::unpack;
use crate::scaled::values::{Buffers, Exact, Operands, TILE, spread};
use crate::stage::Streaming;
use crate::stream;
use std::ops::Range;
use truecast_core::scaled::{Packing, Parts, ScaledError};

/// Makes the elements of a window; `parts` and `dst` are those that it needs.
pub(super) fn dequantize(
    plan: &Plan,
    window: &Window,
    parts: &Parts<'_>,
    dst: &mut [u8],
    want: Want,
) -> Result<(), ScaledError> {
    let dst_bytes = if want == Want::Exact { 8 } else { plan.values.dst_bytes };
    let cuts = plan.cuts(window);
    for (part, cut) in cuts.iter() {
        let (expected, got) = (cut.bytes(), parts.get(part).len() as u64);
        if expected != got {
            return Err(ScaledError::Size { part, expected, got });
        }
    }
    let expected = (window.elements.end - window.elements.start) * dst_bytes as u64;
    if dst.len() as u64 != expected {
        return Err(ScaledError::Results { expected, got: dst.len() as u64 });
    }
    if dst.is_empty() {
        return Ok(());
    }
    let codes = ArraySize { element: 1, total: parts.codes.len() };
    let results = ArraySize { element: plan.values.dst_bytes, total: dst.len() };
    let stores = Stores::new(&plan.exec, codes, results, Streaming::ByWidth);
    let streams = stores.by_tile && want == Want::Results;
    environment::default(|| {
        let job = Job { plan, window, cuts: &cuts, parts, want, dst_bytes, streams };
        let done = if plan.layout.transposed { job.transposed(dst) } else { job.rows(dst) };
        if streams {
            stream::fence();
        }
        done
    })
}

/// Distance in rows of the prefetch in a strip.
const ROWS_AHEAD: u64 = 8;

/// Maximum number of rows computed at once.
const TOGETHER: usize = 4;

#[derive(Clone, Copy)]
struct Job<'a> {
    plan: &'a Plan,
    window: &'a Window,
    cuts: &'a Cuts,
    parts: &'a Parts<'a>,
    want: Want,
    dst_bytes: usize,
    streams: bool,
}

impl<'a> Job<'a> {
    fn begin(self, cols: Range<u64>) -> Result<RowRun<'a>, ScaledError> {
        let Job { plan, cuts, parts, want, .. } = self;
        let stored = Stored { cut: &cuts.codes, bytes: parts.codes };
        let (source, factor) = match &plan.coded {
            Coded::Planes(_, grid) => {
                let by_scale = plan.lookup == Lookup::Table16ByScale && want == Want::Results;
                let of_row = if by_scale { Want::Codes } else { want };
                (Source::Grid(Box::new(grid.row(cuts, parts, grid.columns(&cols), of_row)?)), None)
            }
            Coded::Blocks { block, factor } => {
                let row = BlockRow::new(plan.exec.level, *block, stored, cols.clone());
                let of_tensor = parts.global.first_chunk().map(|bytes| f32::from_le_bytes(*bytes));
                (Source::Blocks(row), of_tensor.filter(|_| *factor))
            }
        };
        Ok(RowRun {
            job: self,
            codes: stored,
            source,
            factor,
            cols,
            made: None,
            tables: Tables::default(),
            columns: Columns::default(),
            unpacked: Vec::new(),
            values: vec![0; TILE * 4],
            tile: vec![0; TILE * plan.values.dst_bytes],
            buffers: Buffers::default(),
        })
    }

    fn rows(self, dst: &mut [u8]) -> Result<(), ScaledError> {
        let bytes = self.dst_bytes;
        let Window { rows, cols, .. } = self.window;
        let all = self.plan.columns(self.window);
        let row_bytes = (cols.end - cols.start) as usize * bytes;
        let wide = (all.end - all.start) as usize * bytes;
        let skipped = (cols.start - all.start) as usize * bytes;
        let is_whole = wide == row_bytes;
        let mut run = Job { streams: self.streams && is_whole, ..self }.begin(all)?;
        let mut whole = if is_whole { Vec::new() } else { vec![0; wide] };
        let mut row = rows.start;
        for dst in dst.chunks_mut(row_bytes * if is_whole { TOGETHER } else { 1 }) {
            if !is_whole {
                run.rows(row..row + 1, &mut whole)?;
                dst.copy_from_slice(&whole[skipped..][..row_bytes]);
                row += 1;
                continue;
            }
            let (end, mut rest) = (row + (dst.len() / row_bytes) as u64, dst);
            while row < end {
                let next = self.plan.rows_with_tables(row, end);
                let (now, after) = rest.split_at_mut((next - row) as usize * row_bytes);
                run.rows(row..next, now)?;
                (row, rest) = (next, after);
            }
        }
        Ok(())
    }

    /// Computes strips of rows, some columns at a time, and transposes the strips.
    fn transposed(self, dst: &mut [u8]) -> Result<(), ScaledError> {
        let bytes = self.dst_bytes;
        let Window { rows, cols, .. } = self.window;
        let (all, align) = (self.plan.columns(self.window), self.plan.column_align);
        let n_rows = (rows.end - rows.start) as usize;
        let mut buffers = transposed::ByteColumns::default();
        let mut strip = Vec::new();
        for first in all.clone().step_by(((COLUMNS / align).max(1) * align) as usize) {
            let tile = first..(first + (COLUMNS / align).max(1) * align).min(all.end);
            let inside = tile.start.max(cols.start)..tile.end.min(cols.end);
            if inside.is_empty() {
                continue;
            }
            let wide = (tile.end - tile.start) as usize * bytes;
            let mut run = Job { streams: false, ..self }.begin(tile)?;
            for first_row in (0..n_rows).step_by(STRIP) {
                let n = STRIP.min(n_rows - first_row);
                strip.resize(n * wide, 0);
                for (i, made) in strip.chunks_mut(wide).enumerate() {
                    let row = rows.start + (first_row + i) as u64;
                    run.prefetch_row(row + ROWS_AHEAD);
                    run.rows(row..row + 1, made)?;
                }
                let strip = Strip {
                    rows: &strip,
                    wide,
                    skipped: (inside.start - first) as usize,
                    n_cols: (inside.end - inside.start) as usize,
                    n_rows,
                    first: [first_row, (inside.start - cols.start) as usize],
                    streams: self.streams,
                };
                transposed::transpose(self.plan.exec.level, bytes, &strip, &mut buffers, dst);
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Columns {
    scales: Vec<u8>,
    zeros: Vec<u8>,
    biases: Vec<u8>,
    globals: Vec<u8>,
}

/// Rows of a window, restricted to the columns `cols`.
struct RowRun<'a> {
    job: Job<'a>,
    codes: Stored<'a>,
    source: Source<'a>,
    /// Multiplier of the values: the global scale of GGUF's NVFP4.
    factor: Option<f32>,
    cols: Range<u64>,
    /// Grid row for which the tables and the operands of columns were made.
    made: Option<u64>,
    tables: Tables,
    columns: Columns,
    /// Codes of a row or tile, one per byte.
    unpacked: Vec<u8>,
    values: Vec<u8>,
    tile: Vec<u8>,
    buffers: Buffers,
}

impl RowRun<'_> {
    fn n_cols(&self) -> usize {
        (self.cols.end - self.cols.start) as usize
    }

    /// Prefetches the codes of a row, because rows of codes are a page or more apart.
    fn prefetch_row(&self, row: u64) {
        let Stored { cut, bytes } = self.codes;
        if row >= self.job.window.rows.end || cut.plane.packing == Packing::Swizzled {
            return;
        }
        let [first, last] = [self.cols.start, self.cols.end - 1].map(|col| cut.byte_of([row, col]));
        look_ahead(&bytes[first..=last], 0);
    }

    /// Computes a stored row, or several rows with the same tables ([`Plan::rows_with_tables`]).
    fn rows(&mut self, rows: Range<u64>, dst: &mut [u8]) -> Result<(), ScaledError> {
        let row = rows.start;
        let version = match &mut self.source {
            Source::Grid(grid) => {
                grid.go_to(row);
                grid.version()
            }
            Source::Blocks(blocks) => {
                let gone = blocks.go_to(row);
                gone.map_err(|(col, scale)| ScaledError::Scale { index: self.index(row, col), scale })?;
                row
            }
        };
        let fresh = self.made != Some(version);
        self.made = Some(version);
        let RowRun { job: Job { plan, want, .. }, tables, source, buffers, .. } = self;
        match plan.lookup {
            _ if *want == Want::Exact => self.by_operations(row, fresh, dst),
            Lookup::Arithmetic => match self.by_loop(row, dst) {
                None => self.by_operations(row, fresh, dst),
                Some(done) => done,
            },
            Lookup::Table16 => {
                if fresh {
                    tables.make_tables16(plan, source, self.factor, buffers);
                }
                self.by_lookup16(row, dst)
            }
            Lookup::Table16ByScale => {
                tables.make_by_scale(plan, source, buffers);
                self.by_lookup16(row, dst)
            }
            Lookup::Table256 => {
                if fresh {
                    tables.make_tables256(plan, source, buffers);
                }
                let row_bytes = dst.len() / (rows.end - rows.start) as usize;
                self.by_lookup256(rows, dst, row_bytes)
            }
        }
    }

    /// Unpacks `n` codes of a row from column `first`, and checks for excluded codes.
    fn unpack(&mut self, row: u64, first: u64, n: usize) -> Result<(), ScaledError> {
        self.unpacked.resize(n, 0);
        if let Source::Blocks(row) = &self.source {
            let at = (first - self.cols.start) as usize;
            self.unpacked.copy_from_slice(&row.codes[at..at + n]);
            return Ok(());
        }
        let Stored { cut, bytes } = self.codes;
        let plan = self.job.plan;
        unpack::row(plan.exec.level, cut, bytes, row, first, &mut self.unpacked);
        let Coded::Planes(planes, _) = &plan.coded else { return Ok(()) };
        let Some(refused) = planes.refused else { return Ok(()) };
        match self.unpacked.iter().position(|code| u64::from(*code) == refused) {
            None => Ok(()),
            Some(at) => Err(ScaledError::Code { index: self.index(row, first + at as u64), code: refused }),
        }
    }

    /// Index in the tensor of a stored element.
    fn index(&self, row: u64, col: u64) -> u64 {
        let layout = &self.job.plan.layout;
        let [rows, cols] = layout.out();
        let (row, col) = if layout.transposed { (col, row) } else { (row, col) };
        (self.job.window.matrix * rows + row) * cols + col
    }

    /// First column and length of each tile.
    fn tiles(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (n_cols, granule) = (self.n_cols(), self.job.plan.column_granule());
        let step = (TILE / granule).max(1) * granule;
        (0..n_cols).step_by(step).map(move |first| (first, step.min(n_cols - first)))
    }

    /// Computes a row in one arithmetic loop; `None` if the conversion has no such loop.
    fn by_loop(&mut self, row: u64, dst: &mut [u8]) -> Option<Result<(), ScaledError>> {
        let Job { plan, streams, .. } = self.job;
        let (block, level) = (plan.columns_of_scale(), plan.exec.level);
        let has_zeros = self.source.operands().zeros.is_some();
        let (narrow, how) =
            plan.values.combination(has_zeros, plan.decoder.has_nan()).filter(|_| self.factor.is_none())?;
        let first_block = self.cols.start / block;
        for (first, n) in self.tiles() {
            if let Err(error) = self.unpack(row, self.cols.start + first as u64, n) {
                return Some(Err(error));
            }
            let RowRun { values, buffers, tile, source, cols, unpacked, .. } = self;
            let values = &mut values[..4 * n];
            plan.decoder.run(unpacked, values, &mut buffers.scratch);
            let operands = source.operands();
            let (s, u) = (operands.scales.as_chunks::<4>().0, operands.zeros_or_biases().as_chunks::<4>().0);
            let to = &mut dst[2 * first..2 * (first + n)];
            let results = if streams { &mut tile[..2 * n] } else { &mut *to };
            // The rest of a block that began earlier, then whole blocks.
            let col = cols.start + first as u64;
            let begun = if col.is_multiple_of(block) { 0 } else { (block - col % block).min(n as u64) as usize };
            for (from, end) in [(0, begun), (begun, n)].into_iter().filter(|(from, end)| from < end) {
                let at = ((col + from as u64) / block - first_block) as usize;
                let of = Blocks {
                    s: &s[at..],
                    u: if u.is_empty() { u } else { &u[at..] },
                    block: usize::try_from(block).unwrap_or(usize::MAX),
                };
                let (values, results) = (&values.as_chunks().0[from..end], &mut results[2 * from..2 * end]);
                narrow.products(level, how, values, of, results);
            }
            if streams {
                stream::copy(level, &tile[..2 * n], to);
            }
        }
        Some(Ok(()))
    }

    /// Computes a row by one arithmetic operation after the other.
    fn by_operations(&mut self, row: u64, fresh: bool, dst: &mut [u8]) -> Result<(), ScaledError> {
        let Job { plan, streams, want, dst_bytes: bytes, .. } = self.job;
        if want == Want::Results && matches!(self.source, Source::Blocks(_)) && plan.decoder.is_int() {
            self.by_groups(dst);
            return Ok(());
        }
        if fresh {
            self.spread_operands();
        }
        for (first, n) in self.tiles() {
            self.unpack(row, self.cols.start + first as u64, n)?;
            let RowRun { values, buffers, tile, columns, factor, .. } = self;
            let of = |operands: &[u8]| 4 * first..4 * (first + n).min(operands.len());
            let values = &mut values[..4 * n];
            plan.decoder.run(&self.unpacked, values, &mut buffers.scratch);
            let operands = Operands {
                scales: &columns.scales[of(&columns.scales)],
                zeros: (!columns.zeros.is_empty()).then(|| &columns.zeros[4 * first..4 * (first + n)]),
                biases: (!columns.biases.is_empty()).then(|| &columns.biases[4 * first..4 * (first + n)]),
                factor: *factor,
            };
            let dst = &mut dst[first * bytes..(first + n) * bytes];
            if want == Want::Exact {
                let (form, rule) = match &plan.coded {
                    Coded::Planes(planes, _) => (planes.form, planes.global.map(|global| global.rule)),
                    Coded::Blocks { .. } => (plan.values.form(), None),
                };
                let global = rule.map(|rule| (rule, &columns.globals[4 * first..4 * (first + n)]));
                plan.exec.level.run(Exact { form, codes: values, operands, global, exact: dst });
            } else if streams {
                plan.values.run(values, operands, &mut tile[..n * bytes], buffers);
                stream::copy(plan.exec.level, &tile[..n * bytes], dst);
            } else {
                plan.values.run(values, operands, dst, buffers);
            }
        }
        Ok(())
    }

    /// Computes a row of blocks with integer codes, each group with its operands.
    fn by_groups(&mut self, dst: &mut [u8]) {
        let Job { plan, streams, dst_bytes: bytes, .. } = self.job;
        let (group, level) = (plan.block as usize, plan.exec.level);
        for (first, n) in self.tiles() {
            let RowRun { source, values, buffers, tile, factor, .. } = self;
            let Source::Blocks(BlockRow { codes, scales, biases, .. }) = &*source else { return };
            // Tiles begin with whole groups, and so do rows.
            let from = 4 * (first / group);
            let biases = biases.as_deref().map(|biases| &biases[from..]);
            let values = &mut values[..4 * n];
            plan.decoder.products(&codes[first..first + n], group, &scales[from..], biases, values.as_chunks_mut().0);
            let dst = &mut dst[first * bytes..(first + n) * bytes];
            if streams {
                plan.values.finish(values, *factor, &mut tile[..n * bytes], buffers);
                stream::copy(level, &tile[..n * bytes], dst);
            } else {
                plan.values.finish(values, *factor, dst, buffers);
            }
        }
    }

    fn spread_operands(&mut self) {
        let (n_cols, block) = (self.n_cols(), self.job.plan.columns_of_scale());
        let (skip, times) = ((self.cols.start % block) as usize, usize::try_from(block).unwrap_or(usize::MAX));
        let RowRun { source, columns, .. } = self;
        let operands = source.operands();
        let globals = match &*source {
            Source::Grid(grid) if !grid.globals().is_empty() => Some(grid.globals()),
            _ => None,
        };
        for (all, of_columns) in [
            (Some(operands.scales), &mut columns.scales),
            (operands.zeros, &mut columns.zeros),
            (operands.biases, &mut columns.biases),
            (globals, &mut columns.globals),
        ] {
            if let Some(all) = all {
                of_columns.resize(4 * n_cols, 0);
                spread(all, times, skip, of_columns);
            }
        }
    }

    fn by_lookup16(&mut self, row: u64, dst: &mut [u8]) -> Result<(), ScaledError> {
        let Job { plan, streams, .. } = self.job;
        let (level, block) = (plan.exec.level, plan.block);
        let Stored { cut, bytes } = self.codes;
        let n_cols = self.n_cols();
        let low_first = plan.is_packed(4, |packing| matches!(packing, Packing::Rows { .. }));
        let high_first = plan.is_packed(4, |packing| packing == Packing::HighFirst);
        let packed = || &bytes[cut.byte_of([row, self.cols.start])..][..n_cols.div_ceil(2)];
        if high_first {
            self.unpacked.resize(n_cols.div_ceil(2), 0);
            unpack::low_first(level, packed(), &mut self.unpacked);
        } else if !low_first && !matches!(self.source, Source::Blocks(_)) {
            self.unpack(row, self.cols.start, n_cols)?;
        }
        let codes = match &self.source {
            Source::Blocks(row) => Codes::Bytes(&row.codes),
            _ if low_first => Codes::Nibbles(&bytes[cut.byte_of([row, self.cols.start])..][..n_cols.div_ceil(2)]),
            _ if high_first => Codes::Nibbles(&self.unpacked),
            _ => Codes::Bytes(&self.unpacked),
        };
        let tables = self.tables.tables16(match &self.source {
            Source::Grid(grid) => Some(grid.codes()),
            Source::Blocks(_) => None,
        });
        for (first, n, at) in pieces(self.cols.clone(), block) {
            let codes = match codes {
                Codes::Nibbles(codes) => Codes::Nibbles(&codes[first / 2..(first + n).div_ceil(2)]),
                Codes::Bytes(codes) => Codes::Bytes(&codes[first..first + n]),
            };
            let dst = &mut dst[2 * first..2 * (first + n)];
            lookup::lookup16(level, codes, block as usize, tables.from(at), dst, streams);
        }
        Ok(())
    }

    /// Looks up matrix rows that share a grid row; `row_bytes` is the size of a result row.
    fn by_lookup256(&mut self, rows: Range<u64>, dst: &mut [u8], row_bytes: usize) -> Result<(), ScaledError> {
        let Job { plan, streams, .. } = self.job;
        let (level, block, stored, cols) = (plan.exec.level, plan.block, self.codes, self.cols.clone());
        let n_cols = self.n_cols();
        let plain = plan.is_packed(8, |packing| matches!(packing, Packing::Rows { .. }));
        if !plain {
            for (row, dst) in rows.zip(dst.chunks_mut(row_bytes)) {
                self.unpack(row, cols.start, n_cols)?;
                for (first, n, at) in pieces(cols.clone(), block) {
                    let row = (&self.unpacked[first..first + n], &mut dst[2 * first..2 * (first + n)]);
                    lookup::lookup256(level, &mut [row], block as usize, &self.tables.tables256()[at..], streams);
                }
            }
            return Ok(());
        }
        let Stored { cut, bytes } = stored;
        for (first, n, at) in pieces(cols.clone(), block) {
            let one = |(row, dst): (u64, _)| {
                let dst: &mut [u8] = dst;
                let codes = &bytes[cut.byte_of([row, cols.start])..][..n_cols];
                (&codes[first..first + n], &mut dst[2 * first..2 * (first + n)])
            };
            let mut of_rows: [(&[u8], &mut [u8]); TOGETHER] = Default::default();
            let n_rows = (rows.end - rows.start) as usize;
            let made = rows.clone().zip(dst.chunks_mut(row_bytes)).map(one);
            of_rows.iter_mut().zip(made).for_each(|(place, row)| *place = row);
            lookup::lookup256(level, &mut of_rows[..n_rows], block as usize, &self.tables.tables256()[at..], streams);
        }
        Ok(())
    }
}

/// Pieces of a row in which blocks begin at multiples of the block size: first element, elements, first block.
fn pieces(cols: Range<u64>, block: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let long = block > LONG_BLOCK;
    let first_block = cols.start / block;
    let mut at = cols.start;
    std::iter::from_fn(move || {
        let end = if long { ((at / block + 1) * block).min(cols.end) } else { cols.end };
        let piece = ((at - cols.start) as usize, (end - at) as usize, (at / block - first_block) as usize);
        let more = at < cols.end;
        at = end;
        more.then_some(piece)
    })
}
