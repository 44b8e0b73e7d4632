//! Scales, zero points and biases of one grid row, in f32.

use super::cut::{Cut, Cuts, Stored};
use super::unpack;
use super::values::{Operands, pipeline};
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch};
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{
    Book, Code, Form, Global, GlobalRule, Group, Layout, Packing, Parts, Plane, Planes, ScaledError, Zero,
};

#[derive(Debug)]
pub(super) struct Grid {
    layout: Layout,
    planes: Planes,
    level: Level,
    /// `None` for scales in a stored code book.
    decode: Option<Pipeline>,
    /// Conversion of floating-point zero points.
    zeros: Option<Pipeline>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Final results. The block's scale and the global scale are combined in f32.
    Results,
    /// Value before any rounding: scales are not combined.
    Exact,
    /// Codes of scales only. A table has the results for these codes.
    Codes,
}

impl Grid {
    pub fn new(layout: &Layout, planes: &Planes, level: Level) -> Result<Grid, ScaledError> {
        if let Some(Global { block, .. }) = planes.global
            && block[1] < layout.cols
            && !block[1].is_multiple_of(planes.scales.block[1])
        {
            return Err(ScaledError::Layout { why: "a global scale ends within a block" });
        }
        if planes.group == Group::OfColumn && planes.global.is_some_and(|global| global.block[1] < layout.cols) {
            return Err(ScaledError::Layout { why: "columns have an index and several global scales" });
        }
        let decode =
            if planes.has_book() { None } else { Some(pipeline(Grid::scale_type(planes), DType::F32, level)?) };
        let zeros = match planes.zero {
            Zero::Grid { plane: Plane { code: Code::Float(dtype), .. }, .. } => {
                Some(pipeline(dtype, DType::F32, level)?)
            }
            _ => None,
        };
        Ok(Grid { layout: *layout, planes: *planes, level, decode, zeros })
    }

    /// Type of the scales; the layout was checked.
    pub fn scale_type(planes: &Planes) -> DType {
        match planes.scales.plane.code {
            Code::Float(dtype) => dtype,
            Code::Int(_) | Code::Book(_) => DType::F32,
        }
    }

    /// Columns that share an entry of a [`GridRow`].
    pub fn columns_of_scale(&self) -> u64 {
        if self.planes.group == Group::OfColumn { 1 } else { self.planes.scales.block[1] }
    }

    /// Grid columns that belong to columns of the matrix.
    pub fn columns(&self, cols: &Range<u64>) -> Range<u64> {
        let block = self.planes.scales.block[1];
        match self.planes.group {
            Group::OfColumn => cols.clone(),
            _ => cols.start / block..cols.end.div_ceil(block),
        }
    }

    /// Byte ranges of all parts for a box of the matrix, which has these codes.
    pub fn cuts(&self, codes: Cut, rows: Range<u64>, cols: Range<u64>) -> Cuts {
        let Planes { scales, zero, global, form, group, .. } = self.planes;
        let blocks = |elements: &Range<u64>, block: u64| elements.start / block..elements.end.div_ceil(block);
        let shape = self.layout.grid(scales.block);
        let grid_rows = if group == Group::OfRow { 0..shape[0] } else { blocks(&rows, scales.block[0]) };
        let grid_cols = if group == Group::OfColumn { 0..shape[1] } else { blocks(&cols, scales.block[1]) };
        let on_grid = |plane| Cut::new(plane, shape, grid_rows.clone(), grid_cols.clone());
        let whole_row = |code, n| Cut::new(Plane { code, packing: Packing::BYTES }, [1, n], 0..1, 0..n);
        Cuts {
            codes,
            scales: Some(on_grid(scales.plane)),
            global: global.map(|global| {
                let (rows, cols) = (blocks(&rows, global.block[0]), blocks(&cols, global.block[1]));
                Cut::new(Plane::of(DType::F32), self.layout.grid(global.block), rows, cols)
            }),
            zeros: if let Zero::Grid { plane, .. } = zero { Some(on_grid(plane)) } else { None },
            biases: (form == Form::Affine).then(|| on_grid(scales.plane)),
            index: match group {
                Group::Grid => None,
                Group::OfRow => Some(whole_row(Code::signed(32), self.layout.rows)),
                Group::OfColumn => Some(whole_row(Code::signed(32), self.layout.cols)),
            },
            book: self.planes.has_book().then(|| whole_row(Code::Float(DType::F32), Book::STORED)),
        }
    }

