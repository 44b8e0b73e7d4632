//! A TensorProto: its checked description, and the location of its elements. Read first: `docs/spec/onnx.md §3`.

use std::ops::Range;

use truecast_core::spec::onnx::DataType;
use truecast_core::{DType, Layout};

use super::external::External;
use super::parser::Parser;
use super::wire::{Field, Fields, Value};
use crate::error::ReadError;
use crate::error::onnx::ExternalError;
use crate::error::onnx::{ProtoError, TensorError};
use crate::tensor::{MAX_RANK, Tensor, checked_len};

/// Field numbers of TensorProto (`docs/spec/onnx.md §3.1`).
pub(crate) mod field {
    pub(crate) const DIMS: u32 = 1;
    pub(crate) const DATA_TYPE: u32 = 2;
    pub(crate) const SEGMENT: u32 = 3;
    pub(crate) const FLOAT_DATA: u32 = 4;
    pub(crate) const INT32_DATA: u32 = 5;
    pub(crate) const STRING_DATA: u32 = 6;
    pub(crate) const INT64_DATA: u32 = 7;
    pub(crate) const NAME: u32 = 8;
    pub(crate) const RAW_DATA: u32 = 9;
    pub(crate) const DOUBLE_DATA: u32 = 10;
    pub(crate) const UINT64_DATA: u32 = 11;
    pub(crate) const EXTERNAL_DATA: u32 = 13;
    pub(crate) const DATA_LOCATION: u32 = 14;
}

pub(crate) const DATA_FIELDS: [(u32, &str); 7] = [
    (field::FLOAT_DATA, "float_data"),
    (field::INT32_DATA, "int32_data"),
    (field::STRING_DATA, "string_data"),
    (field::INT64_DATA, "int64_data"),
    (field::RAW_DATA, "raw_data"),
    (field::DOUBLE_DATA, "double_data"),
    (field::UINT64_DATA, "uint64_data"),
];

/// One tensor of a file: its description, checked against the rules of `docs/spec/onnx.md §3.5`.
///
/// Its elements stay in the file; [`ModelFile::reader`](super::ModelFile::reader) streams them.
#[derive(Clone, Debug)]
pub struct TensorProto {
    /// Name; may be empty.
    pub name: String,
    /// Type of the elements; never UNDEFINED.
    pub data_type: &'static DataType,
    /// The dimensions, in elements. Empty for a scalar.
    pub dims: Vec<u64>,
    /// Location of the elements.
    pub payload: Payload,
    pub(crate) content: Range<u64>,
}

/// Location of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// There are no elements.
    Empty,
    /// `raw_data` in this range of the file.
    Raw(Range<u64>),
    /// Typed field of this number; may occur several times, packed or not.
    Typed(u32),
    /// `string_data`.
    Text,
    /// Another file.
    External(External),
    /// Elements of a type that cannot be read (COMPLEX128).
    Opaque,
}

impl TensorProto {
    /// Element type; `None` for COMPLEX128, which can only be copied.
    pub fn dtype(&self) -> Option<DType> {
        self.data_type.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        checked_len(&self.dims).unwrap_or(u64::MAX)
    }

    /// Whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// Describes the tensor, under another name if given; `None` for COMPLEX128.
    pub fn describe(&self, name: Option<&str>) -> Option<Tensor> {
        let name = name.unwrap_or(&self.name).into();
        Some(Tensor { name, dtype: self.dtype()?, layout: Layout::Packed, shape: self.dims.as_slice().into() })
    }
}

/// Typed field for a type, and number of elements per entry. Source: `docs/spec/onnx.md §3.2`.
pub(crate) fn typed_field(dtype: DType) -> (u32, u64) {
    use DType::*;
    match dtype {
        F32 => (field::FLOAT_DATA, 1),
        F64 => (field::DOUBLE_DATA, 1),
        I64 => (field::INT64_DATA, 1),
        U32 | U64 => (field::UINT64_DATA, 1),
        String => (field::STRING_DATA, 1),
        I4 | U4 | F4E2M1 => (field::INT32_DATA, 2),
        I2 | U2 => (field::INT32_DATA, 4),
        _ => (field::INT32_DATA, 1),
    }
}

pub(crate) fn field_name(number: u32) -> &'static str {
    DATA_FIELDS.iter().find(|(n, _)| *n == number).map_or("a field", |(_, name)| name)
}

#[derive(Clone, Copy, Default)]
struct Filled {
    bytes: u64,
    /// 0 for packed numbers of varying length, which only a reader can count.
    entries: u64,
}

