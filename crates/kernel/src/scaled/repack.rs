//! [`Repacker`]: conversion of a plane to another packing or type. Formally equivalent to
//! [`truecast_core::scaled::Repacking`].

use super::cut::{Cut, Read};
use super::dequantize::transposed::{ByteColumns, COLUMNS, STRIP, Strip, transpose};
use super::unpack;
use crate::buf::{Elements, ElementsMut};
use crate::caster::Caster;
use crate::level::Level;
use crate::options::{CastOptions, Counting};
use crate::pack;
use std::cell::RefCell;
use std::ops::Range;
use truecast_core::scaled::{Change, Code, Packing, Part, Plane, Repacking, ScaledError};
use truecast_core::{CastPolicy, CastSpec};

/// Planned repacking; immutable, for any number of threads with separate rows.
///
/// # Examples
/// ```
/// use truecast_core::scaled::{Change, Code, Packing, Part, Plane, Repacking};
/// use truecast_kernel::{CastOptions, scaled::Repacker};
/// let nibbles = |packing| Plane { code: Code::unsigned(4), packing };
/// let how = Repacking {
///     from: nibbles(Packing::HighFirst), from_shape: [2, 4], to: nibbles(Packing::BYTES), to_shape: [2, 4],
///     kept: [2, 4], transposed: false, change: Change::None,
/// };
/// let repacker = Repacker::new(&how, &CastOptions::default())?;
/// let mut made = [0; 4];
/// assert_eq!(repacker.read(Part::Codes, 0, 0..2).map(|read| read.bytes()), Some(4));
/// assert_eq!(repacker.run(0..2, &[0x12, 0x34, 0x56, 0x78], &mut made)?, None);
/// assert_eq!(made, [0x21, 0x43, 0x65, 0x87]);
/// # Ok::<(), truecast_core::scaled::ScaledError>(())
/// ```
#[derive(Debug)]
pub struct Repacker {
    how: Repacking,
    level: Level,
    map: Map,
}

#[derive(Debug)]
enum Map {
    Nothing,
    /// Results of all codes of at most 8 bits; [`NONE`] without result.
    Table(Box<[u16; 256]>),
    /// Casts of wider entries, to the result type and back. An entry without an exact result changes.
    Cast(Box<[Caster; 2]>),
}

/// Mark for a code without result.
const NONE: u16 = 0x100;

#[derive(Default)]
struct Buffers {
    rows: Vec<u8>,
    /// Transposed columns of the source.
    turned: Vec<u8>,
    byte_columns: ByteColumns,
    /// A row in the slots of the result, and cast back.
    row: Vec<u8>,
    back: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

fn slot(plane: &Plane) -> usize {
    (plane.code.bits() as usize).div_ceil(8)
}

impl Repacker {
    /// Plans a repacking.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for planes that do not fit each other, or an impossible shape.
    pub fn new(how: &Repacking, exec: &CastOptions) -> Result<Repacker, ScaledError> {
        let invalid = |why| Err(ScaledError::Layout { why });
        let Repacking { from, from_shape, to, to_shape, kept, transposed, change } = *how;
        let taken = if transposed { [kept[1], kept[0]] } else { kept };
        if (0..2).any(|i| taken[i] > from_shape[i] || kept[i] > to_shape[i]) {
            return invalid("more entries are kept than exist");
        }
        if from.bytes(from_shape).is_none() || to.bytes(to_shape).is_none() {
            return invalid("planes cannot have this shape");
        }
        let is_narrow = |plane: &Plane| plane.code.bits() <= 8;
        let is_in_slots = |plane: &Plane| is_narrow(plane) || matches!(plane.packing, Packing::Rows { .. });
        if !is_in_slots(&from) || !is_in_slots(&to) {
            return invalid("wide entries are not in rows");
        }
        let map = match (change, from.code, to.code) {
            (Change::None, ..) if from.code.bits() == to.code.bits() => Map::Nothing,
            (Change::Integer { .. }, Code::Int(_), Code::Int(_)) | (Change::Float, Code::Float(_), Code::Float(_))
                if is_narrow(&from) && is_narrow(&to) =>
            {
                let of = |code: u64| if code >> from.code.bits() == 0 { how.code(code) } else { None };
                let table: Vec<u16> = (0..256).map(|code| of(code).map_or(NONE, |code| code as u16)).collect();
                Map::Table(table.try_into().expect("there are 256 results"))
            }
            (Change::Float, Code::Float(from), Code::Float(to)) => {
                let caster = |src, dst| {
                    let spec = CastSpec { src, dst, policy: CastPolicy::IEEE, undefined: &[], clause: "§8" };
                    Caster::new(&spec, &CastOptions { counting: Counting::Off, ..*exec })
                };
                let Ok(casters) = caster(from, to).and_then(|there| Ok([there, caster(to, from)?])) else {
                    return invalid("entries of one type cannot be written in the other");
                };
                Map::Cast(Box::new(casters))
            }
            _ => return invalid("entries of one type are not entries of the other"),
        };
        Ok(Repacker { how: *how, level: exec.level, map })
    }