    /// Starts reading the grid columns `cols` of a window.
    pub fn row<'a>(
        &'a self,
        cuts: &'a Cuts,
        parts: &Parts<'a>,
        cols: Range<u64>,
        want: Want,
    ) -> Result<GridRow<'a>, ScaledError> {
        let stored = |cut: &'a Option<Cut>, bytes: &'a [u8]| cut.as_ref().map(|cut| Stored { cut, bytes });
        let Some(scales) = stored(&cuts.scales, parts.scales) else {
            return Err(ScaledError::Layout { why: "it has no scales" });
        };
        let source = GridSource {
            grid: self,
            scales,
            global: stored(&cuts.global, parts.global),
            zeros: stored(&cuts.zeros, parts.zeros),
            biases: stored(&cuts.biases, parts.biases),
            book: parts.book,
            groups: if cuts.index.is_some() { self.groups(parts.index)? } else { Vec::new() },
            cols,
            want,
        };
        let (operands, scratch) = (RowOperands::default(), Scratch::default());
        Ok(GridRow { source, position: None, version: 0, operands, scratch })
    }

    /// Group of each row or column, from the bytes of the index.
    fn groups(&self, index: &[u8]) -> Result<Vec<u64>, ScaledError> {
        let axis = if self.planes.group == Group::OfRow { 0 } else { 1 };
        let groups = self.layout.grid(self.planes.scales.block)[axis];
        let group = |(index, bytes): (usize, &[u8; 4])| match i32::from_le_bytes(*bytes) {
            group if group >= 0 && (group as u64) < groups => Ok(group as u64),
            group => Err(ScaledError::Index { index: index as u64, group: group.into(), groups }),
        };
        index.as_chunks::<4>().0.iter().enumerate().map(group).collect()
    }
}

/// Reader of the operands of one grid row after the other.
pub(super) struct GridRow<'a> {
    source: GridSource<'a>,
    /// `None` before the first row.
    position: Option<Position>,
    /// Changes with each row of the grid.
    version: u64,
    operands: RowOperands,
    scratch: Scratch,
}

/// Stored planes of a window, and the operands to read.
struct GridSource<'a> {
    grid: &'a Grid,
    scales: Stored<'a>,
    global: Option<Stored<'a>>,
    zeros: Option<Stored<'a>>,
    biases: Option<Stored<'a>>,
    book: &'a [u8],
    /// Group of each row or column. Empty if the layout has no index.
    groups: Vec<u64>,
    cols: Range<u64>,
    want: Want,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Position {
    /// Row in the grid of the scales.
    grid_row: u64,
    /// Row in the grid of the global scales.
    global_row: u64,
}

/// Operands of a grid row, as bytes of f32. There is one for each column of the grid, or with an index of columns one
/// for each column of the matrix.
#[derive(Default)]
struct RowOperands {
    scales: Vec<u8>,
    zeros: Option<Vec<u8>>,
    biases: Option<Vec<u8>>,
    /// Global scale of each entry, for [`Want::Exact`].
    globals: Vec<u8>,
    /// Codes of the scales.
    codes: Vec<u8>,
}

