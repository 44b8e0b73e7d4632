//! Scales, zero points and biases of one grid row, in f32.

use super::cut::{Cut, Stored};
use super::unpack;
use super::values::{Operands, pipeline};
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch};
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{
    Book, Code, Form, Global, GlobalRule, Group, Layout, Packing, Part, Parts, Plane, Planes, ScaledError, Zero,
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

/// Part of a window, and its byte range.
pub(super) type PartCut = Option<(Part, Cut)>;

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

    /// Byte ranges of scales, global scales, zero points, biases, index and code book, for a box of the matrix.
    pub fn cuts(&self, rows: Range<u64>, cols: Range<u64>) -> [PartCut; 6] {
        let Planes { scales, zero, global, form, group, .. } = self.planes;
        let of_block = |range: &Range<u64>, block: u64| range.start / block..range.end.div_ceil(block);
        let shape = self.layout.grid(scales.block);
        let grid_rows = if group == Group::OfRow { 0..shape[0] } else { of_block(&rows, scales.block[0]) };
        let grid_cols = if group == Group::OfColumn { 0..shape[1] } else { of_block(&cols, scales.block[1]) };
        let on_grid = |part, plane| Some((part, Cut::new(plane, shape, grid_rows.clone(), grid_cols.clone())));
        let axis = |n: u64| {
            let plane = Plane { code: Code::signed(32), packing: Packing::BYTES };
            Some((Part::Index, Cut::new(plane, [1, n], 0..1, 0..n)))
        };
        [
            on_grid(Part::Scales, scales.plane),
            global.map(|global| {
                let shape = self.layout.grid(global.block);
                let (rows, cols) = (of_block(&rows, global.block[0]), of_block(&cols, global.block[1]));
                (Part::Global, Cut::new(Plane::of(DType::F32), shape, rows, cols))
            }),
            match zero {
                Zero::Grid { plane, .. } => on_grid(Part::Zeros, plane),
                _ => None,
            },
            if form == Form::Affine { on_grid(Part::Biases, scales.plane) } else { None },
            match group {
                Group::Grid => None,
                Group::OfRow => axis(self.layout.rows),
                Group::OfColumn => axis(self.layout.cols),
            },
            self.planes
                .has_book()
                .then(|| (Part::Book, Cut::new(Plane::of(DType::F32), [1, Book::STORED], 0..1, 0..Book::STORED))),
        ]
    }

    /// Starts reading the grid columns `cols` of a window.
    pub fn row<'a>(
        &'a self,
        cuts: &'a [PartCut; 7],
        parts: &Parts<'a>,
        cols: Range<u64>,
        want: Want,
    ) -> Result<GridRow<'a>, ScaledError> {
        let [_, scales, global, zeros, biases, index, _] = cuts;
        let of = |cut: &'a PartCut| cut.as_ref().map(|(part, cut)| Stored { cut, bytes: parts.get(*part) });
        let (Some(scales), index) = (of(scales), of(index)) else {
            return Err(ScaledError::Layout { why: "it has no scales" });
        };
        let groups: Vec<u64> = match index {
            None => Vec::new(),
            Some(Stored { bytes, .. }) => {
                let axis = if self.planes.group == Group::OfRow { 0 } else { 1 };
                let groups = self.layout.grid(self.planes.scales.block)[axis];
                let group = |(index, bytes): (usize, &[u8; 4])| match i32::from_le_bytes(*bytes) {
                    group if group >= 0 && (group as u64) < groups => Ok(group as u64),
                    group => Err(ScaledError::Index { index: index as u64, group: group.into(), groups }),
                };
                bytes.as_chunks::<4>().0.iter().enumerate().map(group).collect::<Result<_, _>>()?
            }
        };
        Ok(GridRow {
            grid: self,
            scale_plane: scales,
            global_plane: of(global),
            zero_plane: of(zeros),
            bias_plane: of(biases),
            book: parts.book,
            groups,
            cols,
            at: None,
            version: 0,
            want,
            globals: Vec::new(),
            codes: Vec::new(),
            scales: Vec::new(),
            zeros: None,
            biases: None,
            scratch: Scratch::default(),
        })
    }
}

/// Operands of a grid row, as bytes of f32. There is one for each column of the grid, or with an index of columns one
/// for each column of the matrix.
pub(super) struct GridRow<'a> {
    grid: &'a Grid,
    scale_plane: Stored<'a>,
    global_plane: Option<Stored<'a>>,
    zero_plane: Option<Stored<'a>>,
    bias_plane: Option<Stored<'a>>,
    book: &'a [u8],
    /// Group of each row or column. Empty if the layout has no index.
    groups: Vec<u64>,
    cols: Range<u64>,
    /// Row in the grid of the scales, and row in the grid of the global scales.
    at: Option<(u64, u64)>,
    /// Changes with each row of the grid.
    version: u64,
    want: Want,
    /// Global scale of each entry, for [`Want::Exact`].
    globals: Vec<u8>,
    codes: Vec<u8>,
    scales: Vec<u8>,
    zeros: Option<Vec<u8>>,
    biases: Option<Vec<u8>>,
    scratch: Scratch,
}

