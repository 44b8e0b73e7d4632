//! AMD Quark (§4.19). Some settings hold for all modules, others for modules with a name or class.

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

/// Keys of a module's weights. `is_scale_quant` (quantized scales) is not supported.
pub(super) const WEIGHT: Keys = Keys {
    used: &["dtype qscheme ch_axis group_size block_size scale_format symmetric zero_point_type"],
    silent: &[
        "enable_buffer_reuse is_dynamic max_input_numel mx_element_dtype observer_cls observer_kwargs percentile \
            qat_spec round_method scale_calculation_mode scale_type",
    ],
    only: &[("is_scale_quant", &["false"])],
    ..Keys::NONE
};

const LAYER: Keys = Keys {
    silent: &["input_tensors output_tensors target_device"],
    objects: &[("weight", Inner::One(&WEIGHT))],
    ..Keys::NONE
};

pub(super) const EXPORT: Keys = Keys {
    used: &["pack_method"],
    silent: &["kv_cache_group min_kv_scale weight_merge_groups"],
    only: &[("weight_format", &["\"real_quantized\""])],
    ..Keys::NONE
};

/// Keys of AMD Quark (§4.19).
pub(super) const KEYS: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method exclude algo_config"],
    silent: &[
        COMMON,
        "kv_cache_post_rope kv_cache_quant_config log_severity_level quant_mode softmax_quant_spec version",
    ],
    objects: &[
        ("global_quant_config", Inner::One(&LAYER)),
        ("layer_quant_config", Inner::Each(&LAYER)),
        ("layer_type_quant_config", Inner::Each(&LAYER)),
        ("export", Inner::One(&EXPORT)),
    ],
    ..Keys::NONE
};

/// Pairs of families with equal tensors. If classes of modules have both, no tensor shows the family.
const ALIKE: [[Family; 2]; 3] = [
    [Family::QuarkFp6E2M3, Family::QuarkFp6E3M2],
    [Family::QuarkInt4, Family::QuarkUint4],
    [Family::QuarkInt4Order, Family::QuarkUint4Order],
];

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Option<Declaration>, Error> {
    let mut declaration = Declaration::new(place);
    check_algorithms(value.get("algo_config"), place)?;
    let order = pack_method(object(value.get("export"), place, "export")?, place)?;
    let mut add = |targets, layer: &Value, key| -> Result<(), Error> {
        let weight = match object(Some(layer), place, key)?.and_then(|layer| layer.get("weight")) {
            Some(Value::Array(steps)) => return Err(unsupported_steps(steps, place)),
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
    // Excluded modules stay as in the original model, which may be FP8. The shape of the scales shows their form.
    if !declaration.families().contains(&Family::QuarkFp8) {
        declaration.settings.push((Targets::All, Setting::of(Scheme::of(Family::QuarkFp8))));
    }
    declaration.without(value.get("exclude"), "exclude").map(Some)
}

/// Order in which a word holds eight 4-bit integers.
#[derive(Clone, Copy)]
enum PackMethod {
    /// The order of AWQ.
    Reorder,
    /// First integer in the lowest bits.
    Order,
    Unknown,
}

fn pack_method(export: Option<&Map<String, Value>>, place: &str) -> Result<PackMethod, Error> {
    let value = export.and_then(|export| export.get("pack_method"));
    match text(value, place, "pack_method")? {
        Some("reorder") => Ok(PackMethod::Reorder),
        Some("order") => Ok(PackMethod::Order),
        None => Ok(PackMethod::Unknown),
        Some(_) => Err(wrong(place, "pack_method", value.unwrap_or(&Value::Null), "reorder or order")),
    }
}

/// Error for weights that are quantized in steps, or whose scales are quantized.
fn unsupported_steps(steps: &[Value], place: &str) -> Error {
    let of_step = |step: &Value| step.get("dtype").and_then(Value::as_str).unwrap_or("?").to_owned();
    let scheme = format!("quark:[{}]", steps.iter().map(of_step).collect::<Vec<_>>().join(", "));
    Error::Unsupported { place: place.to_owned(), scheme }
}

fn setting(weight: &Map<String, Value>, order: PackMethod, place: &str) -> Result<Setting, Error> {
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
        ("int4", PackMethod::Reorder) => Family::QuarkInt4,
        ("int4", PackMethod::Order) => Family::QuarkInt4Order,
        ("uint4", PackMethod::Reorder) => Family::QuarkUint4,
        ("uint4", PackMethod::Order) => Family::QuarkUint4Order,
        ("int4" | "uint4", PackMethod::Unknown) => {
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
    // A file that was quantized shard by shard may lack zero points. Groups have another grid, so groups always need
    // zero points.
    let may_lack_zeros = is_symmetric && dtype == "int8" && parameters.group.is_none();
    let symmetric = (is_symmetric && dtype.starts_with("int")).then_some("symmetric is true");
    Ok(Setting { symmetric, ..setting }.with(!may_lack_zeros, Part::Zeros))
}

/// Checks the axis: a channel is an output, and a group consists of inputs.
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

/// Rejects algorithms that rotate weights before quantization. The runtime would have to rotate activations.
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
