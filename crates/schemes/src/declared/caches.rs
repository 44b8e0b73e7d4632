//! Declared scales of key and value caches.

use serde_json::Value;

use super::{at, places};
use crate::checkpoint::Documents;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caches {
    Whole,
    Fine,
}

pub(crate) fn caches(documents: &Documents) -> Option<Caches> {
    let config = documents.config.as_ref().and_then(Value::as_object);
    let in_config = config.into_iter().flat_map(|config| places(config).into_iter().map(|path| at(config, &path)));
    let file = documents.hf_quant_config.as_ref().map(|file| file.get("quantization"));
    let declared = in_config.chain(file).flatten().find_map(|value| {
        let known = ["kv_cache_scheme", "kv_cache_quant_config", "kv_cache_quant_algo"];
        known
            .iter()
            .filter_map(|key| value.get(key))
            .find(|value| !value.is_null() && *value != &Value::from(serde_json::Map::new()))
    })?;
    match declared.get("strategy").and_then(Value::as_str) {
        None | Some("tensor") => Some(Caches::Whole),
        Some(_) => Some(Caches::Fine),
    }
}
