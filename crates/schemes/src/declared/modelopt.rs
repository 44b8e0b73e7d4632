//! ModelOpt's algorithms (§4.5), for a whole checkpoint or for single modules.

use serde_json::{Map, Value};

use super::compressed_tensors::{ARGUMENTS, GROUP};
use super::declaration::{Declaration, Targets};
use super::keys::{Inner, Keys};
use super::known::{ACTIVATIONS, COMMON, EXCEPTIONS};
use super::value::{block, count, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::modules::patterns;
use crate::scheme::{Family, Parameters, Scheme};

const LAYER: Keys = Keys {
    used: &["quant_algo group_size weight_block_size"],
    silent: &["pre_quant_scale kv_cache_quant_algo"],
    only: &[("has_zero_point", &["false"])],
    ..Keys::NONE
};

/// Keys of ModelOpt (§4.5), in `config.json` and in `quantization` of `hf_quant_config.json`. Groups only repeat
/// `quant_algo`.
pub(super) const KEYS: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method quant_algo group_size weight_block_size quantized_layers"],
    silent: &[COMMON, ACTIVATIONS, "pre_quant_scale smoothquant_val quant_type"],
    only: &[("has_zero_point", &["false"]), ("scale_fmt", &["\"ue8m0\"", "\"float\""])],
    objects: &[
        ("quantized_layers", Inner::Each(&LAYER)),
        ("config_groups", Inner::Each(&GROUP)),
        ("weights", Inner::One(&ARGUMENTS)),
        ("input_activations", Inner::One(&ARGUMENTS)),
    ],
    ..Keys::NONE
};

pub(super) const FILE_KEYS: Keys = Keys { used: &["quantization"], silent: &["producer"], ..Keys::NONE };

/// Reads `quant_algo`. `None` without an algorithm, for example if only caches are quantized.
///
/// `quant_algo` may be missing if `is_elsewhere`: another file may name the algorithm.
pub(super) fn read(value: &Map<String, Value>, place: &str, is_elsewhere: bool) -> Result<Option<Declaration>, Error> {
    let algorithm = match value.get("quant_algo") {
        Some(Value::String(algorithm)) => algorithm,
        Some(Value::Null) => return Ok(None),
        None if is_elsewhere => return Ok(None),
        other => return Err(wrong(place, "quant_algo", other.unwrap_or(&Value::Null), "the name of an algorithm")),
    };
    let mut declaration = Declaration::new(place);
    if algorithm.eq_ignore_ascii_case("MIXED_PRECISION") {
        let layers = value.get("quantized_layers").unwrap_or(&Value::Null);
        let known =
            layers.as_object().ok_or_else(|| wrong(place, "quantized_layers", layers, "an object of modules"))?;
        for (module, own) in known {
            let error = || wrong(place, module, own, "an object with quant_algo");
            let object = own.as_object().ok_or_else(error)?;
            let algorithm = object.get("quant_algo").and_then(Value::as_str).ok_or_else(error)?;
            let own = setting(algorithm, object, place)?;
            if module.contains('*') {
                declaration.settings.push((listed(module, place)?, own))
            } else {
                _ = declaration.modules.insert(module.clone(), own)
            }
        }
    } else {
        declaration.settings.push((Targets::All, setting(algorithm, value, place)?));
    }
    Ok(Some(declaration))
}

pub(super) fn experts(value: &Value, place: &str) -> Result<Declaration, Error> {
    let algorithm = value.as_str().ok_or_else(|| wrong(place, "moe_quant_algo", value, "the name of an algorithm"))?;
    let mut declaration = Declaration::new(place);
    declaration.settings.push((listed("*experts*", place)?, setting(algorithm, &Map::new(), place)?));
    Ok(declaration)
}

fn listed(pattern: &str, place: &str) -> Result<Targets, Error> {
    patterns(Some(&Value::from(vec![pattern])), place, "modules").map(Targets::Listed)
}

fn setting(algorithm: &str, value: &Map<String, Value>, place: &str) -> Result<Setting, Error> {
    let unsupported = || Error::Unsupported { place: place.to_owned(), scheme: format!("modelopt:{algorithm}") };
    let family = Family::of_name(&format!("modelopt:{algorithm}")).ok_or_else(unsupported)?;
    let group = count(value.get("group_size"), place, "group_size")?;
    let fixed = match family {
        family if family.is_modelopt_nvfp4() => Some(16),
        Family::ModelOptMxfp4 | Family::ModelOptMxfp8 => Some(32),
        _ => None,
    };
    if let (Some(group), Some(fixed)) = (group, fixed)
        && group != fixed
    {
        return Err(wrong(place, "group_size", &value["group_size"], &fixed.to_string()));
    }
    let block = block(value.get("weight_block_size"), place, "weight_block_size")?;
    let mut parameters = Parameters::NONE;
    match (family, block) {
        (Family::ModelOptAwq, None) => parameters.group = group,
        (Family::ModelOptFp8Blocks, _) => parameters.block = block.or(Some([128, 128])),
        (_, None) => {}
        (_, Some(_)) => {
            return Err(wrong(place, "weight_block_size", &value["weight_block_size"], "nothing"));
        }
    }
    Ok(Setting::of(Scheme { family, parameters }))
}
