//! The configuration of the result, as text (`docs/spec/checkpoints.md §2.6`): what it says of types. What it says of
//! schemes is the business of `truecast_schemes`.

use crate::files::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use truecast_core::{DType, Ecosystem};
use truecast_io::folder::{Edit, Folder, JsonFile, edit};
use truecast_schemes::{Change, Documents, Outcome, changes};

/// The file that names the type of the tensors.
const CONFIG: &str = "config.json";

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
    /// What a loader will miss.
    pub warnings: Vec<String>,
}

/// Where a configuration says the type of the tensors, at any depth (§2.6 step 2).
const TYPES: [&str; 2] = ["torch_dtype", "dtype"];
/// Sections that are about quantization, and say other types.
const OF_SCHEMES: [&str; 3] = ["quantization_config", "compression_config", "quantization"];
/// Types that a model can be made in. Loaders refuse the names of others, and take any of these for such tensors.
const OF_MODELS: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];

impl Configuration {
    /// What changes if tensors become of type `to`, and if what was quantized, or is, is `outcome`.
    pub fn of(
        folder: &Folder,
        documents: &Documents,
        to: Option<DType>,
        outcome: Option<Outcome<'_>>,
    ) -> Result<Configuration, Error> {
        let mut all = Configuration::default();
        let mut edits: BTreeMap<&'static str, Vec<Edit>> = BTreeMap::new();
        if let Some(outcome) = outcome {
            for change in changes(documents, &outcome).map_err(|cause| Error::scheme(folder.path(), cause))? {
                all.changes.push(change.to_string());
                match change {
                    Change::Edit { file, edit } => edits.entry(file).or_default().push(edit),
                    Change::Drop { file } => all.dropped.push(file.into()),
                    Change::Write { file, value } => {
                        let text = pretty(&value);
                        all.files.push(NewFile { name: file.into(), text });
                    }
                    change => unreachable!("{change}"),
                }
            }
        }
        for (path, torch) in types(documents.config.as_ref(), to) {
            all.changes.push(format!("{CONFIG}: {} = {torch}", path.join(".")));
            edits.entry(CONFIG).or_default().push(Edit { path, value: Some(json!(torch)) });
        }
        for (name, edits) in edits {
            let text = match folder.json(name)? {
                Some(JsonFile { text, path, .. }) => {
                    edit(&text, &edits).map_err(|cause| truecast_io::Error::Folder { path, cause })?
                }
                // What declares a scheme is made where there is none.
                None => {
                    let keys: Vec<String> = edits.iter().map(|edit| edit.path.join(".")).collect();
                    all.warnings.push(format!(
                        "{}: the source has no {name}; the written {name} holds only {}, but a loader also needs the \
                         model's own keys",
                        folder.path().display(),
                        keys.join(" and ")
                    ));
                    pretty(
                        &edits.into_iter().filter_map(|edit| Some((edit.path.first()?.clone(), edit.value?))).collect(),
                    )
                }
            };
            all.files.push(NewFile { name: name.into(), text });
        }
        Ok(all)
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON has a text") + "\n"
}

/// Where a configuration names another floating-point type than `to`, and what it has to say.
fn types(config: Option<&Value>, to: Option<DType>) -> Vec<(Vec<String>, &'static str)> {
    let to = to.filter(|to| OF_MODELS.contains(to));
    let Some((to, torch)) = to.and_then(|to| Some((to, to.names_in(Ecosystem::Torch).next()?))) else {
        return Vec::new();
    };
    let is_other = |value: &Value| {
        let text = value.as_str().map(|text| text.strip_prefix("torch.").unwrap_or(text));
        let dtype = text.and_then(|text| DType::parse(text).ok());
        dtype.is_some_and(|dtype| dtype.is_float() && dtype != to)
    };
    let mut found = Vec::new();
    let mut left: Vec<(Vec<String>, &Value)> = config.map(|config| (Vec::new(), config)).into_iter().collect();
    while let Some((path, section)) = left.pop() {
        let members: Vec<_> = section.as_object().into_iter().flatten().collect();
        let at = |key: &str| [&path[..], &[key.to_owned()]].concat();
        let is_type = |(key, value): &&(&String, &Value)| TYPES.contains(&key.as_str()) && is_other(value);
        found.extend(members.iter().filter(is_type).map(|(key, _)| (at(key), torch)));
        let is_model = |(key, value): &&(&String, &Value)| value.is_object() && !OF_SCHEMES.contains(&key.as_str());
        left.extend(members.iter().rev().filter(is_model).map(|(key, value)| (at(key), *value)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections of any depth, in the order of the file, but those of schemes; other types, and other values, stay.
    #[test]
    fn every_type_of_a_model_is_found() {
        let config = json!({
            "dtype": "float32",
            "thinker_config": { "dtype": "torch.float16", "text_config": { "torch_dtype": "float8_e4m3fn" } },
            "quantization_config": { "dtype": "float16", "a": { "dtype": "float16" } },
            "audio_config": { "dtype": "bfloat16", "compression_config": { "dtype": "float16" } },
            "d": { "dtype": "int8", "torch_dtype": null, "e": [{ "dtype": "float16" }] },
        });
        let found = |to| types(Some(&config), Some(to));
        let paths: Vec<String> = found(DType::Bf16).iter().map(|(path, _)| path.join(".")).collect();
        assert_eq!(paths, ["dtype", "thinker_config.dtype", "thinker_config.text_config.torch_dtype"]);
        let names = [(DType::F16, "float16"), (DType::F32, "float32"), (DType::F64, "float64")];
        assert!(names.iter().all(|(to, name)| found(*to).iter().all(|(_, torch)| torch == name)));
        for to in [DType::F8E4M3Fn, DType::F8E5M2, DType::I8, DType::F4E2M1] {
            assert_eq!(found(to), [], "{to}");
        }
    }
}
