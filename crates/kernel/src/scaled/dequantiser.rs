//! [`Dequantiser`]: scaled elements to plain ones, planned once.

use super::blocks::{self, BlockRow};
use super::cut::{Cut, Read, Window, column_granule};
use super::grid::{Grid, GridRow, PartCut, Want};
use super::lookup::{self, Codes, Full, Sixteen, Tables};
use super::unpack;
use super::values::{Decoder, Exact, Operands, Room, TILE, Values, spread};
use crate::environment;
use crate::level::Level;
use crate::options::CastOptions;
use crate::pipeline::Stores;
use crate::stage::Streaming;
use crate::stream;
use std::ops::Range;
use truecast_core::scaled::{
    BlockType, Code, Coding, Form, Group, Layout, Packing, Part, Parts, Plane, Planes, ScaledError, Zero,
};
use truecast_core::{CastSpec, DType};

/// A planned dequantisation: immutable, to be used from any number of threads, each for windows of its own.
///
/// # Examples
/// ```
/// use truecast_core::{DType, scaled::{Coding, Layout, Parts, Plane, Planes}, spec::ieee::Cast};
/// use truecast_kernel::{CastOptions, scaled::Dequantiser};
/// let planes = Planes::times(Plane::of(DType::F4E2M1), Plane::of(DType::F8E8M0), [1, 32]);
/// let layout = Layout::new(1, [1, 32], Coding::Planes(planes));
/// let to_bf16 = Cast::to(DType::Bf16).resolve(DType::F32)?;
/// let dequantiser = Dequantiser::new(&layout, &to_bf16, &CastOptions::default())?;
/// let mut result = [0; 64];
/// for window in dequantiser.windows(0..layout.elements()) {
///     assert_eq!(dequantiser.reads(&window).len(), 2); // of codes and scales, here all that there are
///     let parts = Parts { codes: &[0x8f; 16], scales: &[126], ..Parts::default() };
///     dequantiser.run(&window, &parts, &mut result)?;
/// }
/// assert_eq!(result[..4], [0x40, 0xc0, 0x00, 0x80]); // -3, -0
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dequantiser {
    layout: Layout,
    exec: CastOptions,
    values: Values,
    decoder: Decoder,
    coded: Coded,
    how: How,
    /// The f32 of each code, as bytes.
    of_codes: Vec<u8>,
    /// Columns of a scale, at most those of a row.
    block: u64,
    /// Windows begin and end at multiples of so many columns, or at the end of a row.
    column_align: u64,
}

/// What elements are made of.
#[derive(Debug)]
enum Coded {
    Planes(Box<Planes>, Box<Grid>),
    Blocks { block: BlockType, factor: bool },
}

/// How elements are made of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// One by one.
    Arithmetic,
    /// By a table for each block of a row.
    Sixteen,
    /// By a table for each code of a scale.
    SixteenByScale,
    /// By tables of all bytes, for blocks that many elements share.
    Full,
}

/// Blocks of at least so many elements pay for a table of 256 results.
const FULL_FROM: u64 = 4096;
/// Columns from which on windows do not begin at blocks.
const LONG_BLOCK: u64 = 1024;

impl Dequantiser {
    /// Plans a dequantisation. `spec` converts f32 to the type of the results, of whole bytes.
    ///
    /// # Errors
    /// What [`Layout::check`] says; [`ScaledError::Layout`] for a result that cannot be made of f32.
    pub fn new(layout: &Layout, spec: &CastSpec, exec: &CastOptions) -> Result<Dequantiser, ScaledError> {
        layout.check()?;
        let level = exec.level;
        let (planes, block) = match layout.coding {
            Coding::Planes(planes) => (planes, planes.scales.block[1]),
            Coding::Blocks { block, factor } => return Dequantiser::of_blocks(layout, (block, factor), spec, exec),
            _ => return Err(ScaledError::Layout { why: "its coding is not known" }),
        };
        let values = Values::new(planes.form, Grid::scale_type(&planes), spec, level)?;
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let decoder = Decoder::new(planes.codes.code, minus, level)?;
        let block = if block >= layout.cols { layout.cols.next_multiple_of(64).max(64) } else { block };
        let how = how(layout, &planes, block, values.dst_bytes, level);
        let granule = column_granule(planes.codes.packing);
        let column_align = if block <= LONG_BLOCK { lcm(granule, block) } else { granule };
        let grid = Grid::new(layout, &planes, level)?;
        let coded = Coded::Planes(Box::new(planes), Box::new(grid));
        Ok(Dequantiser::with(layout, exec, values, decoder, coded, how, block, column_align))
    }

