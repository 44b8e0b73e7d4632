//! Codes and scales whose scales are powers of two, in blocks of another size or codes of another type, fast. Formally
//! equivalent to `truecast_core::scaled::Regrouping`. Where they are read from is not known here.

use super::element::little_endian;
use crate::error::Cause;
use crate::stream::room;
use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use truecast_core::DType;
use truecast_core::scaled::{
    BlockExponent, BlockScale, Change, Code, GlobalRule, Layout, NoExponent, Part, Plane, Regrouping, Repacking,
    ScaledError,
};
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::{Read, Repacker};

const WIDE: DType = DType::F8E4M3Fn;

thread_local! {
    static CODES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SCALES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What tensors have in common that are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    /// Codes or scales.
    pub part: Part,
    /// The layout in the source.
    pub layout: Layout,
    pub how: Regrouping,
    /// The second scale of the source, as bits of f32.
    pub global: Option<(GlobalRule, u32)>,
    /// The exponent of that of the result.
    pub second: i32,
    pub blocks: Blocks,
}

/// The matrices of the source, and the blocks that share a scale on either side: those of one lie within those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blocks {
    pub matrices: u64,
    pub rows: u64,
    pub cols: u64,
    pub old: [u64; 2],
    pub new: [u64; 2],
}

impl Blocks {
    /// Blocks of a side in rows of a matrix that begin with one, and in a row.
    pub fn grid(&self, block: [u64; 2], rows: u64) -> [u64; 2] {
        [rows.div_ceil(block[0]), self.cols.div_ceil(block[1])]
    }

    /// Whole rows of blocks of both sides.
    pub fn unit(&self) -> u64 {
        self.old[0].max(self.new[0]).min(self.rows).max(1)
    }

    /// Each block of the result lies within one of the source.
    fn is_finer(&self) -> bool {
        (0..2).all(|i| self.new[i] <= self.old[i])
    }

    /// The blocks of the source that share elements with one of the result, in rows that begin with a block of both.
    pub fn sources(&self, [row, col]: [u64; 2], rows: u64) -> impl Iterator<Item = [u64; 2]> + use<> {
        let of = |i: usize, at: u64, end: u64| {
            let (first, last) = (at * self.new[i], ((at + 1) * self.new[i]).min(end));
            first / self.old[i]..last.div_ceil(self.old[i])
        };
        let (down, across) = (of(0, row, rows), of(1, col, self.cols));
        down.flat_map(move |row| across.clone().map(move |col| [row, col]))
    }
}

/// What is planned for all tensors that are treated alike.
#[derive(Debug)]
pub(crate) struct Regrouper {
    alike: Alike,
    shifts: RangeInclusive<i32>,
    exponents: RangeInclusive<i32>,
    /// Codes as those of f8e4m3fn, which has the values of all narrower ones.
    codes: Repacker,
    /// Scales row after row.
    scales: Repacker,
    of_scale: Code,
    /// Of all scales of eight bits.
    known: Vec<BlockScale>,
    /// Of each shift the codes of the result, by those of f8e4m3fn.
    moved: Vec<[u8; 256]>,
    /// The scale of each exponent.
    made: Vec<u64>,
}

/// Rows of a matrix of the source that were read.
pub(crate) struct Strip<'a> {
    pub rows: u64,
    /// Of each element, if they are needed.
    codes: &'a [u8],
    /// Of each block of the source, row after row.
    scales: Vec<BlockScale>,
    /// Whether the block has other elements than zeros.
    filled: Vec<bool>,
}

impl Strip<'_> {
    /// The scale of a block of the source, and whether it has nothing but zeros.
    pub fn of(&self, blocks: Blocks, [row, col]: [u64; 2]) -> (BlockScale, bool) {
        let [_, cols] = blocks.grid(blocks.old, self.rows);
        let at = (row * cols + col) as usize;
        (self.scales[at], !self.filled[at])
    }
}

impl Alike {
    /// The part cannot be made of scales alone.
    pub fn needs_codes(&self) -> bool {
        let planes = self.layout.planes();
        let are_powers = planes.is_some_and(|planes| planes.scales.plane.code == Code::Float(DType::F8E8M0));
        self.part == Part::Codes || !(self.blocks.is_finer() && are_powers && self.global.is_none())
    }

    /// Bytes of an entry of the part.
    pub fn entry(&self) -> u64 {
        if self.part == Part::Codes { 1 } else { u64::from(self.how.scales.code_bits() / 8) }
    }
}