#[derive(Default)]
struct Stated {
    name: String,
    data_type: i64,
    dims: Vec<u64>,
    segment: bool,
    raw: Option<Range<u64>>,
    /// Contents of the [`DATA_FIELDS`].
    filled: [Filled; DATA_FIELDS.len()],
    is_external: bool,
    external: Vec<(String, String)>,
}

pub(crate) fn parse(parser: &mut Parser, content: Range<u64>) -> Result<TensorProto, ReadError<ProtoError>> {
    parser.charge::<TensorProto>(content.start)?;
    let mut stated = Stated::default();
    let gathered = gather(parser, content.clone(), &mut stated);
    let offset = content.start;
    let in_tensor = |tensor: &str, cause| ProtoError::Tensor { offset, tensor: tensor.into(), cause };
    match gathered {
        Ok(()) => {}
        Err(Found::Read(error)) => return Err(error),
        Err(Found::Wrong(cause)) => return Err(in_tensor(&stated.name, cause).into()),
    }
    let checked = check(&stated, parser.options.lenient);
    let (data_type, payload) = checked.map_err(|cause| in_tensor(&stated.name, cause))?;
    if data_type.dtype.is_none() && matches!(payload, Payload::External(_)) {
        parser.opaque_external = Some(stated.name.clone());
    }
    Ok(TensorProto { name: stated.name, data_type, dims: stated.dims, payload, content })
}

enum Found {
    Read(ReadError<ProtoError>),
    Wrong(TensorError),
}

impl<E: Into<ReadError<ProtoError>>> From<E> for Found {
    fn from(error: E) -> Found {
        Found::Read(error.into())
    }
}

impl From<TensorError> for Found {
    fn from(cause: TensorError) -> Found {
        Found::Wrong(cause)
    }
}

fn gather(parser: &mut Parser, content: Range<u64>, stated: &mut Stated) -> Result<(), Found> {
    // The name is read first, so that errors can contain it.
    let mut fields = Fields::new(content.clone());
    while let Some(found) = fields.next(&mut parser.wire)? {
        if found.number == field::NAME {
            stated.name = parser.text(found.bytes()?)?;
        }
    }
    let mut fields = Fields::new(content);
    while let Some(found) = fields.next(&mut parser.wire)? {
        match found.number {
            field::DIMS => dims(parser, &found, &mut stated.dims)?,
            field::DATA_TYPE => stated.data_type = found.int()?,
            field::SEGMENT => stated.segment = found.bytes().map(|_| true)?,
            field::RAW_DATA => {
                let range = found.bytes()?;
                let offset = found.span.start;
                if stated.raw.replace(range.clone()).is_some() {
                    return Err(ProtoError::Repeated { offset, message: "TensorProto", field: found.number }.into());
                }
                stated.filled[index_of(found.number)].bytes = range.end - range.start;
            }
            field::EXTERNAL_DATA => {
                let entry = parser.key_and_value(found.bytes()?)?;
                stated.external.push(entry);
            }
            field::DATA_LOCATION => stated.is_external = found.int()? == 1,
            number if DATA_FIELDS.iter().any(|(n, _)| *n == number) => count(&found, stated)?,
            _ => {}
        }
    }
    Ok(())
}

fn index_of(number: u32) -> usize {
    DATA_FIELDS.iter().position(|(n, _)| *n == number).expect("a data field")
}

fn dims(parser: &mut Parser, found: &Field, dims: &mut Vec<u64>) -> Result<(), Found> {
    let mut push = |value: u64| {
        if dims.len() == MAX_RANK {
            return Err(TensorError::RankTooHigh);
        }
        let found = value.cast_signed();
        dims.push(u64::try_from(found).map_err(|_| TensorError::NegativeDimension { found })?);
        Ok(())
    };
    match &found.value {
        Value::Bytes(range) => {
            let mut at = range.start;
            while at < range.end {
                push(parser.wire.varint(&mut at, range.end)?)?;
            }
        }
        _ => push(found.int()?.cast_unsigned())?,
    }
    Ok(())
}

fn count(found: &Field, stated: &mut Stated) -> Result<(), Found> {
    let Filled { bytes, entries } = &mut stated.filled[index_of(found.number)];
    let width = match found.number {
        field::FLOAT_DATA => Some(4),
        field::DOUBLE_DATA => Some(8),
        _ => None,
    };
    match (&found.value, width) {
        (Value::Bytes(range), _) if found.number == field::STRING_DATA => {
            // Adds 1 to the length, so that an empty string counts.
            *bytes += range.end - range.start + 1;
            *entries += 1;
        }
        (Value::Bytes(range), Some(width)) if (range.end - range.start).is_multiple_of(width) => {
            *bytes += range.end - range.start;
            *entries += (range.end - range.start) / width;
        }
        (Value::Bytes(range), Some(_)) => {
            return Err(ProtoError::Truncated { offset: found.span.start, end: range.end }.into());
        }
        // Numbers of varying length can be counted only by reading.
        (Value::Bytes(range), None) => *bytes += range.end - range.start,
        (Value::Fixed32(_), Some(4)) | (Value::Fixed64(_), Some(8)) | (Value::Varint(_), None)
            if found.number != field::STRING_DATA =>
        {
            *bytes += width.unwrap_or(1);
            *entries += 1;
        }
        _ => {
            found.bytes()?;
        }
    }
    Ok(())
}

