//! ModelSlim's `quant_model_description.json` (§4.18), which gives the type of each tensor by name. Names of tensors
//! contain a dot.

use serde_json::{Map, Value};

use super::declaration::Declaration;
use super::keys::Keys;
use super::value::wrong;
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Scheme};

/// Keys that are not names of tensors (§4.18).
pub(super) const KEYS: Keys = Keys {
    silent: &[
        "fa_quant_type group_size is_dynamic kv_cache_type kv_quant_type metadata model_quant_type reduce_quant_type \
            version",
    ],
    ..Keys::NONE
};

pub(super) const FILE: &str = "quant_model_description.json";

pub(super) fn read(file: &Map<String, Value>) -> Result<Option<Declaration>, Error> {
    let mut declaration = Declaration::new(FILE);
    for (name, kind) in file {
        let Some(module) = name.strip_suffix(".weight") else { continue };
        match kind.as_str().ok_or_else(|| wrong(FILE, name, kind, "the name of a type"))? {
            "FLOAT" => {}
            // Types with equal weights; only activations differ.
            "W8A8" | "W8A8_DYNAMIC" | "W8A8_MIX" | "W8A16" => {
                declaration.modules.insert(module.to_owned(), Setting::of(Scheme::of(Family::ModelSlim)));
            }
            other => return Err(Error::Unsupported { place: FILE.to_owned(), scheme: format!("modelslim:{other}") }),
        }
    }
    Ok(declaration.scheme().is_some().then_some(declaration))
}
