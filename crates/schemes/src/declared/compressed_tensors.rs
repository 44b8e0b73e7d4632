//! compressed-tensors (§4.4) declares groups of modules. Each group has a format and the arguments of its weights.

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

/// Keys of arguments for weights or activations. `zp_dtype` repeats a tensor's type. `dynamic` is set only for
/// weights that are stored unquantized.
pub(super) const ARGUMENTS: Keys = Keys {
    used: &["num_bits type symmetric group_size strategy block_structure scale_dtype actorder"],
    silent: &["dynamic observer observer_kwargs zp_dtype"],
    ..Keys::NONE
};

/// Keys of a group of modules. `pre_quant_scale` announces a tensor, which is checked by itself.
pub(super) const GROUP: Keys = Keys {
    used: &["targets weights format"],
    silent: &["pre_quant_scale quant_algo"],
    only: &[("has_zero_point", &["false"])],
    objects: &[
        ("weights", Inner::One(&ARGUMENTS)),
        ("input_activations", Inner::One(&ARGUMENTS)),
        ("output_activations", Inner::One(&ARGUMENTS)),
    ],
    ..Keys::NONE
};

/// Keys of `sparsity_config`. The only accepted format stores zeros like other elements.
const SPARSITY: Keys = Keys {
    silent: &["global_sparsity sparsity_structure ignore targets registry_requires_subclass"],
    only: &[("format", &["\"dense\""])],
    ..Keys::NONE
};

/// Keys of compressed-tensors (§4.4). `transform_config` (rotations at run time) and `moe_sparsity_config` (experts
/// that are not stored) must be empty.
pub(super) const KEYS: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method format version config_groups"],
    silent: &[
        COMMON,
        "quantization_status global_compression_ratio use_optimized_inference total_num_heads \
            total_num_kv_heads",
    ],
    only: &[("transform_config", &["{}", "{\"config_groups\":{}}"]), ("moe_sparsity_config", &["{}"])],
    objects: &[("config_groups", Inner::Each(&GROUP)), ("sparsity_config", Inner::One(&SPARSITY))],
    ..Keys::NONE
};

/// Keys around the configuration in files of 2024, which nest the configuration.
pub(super) const AROUND: Keys = Keys {
    used: &["quantization_config"],
    silent: &[COMMON, "quant_method"],
    only: KEYS.only,
    objects: &[("sparsity_config", Inner::One(&SPARSITY))],
    ..Keys::NONE
};

const SPARSE: [&str; 3] = ["sparse-bitmask", "sparse-24-bitmask", "marlin-24"];

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let mut declaration = Declaration::new(place);
    let is_dense_packing = version(text(value.get("version"), place, "version")?);
    let common = format(value.get("format"), place)?;
    let sparsity = value.get("sparsity_config").and_then(|sparsity| sparsity.get("format")).and_then(Value::as_str);
    if let Some(name) = sparsity.filter(|name| SPARSE.contains(name)) {
        return Err(unsupported(place, name));
    }
    let groups = object(value.get("config_groups"), place, "config_groups")?;
    for (name, group) in groups.into_iter().flatten() {
        let key = format!("config_groups.{name}");
        let (setting, targets) = match group {
            // A list of modules under a preset's name has the preset's setting.
            Value::Array(_) => {
                let scheme =
                    preset(name).ok_or_else(|| wrong(place, &key, group, "a group, or a preset that is known"))?;
                (Setting::of(scheme), patterns(Some(group), place, &key)?)
            }
            Value::Object(group) => {
                let Some(setting) = setting(group, common, place, &key)? else { continue };
                (setting, patterns(group.get("targets"), place, &format!("{key}.targets"))?)
            }
            other => return Err(wrong(place, &key, other, "a group")),
        };
        declaration.settings.push((Targets::Listed(targets), Setting { is_dense_packing, ..setting }));
    }
    Ok(declaration)
}

/// True if the version packs integers as one bit stream (§4.4.2). `None` for a missing or unreadable version.
fn version(text: Option<&str>) -> Option<bool> {
    let mut numbers = text?.split('.').map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??) >= (0, 18))
}

