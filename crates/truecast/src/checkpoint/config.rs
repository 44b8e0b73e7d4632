//! The configuration of the result, as text (`docs/spec/checkpoints.md §2.6`): what it says of types, and that nothing is
//! quantised any more.

use crate::error::Error;
use serde_json::{Value, json};
use truecast_core::{DType, Ecosystem};
use truecast_io::folder::{Edit, Folder, edit};

/// The configuration of a model, and that of Mistral's own format.
const CONFIG: &str = "config.json";
const PARAMS: &str = "params.json";
/// What is left of a quantised checkpoint only (§2.6 step 3).
const DROPPED: &str = "hf_quant_config.json";

/// A file of the result whose text is not that of the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewFile {
    pub name: String,
    pub text: String,
}

/// What is written and left out beside the weights.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub files: Vec<NewFile>,
    /// Names of files that are not copied.
    pub dropped: Vec<String>,
    /// What was changed, for people.
    pub changes: Vec<String>,
}

/// Where a configuration says the type of the tensors (§2.6 step 2).
const TYPES: [&[&str]; 6] = [
    &["torch_dtype"],
    &["dtype"],
    &["text_config", "torch_dtype"],
    &["text_config", "dtype"],
    &["vision_config", "torch_dtype"],
    &["vision_config", "dtype"],
];

/// Where files declare a scheme (§2.5, §2.6 step 1).
const SCHEMES: [(&str, &[&str]); 8] = [
    (CONFIG, &["quantization_config"]),
    (CONFIG, &["text_config", "quantization_config"]),
    (CONFIG, &["compression_config"]),
    (CONFIG, &["quantization"]),
    (CONFIG, &["expert_dtype"]),
    (CONFIG, &["moe_quant_algo"]),
    (PARAMS, &["quantization"]),
    (PARAMS, &["quantization_config"]),
];

impl Configuration {
    /// What changes if tensors become of type `to`, and if those that were quantised are so no more.
    pub fn of(folder: &Folder, to: Option<DType>, was_quantised: bool) -> Result<Configuration, Error> {
        let mut all = Configuration::default();
        for name in [CONFIG, PARAMS] {
            let Some(file) = folder.json(name)? else { continue };
            let find = |path: &[&str]| path.iter().try_fold(&file.value, |value, key| value.get(key));
            let mut edits = Vec::new();
            let owned = |path: &[&str]| path.iter().map(|key| key.to_string()).collect();
            let schemes = SCHEMES.iter().filter(|(of, path)| was_quantised && *of == name && find(path).is_some());
            for (_, path) in schemes {
                all.changes.push(format!("{name}: {} is removed", path.join(".")));
                edits.push(Edit { path: owned(path), value: None });
            }
            let torch = to.and_then(|to| to.names_in(Ecosystem::Torch).next());
            let is_other = |path: &&&[&str]| {
                let text = find(path).and_then(Value::as_str).map(|text| text.strip_prefix("torch.").unwrap_or(text));
                let dtype = text.and_then(|text| DType::parse(text).ok());
                dtype.is_some_and(|dtype| dtype.is_float() && Some(dtype) != to)
            };
            if let Some(torch) = torch.filter(|_| name == CONFIG) {
                for path in TYPES.iter().filter(is_other) {
                    all.changes.push(format!("{name}: {} = {torch}", path.join(".")));
                    edits.push(Edit { path: owned(path), value: Some(json!(torch)) });
                }
            }
            if !edits.is_empty() {
                let text = edit(&file.text, &edits);
                let text = text.map_err(|cause| truecast_io::Error::Folder { path: file.path.clone(), cause })?;
                all.files.push(NewFile { name: name.into(), text });
            }
        }
        if was_quantised && folder.json(DROPPED)?.is_some() {
            all.changes.push(format!("{DROPPED} is left out"));
            all.dropped.push(DROPPED.into());
        }
        Ok(all)
    }
}

/// Keys of `__metadata__` that describe the scheme of the source (§1.7).
pub(super) fn is_of_scheme(key: &str, groups: &[&str]) -> bool {
    ["quantization_config", "_quantization_metadata", "tensor_names"].contains(&key) || groups.contains(&key)
}
