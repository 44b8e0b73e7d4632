//! Values of codes and scales by f32 arithmetic, row by row. Uncertain results are NaN; the reference definition
//! (`Layout::value`) then gives the value or the error.
//!
//! Scales, codes of at most eight bits, and the rounded terms of `docs/spec/checkpoints.md §3.2` are f32 numbers. Each
//! step is one f32 operation, rounded once.

use crate::files::convert::quantize::code::to_f32;
use crate::files::convert::recompute::fields::Fields;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::exact::Exact;
use truecast_core::scaled::{BlockType, Code, Coding, Form, GlobalRule, Group, Layout, Parts, Plane, Planes, Zero};

/// Marks an element that needs the reference definition.
const UNKNOWN: f32 = f32::NAN;

/// Up to this zero point, the difference of an eight-bit code and the zero point is exact in f32.
const LARGEST_ZERO: i64 = 1 << 22;

pub(crate) struct Arithmetic<'a> {
    layout: &'a Layout,
    parts: Parts<'a>,
    codes: [f32; 256],
    numbers: Numbers,
    /// Rows of the block grids to which `terms` belong: grid of scales, grid of global scales.
    row: Option<[u64; 2]>,
    terms: Vec<Term>,
}

#[derive(Clone, Copy)]
struct Term {
    zero: f32,
    scale: f32,
    bias: f32,
}

impl<'a> Arithmetic<'a> {
    /// `layout` must have one matrix.
    pub fn new(layout: &'a Layout, parts: Parts<'a>) -> Arithmetic<'a> {
        let mut codes = [UNKNOWN; 256];
        if let Some(planes) = layout.planes() {
            for (code, value) in (0..1 << planes.codes.code.bits().min(8)).zip(&mut codes) {
                *value = match planes.codes.code {
                    _ if planes.refused == Some(code) => UNKNOWN,
                    Code::Float(dtype) => to_f32(dtype, code),
                    Code::Int(format) => format.value(code) as f32,
                    Code::Book(book) => book.values().map_or(UNKNOWN, |all| f32::from_bits(all[(code & 15) as usize])),
                };
            }
        }
        let mut numbers = Numbers::new(layout.planes().map_or(Code::signed(8), |planes| planes.scales.plane.code));
        numbers.narrow.extend(parts.book.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Arithmetic { layout, parts, codes, numbers, row: None, terms: Vec::new() }
    }

    /// f32 bits of elements; NaN for uncertain elements.
    pub fn values(&mut self, elements: Range<u64>) -> Vec<u32> {
        let [_, cols] = self.layout.out();
        let mut all = vec![0; (elements.end - elements.start) as usize];
        if all.is_empty() {
            return all;
        }
        let rows = elements.start / cols..elements.end.div_ceil(cols);
        if self.layout.transposed {
            let mut columns = vec![0; (rows.end - rows.start) as usize];
            let first = elements.start - rows.start * cols;
            for stored in 0..cols {
                self.row(stored, rows.clone(), &mut columns);
                // Drops elements of partial rows that were not requested.
                for (row, value) in (0..).zip(&columns) {
                    let at = (row * cols + stored).wrapping_sub(first);
                    if let Some(element) = all.get_mut(at as usize) {
                        *element = *value;
                    }
                }
            }
            return all;
        }
        let mut rest = &mut all[..];
        for row in rows {
            let from = elements.start.saturating_sub(row * cols);
            let to = (elements.end - row * cols).min(cols);
            let (now, later) = rest.split_at_mut((to - from) as usize);
            self.row(row, from..to, now);
            rest = later;
        }
        all
    }

    fn row(&mut self, row: u64, cols: Range<u64>, values: &mut [u32]) {
        match &self.layout.coding {
            Coding::Planes(planes) => self.of_planes(planes, row, cols, values),
            Coding::Blocks { block, factor } => self.of_blocks(*block, *factor, row, cols, values),
            _ => values.fill(UNKNOWN.to_bits()),
        }
    }

