//! What a checkpoint's JSON files declare: which modules are stored in which scheme (`docs/spec/checkpoints.md §2.5`, §5.3).
//!
//! A declaration says what may be; whether a tensor is stored so is decided in [`crate::detect`].

mod compressed_tensors;
mod declaration;
mod fp8;
mod integers;
mod mlx;
mod modelopt;
mod value;

use serde_json::{Map, Value};
use truecast_core::DType;

use crate::checkpoint::Documents;
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Scheme};
pub(crate) use declaration::Declaration;
use value::{object, wrong};

/// Everything that the files declare.
pub(crate) fn read(documents: &Documents) -> Result<Vec<Declaration>, Error> {
    let mut all = Vec::new();
    let empty = Map::new();
    let config = documents.config.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    let expert = expert(config)?;
    let text = config.get("text_config").and_then(Value::as_object);
    let is_elsewhere = documents.hf_quant_config.is_some();
    for (path, value) in [
        ("quantization_config", config.get("quantization_config")),
        ("text_config.quantization_config", text.and_then(|text| text.get("quantization_config"))),
        ("compression_config", config.get("compression_config").map(nested)),
    ] {
        if let Some(value) = object(value, "config.json", path)? {
            let place = format!("config.json: {path}");
            all.extend(quantization_config(value, &place, expert, is_elsewhere)?);
        }
    }
    if let Some(value) = object(config.get("quantization"), "config.json", "quantization")? {
        all.push(mlx::read(value, "config.json: quantization")?);
    }
    if let Some(algorithm) = config.get("moe_quant_algo").filter(|value| !value.is_null()) {
        all.push(modelopt::experts(algorithm, "config.json: moe_quant_algo")?);
    }
    let value = documents.hf_quant_config.as_ref().and_then(|value| value.get("quantization"));
    if let Some(value) = object(value, "hf_quant_config.json", "quantization")? {
        all.extend(modelopt::read(value, "hf_quant_config.json", "exclude_modules", false)?);
    }
    for key in ["quantization", "quantization_config"] {
        let value = documents.params.as_ref().and_then(|value| value.get(key));
        if let Some(value) = object(value, "params.json", key)? {
            all.push(fp8::mistral(value, &format!("params.json: {key}"))?);
        }
    }
    all.retain(|declaration| declaration.scheme().is_some());
    Ok(all)
}

/// Files of 2024 nest the configuration once more.
fn nested(value: &Value) -> &Value {
    value.get("quantization_config").unwrap_or(value)
}

/// `expert_dtype` of DeepSeek V4.
fn expert(config: &Map<String, Value>) -> Result<Option<DType>, Error> {
    match config.get("expert_dtype") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text == "fp4" => Ok(Some(DType::F4E2M1)),
        Some(Value::String(text)) if text == "fp8" => Ok(Some(DType::F8E4M3Fn)),
        Some(other) => Err(wrong("config.json", "expert_dtype", other, "fp4 or fp8")),
    }
}

/// By `quant_method` (§5.3).
fn quantization_config(
    value: &Map<String, Value>,
    place: &str,
    expert: Option<DType>,
    is_elsewhere: bool,
) -> Result<Option<Declaration>, Error> {
    let method = match value.get("quant_method") {
        Some(Value::String(method)) => method.as_str(),
        None | Some(Value::Null) if value.contains_key("quant_algo") => "modelopt",
        None | Some(Value::Null) if value.contains_key("config_groups") => "compressed-tensors",
        None | Some(Value::Null) if value.contains_key("bits") && value.contains_key("group_size") => "mlx",
        other => return Err(wrong(place, "quant_method", other.unwrap_or(&Value::Null), "the name of a method")),
    };
    let simple = |family| Declaration::for_all(place, [Setting::of(Scheme::of(family))]);
    let declaration = match method {
        "fp8" => fp8::read(value, place, expert)?,
        "mxfp4" => simple(Family::GptOss),
        "mxfp8" => fp8::mxfp8(value, place)?,
        "compressed-tensors" => compressed_tensors::read(value, place)?,
        "modelopt" | "modelopt_fp4" | "modelopt_fp8" => return modelopt::read(value, place, "ignore", is_elsewhere),
        "awq" => integers::awq(value, place)?,
        "gptq" => integers::gptq(value, place)?,
        "bitnet" => simple(Family::BitNet),
        "fbgemm_fp8" => simple(Family::FbgemmFp8),
        "torchao" => simple(Family::Torchao),
        "mlx" => mlx::read(value, place)?,
        other => return Err(Error::Unsupported { place: place.to_owned(), scheme: other.to_owned() }),
    };
    declaration.without(value.get("modules_to_not_convert"), "modules_to_not_convert").map(Some)
}