    fn of_blocks(
        layout: &Layout,
        (block, factor): (BlockType, bool),
        spec: &CastSpec,
        exec: &CastOptions,
    ) -> Result<Dequantiser, ScaledError> {
        let form = if blocks::has_bias(block) { Form::Affine } else { Form::Times };
        let values = Values::new(form, DType::F32, spec, exec.level)?;
        let (decoder, bits) = match blocks::code(block) {
            Some((code, minus)) => (Decoder::new(code, minus, exec.level)?, code.bits()),
            None => (Decoder::doubled(), 4),
        };
        let how = if bits <= 4 && values.dst_bytes == 2 { How::Sixteen } else { How::Arithmetic };
        let coded = Coded::Blocks { block, factor };
        Ok(Dequantiser::with(layout, exec, values, decoder, coded, how, block.group(), block.elements()))
    }

    #[allow(clippy::too_many_arguments)] // each is a field
    fn with(
        layout: &Layout,
        exec: &CastOptions,
        values: Values,
        decoder: Decoder,
        coded: Coded,
        how: How,
        block: u64,
        column_align: u64,
    ) -> Dequantiser {
        let n_codes: usize = if how == How::Full { 256 } else { 16 };
        let mut of_codes = vec![0; n_codes * 4];
        let all: Vec<u8> = (0..n_codes).map(|code| code as u8).collect();
        decoder.run(&all, &mut of_codes, &mut Default::default());
        Dequantiser { layout: *layout, exec: *exec, values, decoder, coded, how, of_codes, block, column_align }
    }

    /// What is read.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Cuts a range of elements of the tensor, as it is read, into windows; their results follow each other.
    ///
    /// A window needs little more memory than its elements and the bytes that they are made of. Of a transposed tensor it
    /// holds at least 64 of its rows.
    ///
    /// # Panics
    /// If the tensor has fewer elements.
    #[must_use]
    pub fn windows(&self, elements: Range<u64>) -> Vec<Window> {
        assert!(elements.end <= self.layout.elements(), "elements {elements:?} of {}", self.layout.elements());
        let [rows, cols] = self.layout.out();
        let mut windows = Vec::new();
        let mut at = elements.start;
        while at < elements.end {
            let matrix = at / (rows * cols);
            let (row, col) = (at / cols % rows, at % cols);
            let left = elements.end - at;
            // The rest of a row, or whole rows, or the beginning of one.
            let (n_rows, n_cols) = match left / cols {
                _ if col != 0 => (1, left.min(cols - col)),
                0 => (1, left),
                whole => (whole.min(rows - row), cols),
            };
            let (out_rows, out_cols) = (row..row + n_rows, col..col + n_cols);
            let (rows, cols) = if self.layout.transposed { (out_cols, out_rows) } else { (out_rows, out_cols) };
            windows.push(Window { matrix, rows, cols, elements: at..at + n_rows * n_cols });
            at += n_rows * n_cols;
        }
        windows
    }

    /// The bytes that a window needs, part after part.
    #[must_use]
    pub fn reads(&self, window: &Window) -> Vec<Read> {
        self.cuts(window).iter().flatten().map(|(part, cut)| cut.read(*part, window.matrix)).collect()
    }

    /// Columns that are read for a window.
    fn columns(&self, window: &Window) -> Range<u64> {
        let align = self.column_align;
        let end = window.cols.end.next_multiple_of(align).min(self.layout.cols);
        window.cols.start / align * align..end
    }

    fn cuts(&self, window: &Window) -> [PartCut; 6] {
        let (cols, shape) = (self.columns(window), [self.layout.rows, self.layout.cols]);
        let rows = window.rows.clone();
        match &self.coded {
            Coded::Planes(planes, grid) => {
                let codes = Cut::new(planes.codes, shape, rows.clone(), cols.clone());
                let [scales, global, zeros, biases, index] = grid.cuts(rows, cols);
                [Some((Part::Codes, codes)), scales, global, zeros, biases, index]
            }
            Coded::Blocks { block, factor } => {
                // The bytes of the blocks, as a matrix.
                let byte = |col: u64| col / block.elements() * block.bytes();
                let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
                let codes = Cut::new(plane, [shape[0], byte(shape[1])], rows, byte(cols.start)..byte(cols.end));
                let global = factor.then(|| (Part::Global, Cut::new(Plane::of(DType::F32), [1, 1], 0..1, 0..1)));
                [Some((Part::Codes, codes)), None, global, None, None, None]
            }
        }
    }