    fn of_planes(&mut self, planes: &Planes, row: u64, cols: Range<u64>, values: &mut [u32]) {
        let Layout { rows, cols: all_cols, .. } = *self.layout;
        let grid = self.layout.grid(planes.scales.block);
        let index = |at, len| {
            let groups = Plane { code: Code::signed(32), ..Plane::of(DType::F32) };
            groups.get([1, len], [0, at], self.parts.index) as u32
        };
        let grid_row = match planes.group {
            Group::OfRow => u64::from(index(row, rows)),
            _ => row / planes.scales.block[0],
        };
        let of_global = planes.global.map_or(0, |global| row / global.block[0]);
        if grid_row >= grid[0] {
            return values.fill(UNKNOWN.to_bits());
        }
        let of_row = Some([grid_row, of_global]);
        if self.row != of_row {
            self.terms(planes, grid, [grid_row, of_global]);
            self.row = of_row;
        }
        let codes = Fields { plane: planes.codes, shape: [rows, all_cols], bytes: self.parts.codes };
        codes.read(row, cols.clone(), values);
        let (form, scale_type) = (planes.form, planes.scales.plane.code);
        if planes.group == Group::OfColumn {
            for (col, value) in cols.zip(values) {
                let unknown = Term { zero: 0.0, scale: UNKNOWN, bias: 0.0 };
                let term = self.terms.get(index(col, all_cols) as usize).copied().unwrap_or(unknown);
                combine(form, scale_type, &self.codes, term, std::slice::from_mut(value));
            }
            return;
        }
        let wide = planes.scales.block[1];
        let mut rest = values;
        let (mut col, mut at) = (cols.start, cols.start / wide);
        while !rest.is_empty() {
            let end = ((at + 1).saturating_mul(wide)).min(cols.end);
            let (now, later) = rest.split_at_mut((end - col) as usize);
            combine(form, scale_type, &self.codes, self.terms[at as usize], now);
            (rest, col, at) = (later, end, at + 1);
        }
    }

    /// Reads scales, zero points and biases of a grid row.
    fn terms(&mut self, planes: &Planes, grid: [u64; 2], [row, of_global]: [u64; 2]) {
        let len = grid[1] as usize;
        let read = |plane, bytes| {
            let mut codes = vec![0; len];
            Fields { plane, shape: grid, bytes }.read(row, 0..grid[1], &mut codes);
            codes
        };
        let numbers = |bytes| -> Vec<f32> {
            read(planes.scales.plane, bytes).into_iter().map(|code| self.numbers.get(code)).collect()
        };
        let scales = numbers(self.parts.scales);
        let biases = if planes.form == Form::Affine { numbers(self.parts.biases) } else { vec![0.0; len] };
        let zeros: Vec<f32> = match planes.zero {
            Zero::None => vec![0.0; len],
            Zero::Constant(zero) => vec![exact(zero.into()); len],
            Zero::Grid { plane: plane @ Plane { code: Code::Int(format), .. }, plus } => {
                let zero = |code| format.value(u64::from(code).wrapping_add(plus.into()) & format.mask());
                read(plane, self.parts.zeros).into_iter().map(|code| exact(zero(code) as i64)).collect()
            }
            Zero::Grid { plane, .. } => {
                let numbers = Numbers::new(plane.code);
                read(plane, self.parts.zeros).into_iter().map(|code| numbers.get(code)).collect()
            }
        };
        let mut globals = vec![1.0; len];
        if let Some(global) = planes.global {
            let block = planes.scales.block[1];
            // A column of the grid has one global scale.
            let is_one = global.block[1] >= self.layout.cols || global.block[1].is_multiple_of(block);
            let of_row = self.layout.grid(global.block)[1];
            let get =
                |at: u64| self.parts.global.as_chunks().0.get(at as usize).map(|bytes| f32::from_le_bytes(*bytes));
            for (at, value) in (0..).zip(&mut globals) {
                let found = get(of_global * of_row + at * block / global.block[1]);
                let is_known = is_one && planes.group == Group::Grid;
                *value = found.filter(|_| is_known).unwrap_or(UNKNOWN);
            }
        }
        let rule = planes.global.map(|global| global.rule);
        let term = |at: usize| {
            let scale = match rule {
                None => scales[at],
                Some(GlobalRule::Times) => scales[at] * globals[at],
                Some(GlobalRule::Divide) => scales[at] / globals[at],
                Some(GlobalRule::Amax) => scales[at] * (globals[at] / 2688.0),
                Some(GlobalRule::TimesPlus(offset)) => scales[at] * globals[at] + f32::from_bits(offset),
            };
            Term { zero: zeros[at], scale, bias: biases[at] }
        };
        self.terms = (0..len).map(term).collect();
    }

