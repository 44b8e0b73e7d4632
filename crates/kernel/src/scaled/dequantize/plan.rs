//! Plan of a dequantization: loops, and the bytes of a window.

use crate::level::Level;
use crate::options::CastOptions;
use crate::scaled::cut::{Cut, Cuts, Window, column_granule};
use crate::scaled::grid::Grid;
use crate::scaled::lookup;
use crate::scaled::values::{Decoder, Values};
use std::ops::Range;
use truecast_core::scaled::{
    BlockType, Code, Coding, Form, Group, Layout, Numbers, Packing, Plane, Planes, ScaledError, Zero,
};
use truecast_core::{CastSpec, DType};

#[derive(Debug)]
pub(super) struct Plan {
    pub layout: Layout,
    pub exec: CastOptions,
    pub values: Values,
    pub decoder: Decoder,
    pub coded: Coded,
    pub lookup: Lookup,
    /// f32 value of each code, as bytes.
    pub code_values: Vec<u8>,
    /// Columns per scale, at most the columns of a row.
    pub block: u64,
    /// Windows begin and end at multiples of this many columns, or at the end of a row.
    pub column_align: u64,
}

#[derive(Debug)]
pub(super) enum Coded {
    Planes(Box<Planes>, Box<Grid>),
    Blocks { block: BlockType, factor: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// No table: elements are computed one by one.
    Arithmetic,
    /// One table per block of a row.
    Table16,
    /// One table per code of a scale.
    Table16ByScale,
    /// Table of the results of all bytes. Many elements share a block, and so a table.
    Table256,
}

/// Minimum number of elements per block for a table of 256 results.
const TABLE256_FROM: u64 = 4096;
/// From this number of columns per block, windows may begin inside a block.
pub(super) const LONG_BLOCK: u64 = 1024;

impl Plan {
    pub fn new(layout: &Layout, spec: &CastSpec, exec: &CastOptions) -> Result<Plan, ScaledError> {
        layout.check()?;
        let level = exec.level;
        let (planes, block) = match layout.coding {
            Coding::Planes(planes) => (planes, planes.scales.block[1]),
            Coding::Blocks { block, factor } => return Plan::for_blocks(layout, block, factor, spec, exec),
            _ => return Err(ScaledError::Layout { why: "its coding is not known" }),
        };
        let values = Values::new(planes.form, Grid::scale_type(&planes), spec, level)?;
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let decoder = Decoder::new(planes.codes.code, minus, level)?;
        let block = if block >= layout.cols { layout.cols.next_multiple_of(64).max(64) } else { block };
        let lookup = lookup(layout, &planes, block, values.dst_bytes, level);
        let granule = column_granule(planes.codes.packing);
        let column_align = if block <= LONG_BLOCK { lcm(granule, block) } else { granule };
        let grid = Grid::new(layout, &planes, level)?;
        let coded = Coded::Planes(Box::new(planes), Box::new(grid));
        Ok(Plan::with(layout, exec, values, decoder, coded, lookup, block, column_align))
    }

    fn for_blocks(
        layout: &Layout,
        block: BlockType,
        factor: bool,
        spec: &CastSpec,
        exec: &CastOptions,
    ) -> Result<Plan, ScaledError> {
        let form = if block.has_bias() { Form::Affine } else { Form::Times };
        let values = Values::new(form, DType::F32, spec, exec.level)?;
        let decoder = match block.numbers() {
            Numbers::Minus(zero) => Decoder::new(Code::unsigned(block.bits()), zero.into(), exec.level)?,
            Numbers::Signed => Decoder::new(Code::signed(8), 0, exec.level)?,
            Numbers::Of(values) => Decoder::of_values(values.map(f32::from)),
        };
        let lookup = if block.bits() <= 4 && values.dst_bytes == 2 { Lookup::Table16 } else { Lookup::Arithmetic };
        let coded = Coded::Blocks { block, factor };
        Ok(Plan::with(layout, exec, values, decoder, coded, lookup, block.group(), block.elements()))
    }