    /// Makes the elements of a window. `parts` holds the bytes of its [`Dequantiser::reads`], `dst` is written whole.
    ///
    /// Result: for each element what [`Layout::value`] says, cast. Cost: a few rows of memory; one thread.
    ///
    /// # Errors
    /// [`ScaledError::Size`] if a buffer does not fit; codes, scales and groups that are no value.
    pub fn run(&self, window: &Window, parts: &Parts<'_>, dst: &mut [u8]) -> Result<(), ScaledError> {
        self.make(window, parts, dst, Want::Results)
    }

    /// Makes the values of a window before any rounding, as f64: what results are compared with (§10 of the page). They are
    /// exact where codes are multiplied by scales, else rounded to f64; of blocks of GGUF files the scales of groups are
    /// those that were rounded to f32.
    ///
    /// # Errors
    /// As [`Dequantiser::run`]; `exact` takes eight bytes for each element.
    pub fn exact(&self, window: &Window, parts: &Parts<'_>, exact: &mut [u8]) -> Result<(), ScaledError> {
        self.make(window, parts, exact, Want::Exact)
    }

    fn make(&self, window: &Window, parts: &Parts<'_>, dst: &mut [u8], want: Want) -> Result<(), ScaledError> {
        let dst_bytes = if want == Want::Exact { 8 } else { self.values.dst_bytes };
        let cuts = self.cuts(window);
        for (part, cut) in cuts.iter().flatten() {
            let (expected, got) = (cut.bytes(), parts.get(*part).len() as u64);
            if expected != got {
                return Err(ScaledError::Size { part: *part, expected, got });
            }
        }
        let expected = (window.elements.end - window.elements.start) * dst_bytes as u64;
        if dst.len() as u64 != expected {
            return Err(ScaledError::Results { expected, got: dst.len() as u64 });
        }
        if dst.is_empty() {
            return Ok(());
        }
        let [Some((_, codes)), ..] = &cuts else { unreachable!("every layout has codes") };
        let cols = self.columns(window);
        let streams =
            Stores::of(&self.exec, (1, parts.codes.len()), (self.values.dst_bytes, dst.len()), Streaming::ByWidth);
        environment::default(|| {
            let (source, factor) = match &self.coded {
                Coded::Planes(_, grid) => {
                    let by_scale = self.how == How::SixteenByScale && want == Want::Results;
                    let of_row = if by_scale { Want::Codes } else { want };
                    (Source::Grid(Box::new(grid.row(&cuts, parts, grid.columns(&cols), of_row)?)), None)
                }
                Coded::Blocks { block, factor } => {
                    let row = BlockRow::new(self.exec.level, *block, (codes, parts.codes), cols.clone());
                    let of_tensor = parts.global.first_chunk().map(|bytes| f32::from_le_bytes(*bytes));
                    (Source::Blocks(row), of_tensor.filter(|_| *factor))
                }
            };
            let mut work = Work {
                dequantiser: self,
                window,
                codes: (codes, parts.codes),
                source,
                factor,
                cols,
                want,
                dst_bytes,
                streams: streams.by_tile && !self.layout.transposed && want == Want::Results,
                made: None,
                by_scale: None,
                sixteen: Vec::new(),
                full: Vec::new(),
                scales: Vec::new(),
                zeros: Vec::new(),
                biases: Vec::new(),
                globals: Vec::new(),
                unpacked: Vec::new(),
                values: vec![0; TILE * 4],
                spread: vec![0; TILE * 12],
                tile: vec![0; TILE * self.values.dst_bytes],
                room: Room::default(),
            };
            let done = if self.layout.transposed { work.transposed(dst) } else { work.rows(dst) };
            if work.streams {
                stream::fence();
            }
            done
        })
    }
}