    /// Values of GGUF blocks. The reference definition gives the integers and factors.
    fn of_blocks(&self, block: BlockType, factor: bool, row: u64, cols: Range<u64>, values: &mut [u32]) {
        let (of_block, group) = (block.elements(), block.group());
        let last = self.parts.global.first_chunk().map(|bytes| f32::from_le_bytes(*bytes)).filter(|_| factor);
        let mut col = cols.start;
        let mut rest = values;
        while !rest.is_empty() {
            let end = ((col / group + 1) * group).min(cols.end);
            let (now, later) = rest.split_at_mut((end - col) as usize);
            let first = (row * (self.layout.cols / of_block) + col / of_block) * block.bytes();
            let bytes = &self.parts.codes[first as usize..][..block.bytes() as usize];
            let at = (col % of_block) as usize;
            match block.factors(bytes, at) {
                None => now.fill(UNKNOWN.to_bits()),
                Some((scale, bias)) => {
                    let scale = of_exact(scale);
                    let bias = bias.map(of_exact);
                    for (i, value) in (at..).zip(now) {
                        let mut x = block.code(bytes, i) as f32 * scale;
                        if let Some(bias) = bias {
                            x += bias;
                        }
                        if let Some(last) = last {
                            x *= last;
                        }
                        *value = x.to_bits();
                    }
                }
            }
            (rest, col) = (later, end);
        }
    }
}

fn combine(form: Form, scale_type: Code, of_code: &[f32; 256], term: Term, codes: &mut [u32]) {
    let Term { zero, scale, bias } = term;
    let value = |code: &u32| of_code[(code & 255) as usize] - zero;
    match form {
        Form::Times => codes.iter_mut().for_each(|code| *code = (value(code) * scale).to_bits()),
        Form::TimesConstant(k) => {
            codes.iter_mut().for_each(|code| *code = (value(code) * scale * f32::from_bits(k)).to_bits());
        }
        Form::Divide => codes.iter_mut().for_each(|code| *code = (value(code) / scale).to_bits()),
        Form::Affine => {
            for code in codes {
                let product = rounded(scale_type, value(code) * scale);
                *code = rounded(scale_type, product + bias).to_bits();
            }
        }
    }
}

/// Rounds a sum or product in f32 to the type of its operands. The double rounding is exact: f32 has at least twice the
/// type's bits plus 2. Products with an eight-bit code are exact.
fn rounded(of: Code, x: f32) -> f32 {
    let (beyond, range) = match of {
        Code::Float(DType::F32) => return x,
        Code::Float(DType::Bf16) => (16, 0.0..=f32::MAX),
        // Normal range, without the largest numbers.
        Code::Float(DType::F16) => (13, 6.2e-5..=65000.0),
        _ => return UNKNOWN,
    };
    if x != 0.0 && !range.contains(&x.abs()) {
        return UNKNOWN;
    }
    let bits = x.to_bits();
    let even = bits >> beyond & 1;
    f32::from_bits((bits + (1 << (beyond - 1)) - 1 + even) >> beyond << beyond)
}

pub(crate) struct Numbers {
    of: Code,
    /// Values of all codes, for types of at most eight bits.
    narrow: Vec<f32>,
}

impl Numbers {
    pub fn new(of: Code) -> Numbers {
        let narrow = match of {
            Code::Float(dtype) if of.bits() <= 8 => (0..256).map(|code| to_f32(dtype, code)).collect(),
            _ => Vec::new(),
        };
        Numbers { of, narrow }
    }

    pub fn get(&self, code: u32) -> f32 {
        match self.of {
            Code::Float(DType::F32) => f32::from_bits(code),
            Code::Float(DType::Bf16) => f32::from_bits(code << 16),
            Code::Float(dtype) => self.narrow.get(code as usize).copied().unwrap_or_else(|| to_f32(dtype, code.into())),
            Code::Book(_) => self.narrow.get(code as usize).copied().unwrap_or(UNKNOWN),
            Code::Int(_) => UNKNOWN,
        }
    }
}

fn of_exact(value: Exact) -> f32 {
    match value {
        Exact::Finite { neg, sig, exp, .. } => {
            let magnitude = (sig as f64 * f64::from_bits(((1023 + exp) as u64) << 52)) as f32;
            if neg { -magnitude } else { magnitude }
        }
        _ => UNKNOWN,
    }
}

