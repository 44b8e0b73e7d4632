//! Byte ranges that a box of entries takes in a stored plane.

use std::ops::Range;
use truecast_core::scaled::{Packing, Part, Plane};

/// Box of a stored matrix that has consecutive elements of the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub(super) matrix: u64,
    pub(super) rows: Range<u64>,
    pub(super) cols: Range<u64>,
    /// Indices of the window's elements in the tensor, after any transposition.
    pub(super) elements: Range<u64>,
}

impl Window {
    /// Returns the indices of the window's elements in the tensor, after any transposition.
    #[must_use]
    pub fn elements(&self) -> Range<u64> {
        self.elements.clone()
    }
}

/// Bytes to read: `count` pieces of `len` bytes. The first piece begins at byte `first`, and each next piece `stride`
/// bytes later. The pieces joined without gaps are a part for [`super::Dequantizer::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Part of the tensor.
    pub part: Part,
    /// Offset of the first piece in bytes.
    pub first: u64,
    /// Number of bytes in a piece.
    pub len: u64,
    /// Number of bytes from the start of a piece to the start of the next piece.
    pub stride: u64,
    /// Number of pieces.
    pub count: u64,
}

impl Read {
    /// Number of bytes in all pieces.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.len * self.count
    }
}

/// Bytes of one matrix's plane that contain a box of entries.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub plane: Plane,
    /// Rows and columns of the whole plane.
    pub shape: [u64; 2],
    /// Columns to read. They are the requested columns, extended so that they begin at a word.
    pub cols: Range<u64>,
    /// Offset from the first byte of the matrix.
    first: u64,
    len: u64,
    stride: u64,
    count: u64,
}

/// Bytes of each part that belong to a box of the tensor; `None` for parts that the layout does not have.
#[derive(Debug)]
pub(super) struct Cuts {
    pub codes: Cut,
    pub scales: Option<Cut>,
    pub global: Option<Cut>,
    pub zeros: Option<Cut>,
    pub biases: Option<Cut>,
    pub index: Option<Cut>,
    pub book: Option<Cut>,
}

impl Cuts {
    pub fn of_codes(codes: Cut) -> Cuts {
        Cuts { codes, scales: None, global: None, zeros: None, biases: None, index: None, book: None }
    }

    /// The parts that the layout has, in the order of [`Part`].
    pub fn iter(&self) -> impl Iterator<Item = (Part, &Cut)> {
        let Cuts { codes, scales, global, zeros, biases, index, book } = self;
        let others = [
            (Part::Scales, scales),
            (Part::Global, global),
            (Part::Zeros, zeros),
            (Part::Biases, biases),
            (Part::Index, index),
            (Part::Book, book),
        ];
        let others = others.into_iter().filter_map(|(part, cut)| Some((part, cut.as_ref()?)));
        [(Part::Codes, codes)].into_iter().chain(others)
    }

    /// Byte ranges to read or write in the matrix number `matrix`.
    pub fn reads(&self, matrix: u64) -> Vec<Read> {
        self.iter().map(|(part, cut)| cut.read(part, matrix)).collect()
    }
}

/// Bytes of a [`Cut`] after reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    pub cut: &'a Cut,
    pub bytes: &'a [u8],
}

/// Reads of packed rows begin at multiples of this many columns.
pub(super) fn column_granule(packing: Packing) -> u64 {
    match packing {
        // This multiple of the fields per word serves every width.
        Packing::Padded => 960,
        _ => 64,
    }
}

impl Cut {
    /// The box must have entries.
    pub fn new(plane: Plane, shape: [u64; 2], rows: Range<u64>, cols: Range<u64>) -> Cut {
        let [n_rows, n_cols] = shape;
        let (packing, bits) = (plane.packing, plane.code.bits());
        let granule = column_granule(packing);
        let cols = cols.start / granule * granule..cols.end.next_multiple_of(granule).min(n_cols);
        let byte = |row, col| packing.bit(bits, shape, [row, col], 0) / 8;
        let all_cols = cols == (0..n_cols);
        // `units`: range of stored rows, in bytes, words or tiles. `unit_bytes`: bytes of such a row. `within`: byte
        // range of the columns in the row.
        let (units, unit_bytes, within) = match packing {
            Packing::Columns { word } => {
                let (word, wide) = (u64::from(word), u64::from(bits));
                let units = rows.start * wide / word..(rows.end * wide).div_ceil(word);
                (units, n_cols * word / 8, cols.start * word / 8..cols.end * word / 8)
            }
            Packing::PaddedColumns | Packing::AwqColumns => {
                let per_word = u64::from(32 / bits);
                (rows.start / per_word..rows.end.div_ceil(per_word), n_cols * 4, cols.start * 4..cols.end * 4)
            }
            Packing::Planes => {
                let quarter = n_rows / 4;
                let same = rows.start / quarter == (rows.end - 1) / quarter;
                let units = if same { rows.start % quarter..(rows.end - 1) % quarter + 1 } else { 0..quarter };
                (units, n_cols, cols.clone())
            }
            Packing::Swizzled => {
                let tile_row = n_cols.div_ceil(4) * 512;
                (rows.start / 128..rows.end.div_ceil(128), tile_row, 0..tile_row)
            }
            _ => {
                let row_bytes = packing.bytes(bits, [1, n_cols]).unwrap_or(0);
                let end = if cols.end == n_cols { row_bytes } else { byte(0, cols.end) };
                (rows, row_bytes, byte(0, cols.start)..end)
            }
        };
        let (first, len) = (units.start * unit_bytes + within.start, within.end - within.start);
        let count = units.end - units.start;
        if all_cols || within == (0..unit_bytes) {
            let len = count * unit_bytes;
            return Cut { plane, shape, cols, first, len, stride: len, count: 1 };
        }
        Cut { plane, shape, cols, first, len, stride: unit_bytes, count }
    }

    pub fn read(&self, part: Part, matrix: u64) -> Read {
        let matrix_bytes = self.plane.bytes(self.shape).unwrap_or(0);
        Read { part, first: matrix * matrix_bytes + self.first, len: self.len, stride: self.stride, count: self.count }
    }

    pub fn bytes(&self) -> u64 {
        self.len * self.count
    }

    /// Position that a byte of the matrix has among the read bytes.
    pub fn local(&self, byte: u64) -> usize {
        let at = byte - self.first;
        (at / self.stride.max(1) * self.len + at % self.stride.max(1)) as usize
    }

    /// Position that the first byte of an entry has among the read bytes.
    pub fn byte_of(&self, at: [u64; 2]) -> usize {
        self.local(self.plane.packing.bit(self.plane.code.bits(), self.shape, at, 0) / 8)
    }

    pub fn get(&self, at: [u64; 2], bytes: &[u8]) -> u64 {
        let (packing, bits) = (self.plane.packing, self.plane.code.bits());
        (0..bits).fold(0, |field, n| {
            let bit = packing.bit(bits, self.shape, at, n);
            field | u64::from(bytes[self.local(bit / 8)] >> (bit % 8) & 1) << n
        })
    }

    pub fn set(&self, at: [u64; 2], bytes: &mut [u8], field: u64) {
        let (packing, bits) = (self.plane.packing, self.plane.code.bits());
        for n in 0..bits {
            let bit = packing.bit(bits, self.shape, at, n);
            let byte = &mut bytes[self.local(bit / 8)];
            *byte = *byte & !(1 << (bit % 8)) | ((field >> n & 1) as u8) << (bit % 8);
        }
    }
}
