//! The `.npy` arrays of Arm's tools, whose descriptors differ from NumPy's customs. Source: `docs/spec/tosa.md §7.1`, §7.2.

use std::fs;
use std::io::Write;
use std::path::Path;

use truecast_core::DType;

use crate::atomic::{Existing, OutputFile};
use crate::error::{Error, Shown};
use crate::npy::{Header, HeaderError, header};

/// Elements of a type that is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Dimensions, in elements.
    pub shape: Vec<u64>,
    /// Packed codes.
    pub codes: Vec<u8>,
}

/// Why a file is not the array that it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ArrayError {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// It is no `.npy` file.
    #[error("{path}: {cause}")]
    Header { path: String, cause: HeaderError },
    /// Its elements cannot be of the type.
    #[error("{path}: descr {} does not hold {dtype}", Shown(descr))]
    Type { path: String, descr: String, dtype: DType },
    /// Packed elements end within a byte of a row.
    #[error("{path}: rows of {bytes} bytes are no whole number of {dtype}")]
    Rows { path: String, bytes: u64, dtype: DType },
    /// A 64-bit element is beyond 48 bits.
    #[error("{path}: element {index} does not fit in 48 bits")]
    Wide { path: String, index: usize },
}

/// The descriptor that Arm's tools want; `None` for types that they do not have.
pub const fn descr_of(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I48 | DType::I64 => "<i8",
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::Bf16 => "<V2",
        DType::F8E4M3Fn | DType::F8E8M0 => "<V1",
        DType::F8E5M2 | DType::MxInt8 | DType::F4E2M1 | DType::F6E3M2 | DType::F6E2M3 => "|u1",
        _ => return None,
    })
}

/// Whether a descriptor may hold elements of a type: Arm's own, and those that NumPy and its extensions write.
fn holds(descr: &str, dtype: DType) -> bool {
    let plain = descr.get(1..).unwrap_or("");
    match dtype {
        DType::Bool => plain == "b1",
        DType::I8 => matches!(plain, "i1" | "u1"),
        DType::I16 => matches!(plain, "i2" | "u2"),
        DType::I32 => matches!(plain, "i4" | "u4"),
        DType::I48 | DType::I64 => plain == "i8",
        DType::F32 => plain == "f4",
        DType::F16 => plain == "f2",
        DType::Bf16 => matches!(plain, "V2" | "u2"),
        DType::F8E5M2 => matches!(plain, "u1" | "f1" | "V1"),
        _ => matches!(plain, "u1" | "V1"),
    }
}

/// Reads a file into memory.
///
/// Sub-byte elements are packed in `|u1` files, whose last dimension then counts bytes, and take a byte each in `V1`.
///
/// # Errors
/// [`ArrayError`].
pub fn read(path: &Path, dtype: DType) -> Result<Array, ArrayError> {
    let shown = || path.display().to_string();
    let stream = fs::read(path).map_err(|source| Error::Io { path: path.into(), action: "reading", source })?;
    let header = Header::parse(&stream).map_err(|cause| ArrayError::Header { path: shown(), cause })?;
    if !holds(&header.descr, dtype) {
        return Err(ArrayError::Type { path: shown(), descr: header.descr, dtype });
    }
    let mut codes = stream[header.data_start as usize..].to_vec();
    if let Some(unit) = header.swap() {
        codes.chunks_mut(unit).for_each(<[u8]>::reverse);
    }
    let mut shape = header.shape;
    let bits = u64::from(dtype.storage_bits().expect("TOSA has no text"));
    match dtype {
        DType::Bool => codes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8),
        DType::I48 => codes = narrowed(&codes).map_err(|index| ArrayError::Wide { path: shown(), index })?,
        _ if bits < 8 && header.descr.ends_with("V1") => codes = packed(&codes, bits as u32),
        _ if bits < 8 => {
            let row = shape.last().copied().unwrap_or(1);
            if row * 8 % bits != 0 || !row.is_multiple_of(if bits == 6 { 3 } else { 1 }) {
                return Err(ArrayError::Rows { path: shown(), bytes: row, dtype });
            }
            if let Some(last) = shape.last_mut() {
                *last = row * 8 / bits;
            }
        }
        _ => {}
    }
    Ok(Array { shape, codes })
}

/// 64-bit elements in 48 bits; the index of the first that does not fit.
fn narrowed(wide: &[u8]) -> Result<Vec<u8>, usize> {
    let mut codes = Vec::with_capacity(wide.len() / 8 * 6);
    for (index, element) in wide.as_chunks::<8>().0.iter().enumerate() {
        let value = i64::from_le_bytes(*element);
        if value << 16 >> 16 != value {
            return Err(index);
        }
        codes.extend_from_slice(&element[..6]);
    }
    Ok(codes)
}

/// One element a byte, packed from the least significant bit on.
fn packed(bytes: &[u8], bits: u32) -> Vec<u8> {
    let mut codes = vec![0u8; (bytes.len() * bits as usize).div_ceil(8)];
    for (i, byte) in bytes.iter().enumerate() {
        let at = i * bits as usize;
        let code = u16::from(byte & ((1 << bits) - 1)) << (at % 8);
        codes[at / 8] |= code as u8;
        if code > 0xff {
            codes[at / 8 + 1] |= (code >> 8) as u8;
        }
    }
    codes
}

/// Writes packed codes as Arm's tools want them.
///
/// # Errors
/// [`ArrayError::Type`] for types that they do not have, [`ArrayError::Rows`], [`ArrayError::File`].
pub fn write(path: &Path, dtype: DType, array: &Array, existing: Existing) -> Result<(), ArrayError> {
    start(path, dtype, array, existing)?.commit()?;
    Ok(())
}

/// As [`write()`], but the file is not yet there under its name.
///
/// # Errors
/// As [`write()`].
pub fn start(path: &Path, dtype: DType, array: &Array, existing: Existing) -> Result<OutputFile, ArrayError> {
    let shown = || path.display().to_string();
    let descr = descr_of(dtype).ok_or_else(|| ArrayError::Type { path: shown(), descr: String::new(), dtype })?;
    let bits = u64::from(dtype.storage_bits().expect("TOSA has no text"));
    let mut shape = array.shape.clone();
    if bits < 8
        && let Some(last) = shape.last_mut()
    {
        if *last * bits % 8 != 0 {
            return Err(ArrayError::Rows { path: shown(), bytes: *last * bits / 8, dtype });
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
