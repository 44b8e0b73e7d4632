//! Contents of a file from its first bytes.

use super::invalid;
use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
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
    Ok(match read(&start)? {
        Read::Needs(bytes) => json!({ "need": bytes }),
        Read::Outline(outline) => to_json(&outline, &asked.name),
    })
}

/// `command` is the line that converts the file.
pub fn to_json(outline: &Outline, name: &str) -> Value {
    let Outline { format, tensors, schemes, parameters, warnings } = outline;
    let tensor = |one: &Listed| {
        let Listed { name, dtype, shape, bytes, parameters } = one;
        json!({ "name": name, "dtype": dtype, "shape": shape, "bytes": bytes, "parameters": parameters })
    };
    let bytes: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
    let bits = (*parameters > 0).then(|| bytes as f64 * 8.0 / *parameters as f64);
    let command = match (*format, schemes.is_empty()) {
        ("config.json", _) => "truecast inspect FOLDER".into(),
        (_, true) => format!("truecast quantize {} OUT fp8", crate::command::quoted(name)),
        (_, false) => format!("truecast dequantize {} OUT", crate::command::quoted(name)),
    };
    json!({
        "format": format, "scheme": schemes.join(", "), "tensors": tensors.iter().map(tensor).collect::<Value>(),
        "parameters": parameters, "bytes": bytes, "bits_per_weight": bits, "warnings": warnings, "command": command
    })
}