impl GridRow<'_> {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Codes of one-byte scales.
    pub fn codes(&self) -> &[u8] {
        &self.operands.codes
    }

    pub fn globals(&self) -> &[u8] {
        &self.operands.globals
    }

    pub fn operands(&self) -> Operands<'_> {
        let RowOperands { scales, zeros, biases, .. } = &self.operands;
        Operands { scales, zeros: zeros.as_deref(), biases: biases.as_deref(), factor: None }
    }

    /// Global scale of this row; 1 without global scale.
    pub fn global(&self) -> f32 {
        self.source.global_scale(self.position.map_or(0, |position| position.global_row), 0)
    }

    /// Effective scales of the 256 codes of a one-byte scale.
    pub fn all_scales(&mut self) -> Vec<u8> {
        let codes: Vec<u8> = (0..=255).collect();
        let mut scales = Vec::new();
        self.source.decode(&codes, codes.len(), &mut scales, &mut self.scratch);
        let global = self.global();
        self.source.combine(&mut scales, |_| global);
        scales
    }

    /// Goes to the grid row for a row of the matrix.
    pub fn go_to(&mut self, row: u64) {
        let GridRow { source, operands, scratch, .. } = self;
        let position = source.position(row);
        if self.position == Some(position) {
            return;
        }
        self.position = Some(position);
        self.version += 1;
        let planes = &source.grid.planes;
        let of_columns = planes.group == Group::OfColumn;
        let cols = if of_columns { 0..source.scales.cut.shape[1] } else { source.cols.clone() };
        source.read_scales(position, &cols, operands, scratch);
        if let Some(plane) = source.biases {
            let (mut codes, values) = (Vec::new(), operands.biases.get_or_insert_default());
            let n = read_codes(plane, position.grid_row, &cols, &mut codes);
            source.decode(&codes, n, values, scratch);
        }
        if let (Some(plane), Zero::Grid { plus, .. }) = (source.zeros, planes.zero) {
            operands.zeros = Some(source.zero_points(plane, plus, position.grid_row, &cols, scratch));
        }
        if of_columns {
            operands.gather(&source.groups[source.cols.start as usize..source.cols.end as usize]);
        }
    }
}

