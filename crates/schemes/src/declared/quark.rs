//! AMD Quark (§4.19): how the weights of all modules are quantized, of those of some names, and of those of some classes.

use serde_json::{Map, Value};

use super::declaration::{Declaration, Targets};
use super::value::{block, count, object, text, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::modules::patterns;
use crate::scheme::{Family, Parameters, Scheme, Strategy};

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Option<Declaration>, Error> {
    let mut declaration = Declaration::new(place);
    check_algorithms(value.get("algo_config"), place)?;
    let mut add = |targets, layer: &Value, key| -> Result<(), Error> {
        let weight = object(object(Some(layer), place, key)?.and_then(|layer| layer.get("weight")), place, "weight")?;
        declaration.settings.extend(weight.map(|weight| setting(weight, place)).transpose()?.map(|own| (targets, own)));
        Ok(())
    };
    for (name, own) in object(value.get("layer_quant_config"), place, "layer_quant_config")?.into_iter().flatten() {
        let pattern = Value::from(vec![name.as_str()]);
        add(Targets::Listed(patterns(Some(&pattern), place, name)?), own, name)?;
    }
    for (name, own) in
        object(value.get("layer_type_quant_config"), place, "layer_type_quant_config")?.into_iter().flatten()
    {
        add(Targets::All, own, name)?;
    }
    let all = value.get("global_quant_config");
    let all = all.ok_or_else(|| wrong(place, "global_quant_config", &Value::Null, "an object"))?;
    add(Targets::All, all, "global_quant_config")?;
    if declaration.scheme().is_none() {
        return Ok(None);
    }
    // Modules that are excluded stay as their model had them, which may be FP8: its scales say how it is stored.
    if !declaration.families().contains(&Family::QuarkFp8) {
        declaration.settings.push((Targets::All, Setting::of(Scheme::of(Family::QuarkFp8))));
    }
    declaration.without(value.get("exclude"), "exclude").map(Some)
}

fn setting(weight: &Map<String, Value>, place: &str) -> Result<Setting, Error> {
    let named =
        |key: &'static str| -> Result<&str, Error> { Ok(text(weight.get(key), place, key)?.unwrap_or_default()) };
    let (dtype, scheme, scales) = (named("dtype")?, named("qscheme")?, named("scale_format")?);
    let group = count(weight.get("group_size"), place, "group_size")?;
    let block = block(weight.get("block_size"), place, "block_size")?;
    let parameters = match (dtype, scheme, scales) {
        ("fp4", "per_group", "e8m0") if group == Some(32) => Parameters::NONE,
        ("fp8_e4m3", "per_tensor", "" | "float") => Parameters { strategy: Some(Strategy::Tensor), ..Parameters::NONE },
        ("fp8_e4m3", "per_channel", "" | "float") => {
            Parameters { strategy: Some(Strategy::Channel), ..Parameters::NONE }
        }
        ("fp8_e4m3", "per_group", "" | "float" | "e8m0") if group.is_some() => Parameters { group, ..Parameters::NONE },
        ("fp8_e4m3", "per_block", "" | "float") if block.is_some() => Parameters { block, ..Parameters::NONE },
        _ => {
            let scheme = format!("quark:{dtype} {scheme} {scales}");
            return Err(Error::Unsupported { place: place.to_owned(), scheme });
        }
    };
    let family = if dtype == "fp4" { Family::QuarkFp4 } else { Family::QuarkFp8 };
    Ok(Setting::of(Scheme { family, parameters }))
}

/// Algorithms that change weights before they are quantized. A rotation needs a runtime that rotates activations.
fn check_algorithms(value: Option<&Value>, place: &str) -> Result<(), Error> {
    let all =
        value.filter(|value| !value.is_null()).map(|value| value.as_array().cloned().unwrap_or(vec![value.clone()]));
    let is_harmless = |algorithm: &Value| {
        let name = algorithm.get("name").and_then(Value::as_str);
        name.is_some_and(|name| !name.contains("rotation") && !name.contains("quarot"))
    };
    match all.iter().flatten().find(|algorithm| !is_harmless(algorithm)) {
        Some(other) => Err(wrong(place, "algo_config", other, "an algorithm that does not rotate weights")),
        None => Ok(()),
    }
}
