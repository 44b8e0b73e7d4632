//! Writes a header with the exact bytes of `docs/spec/checkpoints.md §1.5` and §1.8.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use truecast_core::DType;

use super::{name_of, rank_of};
use crate::error::denied::DeniedTensor;
use crate::error::safetensors::{MAX_HEADER_BYTES, METADATA_KEY};
use crate::tensor::Tensor;

/// Canonical order, as indices into `tensors`: type rank descending, then name in byte order. Tensors that
/// safetensors cannot hold come last.
///
/// Source: `docs/spec/checkpoints.md §1.5`.
pub fn canonical_order(tensors: &[Tensor]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&tensors[a], &tensors[b]);
        rank_of(b.dtype).cmp(&rank_of(a.dtype)).then_with(|| a.name.as_bytes().cmp(b.name.as_bytes()))
    });
    order
}

/// Order of the data. The given order, if every tensor then starts at a multiple of its element size; else the
/// canonical order.
pub(crate) fn data_order(tensors: &[Tensor]) -> Vec<usize> {
    let mut offset = 0u64;
    let is_aligned = tensors.iter().all(|tensor| {
        // Elements of at most 8 bits may start anywhere. The header's length is a multiple of 8.
        let size = u64::from(tensor.dtype.storage_bits().unwrap_or(8).div_ceil(8));
        let fits = offset.is_multiple_of(size);
        offset = offset.saturating_add(tensor.bytes());
        fits
    });
    if is_aligned { (0..tensors.len()).collect() } else { canonical_order(tensors) }
}

/// Reason why safetensors cannot hold a tensor, in addition to the limits of every container.
pub(crate) fn refusal(tensor: &Tensor) -> Option<DeniedTensor> {
    if &*tensor.name == METADATA_KEY {
        return Some(DeniedTensor::ReservedName);
    }
    let bits = tensor.dtype.storage_bits().map(|b| u128::from(tensor.len()) * u128::from(b));
    if bits.is_none_or(|b| b % 8 != 0) {
        return Some(DeniedTensor::PartialByte { len: tensor.len(), bits: tensor.dtype.code_bits() });
    }
    // §1.4: torch cannot read such a tensor, although its number of elements is even.
    if tensor.dtype == DType::F4E2M1 && tensor.shape.last().is_some_and(|d| d % 2 != 0) {
        return Some(DeniedTensor::OddLastDimension);
    }
    None
}

/// Start of a file: the header and its length. The error is a length above the limit.
pub(crate) fn emit(tensors: &[Tensor], order: &[usize], metadata: &BTreeMap<String, String>) -> Result<Vec<u8>, u64> {
    // §1.7: keys in byte order, `format` always present.
    let mut pairs: BTreeMap<&str, &str> = metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    pairs.entry("format").or_insert("pt");
    let mut text = format!("{{\"{METADATA_KEY}\":{{");
    for (i, (key, value)) in pairs.into_iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        quote(&mut text, key);
        text.push(':');
        quote(&mut text, value);
    }
    text.push('}');
    let mut offset = 0u64;
    for &index in order {
        let tensor = &tensors[index];
        let end = offset.saturating_add(tensor.bytes());
        text.push(',');
        quote(&mut text, &tensor.name);
        let name = name_of(tensor.dtype).unwrap_or_default();
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        write!(text, r#":{{"dtype":"{name}","shape":[{}],"data_offsets":[{offset},{end}]}}"#, shape.join(","))
            .expect("writing to a string cannot fail");
        offset = end;
    }
    text.push('}');
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let bytes = text.len() as u64;
    if bytes > MAX_HEADER_BYTES {
        return Err(bytes);
    }
    let mut header = bytes.to_le_bytes().to_vec();
    header.extend_from_slice(text.as_bytes());
    Ok(header)
}

/// Appends a JSON string, escaped by §1.8, rule 2.
fn quote(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..='\u{1f}' => write!(text, "\\u{:04x}", u32::from(c)).expect("writing to a string cannot fail"),
            _ => text.push(c),
        }
    }
    text.push('"');
}
