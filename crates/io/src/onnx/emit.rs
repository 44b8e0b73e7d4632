//! Encodes protobuf fields and new messages. Field numbers: `docs/spec/onnx.md §3.1`.

use truecast_core::spec::onnx::DataType;
use truecast_core::{DType, Layout};

use super::tensor::field;
use crate::tensor::Tensor;

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(10);
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(crate) fn int(number: u32, value: i64) -> Vec<u8> {
    let mut field = varint(u64::from(number) << 3);
    field.extend(varint(value.cast_unsigned()));
    field
}

/// Tag and length that precede the content of a length-delimited field.
pub(crate) fn head(number: u32, len: u64) -> Vec<u8> {
    let mut field = varint(u64::from(number) << 3 | 2);
    field.extend(varint(len));
    field
}

pub(crate) fn bytes(number: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut field = head(number, content.len() as u64);
    field.extend_from_slice(content);
    field
}

/// Number of a type in `data_type`, `elem_type` and `to`; 0 (UNDEFINED) for types that ONNX lacks.
pub(crate) fn code_of(dtype: DType) -> i64 {
    DataType::of(dtype).map_or(0, |row| row.code.into())
}

/// Fields that state the location of external data (`docs/spec/onnx.md §3.6`, §3.8).
pub(crate) fn external(location: &str, offset: u64, length: u64) -> Vec<u8> {
    let entry = |key: &str, value: &str| bytes(field::EXTERNAL_DATA, [bytes(1, key), bytes(2, value)].concat());
    let (offset, length) = (offset.to_string(), length.to_string());
    let entries = [entry("location", location), entry("offset", &offset), entry("length", &length)].concat();
    [entries, int(field::DATA_LOCATION, 1)].concat()
}

/// Start of a TensorProto. The caller appends the bytes of `raw_data`, or the fields `string_data`.
pub(crate) fn tensor_head(tensor: &Tensor) -> Vec<u8> {
    let dims: Vec<u8> = tensor.shape.iter().flat_map(|&d| int(field::DIMS, d.cast_signed())).collect();
    let data_type = int(field::DATA_TYPE, code_of(tensor.dtype));
    let name = bytes(field::NAME, &*tensor.name);
    // Each text is a field of its own, so there is no common head.
    let data = if tensor.dtype == DType::String { Vec::new() } else { head(field::RAW_DATA, tensor.bytes()) };
    [dims, data_type, name, data].concat()
}

/// Encodes a complete TensorProto of text.
///
/// # Examples
/// ```
/// let message = truecast_io::onnx::text_tensor("t", &[1], [&b"ab"[..]]);
/// assert_eq!(message, b"\x08\x01\x10\x08\x42\x01t\x32\x02ab");
/// ```
pub fn text_tensor<'a>(name: &str, shape: &[u64], texts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let layout = Layout::Utf32 { width: 1 };
    let mut message = tensor_head(&Tensor { name: name.into(), dtype: DType::String, layout, shape: shape.into() });
    texts.into_iter().for_each(|text| message.extend(bytes(field::STRING_DATA, text)));
    message
}

/// Content of a Cast node. Before opset 6 the attribute `to` is a type's name (`docs/spec/onnx.md §1.3`).
pub(crate) fn cast(name: &str, input: &str, output: &str, to: DType, opset: i64) -> Vec<u8> {
    const INT: i64 = 2;
    const STRING: i64 = 3;
    let to = if opset < 6 {
        [bytes(4, DataType::of(to).map_or("", |row| row.name)), int(20, STRING)].concat()
    } else {
        [int(3, code_of(to)), int(20, INT)].concat()
    };
    let attribute = [bytes(1, "to"), to].concat();
    [bytes(1, input), bytes(2, output), bytes(3, name), bytes(4, "Cast"), bytes(5, attribute)].concat()
}