impl Regrouper {
    /// Plans it.
    ///
    /// # Errors
    /// Planes that cannot be read row after row.
    pub fn new(of: &Alike, exec: &CastOptions) -> Result<Regrouper, ScaledError> {
        let invalid = || ScaledError::Layout { why: "codes of one type are none of the other" };
        let layout = &of.layout;
        let planes = layout.planes().ok_or_else(invalid)?;
        let Blocks { rows, cols, old, .. } = of.blocks;
        let unpacked = |from: Plane, to: Plane, from_shape, shape| Repacking {
            from,
            from_shape,
            to,
            to_shape: shape,
            kept: shape,
            transposed: false,
            change: if from.code == to.code { Change::None } else { Change::Float },
        };
        let shape = [rows, cols];
        let codes = unpacked(planes.codes, Plane::of(WIDE), [layout.rows, layout.cols], shape);
        let grid = layout.grid(old);
        let plane = planes.scales.plane;
        let scales = unpacked(plane, Plane { code: plane.code, ..Plane::of(WIDE) }, grid, of.blocks.grid(old, rows));
        let shifts = of.how.shifts().ok_or_else(invalid)?;
        let exponents = of.how.exponents();
        let all = |code: u64| BlockScale::of(plane.code, code, of.global);
        let widened = Regrouping { codes: [of.how.codes[0], WIDE], ..of.how };
        let of_shift = |shift: i32| {
            let mut table = [0; 256];
            for code in 0..1 << of.how.codes[0].code_bits() {
                if let (Some(wide), Some(made)) = (widened.code(code, 0), of.how.code(code, shift)) {
                    table[wide as usize] = made as u8;
                }
            }
            table
        };
        Ok(Regrouper {
            alike: *of,
            codes: Repacker::new(&codes, exec)?,
            scales: Repacker::new(&scales, exec)?,
            of_scale: plane.code,
            known: if plane.code.bits() == 8 { (0..256).map(all).collect() } else { Vec::new() },
            moved: if of.part == Part::Codes { shifts.clone().map(of_shift).collect() } else { Vec::new() },
            made: exponents.clone().map(|exponent| of.how.scale(exponent).unwrap_or(0)).collect(),
            shifts,
            exponents,
        })
    }

    pub fn alike(&self) -> Alike {
        self.alike
    }

    pub fn shifts(&self) -> RangeInclusive<i32> {
        self.shifts.clone()
    }

    /// The bytes of codes, if they are wanted, and scales that some rows of a matrix are made of.
    pub fn reads(&self, matrix: u64, rows: &Range<u64>, codes: bool) -> [Option<Read>; 2] {
        let block = self.alike.blocks.old[0];
        let codes = if codes { self.codes.read(Part::Codes, matrix, rows.clone()) } else { None };
        [codes, self.scales.read(Part::Scales, matrix, rows.start / block..rows.end.div_ceil(block))]
    }

