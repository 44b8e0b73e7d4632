//! Contents of a file from its first bytes.

use super::invalid;
use crate::failure::Failure;
use crate::message::quoted;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use truecast::DType;
use truecast::header::{Listed, Outline, Read, Start, read};

#[derive(Deserialize)]
pub struct Asked {
    name: String,
    size: u64,
    bytes: String,
}

pub fn answer(asked: &Asked) -> Result<Value, Failure> {
    let bytes = BASE64_STANDARD.decode(&asked.bytes).map_err(invalid)?;
    let start = Start { name: &asked.name, file_bytes: asked.size, bytes: &bytes };
    Ok(match read(&start, None)? {
        Read::Needs(bytes) => json!({ "need": bytes }),
        Read::Outline(outline) => to_json(&outline, &asked.name),
    })
}

/// `command` is the line that converts the file. `unscaled` is the fp8 type of most bytes, if no tensor has scales.
pub fn to_json(outline: &Outline, name: &str) -> Value {
    let Outline { format, tensors, metadata, schemes, parameters, weight_bytes, warnings, is_inferred } = outline;
    let named = |tensor: &Listed| Listed { dtype: type_name(&tensor.dtype), ..tensor.clone() };
    let tensors: Vec<Listed> = tensors.iter().map(named).collect();
    let bytes: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
    let bits = (*parameters > 0).then(|| *weight_bytes as f64 * 8.0 / *parameters as f64);
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let line = |job, of: &str, scheme| {
        let result = format!("{stem}{of}");
        let report = Path::new(&result).with_extension("html").display().to_string();
        let [source, result, report] = [name, &result, &report].map(quoted);
        format!("truecast {job} {source} {result}{scheme} --report {report}")
    };
    let types: BTreeMap<&str, u64> = tensors.iter().fold(BTreeMap::new(), |mut types, tensor| {
        *types.entry(tensor.dtype.as_str()).or_default() += tensor.bytes;
        types
    });
    let most = types.iter().max_by_key(|(_, bytes)| **bytes).map(|(dtype, _)| (*dtype).to_owned());
    let unscaled = most.filter(|dtype| schemes.is_empty() && dtype.starts_with("f8e"));
    let command = match (*format, schemes.is_empty()) {
        ("config.json", _) => "truecast inspect FOLDER".into(),
        (_, is_plain) if *is_inferred || (is_plain && !warnings.is_empty()) => {
            format!("truecast inspect {}", quoted(name))
        }
        ("gguf", true) => line("quantize", "-q8_0.gguf", " q8_0"),
        (_, true) if unscaled.is_some() => line("convert", "-bf16.safetensors", " --to bf16"),
        (_, true) => line("quantize", "-fp8.safetensors", " fp8"),
        (_, false) => line("dequantize", "-bf16.safetensors", ""),
    };
    json!({
        "format": format, "scheme": schemes.join(", "), "unscaled": unscaled, "tensors": tensors, "metadata": metadata,
        "parameters": parameters, "bytes": bytes, "bits_per_weight": bits, "warnings": warnings, "command": command
    })
}

/// Name of an element type, or of a type that only the file's format has, such as `q8_0`.
fn type_name(own: &str) -> String {
    DType::parse(own).map_or_else(|_| own.to_lowercase(), |dtype| dtype.name().into())
}
