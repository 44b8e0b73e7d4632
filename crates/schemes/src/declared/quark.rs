//! AMD Quark (§4.19): settings for all modules, for modules by name, and for modules by class.

use serde_json::{Map, Value};
use truecast_core::scaled::Part;

use super::declaration::{Declaration, Targets};
use super::keys::{Inner, Keys};
use super::known::{COMMON, EXCEPTIONS};
use super::value::{block, count, flag, object, text, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::modules::patterns;
use crate::scheme::{Family, Parameters, Scheme, Strategy};

/// Families with identical tensors; the tensors do not show a module's class.
const ALIKE: [[Family; 2]; 3] = [
    [Family::QuarkFp6E2M3, Family::QuarkFp6E3M2],
    [Family::QuarkInt4, Family::QuarkUint4],
    [Family::QuarkInt4Order, Family::QuarkUint4Order],
];

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Option<Declaration>, Error> {
    let mut declaration = Declaration::new(place);
    check_algorithms(value.get("algo_config"), place)?;
    let order = order(object(value.get("export"), place, "export")?, place)?;
    let mut add = |targets, layer: &Value, key| -> Result<(), Error> {
        let weight = match object(Some(layer), place, key)?.and_then(|layer| layer.get("weight")) {
            Some(Value::Array(steps)) => return Err(twice(steps, place)),
            weight => object(weight, place, "weight")?,
        };
        let own = weight.map(|weight| setting(weight, order, place)).transpose()?;
        declaration.settings.extend(own.map(|own| (targets, own)));
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
    let is_for_all = |family| declaration.settings.iter().any(|(of, own)| of.are_all() && own.scheme.family == family);
    if ALIKE.into_iter().any(|pair| pair.into_iter().all(is_for_all)) {
        let classes = value.get("layer_type_quant_config").unwrap_or(&Value::Null);
        return Err(wrong(place, "layer_type_quant_config", classes, "types that the tensors tell apart"));
    }
    // Excluded modules keep their original storage, which may be FP8 and shows in its scales.
    if !declaration.families().contains(&Family::QuarkFp8) {
        declaration.settings.push((Targets::All, Setting::of(Scheme::of(Family::QuarkFp8))));
    }
    declaration.without(value.get("exclude"), "exclude").map(Some)
}

/// Order of eight 4-bit integers in a word.
#[derive(Clone, Copy)]
enum Order {
    /// As in AWQ.
    Reorder,
    /// First integer in the lowest bits.
    Order,
    /// Not stated.
    Unknown,
}

fn order(export: Option<&Map<String, Value>>, place: &str) -> Result<Order, Error> {
    let value = export.and_then(|export| export.get("pack_method"));
    match text(value, place, "pack_method")? {
        Some("reorder") => Ok(Order::Reorder),
        Some("order") => Ok(Order::Order),
        None => Ok(Order::Unknown),
        Some(_) => Err(wrong(place, "pack_method", value.unwrap_or(&Value::Null), "reorder or order")),
    }
}

/// Error for weights, or scales, that are quantized in steps.
fn twice(steps: &[Value], place: &str) -> Error {
    let of_step = |step: &Value| step.get("dtype").and_then(Value::as_str).unwrap_or("?").to_owned();
    let scheme = format!("quark:[{}]", steps.iter().map(of_step).collect::<Vec<_>>().join(", "));
    Error::Unsupported { place: place.to_owned(), scheme }
}

fn setting(weight: &Map<String, Value>, order: Order, place: &str) -> Result<Setting, Error> {
    let named =
        |key: &'static str| -> Result<&str, Error> { Ok(text(weight.get(key), place, key)?.unwrap_or_default()) };
    let (dtype, scheme, scales) = (named("dtype")?, named("qscheme")?, named("scale_format")?);
    let group = count(weight.get("group_size"), place, "group_size")?;
    let block = block(weight.get("block_size"), place, "block_size")?;
    let is_symmetric = flag(weight.get("symmetric"), place, "symmetric")? == Some(true);
    check_axis(weight.get("ch_axis"), scheme, place)?;
    if !["", "int32"].contains(&named("zero_point_type")?) {
        return Err(wrong(place, "zero_point_type", &weight["zero_point_type"], "int32"));
    }
    let refused = || Error::Unsupported { place: place.to_owned(), scheme: format!("quark:{dtype} {scheme} {scales}") };
    let family = match (dtype, order) {
        ("fp4", _) => Family::QuarkFp4,
        ("fp6_e2m3", _) => Family::QuarkFp6E2M3,
        ("fp6_e3m2", _) => Family::QuarkFp6E3M2,
        ("fp8_e4m3", _) => Family::QuarkFp8,
        ("int4", Order::Reorder) => Family::QuarkInt4,
        ("int4", Order::Order) => Family::QuarkInt4Order,
        ("uint4", Order::Reorder) => Family::QuarkUint4,
        ("uint4", Order::Order) => Family::QuarkUint4Order,
        ("int4" | "uint4", Order::Unknown) => {
            return Err(wrong(place, "pack_method", &Value::Null, "reorder or order"));
        }
        ("int8" | "uint8", _) => Family::QuarkInt8,
        _ => return Err(refused()),
    };
    let is_mx = [Family::QuarkFp4, Family::QuarkFp6E2M3, Family::QuarkFp6E3M2].contains(&family);
    let parameters = match (family, scheme, scales) {
        (_, "per_group", "e8m0") if is_mx && group == Some(32) => Parameters::NONE,
        _ if is_mx => return Err(refused()),
        (Family::QuarkFp8, "per_group", "e8m0") if group.is_some() => Parameters { group, ..Parameters::NONE },
        (Family::QuarkFp8, "per_block", "" | "float") if block.is_some() => Parameters { block, ..Parameters::NONE },
        (_, "per_tensor", "" | "float") => Parameters { strategy: Some(Strategy::Tensor), ..Parameters::NONE },
        (_, "per_channel", "" | "float") => Parameters { strategy: Some(Strategy::Channel), ..Parameters::NONE },
        (_, "per_group", "" | "float") if group.is_some() => Parameters { group, ..Parameters::NONE },
        _ => return Err(refused()),
    };
    let setting = Setting::of(Scheme { family, parameters });
    if !dtype.contains("int") {
        return Ok(setting);
    }
    // Files quantized shard by shard lack zero points; those with groups have another grid.
    let may_lack_zeros = is_symmetric && dtype == "int8" && parameters.group.is_none();
    let symmetric = (is_symmetric && dtype.starts_with("int")).then_some("symmetric is true");
    Ok(Setting { symmetric, ..setting }.with(!may_lack_zeros, Part::Zeros))
}

/// Checks that channels are outputs, or groups of inputs.
fn check_axis(value: Option<&Value>, scheme: &str, place: &str) -> Result<(), Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(()) };
    let wrong = |expected| Err(wrong(place, "ch_axis", value, expected));
    match (value.as_i64(), scheme) {
        (None, _) => wrong("a number"),
        (Some(axis), "per_channel") if ![0, -2].contains(&axis) => wrong("0"),
        (Some(axis), "per_group") if ![1, -1].contains(&axis) => wrong("1 or -1"),
        _ => Ok(()),
    }
}

/// Checks for algorithms that change weights first. A rotation needs a runtime that rotates activations.
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
