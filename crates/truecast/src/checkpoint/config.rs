//! What a configuration says of the types of tensors, and what it says when they have changed
//! (`docs/spec/checkpoints.md §2.6`).

use crate::error::Error;
use serde_json::{Value, json};
use truecast_core::{DType, Ecosystem};
use truecast_io::folder::{Edit, Folder, edit};

/// The configuration of a model.
pub(super) const CONFIG: &str = "config.json";

/// A file of the result whose text is not that of the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewFile {
    pub name: String,
    pub text: String,
    /// What was changed, for people.
    pub changes: Vec<String>,
}

/// Where a configuration says the type of the tensors.
const TYPES: [&[&str]; 6] = [
    &["torch_dtype"],
    &["dtype"],
    &["text_config", "torch_dtype"],
    &["text_config", "dtype"],
    &["vision_config", "torch_dtype"],
    &["vision_config", "dtype"],
];

/// The files that change if tensors become of type `to`.
pub(super) fn rewritten(folder: &Folder, to: Option<DType>) -> Result<Vec<NewFile>, Error> {
    let (Some(to), Some(file)) = (to, folder.json(CONFIG)?) else { return Ok(Vec::new()) };
    let Some(name) = to.names_in(Ecosystem::Torch).next() else { return Ok(Vec::new()) };
    let old = |path: &&&[&str]| {
        let found = path.iter().try_fold(&file.value, |value, key| value.get(key));
        let dtype = found.and_then(Value::as_str).map(|text| text.strip_prefix("torch.").unwrap_or(text));
        dtype.and_then(|text| DType::parse(text).ok()).is_some_and(|dtype| dtype.is_float() && dtype != to)
    };
    let paths: Vec<&&[&str]> = TYPES.iter().filter(old).collect();
    let path_of = |path: &[&str]| path.iter().map(|key| key.to_string()).collect();
    let edits = paths.iter().map(|path| Edit { path: path_of(path), value: Some(json!(name)) });
    let text = edit(&file.text, &edits.collect::<Vec<_>>());
    let text = text.map_err(|cause| truecast_io::Error::Folder { path: file.path.clone(), cause })?;
    let changes: Vec<String> = paths.iter().map(|path| format!("{CONFIG}: {} = {name}", path.join("."))).collect();
    Ok(if changes.is_empty() { Vec::new() } else { vec![NewFile { name: CONFIG.into(), text, changes }] })
}

/// What says that tensors are quantised, if anything does.
pub(super) fn quantised(folder: &Folder) -> Result<Option<String>, Error> {
    const KEYS: [&[&str]; 5] = [
        &["quantization_config"],
        &["text_config", "quantization_config"],
        &["compression_config"],
        &["quantization"],
        &["expert_dtype"],
    ];
    for name in [CONFIG, "params.json"] {
        let Some(file) = folder.json(name)? else { continue };
        let says = |path: &&&[&str]| {
            path.iter().try_fold(&file.value, |value, key| value.get(key)).is_some_and(|v| !v.is_null())
        };
        if let Some(path) = KEYS.iter().find(says) {
            return Ok(Some(format!("{} of {name}", path.join("."))));
        }
    }
    if folder.json("hf_quant_config.json")?.is_some() {
        return Ok(Some("hf_quant_config.json".into()));
    }
    const SUFFIXES: [&str; 14] = [
        "weight_scale",
        "_scale_inv",
        "weight_scale_2",
        "weight_global_scale",
        "scale_weight",
        "qscale_weight",
        "weight_zero_point",
        "weight_g_idx",
        "weight_shape",
        "qzeros",
        "g_idx",
        ".absmax",
        "comfy_quant",
        "_blocks",
    ];
    let mut names = folder.shards().iter().flat_map(|shard| shard.source.tensors()).map(|tensor| &tensor.name);
    Ok(names.find(|name| SUFFIXES.iter().any(|suffix| name.ends_with(suffix))).map(|name| format!("tensor {name}")))
}
