//! AutoRound (§4.17): `packing_format` names the layout of another package, or AutoRound's own.

use serde_json::{Map, Value};

use super::declaration::{Declaration, Targets};
use super::integers::symmetric;
use super::keys::{Inner, Keys};
use super::known::{ACTIVATIONS, AUTOROUND, COMMON, EXCEPTIONS, INTEGER_QUANTIZER_KEYS};
use super::value::{block, count, object, text, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::modules::patterns;
use crate::scheme::{Family, Parameters, Scheme};

/// AutoRound's keys about activations, caches and the quantization run.
const RUN: &str = "act_bits act_data_type act_dynamic act_group_size act_sym fmt layer_config static_attention_dtype \
    static_attention_granularity static_kv_dtype static_kv_granularity supported_types weight_block_size";

const MODULE: Keys = Keys {
    used: &["bits group_size data_type sym"],
    silent: &["act_bits act_data_type act_dynamic act_group_size act_sym in_blocks"],
    ..Keys::NONE
};

pub(super) const KEYS: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method bits group_size data_type packing_format sym"],
    silent: &[COMMON, ACTIVATIONS, INTEGER_QUANTIZER_KEYS, AUTOROUND, RUN],
    only: &[("rotation_config", &["{}"]), ("rotation_configs", &["[]"]), ("dynamic", &["{}", "false"])],
    objects: &[("extra_config", Inner::Each(&MODULE))],
    ..Keys::NONE
};

/// Layouts of weights: packing format, start of the data type, bits, family with this layout. AutoRound's own layout
/// stores zero points unchanged, as gptq_v2 does.
const LAYOUTS: [(&str, &str, &[u64], Family); 11] = [
    ("auto_round:auto_gptq", "int", &[2, 3, 4, 8], Family::Gptq),
    ("auto_gptq", "int", &[2, 3, 4, 8], Family::Gptq),
    ("auto_round", "int", &[2, 3, 4, 8], Family::GptqV2),
    ("auto_round:gptqmodel", "int", &[2, 3, 4, 8], Family::GptqV2),
    ("auto_round:auto_awq", "int", &[4], Family::Awq),
    ("auto_awq", "int", &[4], Family::Awq),
    ("auto_round:llm_compressor", "mx_fp", &[4], Family::CtMxfp4),
    ("auto_round:llm_compressor", "mx_fp", &[8], Family::CtMxfp8),
    ("auto_round:llm_compressor", "nv_fp", &[4], Family::CtNvfp4),
    ("auto_round:fp8_static", "fp", &[8], Family::Fp8Tensor),
    ("auto_round:fp8", "fp", &[8], Family::Fp8Tensor),
];

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Option<Declaration>, Error> {
    let packing = text(value.get("packing_format"), place, "packing_format")?.unwrap_or_default();
    if packing == "auto_round:fake" {
        return Ok(None);
    }
    let mut declaration = Declaration::for_all(place, [setting(packing, value, value, place)?]);
    for (name, own) in object(value.get("extra_config"), place, "extra_config")?.into_iter().flatten() {
        let own = own.as_object().ok_or_else(|| wrong(place, name, own, "an object"))?;
        // Tensors show which modules are unquantized.
        if own.get("bits").and_then(Value::as_u64).is_some_and(|bits| bits >= 16) {
            continue;
        }
        let setting = setting(packing, value, own, place)?;
        if name.contains(['*', '\\', '[', '^', '$', '(', '+', '|']) {
            let pattern = Value::from(vec![format!("re:.*(?:{name})")]);
            declaration.settings.push((Targets::Listed(patterns(Some(&pattern), place, name)?), setting));
        } else {
            _ = declaration.modules.insert(name.clone(), setting)
        }
    }
    Ok(Some(declaration))
}

/// Setting of a module. The module's keys `own` override the keys `all`, which hold for all modules.
fn setting(packing: &str, all: &Map<String, Value>, own: &Map<String, Value>, place: &str) -> Result<Setting, Error> {
    let get = |key: &str| own.get(key).filter(|value| !value.is_null()).or_else(|| all.get(key));
    let bits = count(get("bits"), place, "bits")?.unwrap_or_default();
    let data = text(get("data_type"), place, "data_type")?.unwrap_or("int");
    let found = LAYOUTS.iter().find(|(of, kind, widths, _)| {
        *of == packing && data.starts_with(kind) && !data.contains("e5m2") && widths.contains(&bits)
    });
    // If activations have at most 8 bits, AutoRound packs integers in another layout.
    let is_other = |family| {
        let is_int = matches!(family, Family::Gptq | Family::GptqV2 | Family::Awq);
        is_int && get("act_bits").and_then(Value::as_u64).is_some_and(|bits| bits <= 8)
    };
    let Some((.., family)) = found.filter(|(.., family)| !is_other(*family)) else {
        let scheme = format!("auto-round:{packing} {data} of {bits} bits");
        return Err(Error::Unsupported { place: place.to_owned(), scheme });
    };
    let size = get("group_size");
    let (group, block) = match size {
        Some(Value::Array(_)) => (None, block(size, place, "group_size")?),
        _ => (count(size.filter(|size| size.as_u64() != Some(0)), place, "group_size")?, None),
    };
    let none = Parameters::NONE;
    let (family, parameters) = match family {
        Family::Gptq | Family::GptqV2 => (*family, Parameters { bits: Some(bits as u32), group, ..none }),
        Family::Awq => (*family, Parameters { group, ..none }),
        Family::Fp8Tensor if block.is_some() => (Family::Fp8Block, Parameters { block, ..none }),
        _ => (*family, none),
    };
    let symmetric = symmetric(get("sym"), place)?;
    Ok(Setting { symmetric, ..Setting::of(Scheme { family, parameters }) })
}
