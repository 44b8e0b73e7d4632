//! The `.npy` arrays of Arm's tools, with descriptors that differ from NumPy's. Source: `docs/spec/tosa.md §7.1`, §7.2.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use truecast_core::{DType, Layout};

use crate::atomic::{Existing, OutputFile};
use crate::error::Error;
use crate::npy::hex::{Column, copy_to_npy, is_hex};
use crate::npy::{Header, header};
use crate::open::open_regular;
use crate::window::Window;

/// Array of elements, whose type the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Dimensions, in elements.
    pub shape: Vec<u64>,
    /// Packed codes.
    pub codes: Vec<u8>,
}

type Row = (&'static [DType], &'static str, &'static [&'static str]);

/// Types, the descriptor that Arm's tools expect, and all accepted descriptors without byte order (of Arm's tools,
/// NumPy and its extensions).
static TYPES: [Row; 11] = [
    (&[DType::Bool], "|b1", &["b1"]),
    (&[DType::I8], "|i1", &["i1", "u1"]),
    (&[DType::I16], "<i2", &["i2", "u2"]),
    (&[DType::I32], "<i4", &["i4", "u4"]),
    (&[DType::I48, DType::I64], "<i8", &["i8"]),
    (&[DType::F32], "<f4", &["f4"]),
    (&[DType::F16], "<f2", &["f2"]),
    (&[DType::Bf16], "<V2", &["V2", "u2"]),
    (&[DType::F8E4M3Fn, DType::F8E8M0], "<V1", &["u1", "V1"]),
    (&[DType::F8E5M2], "|u1", &["u1", "f1", "V1"]),
    (&[DType::MxInt8, DType::F4E2M1, DType::F6E3M2, DType::F6E2M3], "|u1", &["u1", "V1"]),
];

fn row(dtype: DType) -> Option<&'static Row> {
    TYPES.iter().find(|(types, ..)| types.contains(&dtype))
}

fn holds(descr: &str, dtype: DType) -> bool {
    row(dtype).map_or(&["u1", "V1"][..], |(.., read)| read).contains(&descr.get(1..).unwrap_or(""))
}

/// Reader of a file in parts.
///
/// Elements narrower than a byte: packed in `|u1` files, where the last dimension counts bytes; one byte each in `V1`
/// files.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    window: Window,
    dtype: DType,
    shape: Vec<u64>,
    swap: Option<usize>,
    stored_bits: u64,
    taken: u64,
    left: u64,
    stored: Vec<u8>,
}

/// Every part has a multiple of this many elements, so that it ends at a byte.
const UNIT: u64 = 8;

impl Reader {
    /// Opens a file of elements of this type.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(path: &Path, dtype: DType) -> Result<Reader, Error> {
        let (file, found) = open_regular(path)?;
        Reader::new(path, file, found.len(), dtype)
    }

    /// Opens a column of test vectors in hexadecimal if the path has their extension, otherwise an array.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_column(path: &Path, dtype: DType, column: Column) -> Result<Reader, Error> {
        if !is_hex(path) {
            return Reader::open(path, dtype);
        }
        let (file, len) = copy_to_npy(path, dtype, column)?;
        Reader::new(path, file, len, dtype)
    }

    fn new(path: &Path, file: File, len: u64, dtype: DType) -> Result<Reader, Error> {
        let file = Arc::new(file);
        let mut whole = Window::new(file.clone(), 0, len);
        let header = Header::read(&mut whole, len).map_err(|e| e.at(path, "reading the header"))?;
        if !holds(&header.descr, dtype) {
            return Err(Error::Descr { path: path.into(), descr: header.descr, dtype });
        }
        let swap = header.swap();
        let window = Window::new(file, header.data_start, len);
        let mut shape = header.shape;
        if shape.contains(&0) {
            return Err(Error::Empty { path: path.into(), shape });
        }
        let bits = u64::from(dtype.storage_bits().expect("TOSA has no text"));
        let is_packed = bits < 8 && !header.descr.ends_with("V1");
        if is_packed {
            let row = shape.last().copied().unwrap_or(1);
            // Fewest bytes that hold whole elements: 3 for 6-bit elements, else 1.
            let group = if bits == 6 { 3 } else { 1 };
            match shape.last_mut().filter(|_| row.is_multiple_of(group)) {
                Some(last) => *last = row / group * (group * 8 / bits),
                None => return Err(Error::Rows { path: path.into(), bytes: row, dtype }),
            }
        }
        let stored_bits = match dtype {
            DType::I48 => 64,
            _ if is_packed => bits,
            _ => bits.max(8),
        };
        let left = shape.iter().product();
        Ok(Reader { path: path.into(), window, dtype, shape, swap, stored_bits, taken: 0, left, stored: Vec::new() })
    }

    /// The dimensions, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements left to read.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Appends the packed codes of up to `most` elements (rounded up to a multiple of 8) to `codes`. Returns the
    /// number of elements; 0 at the end.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Wide`], [`Error::Memory`].
    pub fn read(&mut self, most: u64, codes: &mut Vec<u8>) -> Result<u64, Error> {
        let len = self.left.min(most.next_multiple_of(UNIT));
        let no_room = |bytes| Error::Memory { path: self.path.clone(), bytes };
        let packed_bytes = self.dtype.bytes_in(Layout::Packed, len).expect("TOSA has no text, and lengths are bounded");
        let stored_bytes = (len * self.stored_bits).div_ceil(8);
        let at = codes.len();
        grow(codes, packed_bytes).map_err(no_room)?;
        let codes = &mut codes[at..];
        if stored_bytes == packed_bytes {
            fill(&mut self.window, self.swap, codes).map_err(Error::io(&self.path, "reading"))?;
            if self.dtype == DType::Bool {
                codes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
            }
        } else {
            self.stored.clear();
            grow(&mut self.stored, stored_bytes).map_err(no_room)?;
            fill(&mut self.window, self.swap, &mut self.stored).map_err(Error::io(&self.path, "reading"))?;
            match self.dtype {
                DType::I48 => narrow(&self.stored, codes).map_err(|i| {
                    let path = self.path.clone();
                    Error::Wide { path, index: self.taken + i as u64 }
                })?,
                _ => pack(&self.stored, self.dtype, codes),
            }
        }
        self.taken += len;
        self.left -= len;
        Ok(len)
    }
}