/// Checks the rules of §3.5 that do not need elements.
fn check(stated: &Stated, lenient: bool) -> Result<(&'static DataType, Payload), TensorError> {
    let code = stated.data_type;
    let data_type = DataType::of_code(code).filter(|_| code != 0).ok_or(TensorError::DataType { code })?;
    if stated.segment {
        return Err(TensorError::Segment);
    }
    let len = checked_len(&stated.dims).ok_or(TensorError::ShapeTooBig)?;
    let filled =
        || DATA_FIELDS.iter().zip(&stated.filled).filter(|(_, filled)| filled.bytes > 0).map(|(field, _)| field);
    if stated.is_external {
        if let Some((_, field)) = filled().next() {
            return Err(ExternalError::AlsoInside { field }.into());
        }
        return Ok((data_type, Payload::External(check_external(stated, data_type, len, lenient)?)));
    }
    let mut holding = filled();
    let (first, second) = (holding.next(), holding.next());
    if let (Some((_, first)), Some((_, second))) = (first, second) {
        return Err(TensorError::TwoFields { first, second });
    }
    let Some(dtype) = data_type.dtype else { return Ok((data_type, Payload::Opaque)) };
    let (expected_field, per_entry) = typed_field(dtype);
    let expected_name = field_name(expected_field);
    // A complex element is two entries.
    let entries = if dtype == DType::C64 { len.saturating_mul(2) } else { len.div_ceil(per_entry) };
    let (expected_field, expected_name) =
        if dtype == DType::C64 { (field::FLOAT_DATA, "float_data") } else { (expected_field, expected_name) };
    let (found, name) = match first {
        None if len == 0 => return Ok((data_type, Payload::Empty)),
        None => return Err(TensorError::Entries { field: expected_name, expected: entries, actual: 0 }),
        Some(&(found, name)) => (found, name),
    };
    let Filled { bytes, entries: counted } = stated.filled[index_of(found)];
    match found {
        field::RAW_DATA if dtype == DType::String => {
            Err(TensorError::WrongField { data_type: data_type.name, found: name, expected: expected_name })
        }
        field::RAW_DATA => {
            let expected = dtype.bytes_in(Layout::Packed, len).ok_or(TensorError::ShapeTooBig)?;
            let fits = bytes == expected || (lenient && len > 0 && bytes > expected);
            let range = stated.raw.clone().filter(|_| fits);
            let range = range.ok_or(TensorError::RawLength { expected, actual: bytes })?;
            Ok((data_type, Payload::Raw(range.start..range.start + expected)))
        }
        _ if found != expected_field => {
            Err(TensorError::WrongField { data_type: data_type.name, found: name, expected: expected_name })
        }
        field::STRING_DATA | field::FLOAT_DATA | field::DOUBLE_DATA if counted != entries => {
            Err(TensorError::Entries { field: name, expected: entries, actual: counted })
        }
        field::STRING_DATA => Ok((data_type, Payload::Text)),
        // An entry has at least one byte. Surplus entries are found when elements are read.
        _ if bytes < entries => Err(TensorError::Entries { field: name, expected: entries, actual: bytes }),
        _ if len == 0 => Err(TensorError::MoreEntries { field: name, expected: 0 }),
        _ => Ok((data_type, Payload::Typed(found))),
    }
}

fn check_external(stated: &Stated, data_type: &DataType, len: u64, lenient: bool) -> Result<External, TensorError> {
    let external = External::of_entries(&stated.external)?;
    if data_type.dtype == Some(DType::String) {
        return Err(ExternalError::Text.into());
    }
    let needed = data_type.dtype.and_then(|dtype| dtype.bytes_in(Layout::Packed, len));
    match (external.length, needed) {
        (_, None) if data_type.dtype.is_some() => Err(TensorError::ShapeTooBig),
        (Some(found), Some(needed)) if found != needed && !(lenient && found > needed) => {
            Err(ExternalError::Length { found, needed }.into())
        }
        _ => Ok(external),
    }
}
