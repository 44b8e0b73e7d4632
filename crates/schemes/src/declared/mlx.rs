//! MLX's key `quantization` (§4.12). Module names in it are keys for the settings of single modules.

use serde_json::{Map, Value};

use super::declaration::{Declaration, Targets};
use super::keys::Keys;
use super::value::{count, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Parameters, Scheme};

const MODULE: Keys = Keys { used: &["group_size bits mode"], ..Keys::NONE };

/// Keys of MLX (§4.12). Other keys are module names, each with the module's settings, or `false` for an unquantized
/// module.
pub(super) const KEYS: Keys =
    Keys { used: &["group_size bits mode quant_method"], others: Some(&MODULE), ..Keys::NONE };

pub(super) fn read(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let mut declaration = Declaration::new(place);
    let common = setting(value, place, None)?;
    for (module, own) in value {
        if let Some(own) = own.as_object() {
            declaration.modules.insert(module.clone(), setting(own, place, Some(&common))?);
        }
    }
    declaration.settings.push((Targets::All, common));
    Ok(declaration)
}

fn setting(value: &Map<String, Value>, place: &str, common: Option<&Setting>) -> Result<Setting, Error> {
    let family = match value.get("mode") {
        // `affine` is the default of a single module too, even if `common` has another mode.
        None | Some(Value::Null) => Family::MlxAffine,
        Some(mode) => {
            let known = mode.as_str().and_then(|mode| Family::of_name(&format!("mlx:{mode}")));
            known.ok_or_else(|| wrong(place, "mode", mode, "affine, mxfp4, mxfp8 or nvfp4"))?
        }
    };
    let bits = count(value.get("bits"), place, "bits")?;
    let group = count(value.get("group_size"), place, "group_size")?;
    if let Some((own, of_group)) = fixed(family) {
        if bits.is_some_and(|bits| bits != own) {
            return Err(wrong(place, "bits", &value["bits"], &own.to_string()));
        }
        if group.is_some_and(|group| group != of_group) {
            return Err(wrong(place, "group_size", &value["group_size"], &of_group.to_string()));
        }
        return Ok(Setting::of(Scheme::of(family)));
    }
    if bits.is_some_and(|bits| ![2, 3, 4, 5, 6, 8].contains(&bits)) {
        return Err(wrong(place, "bits", &value["bits"], "2, 3, 4, 5, 6 or 8"));
    }
    let own = Parameters { bits: bits.map(|bits| bits as u32), group, ..Parameters::NONE };
    let parameters = own.or(common.map_or(Parameters::NONE, |common| common.scheme.parameters));
    Ok(Setting::of(Scheme { family, parameters }))
}

fn fixed(family: Family) -> Option<(u64, u64)> {
    match family {
        Family::MlxMxfp4 => Some((4, 32)),
        Family::MlxNvfp4 => Some((4, 16)),
        Family::MlxMxfp8 => Some((8, 32)),
        _ => None,
    }
}