fn unsupported(place: &str, format: &str) -> Error {
    Error::Unsupported { place: place.to_owned(), scheme: format!("ct:{format}") }
}

/// Family that a format means. `None` if groups state formats of their own, or if arguments imply formats.
fn format(value: Option<&Value>, place: &str) -> Result<Option<Family>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) if name == "mixed-precision" || name == "dense" => Ok(None),
        Some(Value::String(name)) => {
            Family::of_name(&format!("ct:{name}")).map(Some).ok_or_else(|| unsupported(place, name))
        }
        Some(other) => Err(wrong(place, "format", other, "the name of a format")),
    }
}

fn setting(
    group: &Map<String, Value>,
    common: Option<Family>,
    place: &str,
    key: &str,
) -> Result<Option<Setting>, Error> {
    let key = format!("{key}.weights");
    let Some(weights) = object(group.get("weights"), place, &key)? else { return Ok(None) };
    let arguments = Arguments::read(weights, place, &key)?;
    let has_activations = group.get("input_activations").is_some_and(|value| !value.is_null());
    let family = match format(group.get("format"), place)?.or(common) {
        Some(family) => family,
        None => arguments.family(has_activations),
    };
    let parameters = match family {
        Family::CtNvfp4 | Family::CtMxfp4 | Family::CtMxfp6 | Family::CtMxfp8 => Parameters::NONE,
        Family::CtPackQuantized => arguments.parameters,
        _ => Parameters { bits: None, ..arguments.parameters },
    };
    let has_zeros = arguments.parameters.symmetric == Some(false) && !arguments.is_float;
    let is_symmetric = weights.get("symmetric") == Some(&Value::Bool(true)) && !arguments.is_float;
    let symmetric = is_symmetric.then_some("symmetric is true");
    let setting = Setting { symmetric, ..Setting::of(Scheme { family, parameters }) };
    Ok(Some(setting.with(has_zeros, Part::Zeros).with(arguments.is_ordered, Part::Index)))
}

struct Arguments {
    parameters: Parameters,
    bits: u32,
    is_float: bool,
    has_byte_scales: bool,
    /// True if a tensor states the group number of each column.
    is_ordered: bool,
}

impl Arguments {
    fn read(weights: &Map<String, Value>, place: &str, key: &str) -> Result<Arguments, Error> {
        let error = |name: &str, expected| wrong(place, &format!("{key}.{name}"), &weights[name], expected);
        let bits = count(weights.get("num_bits"), place, "num_bits")?.unwrap_or(8);
        if bits > 8 {
            return Err(error("num_bits", "at most 8"));
        }
        let word = |name: &str| text(weights.get(name), place, &format!("{key}.{name}"));
        let is_float = match word("type")? {
            None | Some("int") => false,
            Some("float") => true,
            Some(_) => return Err(error("type", "int or float")),
        };
        let is_ordered = match weights.get("actorder") {
            Some(Value::Bool(is_ordered)) => *is_ordered,
            _ => match word("actorder")? {
                None | Some("weight" | "static") => false,
                Some("group" | "dynamic") => true,
                Some(_) => return Err(error("actorder", "weight, static, group or dynamic")),
            },
        };
        let group = count(weights.get("group_size"), place, "group_size")?;
        let strategy = match word("strategy")? {
            // Default of the package: groups if there is a group size, else one scale per tensor.
            None => Some(if group.is_some() { Strategy::Group } else { Strategy::Tensor }),
            // `tensor_group`: groups, and one scale per tensor.
            Some("tensor_group") => Some(Strategy::Group),
            Some(name) => Strategy::of_name(name),
        };
        let strategy = strategy.ok_or_else(|| error("strategy", "tensor, channel, group, tensor_group or block"))?;
        let scale = word("scale_dtype")?.unwrap_or_default();
        let parameters = Parameters {
            bits: Some(bits as u32),
            strategy: Some(strategy),
            group: group.filter(|_| strategy == Strategy::Group),
            block: block(weights.get("block_structure"), place, "block_structure")?
                .filter(|_| strategy == Strategy::Block),
            symmetric: Some(flag(weights.get("symmetric"), place, &format!("{key}.symmetric"))?.unwrap_or(true)),
            scale: None,
        };
        let has_byte_scales = scale.ends_with("uint8") || scale.ends_with("float8_e8m0fnu");
        Ok(Arguments { parameters, bits: bits as u32, is_float, has_byte_scales, is_ordered })
    }