    /// Returns the number of rows whose multiples can be computed separately. The last rows may be fewer.
    #[must_use]
    pub fn granule(&self) -> u64 {
        let bits = u64::from(self.how.to.code.bits());
        match self.how.to.packing {
            Packing::Columns { word } => u64::from(word) >> bits.trailing_zeros().min(u32::from(word).trailing_zeros()),
            Packing::PaddedColumns | Packing::AwqColumns => 32 / bits,
            Packing::Swizzled => 128,
            Packing::Planes => self.how.to_shape[0].max(1),
            _ => 1,
        }
    }

    fn cut(&self, rows: &Range<u64>) -> Option<Cut> {
        let Repacking { from, from_shape, kept, transposed, .. } = self.how;
        let (rows, cols) = (rows.start..rows.end.min(kept[0]), 0..kept[1]);
        if rows.is_empty() || cols.is_empty() {
            return None;
        }
        let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
        Some(Cut::new(from, from_shape, rows, cols))
    }

    /// Returns the source bytes that rows of a matrix need, as a range. `None` if the rows need no bytes.
    #[must_use]
    pub fn read(&self, part: Part, matrix: u64, rows: Range<u64>) -> Option<Read> {
        self.cut(&rows).map(|cut| cut.read(part, matrix))
    }

    /// Returns the size in bytes of `rows` rows of the result, from a multiple of [`granule`](Repacker::granule).
    #[must_use]
    pub fn bytes(&self, rows: u64) -> u64 {
        self.how.to.bytes([rows, self.how.to_shape[1]]).unwrap_or(0)
    }

    /// Computes rows of the result from the bytes of [`read`](Repacker::read). `dst` is overwritten completely.
    /// Returns row and column of the first entry whose value the result cannot hold; the result of that entry is
    /// unspecified.
    ///
    /// Cost: memory for the entries of the rows, each in a slot of whole bytes; one thread.
    ///
    /// # Errors
    /// [`ScaledError::Size`] if a buffer does not fit.
    pub fn run(&self, rows: Range<u64>, src: &[u8], dst: &mut [u8]) -> Result<Option<[u64; 2]>, ScaledError> {
        let (cut, n) = (self.cut(&rows), rows.end - rows.start);
        let expected = [cut.as_ref().map_or(0, Cut::bytes), self.bytes(n)];
        for (expected, got) in expected.into_iter().zip([src.len() as u64, dst.len() as u64]) {
            if expected != got {
                return Err(ScaledError::Size { part: Part::Codes, expected, got });
            }
        }
        dst.fill(0);
        let Some(cut) = cut else { return Ok(None) };
        BUFFERS.with_borrow_mut(|buffers| Ok(self.run_in(buffers, rows, &cut, src, dst)))
    }

    fn run_in(
        &self,
        buffers: &mut Buffers,
        rows: Range<u64>,
        cut: &Cut,
        src: &[u8],
        dst: &mut [u8],
    ) -> Option<[u64; 2]> {
        let Repacking { from, to, to_shape: [_, cols], kept, transposed, .. } = self.how;
        let (size, n_cols) = (slot(&from), kept[1] as usize);
        let n = rows.end.min(kept[0]) - rows.start;
        if transposed {
            self.turned(buffers, &rows, cut, src);
        }
        let in_rows = matches!(to.packing, Packing::Rows { .. } | Packing::HighFirst | Packing::Padded | Packing::Awq);
        let (row_bytes, of_chunk) = (self.bytes(1) as usize, [rows.end - rows.start, cols]);
        let mut wrong = None;
        for i in 0..n {
            let entries = if transposed {
                &buffers.turned[i as usize * n_cols * size..][..n_cols * size]
            } else {
                let wide = (cut.cols.end - cut.cols.start) as usize * size;
                buffers.rows.resize(wide, 0);
                self.unpacked(cut, src, rows.start + i, &mut buffers.rows);
                &buffers.rows[..n_cols * size]
            };
            buffers.row.resize(cols as usize * slot(&to), 0);
            let (made, rest) = buffers.row.split_at_mut(n_cols * slot(&to));
            rest.fill(0);
            if let Some(col) = self.mapped(entries, made, &mut buffers.back) {
                wrong = wrong.or(Some([rows.start + i, col]));
            }
            if in_rows {
                pack_row(self.level, &to, &buffers.row, &mut dst[i as usize * row_bytes..][..row_bytes]);
            } else {
                scatter(&to, of_chunk, i, &buffers.row, dst);
            }
        }
        wrong
    }

