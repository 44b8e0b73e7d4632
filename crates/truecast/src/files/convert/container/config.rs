//! Element types in the configuration of the result, edited as text (`docs/spec/checkpoints.md §2.6`).

use crate::files::convert::job::TensorJob;
use crate::files::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use truecast_core::{DType, Ecosystem};
use truecast_io::folder::{Edit, Folder, JsonFile, edit};
use truecast_schemes::{Change, Documents, Outcome, changes};

const CONFIG: &str = "config.json";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewFile {
    pub name: String,
    pub text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub files: Vec<NewFile>,
    pub dropped: Vec<String>,
    /// Changes, for display.
    pub changes: Vec<String>,
    /// Warnings about loaders.
    pub warnings: Vec<String>,
}

/// Keys that state the type of the tensors, at any depth (§2.6 step 2).
const TYPES: [&str; 2] = ["torch_dtype", "dtype"];
/// Sections with types of quantization, which are not types of the model.
const OF_SCHEMES: [&str; 3] = ["quantization_config", "compression_config", "quantization"];
/// Types that loaders accept as the type of a model. Tensors of other types are loaded as one of these.
const OF_MODELS: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];

/// The type of a model: the requested type `to`, unless no written tensor has it; then the type of most elements that
/// are not quantized.
pub(crate) fn type_of_model<'a>(works: impl Iterator<Item = &'a TensorJob>, to: Option<DType>) -> Option<DType> {
    let mut elements = [0; OF_MODELS.len()];
    for work in works {
        let mut targets = work.targets();
        let (Some(tensor), None) = (targets.next(), targets.next()) else { continue };
        if let Some(at) = OF_MODELS.iter().position(|dtype| *dtype == tensor.dtype) {
            elements[at] += tensor.len();
        }
    }
    let requested = OF_MODELS.iter().position(|dtype| Some(*dtype) == to);
    let most = (0..OF_MODELS.len()).filter(|&at| elements[at] > 0).max_by_key(|&at| elements[at]);
    requested.filter(|&at| elements[at] > 0).or(most).or(requested).map(|at| OF_MODELS[at])
}

impl Configuration {
    /// Changes for a model of type `to`, and for the given outcome of quantization.
    pub fn new(
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
        let mut paths = Vec::new();
        if let (Some(config), Some(to)) = (&documents.config, to) {
            types(config, &[], to, &mut paths);
        }
        let torch = to.and_then(|to| to.names_in(Ecosystem::Torch).next());
        for path in paths {
            all.changes.push(format!("{CONFIG}: {} = {}", path.join("."), torch.unwrap_or_default()));
            edits.entry(CONFIG).or_default().push(Edit { path, value: Some(json!(torch)) });
        }
        for (name, edits) in edits {
            let text = match folder.json(name)? {
                Some(JsonFile { text, path, .. }) => {
                    edit(&text, &edits).map_err(|cause| truecast_io::Error::Folder { path, cause })?
                }
                // Creates the file that declares the scheme.
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

fn types(section: &Value, path: &[String], to: DType, found: &mut Vec<Vec<String>>) {
    for (key, value) in section.as_object().into_iter().flatten() {
        let path = [path, std::slice::from_ref(key)].concat();
        let text = value.as_str().filter(|_| TYPES.contains(&key.as_str()));
        let dtype = text.and_then(|text| DType::parse(text.strip_prefix("torch.").unwrap_or(text)).ok());
        if dtype.is_some_and(|dtype| dtype.is_float() && dtype != to) {
            found.push(path);
        } else if !OF_SCHEMES.contains(&key.as_str()) {
            types(value, &path, to, found);
        }
    }
}