fn exact(zero: i64) -> f32 {
    if zero.abs() <= LARGEST_ZERO { zero as f32 } else { UNKNOWN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::scaled::{Book, Global, Packing, Part, Scales};
    use truecast_testkit::random::Random;

    /// Ordinary scales, and limits of f32.
    const SPECIAL: [u32; 16] = [
        0, 0x8000_0000, 1, 0x8000_0001, 0x007f_ffff, 0x0080_0000, 0x0080_0001, 0x7f7f_ffff, 0xff7f_ffff, 0x7f80_0000,
        0xff80_0000, 0x7fc0_0000, 0x7f00_0000, 0x0200_0001, 0x3f80_0000, 0xbf80_0000,
    ];

    fn entries(of: Code, len: u64, stream: &mut Random, is_ordinary: bool) -> Vec<u8> {
        let bytes = u64::from(of.bits().div_ceil(8));
        let mut all = Vec::new();
        for _ in 0..len / bytes {
            let near_one = 0x3c00_0000 | stream.next() as u32 & 0x00ff_ffff;
            let special = SPECIAL[(stream.next() % 16) as usize];
            let value = if is_ordinary || !stream.next().is_multiple_of(3) { near_one } else { special };
            let code = match of {
                Code::Float(DType::F32) => value,
                Code::Float(DType::Bf16) => value >> 16,
                Code::Float(DType::F16) if is_ordinary => 0x3000 | stream.next() as u32 & 0x7ff,
                Code::Float(DType::F8E8M0) if is_ordinary => 0x78 + stream.next() as u32 % 8,
                Code::Float(DType::F8E4M3Fn | DType::F8E5M2) if is_ordinary => 0x30 + stream.next() as u32 % 16,
                _ => stream.next() as u32,
            };
            all.extend(&code.to_le_bytes()[..bytes as usize]);
        }
        all.resize(len as usize, stream.next() as u8);
        all
    }

    /// Compares arithmetic with the reference definition. Returns the number of certain values, and of all values.
    fn check(layout: &Layout, is_ordinary: bool, stream: &mut Random) -> (u64, u64) {
        layout.check().unwrap();
        let bytes = |part, of: Code, stream: &mut Random| {
            entries(of, layout.part_bytes(part).unwrap().unwrap_or(0), stream, is_ordinary)
        };
        let scale_type = layout.planes().map_or(Code::signed(8), |planes| planes.scales.plane.code);
        let float = Code::Float(DType::F32);
        let by_rows = layout.planes().is_some_and(|planes| planes.group == Group::OfRow);
        let groups = layout.scale_grid().map_or(1, |grid| grid[usize::from(!by_rows)]);
        let mut index = Vec::new();
        for _ in 0..layout.part_bytes(Part::Index).unwrap().unwrap_or(0) / 4 {
            let group = stream.next() % (groups + u64::from(!is_ordinary && stream.next().is_multiple_of(50)));
            index.extend((group as u32).to_le_bytes());
        }
        let mut codes = bytes(Part::Codes, Code::unsigned(8), stream);
        if let (Coding::Blocks { block, .. }, true) = (layout.coding, is_ordinary) {
            // Ordinary f16 and E8M0 scales, at any position.
            codes.chunks_mut(block.bytes() as usize).flatten().for_each(|byte| *byte = 0x20 | *byte & 0x1f);
        }
        let (scales, zeros) = (bytes(Part::Scales, scale_type, stream), bytes(Part::Zeros, Code::unsigned(8), stream));
        let (global, biases) = (bytes(Part::Global, float, stream), bytes(Part::Biases, scale_type, stream));
        let book = bytes(Part::Book, float, stream);
        let of = [&codes, &scales, &global, &zeros, &biases, &index, &book];
        let parts = Parts::of(|part| of[Part::ALL.iter().position(|known| *known == part).unwrap()]);
        let len = layout.elements();
        let (from, to) = (stream.next() % len.min(40), len - stream.next() % len.min(40) / 2);
        let (mut known, mut all) = (0, 0);
        for range in [0..len, from.min(to)..to] {
            let found = Arithmetic::new(layout, parts).values(range.clone());
            for (index, value) in range.zip(found) {
                all += 1;
                if !f32::from_bits(value).is_nan() {
                    known += 1;
                    assert_eq!(layout.value(&parts, index), Ok(value), "{layout:?} {index}");
                }
            }
        }
        (known, all)
    }

    fn layouts() -> Vec<Layout> {
        let int = |bits, signed| Plane {
            code: if signed { Code::signed(bits) } else { Code::unsigned(bits) },
            packing: Packing::BYTES,
        };
        let mut all = Vec::new();
        let codes = [
            Plane::of(DType::F8E4M3Fn),
            Plane::of(DType::F8E5M2),
            Plane::of(DType::F4E2M1),
            Plane::of(DType::F4E2M1).packed(Packing::HighFirst),
            Plane::of(DType::F6E3M2),
            int(8, true),
            int(4, true),
            int(3, false),
            int(4, false).packed(Packing::Padded),
            int(4, false).packed(Packing::Awq),
            int(3, false).packed(Packing::Columns { word: 32 }),
            int(2, false).packed(Packing::Planes),
        ];
        let scales = [DType::F32, DType::F16, DType::Bf16, DType::F8E4M3Fn, DType::F8E5M2, DType::F8E8M0];
        for (codes, scales) in codes.into_iter().flat_map(|codes| scales.map(|scales| (codes, scales))) {
            for block in [[1, 16], [128, 128], [3, 8], [1, 48], [32, 48], [32, 1]] {
                let planes = Planes::times(codes, Plane::of(scales), block);
                let new = |planes| Layout::new(2, [32, 48], Coding::Planes(planes));
                all.push(new(planes));
                all.push(Layout { transposed: true, kept: [31, 45], ..new(planes) });
                all.push(new(Planes { form: Form::Divide, ..planes }));
                for rule in [GlobalRule::Times, GlobalRule::Divide, GlobalRule::Amax] {
                    for of in [[32, 48], [block[0], 48], [1, 16], [1, 5]] {
                        all.push(new(Planes { global: Some(Global { rule, block: of }), ..planes }));
                    }
                }
                all.push(new(Planes { form: Form::Affine, ..planes }));
                all.push(new(Planes { group: Group::OfRow, ..planes }));
                all.push(new(Planes { group: Group::OfColumn, ..planes }));
                all.push(new(Planes { refused: Some(3), ..planes }));
                if let Code::Int(_) = codes.code {
                    all.push(new(Planes { zero: Zero::Constant(8), ..planes }));
                    for (plane, plus) in
                        [(int(4, false), 1), (int(8, true), 0), (int(4, false).packed(Packing::Padded), 0)]
                    {
                        all.push(new(Planes { zero: Zero::Grid { plane, plus }, ..planes }));
                        let scales = Scales { block: [16, 1], ..planes.scales };
                        let zero = Zero::Grid { plane: plane.packed(Packing::Columns { word: 32 }), plus };
                        all.push(Layout { transposed: true, ..new(Planes { scales, zero, ..planes }) });
                    }
                }
            }
        }
        for (codes, scales) in [(Book::Nf4, Code::Float(DType::F32)), (Book::Fp4, Code::Book(Book::Stored))] {
            let plane = |code| Plane { code, packing: Packing::BYTES };
            let global = Some(Global { rule: GlobalRule::TimesPlus(0x3e07_7777), block: [1, 48] });
            let times = Planes::times(plane(Code::Book(codes)), plane(scales), [1, 16]);
            all.push(Layout::new(2, [32, 48], Coding::Planes(Planes { global, ..times })));
        }
        let times = Planes::times(int(8, true), Plane::of(DType::F32), [1, 48]);
        let form = Form::TimesConstant(0x3c01_0204);
        all.push(Layout::new(2, [32, 48], Coding::Planes(Planes { form, ..times })));
        let zero = Zero::Grid { plane: Plane::of(DType::F32), plus: 0 };
        all.push(Layout::new(2, [32, 48], Coding::Planes(Planes { zero, ..times })));
        for (block, factor) in BlockType::ALL.into_iter().flat_map(|block| [(block, false), (block, true)]) {
            all.push(Layout::new(2, [4, 768], Coding::Blocks { block, factor }));
        }
        all.into_iter().filter(|layout| layout.check().is_ok()).collect()
    }

    #[test]
    fn values_are_those_of_the_definition() {
        let (mut stream, mut known) = (Random::seeded(5), 0);
        for layout in layouts() {
            known += check(&Layout { matrices: 1, ..layout }, false, &mut stream).0;
        }
        assert!(known > 1_000_000, "{known}");
    }

    #[test]
    fn ordinary_values_are_known() {
        let mut stream = Random::seeded(7);
        for layout in layouts() {
            let is_odd = layout.planes().is_some_and(|planes| {
                let one_in_scales = planes.global.is_none_or(|global| {
                    let [_, cols] = planes.scales.block;
                    planes.group == Group::Grid
                        && (global.block[1] >= layout.cols || global.block[1].is_multiple_of(cols))
                });
                let eight_bits =
                    matches!(planes.scales.plane.code, Code::Float(DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0));
                !one_in_scales || planes.refused.is_some() || planes.form == Form::Affine && eight_bits
            });
            let (known, all) = check(&Layout { matrices: 1, ..layout }, true, &mut stream);
            assert!(is_odd || known * 100 >= all * 80, "{layout:?}: {known} of {all}");
        }
    }
}