    /// A row of the source, one entry per slot.
    fn unpacked(&self, cut: &Cut, src: &[u8], row: u64, entries: &mut [u8]) {
        let Repacking { from, .. } = self.how;
        let first = cut.cols.start;
        if from.code.bits() > 8 {
            entries.copy_from_slice(&src[cut.byte_of([row, first])..][..entries.len()]);
        } else if from.packing == Packing::Swizzled {
            for (col, entry) in (first..).zip(entries) {
                *entry = src[cut.byte_of([row, col])];
            }
        } else if from.packing == (Packing::Columns { word: 8 }) && 8 % from.code.bits() != 0 {
            for (col, entry) in (first..).zip(entries) {
                *entry = cut.get([row, col], src) as u8;
            }
        } else {
            unpack::row(self.level, cut, src, row, first, entries);
        }
    }

    /// Columns of the source as rows.
    fn turned(&self, buffers: &mut Buffers, rows: &Range<u64>, cut: &Cut, src: &[u8]) {
        let Repacking { from, kept, .. } = self.how;
        let (size, stored) = (slot(&from), kept[1]);
        let wide = (cut.cols.end - cut.cols.start) as usize;
        let n = rows.end.min(kept[0]) - rows.start;
        let skipped = rows.start - cut.cols.start;
        let Buffers { rows: strip, turned, byte_columns, .. } = buffers;
        turned.resize((n * stored) as usize * size, 0);
        let mut row = 0;
        while row < stored {
            let now = (STRIP as u64).min(stored - row);
            strip.resize(now as usize * wide * size, 0);
            for (row, entries) in (row..).zip(strip.chunks_exact_mut(wide * size)) {
                self.unpacked(cut, src, row, entries);
            }
            for col in (0..n).step_by(COLUMNS as usize) {
                let strip = Strip {
                    rows: strip,
                    wide: wide * size,
                    skipped: (skipped + col) as usize,
                    n_cols: COLUMNS.min(n - col) as usize,
                    n_rows: stored as usize,
                    first: [row as usize, col as usize],
                    streams: false,
                };
                transpose(self.level, size, &strip, byte_columns, turned);
            }
            row += now;
        }
    }

    /// Converts entries. Returns the index of the first entry without a result.
    fn mapped(&self, entries: &[u8], made: &mut [u8], back: &mut Vec<u8>) -> Option<u64> {
        match &self.map {
            Map::Nothing => {
                made.copy_from_slice(entries);
                None
            }
            Map::Table(table) => {
                let mut seen = 0;
                for (to, from) in made.iter_mut().zip(entries) {
                    let code = table[usize::from(*from)];
                    seen |= code;
                    *to = code as u8;
                }
                let is_wrong = |from: &u8| table[usize::from(*from)] == NONE;
                if seen & NONE == 0 { None } else { entries.iter().position(is_wrong).map(|at| at as u64) }
            }
            Map::Cast(casters) => {
                let [there, again] = &**casters;
                let n = made.len() / slot(&self.how.to);
                back.resize(entries.len(), 0);
                cast(there, n, entries, made);
                cast(again, n, made, back);
                let size = slot(&self.how.from);
                if *back == entries {
                    return None;
                }
                // NaN may differ.
                let wrong = entries.chunks_exact(size).position(|entry| {
                    let code = entry.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
                    self.how.code(code).is_none()
                });
                wrong.map(|at| at as u64)
            }
        }
    }
}

fn cast(caster: &Caster, n: usize, src: &[u8], dst: &mut [u8]) {
    let spec = caster.spec();
    let fits = "the buffers are made for the entries";
    let (src, dst) = (Elements::new(spec.src, n, src).expect(fits), ElementsMut::new(spec.dst, n, dst).expect(fits));
    caster.cast(src, dst).expect("no value is refused");
}

/// Packs the entries of a row, one per slot; other bits of `dst` are 0.
fn pack_row(level: Level, to: &Plane, entries: &[u8], dst: &mut [u8]) {
    let bits = to.code.bits();
    match to.packing {
        Packing::Rows { .. } if bits >= 8 => dst[..entries.len()].copy_from_slice(entries),
        Packing::Rows { .. } | Packing::HighFirst if !matches!(bits, 5 | 7) => {
            let packed = &mut dst[..(entries.len() * bits as usize).div_ceil(8)];
            pack::pack(level, bits, entries, packed, entries.len());
            if to.packing == Packing::HighFirst {
                packed.iter_mut().for_each(|byte| *byte = byte.rotate_left(4));
            }
        }
        _ => scatter(to, [1, entries.len() as u64], 0, entries, dst),
    }
}

/// Stores the entries of a row, of at most 8 bits, in a matrix.
fn scatter(to: &Plane, shape: [u64; 2], row: u64, entries: &[u8], dst: &mut [u8]) {
    let (packing, bits) = (to.packing, to.code.bits());
    for (col, entry) in (0..).zip(entries) {
        let bit = packing.bit(bits, shape, [row, col], 0);
        let (byte, within) = ((bit / 8) as usize, (bit % 8) as u32);
        if within + bits <= 8 {
            dst[byte] |= entry << within;
        } else {
            packing.set(bits, shape, [row, col], dst, (*entry).into());
        }
    }
}