    /// Format that the package takes by default for these arguments. The rules have the package's order (§4.4).
    fn family(&self, has_activations: bool) -> Family {
        match (self.is_float, self.bits, self.parameters.group) {
            (true, 4, Some(32)) => Family::CtMxfp4,
            (true, 6, Some(32)) => Family::CtMxfp6,
            (true, 8, Some(32)) if self.has_byte_scales => Family::CtMxfp8,
            (true, 4, Some(16)) => Family::CtNvfp4,
            (false, ..) if has_activations => Family::CtIntQuantized,
            (false, ..) => Family::CtPackQuantized,
            (true, ..) if has_activations => Family::CtFloatQuantized,
            (true, ..) => Family::CtNaiveQuantized,
        }
    }
}

type Preset = (&'static str, Family, Parameters);

const fn by(strategy: Strategy) -> Parameters {
    Parameters { strategy: Some(strategy), ..Parameters::NONE }
}

const fn packed(bits: u32, symmetric: bool) -> Parameters {
    Parameters { bits: Some(bits), group: Some(128), symmetric: Some(symmetric), ..by(Strategy::Group) }
}

/// Presets of the package (§4.4) with supported weights, except those of integers without activations.
const PRESETS: &[Preset] = &[
    ("NVFP4A16", Family::CtNvfp4, Parameters::NONE),
    ("NVFP4", Family::CtNvfp4, Parameters::NONE),
    ("MXFP4A16", Family::CtMxfp4, Parameters::NONE),
    ("MXFP4", Family::CtMxfp4, Parameters::NONE),
    ("MXFP6A16", Family::CtMxfp6, Parameters::NONE),
    ("MXFP6A8", Family::CtMxfp6, Parameters::NONE),
    ("MXFP8A16", Family::CtMxfp8, Parameters::NONE),
    ("MXFP8", Family::CtMxfp8, Parameters::NONE),
    ("FP8", Family::CtFloatQuantized, by(Strategy::Tensor)),
    ("FP8_DYNAMIC", Family::CtFloatQuantized, by(Strategy::Channel)),
    ("FP8_BLOCK", Family::CtFloatQuantized, Parameters { block: Some([128, 128]), ..by(Strategy::Block) }),
    ("INT8", Family::CtIntQuantized, by(Strategy::Channel)),
    ("INT8_W8A8", Family::CtIntQuantized, by(Strategy::Channel)),
    ("W8A8", Family::CtIntQuantized, by(Strategy::Channel)),
    ("W4A16_ASYM", Family::CtPackQuantized, packed(4, false)),
];

/// Finds the scheme by which a preset of compressed-tensors quantizes weights (`docs/spec/checkpoints.md §4.4`). Case does
/// not matter.
///
/// # Examples
/// ```
/// let scheme = truecast_schemes::preset("W4A16").unwrap();
/// assert_eq!(scheme.to_string(), "ct:pack-quantized,bits=4,strategy=group,group=128,symmetric=true");
/// assert_eq!(truecast_schemes::preset("W9A16"), None);
/// ```
pub fn preset(name: &str) -> Option<Scheme> {
    let name = &name.to_ascii_uppercase();
    let found = PRESETS.iter().find(|(known, ..)| known == name);
    let integers = || {
        let bits = name.strip_prefix('W')?.strip_suffix("A16")?.parse().ok()?;
        (2..=8).contains(&bits).then_some(Scheme { family: Family::CtPackQuantized, parameters: packed(bits, true) })
    };
    found.map(|&(_, family, parameters)| Scheme { family, parameters }).or_else(integers)
}