impl GridSource<'_> {
    fn position(&self, row: u64) -> Position {
        let planes = &self.grid.planes;
        let grid_row = match planes.group {
            Group::OfRow => self.groups[row as usize],
            _ => row / planes.scales.block[0],
        };
        Position { grid_row, global_row: planes.global.map_or(0, |global| row / global.block[0]) }
    }

    fn read_scales(&self, position: Position, cols: &Range<u64>, operands: &mut RowOperands, scratch: &mut Scratch) {
        let RowOperands { codes, scales, globals, .. } = operands;
        let n = read_codes(self.scales, position.grid_row, cols, codes);
        if self.want == Want::Codes {
            return;
        }
        self.decode(codes, n, scales, scratch);
        let (Some(global), planes) = (self.grid.planes.global, &self.grid.planes) else { return };
        let scales_per_global = global.block[1] / planes.scales.block[1].min(global.block[1]);
        let is_single = global.block[1] >= self.grid.layout.cols;
        let single = self.global_scale(position.global_row, 0);
        let global_col = |i: usize| (cols.start + i as u64) / scales_per_global;
        let global_of = |i| if is_single { single } else { self.global_scale(position.global_row, global_col(i)) };
        match self.want {
            Want::Exact => *globals = (0..n).flat_map(|i| global_of(i).to_le_bytes()).collect(),
            _ => self.combine(scales, global_of),
        }
    }

    /// 1 without global scale.
    fn global_scale(&self, row: u64, col: u64) -> f32 {
        match self.global {
            None => 1.0,
            Some(Stored { cut, bytes }) => {
                let at = cut.byte_of([row, col]);
                f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            }
        }
    }

    /// Combines each scale with its global scale (`docs/spec/checkpoints.md §3.2`, §4.12).
    fn combine(&self, scales: &mut [u8], global: impl Fn(usize) -> f32) {
        let Some(Global { rule, .. }) = self.grid.planes.global else { return };
        for (i, scale) in scales.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let (s, g) = (f32::from_le_bytes(*scale), global(i));
            let t = match rule {
                GlobalRule::Times => s * g,
                GlobalRule::Divide => s / g,
                GlobalRule::Amax => s * (g / 2688.0),
                GlobalRule::TimesPlus(offset) => s * g + f32::from_bits(offset),
            };
            *scale = t.to_le_bytes();
        }
    }

    /// Values of `n` codes of scales or biases.
    fn decode(&self, codes: &[u8], n: usize, values: &mut Vec<u8>, scratch: &mut Scratch) {
        values.resize(4 * n, 0);
        match &self.grid.decode {
            Some(decode) => decode.run_packed(codes, values, n, scratch),
            None => {
                let book = self.book.as_chunks::<4>().0;
                for (value, code) in values.as_chunks_mut::<4>().0.iter_mut().zip(codes) {
                    *value = book[usize::from(*code)];
                }
            }
        }
    }

    /// Zero points of a row; `plus` is added to integer codes.
    fn zero_points(&self, plane: Stored<'_>, plus: u8, row: u64, cols: &Range<u64>, scratch: &mut Scratch) -> Vec<u8> {
        let Stored { cut, bytes } = plane;
        let Code::Int(format) = cut.plane.code else {
            let Some(decode) = &self.grid.zeros else { return Vec::new() };
            let mut codes = Vec::new();
            let n = read_codes(plane, row, cols, &mut codes);
            let mut values = vec![0; 4 * n];
            decode.run_packed(&codes, &mut values, n, scratch);
            return values;
        };
        // At most 32 bits, which fit in i64.
        let value = |code: u64| format.value(code.wrapping_add(plus.into()) & format.mask()) as i64 as f32;
        if format.bits > 8 {
            return cols.clone().flat_map(|col| value(cut.get([row, col], bytes)).to_le_bytes()).collect();
        }
        let first = cut.cols.start;
        let mut codes = vec![0; (cols.end - first) as usize];
        unpack::row(self.grid.level, cut, bytes, row, first, &mut codes);
        codes[(cols.start - first) as usize..].iter().flat_map(|code| value(u64::from(*code)).to_le_bytes()).collect()
    }
}

impl RowOperands {
    /// Replaces the operands of the grid's columns by those of the matrix's columns, which have these groups.
    fn gather(&mut self, groups: &[u64]) {
        let gather = |operand: &mut Vec<u8>| {
            *operand = groups.iter().flat_map(|group| operand[4 * *group as usize..][..4].iter().copied()).collect();
        };
        let RowOperands { scales, zeros, biases, globals, .. } = self;
        let globals = Some(globals).filter(|globals| !globals.is_empty());
        [Some(scales), zeros.as_mut(), biases.as_mut(), globals].into_iter().flatten().for_each(gather);
    }
}

/// Reads codes of whole bytes from a row of a plane. Returns their number.
fn read_codes(plane: Stored<'_>, row: u64, cols: &Range<u64>, codes: &mut Vec<u8>) -> usize {
    let Stored { cut, bytes } = plane;
    let n = (cols.end - cols.start) as usize;
    let size = cut.plane.code.bits() as usize / 8;
    codes.clear();
    match cut.plane.packing {
        Packing::Rows { .. } => codes.extend_from_slice(&bytes[cut.byte_of([row, cols.start])..][..n * size]),
        // Four columns of a tile are adjacent; tiles of a row are adjacent (§3.8).
        Packing::Swizzled => {
            let first = cols.start / 4 * 4;
            let tiles = bytes[cut.byte_of([row, first])..].chunks(512).flat_map(|tile| &tile[..4]);
            codes.extend(tiles.skip((cols.start - first) as usize).take(n));
        }
        _ => {
            for col in cols.clone() {
                codes.extend_from_slice(&bytes[cut.byte_of([row, col])..][..size]);
            }
        }
    }
    n
}