    #[allow(clippy::too_many_arguments)] // each is a field
    fn with(
        layout: &Layout,
        exec: &CastOptions,
        values: Values,
        decoder: Decoder,
        coded: Coded,
        lookup: Lookup,
        block: u64,
        column_align: u64,
    ) -> Plan {
        let n_codes: usize = if lookup == Lookup::Table256 { 256 } else { 16 };
        let mut code_values = vec![0; n_codes * 4];
        let all: Vec<u8> = (0..n_codes).map(|code| code as u8).collect();
        decoder.run(&all, &mut code_values, &mut Default::default());
        Plan { layout: *layout, exec: *exec, values, decoder, coded, lookup, code_values, block, column_align }
    }

    /// Columns to read for a window.
    pub fn columns(&self, window: &Window) -> Range<u64> {
        let align = self.column_align;
        let end = window.cols.end.next_multiple_of(align).min(self.layout.cols);
        window.cols.start / align * align..end
    }

    pub fn cuts(&self, window: &Window) -> Cuts {
        let (cols, shape) = (self.columns(window), [self.layout.rows, self.layout.cols]);
        let rows = window.rows.clone();
        match &self.coded {
            Coded::Planes(planes, grid) => {
                let codes = Cut::new(planes.codes, shape, rows.clone(), cols.clone());
                grid.cuts(codes, rows, cols)
            }
            Coded::Blocks { block, factor } => {
                // Bytes of the blocks, as a matrix.
                let byte = |col: u64| col / block.elements() * block.bytes();
                let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
                let codes = Cut::new(plane, [shape[0], byte(shape[1])], rows, byte(cols.start)..byte(cols.end));
                let global = factor.then(|| Cut::new(Plane::of(DType::F32), [1, 1], 0..1, 0..1));
                Cuts { global, ..Cuts::of_codes(codes) }
            }
        }
    }

    /// Columns that share operands.
    pub fn columns_of_scale(&self) -> u64 {
        match &self.coded {
            Coded::Planes(_, grid) => grid.columns_of_scale(),
            Coded::Blocks { block, .. } => block.group(),
        }
    }

    /// End of the rows that share the tables of `row`; at least `row + 1`.
    pub fn rows_with_tables(&self, row: u64, end: u64) -> u64 {
        let Coded::Planes(planes, _) = &self.coded else { return row + 1 };
        if self.lookup != Lookup::Table256 || planes.group != Group::Grid {
            return row + 1;
        }
        let end_of = |block: u64| (row / block + 1).saturating_mul(block);
        let of_global = planes.global.map_or(u64::MAX, |global| end_of(global.block[0]));
        end.min(end_of(planes.scales.block[0])).min(of_global)
    }

    /// Codes are unpacked from multiples of this many columns.
    pub fn column_granule(&self) -> usize {
        match &self.coded {
            Coded::Planes(planes, _) => column_granule(planes.codes.packing) as usize,
            Coded::Blocks { .. } => 64,
        }
    }

    /// True if codes have `bits` bits and a readable packing, and all codes are allowed.
    pub fn is_packed(&self, bits: u32, is_readable: impl Fn(Packing) -> bool) -> bool {
        match &self.coded {
            Coded::Planes(planes, _) => {
                let Plane { code, packing } = planes.codes;
                code.bits() == bits && is_readable(packing) && planes.refused.is_none()
            }
            Coded::Blocks { .. } => false,
        }
    }
}

fn lookup(layout: &Layout, planes: &Planes, block: u64, dst_bytes: usize, level: Level) -> Lookup {
    if dst_bytes != 2 || planes.group == Group::OfColumn {
        return Lookup::Arithmetic;
    }
    let bits = planes.codes.code.bits();
    if bits <= 4 && lookup::fits_lookup16(block) {
        let alone = planes.form != Form::Affine && !matches!(planes.zero, Zero::Grid { .. });
        let one_global = planes.global.is_none_or(|global| global.block[1] >= layout.cols);
        let by_scale = planes.scales.plane.code.bits() == 8 && alone && one_global;
        return if by_scale { Lookup::Table16ByScale } else { Lookup::Table16 };
    }
    let sharing = planes.scales.block[0].min(layout.rows).saturating_mul(block);
    let rows_follow = planes.group == Group::Grid || planes.scales.block[0] == 1;
    if bits > 4
        && level.kernels().has_lookup256()
        && block.is_multiple_of(64)
        && sharing >= TABLE256_FROM
        && rows_follow
    {
        return Lookup::Table256;
    }
    Lookup::Arithmetic
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