impl GridRow<'_> {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Codes of one-byte scales.
    pub fn codes(&self) -> &[u8] {
        &self.codes
    }

    pub fn globals(&self) -> &[u8] {
        &self.globals
    }

    pub fn operands(&self) -> Operands<'_> {
        Operands { scales: &self.scales, zeros: self.zeros.as_deref(), biases: self.biases.as_deref(), factor: None }
    }

    /// Bits of this row's global scale; the bits of 1 without global scale.
    pub fn global_bits(&self) -> u32 {
        self.global(self.at.map_or(0, |at| at.1), 0).to_bits()
    }

    /// Effective scales of the 256 codes of a one-byte scale.
    pub fn all_scales(&mut self) -> Vec<u8> {
        let codes: Vec<u8> = (0..=255).collect();
        let mut scales = vec![0; 4 * 256];
        self.decode(&codes, &mut scales);
        let row = self.at.map_or(0, |at| at.1);
        self.combine(&mut scales, |_| self.global(row, 0));
        scales
    }

    fn global(&self, row: u64, col: u64) -> f32 {
        match self.global_plane {
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

    /// Goes to the grid row for a row of the matrix.
    pub fn go_to(&mut self, row: u64) -> Result<(), ScaledError> {
        let planes = &self.grid.planes;
        let grid_row = match planes.group {
            Group::OfRow => self.groups[row as usize],
            _ => row / planes.scales.block[0],
        };
        let global_row = planes.global.map_or(0, |global| row / global.block[0]);
        if self.at == Some((grid_row, global_row)) {
            return Ok(());
        }
        self.at = Some((grid_row, global_row));
        self.version += 1;
        // Grid columns to read, and the parts of each operand.
        let of_columns = planes.group == Group::OfColumn;
        let stored = if of_columns { 0..self.scale_plane.cut.shape[1] } else { self.cols.clone() };
        let mut scales = std::mem::take(&mut self.scales);
        let mut codes = std::mem::take(&mut self.codes);
        self.read(self.scale_plane, grid_row, &stored, &mut codes, &mut scales);
        self.codes = codes;
        if let Some(global) = planes.global {
            let of_global = global.block[1] / planes.scales.block[1].min(global.block[1]);
            let first = stored.start;
            let whole = global.block[1] >= self.grid.layout.cols;
            let one = self.global(global_row, 0);
            let of = |i: usize| if whole { one } else { self.global(global_row, (first + i as u64) / of_global) };
            match self.want {
                Want::Results => self.combine(&mut scales, of),
                Want::Codes => {}
                Want::Exact => self.globals = (0..scales.len() / 4).flat_map(|i| of(i).to_le_bytes()).collect(),
            }
        }
        self.scales = scales;
        if let Some(plane) = self.bias_plane {
            let mut biases = self.biases.take().unwrap_or_default();
            self.read(plane, grid_row, &stored, &mut Vec::new(), &mut biases);
            self.biases = Some(biases);
        }
        if let (Some(plane), Zero::Grid { plus, .. }) = (self.zero_plane, planes.zero) {
            self.zeros = Some(self.zero_points(plane, plus, grid_row, &stored));
        }
        if of_columns {
            let groups = &self.groups[self.cols.start as usize..self.cols.end as usize];
            let gather = |all: &[u8]| -> Vec<u8> {
                groups.iter().flat_map(|group| all[4 * *group as usize..][..4].iter().copied()).collect()
            };
            self.scales = gather(&self.scales);
            self.zeros = self.zeros.as_deref().map(gather);
            self.biases = self.biases.as_deref().map(gather);
            if !self.globals.is_empty() {
                self.globals = gather(&self.globals);
            }
        }
        Ok(())
    }

    /// Entries of a row in a plane of scales: codes, and f32 values.
    fn read(&mut self, plane: Stored<'_>, row: u64, cols: &Range<u64>, codes: &mut Vec<u8>, values: &mut Vec<u8>) {
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
        if self.want == Want::Codes {
            return;
        }
        values.resize(4 * n, 0);
        self.decode(codes, values);
    }

    fn decode(&mut self, codes: &[u8], values: &mut [u8]) {
        let n = values.len() / 4;
        match &self.grid.decode {
            Some(decode) => {
                let _ = decode.run_packed(codes, values, n, &mut self.scratch);
            }
            None => {
                let book = self.book.as_chunks::<4>().0;
                for (value, code) in values.as_chunks_mut::<4>().0.iter_mut().zip(codes) {
                    *value = book[usize::from(*code)];
                }
            }
        }
    }

    fn zero_points(&self, plane: Stored<'_>, plus: u8, row: u64, cols: &Range<u64>) -> Vec<u8> {
        let Stored { cut, bytes } = plane;
        let Code::Int(format) = cut.plane.code else {
            let Some(decode) = &self.grid.zeros else { return Vec::new() };
            let (n, size) = ((cols.end - cols.start) as usize, cut.plane.code.bits() as usize / 8);
            let codes: Vec<u8> =
                cols.clone().flat_map(|col| bytes[cut.byte_of([row, col])..][..size].to_vec()).collect();
            let mut values = vec![0; 4 * n];
            let _ = decode.run_packed(&codes, &mut values, n, &mut Scratch::default());
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