/// Which way pays.
fn how(layout: &Layout, planes: &Planes, block: u64, dst_bytes: usize, level: Level) -> How {
    if dst_bytes != 2 || planes.group == Group::OfColumn {
        return How::Arithmetic;
    }
    let bits = planes.codes.code.bits();
    if bits <= 4 && lookup::fits_sixteen(block) {
        let alone = planes.form != Form::Affine && !matches!(planes.zero, Zero::Grid { .. });
        let one_global = planes.global.is_none_or(|global| global.block[1] >= layout.cols);
        let by_scale = planes.scales.plane.code.bits() == 8 && alone && one_global;
        return if by_scale { How::SixteenByScale } else { How::Sixteen };
    }
    let sharing = planes.scales.block[0].min(layout.rows).saturating_mul(block);
    let rows_follow = planes.group == Group::Grid || planes.scales.block[0] == 1;
    if bits > 4 && lookup::has_full(level) && block.is_multiple_of(64) && sharing >= FULL_FROM && rows_follow {
        return How::Full;
    }
    How::Arithmetic
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// Where codes and operands of a row come from.
enum Source<'a> {
    Grid(Box<GridRow<'a>>),
    Blocks(BlockRow<'a>),
}

type Operands3 = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

impl Source<'_> {
    /// Lends scales, zero points and biases, f32 of each block of the row.
    fn take(&mut self) -> Operands3 {
        match self {
            Source::Grid(row) => row.take(),
            Source::Blocks(row) => (std::mem::take(&mut row.scales), None, row.biases.take()),
        }
    }

    fn put(&mut self, operands: Operands3) {
        match self {
            Source::Grid(row) => row.put(operands),
            Source::Blocks(row) => (row.scales, _, row.biases) = operands,
        }
    }
}

/// One run over a window.
struct Work<'a> {
    dequantiser: &'a Dequantiser,
    window: &'a Window,
    codes: (&'a Cut, &'a [u8]),
    source: Source<'a>,
    /// Of form A2 of GGUF's NVFP4: multiplies values.
    factor: Option<f32>,
    /// Columns that were read.
    cols: Range<u64>,
    want: Want,
    /// Bytes of a result.
    dst_bytes: usize,
    streams: bool,
    /// The row of the grid that tables and operands of columns were made for.
    made: Option<u64>,
    /// Tables of all scales, and the bits of the global scale that they were made for.
    by_scale: Option<(u32, Box<[Sixteen; 256]>)>,
    sixteen: Vec<Sixteen>,
    full: Vec<Full>,
    /// Operands of each column.
    scales: Vec<u8>,
    zeros: Vec<u8>,
    biases: Vec<u8>,
    globals: Vec<u8>,
    /// Codes of a row or tile, one in each byte.
    unpacked: Vec<u8>,
    /// Tiles of f32: decoded codes, and three operands.
    values: Vec<u8>,
    spread: Vec<u8>,
    tile: Vec<u8>,
    room: Room,
}

/// Stored rows of a transposed tensor that are made before they are turned.
const STRIP: usize = 32;