    /// Calls `then` with the blocks of rows that were read.
    pub fn strip<R>(
        &self,
        (matrix, rows): (u64, Range<u64>),
        src: &[u8],
        has_codes: bool,
        then: impl FnOnce(&Strip<'_>) -> Result<R, Cause>,
    ) -> Result<R, Cause> {
        let [codes, _] = self.reads(matrix, &rows, has_codes);
        let (of_codes, of_scales) = src.split_at(codes.map_or(0, |read| read.bytes()) as usize);
        let n_rows = rows.end - rows.start;
        let block = self.alike.blocks.old[0];
        let grid = self.alike.blocks.grid(self.alike.blocks.old, n_rows);
        CODES.with_borrow_mut(|buffer| {
            let codes: &[u8] = match has_codes {
                true => {
                    let codes = room(buffer, n_rows * self.alike.blocks.cols)?;
                    self.codes.run(rows.clone(), of_codes, codes)?;
                    codes
                }
                false => &[],
            };
            let scales = SCALES.with_borrow_mut(|buffer| {
                let of = rows.start / block..rows.end.div_ceil(block);
                let entries = room(buffer, self.scales.bytes(of.end - of.start))?;
                self.scales.run(of, of_scales, entries)?;
                Ok::<_, Cause>(self.known_of(entries))
            })?;
            let filled = match has_codes {
                true => self.filled(codes, grid),
                // A scale that is a power of two may as well be that of zeros.
                false => vec![true; scales.len()],
            };
            then(&Strip { rows: n_rows, codes, scales, filled })
        })
    }

    fn known_of(&self, entries: &[u8]) -> Vec<BlockScale> {
        if !self.known.is_empty() {
            return entries.iter().map(|code| self.known[usize::from(*code)]).collect();
        }
        let entry = |bytes: &[u8]| BlockScale::of(self.of_scale, little_endian(bytes), self.alike.global);
        entries.chunks_exact(self.of_scale.bits() as usize / 8).map(entry).collect()
    }

    /// The blocks of the source that have other elements than zeros.
    fn filled(&self, codes: &[u8], [rows, cols]: [u64; 2]) -> Vec<bool> {
        let mut filled = vec![false; (rows * cols) as usize];
        let [high, wide] = self.alike.blocks.old;
        for (row, codes) in codes.chunks_exact(self.alike.blocks.cols as usize).enumerate() {
            let of_row = &mut filled[(row as u64 / high * cols) as usize..][..cols as usize];
            for (filled, codes) in of_row.iter_mut().zip(codes.chunks(wide.min(self.alike.blocks.cols) as usize)) {
                *filled |= codes.iter().fold(0, |seen, code| seen | code) & 0x7f != 0;
            }
        }
        filled
    }

    /// Of each block of the result.
    pub fn exponents_of<'s>(
        &'s self,
        strip: &'s Strip<'_>,
    ) -> impl Iterator<Item = Result<BlockExponent, NoExponent>> + 's {
        let [rows, cols] = self.alike.blocks.grid(self.alike.blocks.new, strip.rows);
        (0..rows).flat_map(move |row| (0..cols).map(move |col| [row, col])).map(move |at| {
            let blocks = self.alike.blocks.sources(at, strip.rows).map(|at| strip.of(self.alike.blocks, at));
            self.alike.how.block(blocks, &self.shifts, &self.exponents)
        })
    }

    /// Makes the part of rows that were read. `dst` has room for it.
    ///
    /// # Errors
    /// Scales that have no equal; what stands in `dst` then means nothing.
    pub fn put(&self, strip: &Strip<'_>, dst: &mut [u8]) -> Result<(), Cause> {
        let changed = || ScaledError::Layout { why: "its file was changed while it was converted" };
        let exponents = self.exponents_of(strip).collect::<Result<Vec<_>, _>>().map_err(|_| changed())?;
        match self.alike.part {
            Part::Codes => self.put_codes(strip, &exponents, dst).ok_or_else(changed)?,
            _ => self.put_scales(&exponents, dst),
        }
        Ok(())
    }

    fn put_scales(&self, exponents: &[BlockExponent], dst: &mut [u8]) {
        let entry = self.alike.entry() as usize;
        for (found, to) in exponents.iter().zip(dst.chunks_exact_mut(entry)) {
            let exponent = self.alike.how.held(*found, self.alike.second, &self.exponents);
            let code = self.made[(exponent - self.exponents.start()) as usize];
            to.copy_from_slice(&code.to_le_bytes()[..entry]);
        }
    }

    /// `None` if one has no equal.
    fn put_codes(&self, strip: &Strip<'_>, exponents: &[BlockExponent], dst: &mut [u8]) -> Option<()> {
        let Blocks { cols, old, new, .. } = self.alike.blocks;
        let [_, old_cols] = self.alike.blocks.grid(old, strip.rows);
        let [_, new_cols] = self.alike.blocks.grid(new, strip.rows);
        let together = old[1].min(new[1]).min(cols);
        let lines = strip.codes.chunks_exact(cols as usize).zip(dst.chunks_exact_mut(cols as usize));
        for (row, (codes, made)) in (0..).zip(lines) {
            let pieces = codes.chunks(together as usize).zip(made.chunks_mut(together as usize));
            for (at, (codes, made)) in (0..).zip(pieces) {
                let col: u64 = at * together;
                let block = (row / old[0] * old_cols + col / old[1]) as usize;
                let of_result = exponents[(row / new[0] * new_cols + col / new[1]) as usize];
                // Zeros stay what they are under any shift.
                let shift = match (strip.filled[block], strip.scales[block], of_result.exponent) {
                    (true, BlockScale::Power(k), Some(exponent)) => k - exponent,
                    (true, ..) => return None,
                    _ => *self.shifts.start(),
                };
                let table = self.moved.get(usize::try_from(shift - self.shifts.start()).ok()?)?;
                made.iter_mut().zip(codes).for_each(|(made, code)| *made = table[usize::from(*code)]);
            }
        }
        Some(())
    }
}
