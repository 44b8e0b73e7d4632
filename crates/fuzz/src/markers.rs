//! Tensors and `__metadata__` that describe quantized layers: markers of ComfyUI, classes of torchao
//! (`docs/spec/checkpoints.md §4.6`, §4.7).

use std::collections::BTreeMap;

use truecast_core::DType;
use truecast_schemes::{Checkpoint, Documents, Options, detect};

use crate::{parts_fit, stored};

const TENSORS: [(&str, DType, &[u64]); 8] = [
    ("a.weight", DType::F8E4M3Fn, &[64, 64]),
    ("a.weight_scale", DType::F32, &[]),
    ("b.weight", DType::U8, &[64, 32]),
    ("b.weight_scale", DType::F8E4M3Fn, &[64, 4]),
    ("b.weight_scale_2", DType::F32, &[]),
    ("c._weight_qdata", DType::I8, &[64, 64]),
    ("c._weight_scale", DType::F32, &[64, 1]),
    ("norm.weight", DType::Bf16, &[64]),
];

/// The first byte of the input selects a tensor or a metadata key, which gets the rest as text.
pub fn markers(input: &[u8]) {
    let Some((place, text)) = input.split_first() else { return };
    let (name, key) = match place % 4 {
        0 => (Some("a.comfy_quant"), None),
        1 => (Some("b.comfy_quant"), None),
        2 => (None, Some("_quantization_metadata")),
        _ => (None, Some("c.weight")),
    };
    let marker = name.map(|name| stored(name, DType::U8, &[text.len() as u64]));
    let rest = TENSORS.iter().map(|&(name, dtype, shape)| stored(name, dtype, shape));
    let tensors: Vec<_> = rest.chain(marker).collect();
    let mut metadata = BTreeMap::from([("tensor_names".to_string(), "[\"c.weight\"]".to_string())]);
    metadata.extend(key.map(|key| (key.to_string(), String::from_utf8_lossy(text).into_owned())));
    let documents = Documents::default();
    let checkpoint = Checkpoint { tensors: &tensors, metadata: &[metadata], documents: &documents };
    let mut read = |number: usize| {
        if number < TENSORS.len() { Ok(vec![0x3f; tensors[number].tensor.bytes() as usize]) } else { Ok(text.to_vec()) }
    };
    parts_fit(detect(checkpoint, &mut read, &Options::default()), &tensors);
}