impl Work<'_> {
    fn rows(&mut self, dst: &mut [u8]) -> Result<(), ScaledError> {
        let bytes = self.dst_bytes;
        let Window { rows, cols, .. } = self.window;
        let row_bytes = (cols.end - cols.start) as usize * bytes;
        let skipped = (cols.start - self.cols.start) as usize * bytes;
        let wide = (self.cols.end - self.cols.start) as usize * bytes;
        let mut whole = if wide == row_bytes { Vec::new() } else { vec![0; wide] };
        for (row, dst) in rows.clone().zip(dst.chunks_mut(row_bytes)) {
            if wide == row_bytes {
                self.row(row, dst)?;
            } else {
                self.streams = false;
                self.row(row, &mut whole)?;
                dst.copy_from_slice(&whole[skipped..][..row_bytes]);
            }
        }
        Ok(())
    }

    /// Makes strips of rows and turns them.
    fn transposed(&mut self, dst: &mut [u8]) -> Result<(), ScaledError> {
        let bytes = self.dst_bytes;
        let Window { rows, cols, .. } = self.window.clone();
        let (n_rows, n_cols) = ((rows.end - rows.start) as usize, (cols.end - cols.start) as usize);
        let wide = (self.cols.end - self.cols.start) as usize * bytes;
        let skipped = (cols.start - self.cols.start) as usize;
        let mut strip = vec![0; wide * STRIP.min(n_rows)];
        for first in (0..n_rows).step_by(STRIP) {
            let n = STRIP.min(n_rows - first);
            for (i, made) in strip.chunks_mut(wide).take(n).enumerate() {
                self.row(rows.start + (first + i) as u64, made)?;
            }
            let strip = Strip { strip: &strip, wide, skipped, n, first, n_rows, n_cols };
            match bytes {
                1 => turn::<1>(&strip, dst),
                2 => turn::<2>(&strip, dst),
                4 => turn::<4>(&strip, dst),
                _ => turn::<8>(&strip, dst),
            }
        }
        Ok(())
    }

    /// Makes the elements of a stored row, in all columns that were read.
    fn row(&mut self, row: u64, dst: &mut [u8]) -> Result<(), ScaledError> {
        let version = match &mut self.source {
            Source::Grid(grid) => {
                grid.go_to(row)?;
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
        match self.dequantiser.how {
            _ if self.want == Want::Exact => self.by_arithmetic(row, fresh, dst),
            How::Arithmetic => self.by_arithmetic(row, fresh, dst),
            How::Sixteen => {
                if fresh {
                    self.make_sixteen();
                }
                self.by_sixteen(row, dst)
            }
            How::SixteenByScale => {
                self.make_by_scale();
                self.by_sixteen(row, dst)
            }
            How::Full => {
                if fresh {
                    self.make_full();
                }
                self.by_full(row, dst)
            }
        }
    }

    /// Unpacks codes of a row from a column on, and looks for one that is no value.
    fn unpack(&mut self, row: u64, first: u64, n: usize) -> Result<(), ScaledError> {
        self.unpacked.resize(n, 0);
        if let Source::Blocks(row) = &self.source {
            let at = (first - self.cols.start) as usize;
            self.unpacked.copy_from_slice(&row.codes[at..at + n]);
            return Ok(());
        }
        let (cut, bytes) = self.codes;
        unpack::row(self.dequantiser.exec.level, cut, bytes, row, first, &mut self.unpacked);
        let Coded::Planes(planes, _) = &self.dequantiser.coded else { return Ok(()) };
        let Some(refused) = planes.refused else { return Ok(()) };
        match self.unpacked.iter().position(|code| u64::from(*code) == refused) {
            None => Ok(()),
            Some(at) => Err(ScaledError::Code { index: self.index(row, first + at as u64), code: refused }),
        }
    }

    /// The element of the tensor that a stored one is.
    fn index(&self, row: u64, col: u64) -> u64 {
        let layout = &self.dequantiser.layout;
        let [rows, cols] = layout.out();
        let (row, col) = if layout.transposed { (col, row) } else { (row, col) };
        (self.window.matrix * rows + row) * cols + col
    }

    fn by_arithmetic(&mut self, row: u64, fresh: bool, dst: &mut [u8]) -> Result<(), ScaledError> {
        let n_cols = (self.cols.end - self.cols.start) as usize;
        if fresh {
            let block = match &self.dequantiser.coded {
                Coded::Planes(_, grid) => grid.columns_of_scale(),
                Coded::Blocks { block, .. } => block.group(),
            };
            let skip = (self.cols.start % block) as usize;
            if let Source::Grid(grid) = &self.source
                && !grid.globals().is_empty()
            {
                self.globals.resize(4 * n_cols, 0);
                let times = usize::try_from(block).unwrap_or(usize::MAX);
                spread(grid.globals(), times, skip, &mut self.globals);
            }
            let operands = self.source.take();
            for (all, of_columns) in [
                (Some(&operands.0), &mut self.scales),
                (operands.1.as_ref(), &mut self.zeros),
                (operands.2.as_ref(), &mut self.biases),
            ] {
                if let Some(all) = all {
                    of_columns.resize(4 * n_cols, 0);
                    spread(all, usize::try_from(block).unwrap_or(usize::MAX), skip, of_columns);
                }
            }
            self.source.put(operands);
        }
        let granule = match &self.dequantiser.coded {
            Coded::Planes(planes, _) => column_granule(planes.codes.packing) as usize,
            Coded::Blocks { .. } => 64,
        };
        let step = (TILE / granule).max(1) * granule;
        let step = if step > TILE { granule } else { step };
        let bytes = self.dst_bytes;
        for first in (0..n_cols).step_by(step) {
            let n = step.min(n_cols - first);
            self.unpack(row, self.cols.start + first as u64, n)?;
            let of = |operands: &[u8]| 4 * first..4 * (first + n).min(operands.len());
            let factor = self.factor;
            let Work { dequantiser, values, room, tile, .. } = self;
            let values = &mut values[..4 * n];
            dequantiser.decoder.run(&self.unpacked, values, &mut room.scratch);
            let operands = Operands {
                scales: &self.scales[of(&self.scales)],
                zeros: (!self.zeros.is_empty()).then(|| &self.zeros[4 * first..4 * (first + n)]),
                biases: (!self.biases.is_empty()).then(|| &self.biases[4 * first..4 * (first + n)]),
                factor,
            };
            let dst = &mut dst[first * bytes..(first + n) * bytes];
            if self.want == Want::Exact {
                let (form, rule) = match &dequantiser.coded {
                    Coded::Planes(planes, _) => (planes.form, planes.global.map(|global| global.rule)),
                    Coded::Blocks { .. } => (dequantiser.values.form(), None),
                };
                let global = rule.map(|rule| (rule, &self.globals[4 * first..4 * (first + n)]));
                dequantiser.exec.level.run(Exact { form, codes: values, operands, global, exact: dst });
            } else if self.streams {
                dequantiser.values.run(values, operands, &mut tile[..n * bytes], room);
                stream::copy(dequantiser.exec.level, &tile[..n * bytes], dst);
            } else {
                dequantiser.values.run(values, operands, dst, room);
            }
        }
        Ok(())
    }

    /// Codes of so many bits lie as a lookup reads them.
    fn are_plain(&self, bits: u32) -> bool {
        match &self.dequantiser.coded {
            Coded::Planes(planes, _) => {
                let Plane { code, packing } = planes.codes;
                code.bits() == bits && matches!(packing, Packing::Rows { .. }) && planes.refused.is_none()
            }
            Coded::Blocks { .. } => false,
        }
    }

    fn by_sixteen(&mut self, row: u64, dst: &mut [u8]) -> Result<(), ScaledError> {
        let (level, block) = (self.dequantiser.exec.level, self.dequantiser.block);
        let (cut, bytes) = self.codes;
        let n_cols = (self.cols.end - self.cols.start) as usize;
        let nibbles = self.are_plain(4);
        if !nibbles && !matches!(self.source, Source::Blocks(_)) {
            self.unpack(row, self.cols.start, n_cols)?;
        }
        let codes = match &self.source {
            Source::Blocks(row) => Codes::Bytes(&row.codes),
            _ if nibbles => Codes::Nibbles(&bytes[cut.byte_of([row, self.cols.start])..][..n_cols.div_ceil(2)]),
            _ => Codes::Bytes(&self.unpacked),
        };
        let tables = match (&self.by_scale, &self.source) {
            (Some((_, tables)), Source::Grid(grid)) => Tables::ByScale { tables, scales: grid.codes() },
            _ => Tables::InOrder(&self.sixteen),
        };
        for (first, n, at) in pieces(self.cols.clone(), block) {
            let codes = match codes {
                Codes::Nibbles(codes) => Codes::Nibbles(&codes[first / 2..(first + n).div_ceil(2)]),
                Codes::Bytes(codes) => Codes::Bytes(&codes[first..first + n]),
            };
            let tables = match tables {
                Tables::InOrder(tables) => Tables::InOrder(&tables[at..]),
                Tables::ByScale { tables, scales } => Tables::ByScale { tables, scales: &scales[at..] },
            };
            lookup::sixteen(level, codes, block as usize, tables, &mut dst[2 * first..2 * (first + n)], self.streams);
        }
        Ok(())
    }

    fn by_full(&mut self, row: u64, dst: &mut [u8]) -> Result<(), ScaledError> {
        let Dequantiser { exec, block, .. } = self.dequantiser;
        let (cut, bytes) = self.codes;
        let n_cols = (self.cols.end - self.cols.start) as usize;
        let plain = self.are_plain(8);
        if !plain {
            self.unpack(row, self.cols.start, n_cols)?;
        }
        let codes = if plain { &bytes[cut.byte_of([row, self.cols.start])..][..n_cols] } else { &self.unpacked };
        for (first, n, at) in pieces(self.cols.clone(), *block) {
            let dst = &mut dst[2 * first..2 * (first + n)];
            lookup::full(exec.level, &codes[first..first + n], *block as usize, &self.full[at..], dst, self.streams);
        }
        Ok(())
    }

    /// Results of every code for each of these scales, 2 bytes each.
    fn results(&mut self, scales: &[u8], zeros: Option<&[u8]>, biases: Option<&[u8]>, results: &mut [u8]) {
        let factor = self.factor;
        let Work { dequantiser, values, spread: operands, room, .. } = self;
        let n_codes = dequantiser.of_codes.len() / 4;
        let step = TILE / n_codes;
        let n_scales = scales.len() / 4;
        for first in (0..n_scales).step_by(step) {
            let n = step.min(n_scales - first);
            let len = n * n_codes * 4;
            let values = &mut values[..len];
            values.chunks_mut(4 * n_codes).for_each(|codes| codes.copy_from_slice(&dequantiser.of_codes));
            let (of_scales, rest) = operands.split_at_mut(TILE * 4);
            let (of_zeros, of_biases) = rest.split_at_mut(TILE * 4);
            let fill = |all: &[u8], to: &mut [u8]| spread(&all[4 * first..4 * (first + n)], n_codes, 0, to);
            fill(scales, &mut of_scales[..len]);
            if let Some(zeros) = zeros {
                fill(zeros, &mut of_zeros[..len]);
            }
            if let Some(biases) = biases {
                fill(biases, &mut of_biases[..len]);
            }
            let operands = Operands {
                scales: &of_scales[..len],
                zeros: zeros.map(|_| &of_zeros[..len]),
                biases: biases.map(|_| &of_biases[..len]),
                factor,
            };
            let results = &mut results[first * n_codes * 2..(first + n) * n_codes * 2];
            dequantiser.values.run(values, operands, results, room);
        }
    }

    fn make_sixteen(&mut self) {
        let mut tables = std::mem::take(&mut self.sixteen);
        let (scales, zeros, biases) = self.source.take();
        tables.resize(scales.len() / 4, [0; 32]);
        self.results(&scales, zeros.as_deref(), biases.as_deref(), tables.as_flattened_mut());
        self.sixteen = tables;
        self.source.put((scales, zeros, biases));
    }

    fn make_by_scale(&mut self) {
        let Source::Grid(grid) = &mut self.source else { return };
        let bits = grid.global_bits();
        if self.by_scale.as_ref().is_some_and(|(made_for, _)| *made_for == bits) {
            return;
        }
        let mut tables = Box::new([[0; 32]; 256]);
        let scales = grid.all_scales();
        self.results(&scales, None, None, tables.as_flattened_mut());
        self.by_scale = Some((bits, tables));
    }

    fn make_full(&mut self) {
        let mut tables = std::mem::take(&mut self.full);
        let (scales, zeros, biases) = self.source.take();
        let n = scales.len() / 4;
        tables.resize(n, [[0; 256]; 2]);
        let mut results = [0; 512];
        for (i, table) in tables.iter_mut().enumerate() {
            let one = 4 * i..4 * i + 4;
            let of = |all: &Option<Vec<u8>>| all.as_ref().map(|all| all[one.clone()].to_vec());
            let (zero, bias) = (of(&zeros), of(&biases));
            self.results(&scales[one.clone()], zero.as_deref(), bias.as_deref(), &mut results);
            let [low, high] = table;
            for ((low, high), result) in low.iter_mut().zip(high).zip(results.as_chunks::<2>().0) {
                [*low, *high] = *result;
            }
        }
        self.full = tables;
        self.source.put((scales, zeros, biases));
    }
}

/// The pieces of a row in which blocks begin at multiples of their size: first element, elements, first block.
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

/// Rows that were made, to be written as columns.
struct Strip<'a> {
    strip: &'a [u8],
    /// Bytes of a row.
    wide: usize,
    /// Columns before the first that belongs to the window.
    skipped: usize,
    /// Rows of the strip.
    n: usize,
    /// The first of them, of all of the window.
    first: usize,
    n_rows: usize,
    n_cols: usize,
}

fn turn<const N: usize>(strip: &Strip<'_>, dst: &mut [u8]) {
    let Strip { strip, wide, skipped, n, first, n_rows, n_cols } = *strip;
    let dst = dst.as_chunks_mut::<N>().0;
    // Few columns at a time, so that the lines of all rows stay in the first-level cache.
    for cols in (0..n_cols).step_by(64) {
        for col in cols..(cols + 64).min(n_cols) {
            let to = &mut dst[col * n_rows + first..][..n];
            for (row, to) in to.iter_mut().enumerate() {
                to.copy_from_slice(&strip[row * wide + (skipped + col) * N..][..N]);
            }
        }
    }
}
