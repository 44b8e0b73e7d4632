//! Reads files of one tensor whose type is known in advance: operands of a check, inputs of a model.

use crate::{Data, Tensor, Texts};
use std::path::Path;
use truecast_core::{CastSpec, DType, ErrorCode, Layout};
use truecast_io::npy::hex::{Column, is_hex};
use truecast_io::npy::tosa::narrow;
use truecast_io::onnx::{Options, TensorFile};
use truecast_io::{FileFormat, Source};
use truecast_kernel::text::utf32;
use truecast_kernel::{CastOptions, Caster, Elements, ElementsMut};

/// Reason why a file does not contain the expected tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name the fields.
pub enum ArrayError {
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    #[error("{path}: {tensors} tensors, expected one")]
    NotOne { path: String, tensors: usize },
    #[error("{path}: elements are {found}, expected {expected}")]
    Type {
        path: String,
        found: DType,
        /// Expected type.
        expected: DType,
    },
    #[error("{path}: shape {found:?}, expected {expected:?}")]
    Shape {
        path: String,
        found: Vec<u64>,
        /// Expected shape.
        expected: Vec<u64>,
    },
}

impl ArrayError {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            ArrayError::File(error) => error.error_code(),
            ArrayError::Type { .. } => ErrorCode::TypeMismatch,
            ArrayError::NotOne { .. } | ArrayError::Shape { .. } => ErrorCode::ShapeMismatch,
        }
    }
}

/// Opens a file of one tensor, whose elements have the type `dtype`.
///
/// An array's header may leave the type open, or state bytes or unsigned integers of the same width
/// (`docs/interfaces.md §4`). Such elements are read as `dtype`.
///
/// # Errors
/// [`ArrayError`].
pub fn open(path: &Path, dtype: DType) -> Result<Source, ArrayError> {
    let as_asked = || Source::open(path, Some(dtype)).map_err(ArrayError::from);
    // A file with an open type needs `dtype`. Other errors repeat in the second attempt.
    let Ok(source) = Source::open(path, None) else { return as_asked() };
    match only_tensor(&source)?.dtype {
        found if found == dtype || is_widened(&source, found, dtype) => Ok(source),
        found if source.format() == FileFormat::Npy && is_stand_in(found, dtype) => as_asked(),
        found => Err(ArrayError::Type { path: path.display().to_string(), found, expected: dtype }),
    }
}

/// Opens a column of test vectors in hexadecimal if the path has their extension, otherwise as [`open`].
///
/// # Errors
/// [`ArrayError`].
pub fn open_column(path: &Path, dtype: DType, column: Column) -> Result<Source, ArrayError> {
    if is_hex(path) { Ok(Source::open_hex(path, dtype, column)?) } else { open(path, dtype) }
}

pub(crate) fn only_tensor(source: &Source) -> Result<&truecast_io::Tensor, ArrayError> {
    match source.tensors() {
        [tensor] => Ok(tensor),
        tensors => Err(ArrayError::NotOne { path: source.path().display().to_string(), tensors: tensors.len() }),
    }
}

/// Element type that the header of a file of one tensor states.
///
/// # Errors
/// [`ArrayError`], also for an open type.
pub fn stated_type(path: &Path) -> Result<DType, ArrayError> {
    // A `TensorProto` with text cannot be opened as a source.
    if FileFormat::of_path(path) == Some(FileFormat::TensorProto) && read_texts(path).is_ok() {
        return Ok(DType::String);
    }
    Ok(only_tensor(&Source::open(path, None)?)?.dtype)
}

/// True if an array of `dtype` may be declared as `found`.
///
/// u8 and u16 may contain floats, or codes of fewer than 8 bits. f32 may contain tf32.
fn is_stand_in(found: DType, dtype: DType) -> bool {
    if (found, dtype) == (DType::F32, DType::Tf32) {
        return true;
    }
    let same_width = found.bits_in(Layout::Bytes) == dtype.bits_in(Layout::Bytes);
    let is_bytes = matches!(found, DType::U8 | DType::U16);
    let is_narrow = dtype.storage_bits().is_some_and(|bits| bits < 8);
    same_width && is_bytes && (dtype.is_float() || is_narrow)
}

/// True if an array stores i48 in 64 bits per element.
fn is_widened(source: &Source, found: DType, dtype: DType) -> bool {
    source.format() == FileFormat::Npy && (found, dtype) == (DType::I64, DType::I48)
}

/// Reads a file of one tensor with elements of type `dtype` into memory.
///
/// # Errors
/// [`ArrayError`].
pub fn read(path: &Path, dtype: DType, exec: &CastOptions) -> Result<Tensor, ArrayError> {
    let in_file = |error: truecast_io::Error| ArrayError::from(error);
    if dtype == DType::String && FileFormat::of_path(path) == Some(FileFormat::TensorProto) {
        return read_texts(path).map_err(in_file);
    }
    let source = open(path, dtype)?;
    let described = &source.tensors()[0];
    let bytes = read_bytes(&source).map_err(in_file)?;
    if is_widened(&source, described.dtype, dtype) {
        let mut codes = vec![0; bytes.len() / 8 * 6];
        let wide = |index| in_file(truecast_io::Error::Wide { path: path.into(), index: index as u64 });
        narrow(&bytes, &mut codes).map_err(wide)?;
        return Ok(Tensor { dtype, shape: described.shape.to_vec(), data: Data::Codes(codes) });
    }
    let data = match described.layout {
        Layout::Utf32 { width } => Data::Texts(texts_of_cells(&bytes, width, described.len())),
        layout => {
            let codes = relaid(dtype, &bytes, (layout, Layout::Packed), described.len(), exec);
            Data::Codes(codes.unwrap_or(bytes))
        }
    };
    Ok(Tensor { dtype, shape: described.shape.to_vec(), data })
}

fn read_bytes(source: &Source) -> Result<Vec<u8>, truecast_io::Error> {
    let len = source.tensors()[0].bytes();
    let no_room = |_| truecast_io::Error::Memory { path: source.path().into(), bytes: len };
    let mut bytes = truecast_io::zeros(len).map_err(no_room)?;
    source.reader(0)?.read(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn texts_of_cells(cells: &[u8], width: u32, len: u64) -> Texts {
    let cell = 4 * width as usize;
    let mut texts = Texts::default();
    let mut text = Vec::new();
    for i in 0..len as usize {
        text.clear();
        utf32::read(&cells[i * cell..(i + 1) * cell], &mut text);
        texts.push(&text);
    }
    texts
}

fn read_texts(path: &Path) -> Result<Tensor, truecast_io::Error> {
    let file = TensorFile::open(path, Options::default())?;
    let mut texts = Texts::default();
    for text in file.texts()? {
        texts.push(&text?);
    }
    Ok(Tensor { dtype: DType::String, shape: file.tensor().dims.clone(), data: Data::Texts(texts) })
}

/// The same elements in another layout; `None` if both layouts have the same number of bits per element.
pub(crate) fn relaid(
    dtype: DType,
    codes: &[u8],
    (from, to): (Layout, Layout),
    len: u64,
    exec: &CastOptions,
) -> Option<Vec<u8>> {
    if dtype.bits_in(from) == dtype.bits_in(to) {
        return None;
    }
    let mut moved = vec![0; dtype.bytes_in(to, len)? as usize];
    let caster = Caster::new(&CastSpec::copy(dtype), exec).ok()?;
    let source = Elements::with_layout(dtype, from, len as usize, codes).ok()?;
    caster.cast(source, ElementsMut::with_layout(dtype, to, len as usize, &mut moved).ok()?).ok()?;
    Some(moved)
}