/// Reads the next bytes and reverses the bytes of each `swap` unit.
fn fill(window: &mut Window, swap: Option<usize>, bytes: &mut [u8]) -> io::Result<()> {
    window.fill(bytes)?;
    if let Some(unit) = swap {
        bytes.chunks_mut(unit).for_each(<[u8]>::reverse);
    }
    Ok(())
}

/// Adds zeroed bytes to a buffer. The error is the number of bytes that could not be allocated.
fn grow(buffer: &mut Vec<u8>, bytes: u64) -> Result<(), u64> {
    let more = usize::try_from(bytes).map_err(|_| bytes)?;
    buffer.try_reserve_exact(more).map_err(|_| bytes)?;
    buffer.resize(buffer.len() + more, 0);
    Ok(())
}

/// Reads a file into memory.
///
/// # Errors
/// [`Error`].
pub fn read(path: &Path, dtype: DType) -> Result<Array, Error> {
    let mut reader = Reader::open(path, dtype)?;
    let mut codes = Vec::new();
    reader.read(reader.left(), &mut codes)?;
    Ok(Array { shape: reader.shape, codes })
}

/// Narrows i48 elements from the 64 bits of files to 48 bits.
///
/// # Errors
/// The index of the first element that does not fit.
pub fn narrow(wide: &[u8], codes: &mut [u8]) -> Result<(), usize> {
    for (index, (element, code)) in wide.as_chunks::<8>().0.iter().zip(codes.as_chunks_mut::<6>().0).enumerate() {
        let value = i64::from_le_bytes(*element);
        if value << 16 >> 16 != value {
            return Err(index);
        }
        code.copy_from_slice(&element[..6]);
    }
    Ok(())
}

/// Packs elements of one byte each into the zeroed `codes`, from the least significant bit.
fn pack(stored: &[u8], dtype: DType, codes: &mut [u8]) {
    let bits = dtype.storage_bits().expect("TOSA has no text") as usize;
    for (i, byte) in stored.iter().enumerate() {
        let at = i * bits;
        let code = u16::from(byte & ((1 << bits) - 1)) << (at % 8);
        codes[at / 8] |= code as u8;
        if code > 0xff {
            codes[at / 8 + 1] |= (code >> 8) as u8;
        }
    }
}

/// Writes packed codes in the form of Arm's tools.
///
/// # Errors
/// [`Error::Descr`] for types that the tools do not have, [`Error::Rows`], [`Error::Io`].
pub fn write(path: &Path, dtype: DType, array: &Array, existing: Existing) -> Result<(), Error> {
    start(path, dtype, array, existing)?.commit()?;
    Ok(())
}

/// Writes what [`write()`] writes, but leaves the file without its name.
///
/// # Errors
/// Errors of [`write()`].
pub fn start(path: &Path, dtype: DType, array: &Array, existing: Existing) -> Result<OutputFile, Error> {
    let (_, descr, _) = row(dtype).ok_or_else(|| Error::Descr { path: path.into(), descr: String::new(), dtype })?;
    let bits = u64::from(dtype.storage_bits().expect("TOSA has no text"));
    let mut shape = array.shape.clone();
    if bits < 8
        && let Some(last) = shape.last_mut()
    {
        if *last * bits % 8 != 0 {
            return Err(Error::Rows { path: path.into(), bytes: *last * bits / 8, dtype });
        }
        *last = *last * bits / 8;
    }
    let wide;
    let codes = match dtype {
        DType::I48 => {
            wide = array.codes.as_chunks::<6>().0.iter().flat_map(widened).collect::<Vec<u8>>();
            &wide
        }
        _ => &array.codes,
    };
    let io = |source| Error::Io { path: path.into(), action: "writing", source };
    let mut file = OutputFile::create(path, existing)?;
    file.write_all(&header(descr, &shape)).and_then(|()| file.write_all(codes)).map_err(io)?;
    Ok(file)
}

fn widened(element: &[u8; 6]) -> [u8; 8] {
    let mut wide = [0; 8];
    wide[2..].copy_from_slice(element);
    (i64::from_le_bytes(wide) >> 16).to_le_bytes()
}
