//! Declares a result's scheme in JSON files and headers (`docs/spec/checkpoints.md §2.6`). The caller applies the
//! changes as edits of text, which keep all other bytes.

mod compressed_tensors;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use truecast_io::folder::Edit;

use crate::catalogue;
use crate::checkpoint::Documents;
use crate::declared::places;
use crate::detection::Group;
use crate::error::Error;
use crate::in_memory::in_lists_of_transformers;
use crate::modules::OUTSIDE_BLOCKS;
use crate::scheme::{Family, ScaleType, Scheme, Writing};
pub(crate) use compressed_tensors::{packed_strategy, strategy};

/// Quantization of a conversion's result. By default nothing is quantized.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome<'a> {
    /// Scheme of the quantized tensors; [`Scheme::PLAIN`] if nothing is quantized.
    pub scheme: Scheme,
    /// Unquantized modules with a weight in the result.
    pub kept: &'a [String],
    /// Unquantized modules whose names in a loader have no tensor.
    pub in_memory: &'a [String],
    /// Quantized modules.
    pub quantized: &'a [String],
    /// True if stored scales quantize activations ([`ActivationScale`](crate::ActivationScale)).
    pub activations: bool,
}

/// A change to a file next to the tensors. Displays as a line of a report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A key is set or removed. Setting a key creates a missing file.
    Edit {
        /// The file's name.
        file: &'static str,
        /// Path of the key, and the new value; `None` removes the key.
        edit: Edit,
    },
    /// The file is not copied.
    Drop {
        /// The file's name.
        file: &'static str,
    },
    /// The file is written, and replaces a file of the same name.
    Write {
        /// The file's name.
        file: &'static str,
        /// Contents of the file.
        value: Value,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Edit { file, edit } if edit.value.is_none() => {
                write!(f, "{file}: {} is removed", edit.path.join("."))
            }
            Change::Edit { file, edit } => write!(f, "{file}: {} is set", edit.path.join(".")),
            Change::Drop { file } => write!(f, "{file} is not copied"),
            Change::Write { file, .. } => write!(f, "{file} is written"),
        }
    }
}

const CONFIG: &str = "config.json";
const MODELOPT: &str = "hf_quant_config.json";
const PARAMS: &str = "params.json";
const MODELSLIM: &str = "quant_model_description.json";

/// Places of §2.5 that are removed or replaced in a result. Declarations in parts of `config.json` are handled
/// separately.
const PLACES: [(&str, &[&str]); 5] = [
    (CONFIG, &["quantization"]),
    (CONFIG, &["expert_dtype"]),
    (CONFIG, &["moe_quant_algo"]),
    (PARAMS, &["quantization"]),
    (PARAMS, &["quantization_config"]),
];

/// Changes to the files next to the tensors.
///
/// Source: `docs/spec/checkpoints.md §2.6` without step 2 (types in a configuration).
///
/// # Errors
/// [`Error::NotWritten`] for a read-only scheme.
///
/// # Examples
/// ```
/// use truecast_schemes::{Documents, Outcome, changes};
/// let config = serde_json::json!({"dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"}});
/// let documents = Documents { config: Some(config), ..Documents::default() };
/// let dense = changes(&documents, &Outcome::default())?;
/// assert_eq!(dense[0].to_string(), "config.json: quantization_config is removed");
/// # Ok::<(), truecast_schemes::Error>(())
/// ```
pub fn changes(documents: &Documents, outcome: &Outcome<'_>) -> Result<Vec<Change>, Error> {
    let declarations = declarations(outcome)?;
    let is_set = |file: &str, path: &[&str]| declarations.iter().any(|set| set.file == file && set.path == path);
    let config = documents.config.as_ref().and_then(Value::as_object);
    let mut all = Vec::new();
    for path in config.map(places).unwrap_or_default() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if !is_set(CONFIG, &path) {
            all.push(Change::Edit { file: CONFIG, edit: edit(&path, None) });
        }
    }
    for (file, path) in PLACES {
        let document = if file == CONFIG { &documents.config } else { &documents.params };
        let found = path.iter().try_fold(document.as_ref(), |value, key| Some(value?.get(key)));
        if found.flatten().is_some() && !is_set(file, path) {
            all.push(Change::Edit { file, edit: edit(path, None) });
        }
    }
    let writes_modelopt = declarations.iter().any(|set| set.file == MODELOPT && set.path.is_empty());
    for Declaration { file, path, value } in declarations {
        match path {
            [] => all.push(Change::Write { file, value }),
            _ => all.push(Change::Edit { file, edit: edit(path, Some(value)) }),
        }
    }
    if documents.quant_model_description.is_some() {
        all.push(Change::Drop { file: MODELSLIM });
        // Without ModelSlim's description, this key is of another program.
        if config.is_some_and(|config| config.contains_key("quantize")) {
            all.push(Change::Edit { file: CONFIG, edit: edit(&["quantize"], None) });
        }
    }
    if documents.hf_quant_config.is_some() && !writes_modelopt {
        all.push(Change::Drop { file: MODELOPT });
    }
    Ok(all)
}

fn edit(path: &[&str], value: Option<Value>) -> Edit {
    Edit { path: path.iter().map(|key| (*key).to_owned()).collect(), value }
}

/// A key of a file that describes the result.
struct Declaration {
    file: &'static str,
    /// Empty for the whole file.
    path: &'static [&'static str],
    value: Value,
}

const QUANTIZATION_CONFIG: &[&str] = &["quantization_config"];

fn in_config(value: Value) -> Declaration {
    Declaration { file: CONFIG, path: QUANTIZATION_CONFIG, value }
}

fn declarations(outcome: &Outcome<'_>) -> Result<Vec<Declaration>, Error> {
    let Outcome { scheme, kept, in_memory, quantized, .. } = *outcome;
    let listed = &[kept, &in_lists_of_transformers(in_memory, quantized)].concat();
    let family = scheme.family;
    let method = || catalogue::entry(family).and_then(|entry| entry.method).map(|(method, _)| method);
    let is_written = family.writing() == Writing::Yes;
    Ok(match family {
        Family::Plain => Vec::new(),
        Family::Fp8Block | Family::DeepSeekV4 | Family::Fp8Tensor | Family::Mxfp8 => fp8(scheme, listed),
        Family::MlxMxfp4 | Family::MlxMxfp8 => {
            let (bits, mode) = if family == Family::MlxMxfp4 { (4, "mxfp4") } else { (8, "mxfp8") };
            let value = json!({"group_size": 32, "bits": bits, "mode": mode});
            vec![Declaration { file: CONFIG, path: &["quantization"], value: value.clone() }, in_config(value)]
        }
        Family::ComfyFp8E4M3 | Family::ComfyFp8E5M2 | Family::ComfyNvfp4 | Family::ComfyMxfp8 => Vec::new(),
        _ => match (family.modelopt_algorithm(), compressed_tensors::quantization_config(outcome), method()) {
            (Some(algorithm), ..) if is_written => modelopt(family, algorithm, kept, in_memory),
            (_, Some(value), _) => vec![in_config(value)],
            (.., Some(method)) if is_written => {
                vec![in_config(json!({"quant_method": method, "modules_to_not_convert": listed}))]
            }
            _ => return Err(Error::NotWritten { scheme: Box::new(scheme), relayout: false }),
        },
    })
}

/// Declarations of the formats of transformers (§4.1, §4.2, §4.8). `listed`: modules that are not quantized.
fn fp8(scheme: Scheme, listed: &[String]) -> Vec<Declaration> {
    let is_deepseek = scheme.family == Family::DeepSeekV4;
    let mut value = json!({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"});
    match scheme.family {
        // Without this key, transformers assumes blocks of 128.
        Family::Fp8Tensor => value["weight_block_size"] = Value::Null,
        Family::Mxfp8 => {
            value = json!({
                "quant_method": "mxfp8",
                "activation_scheme": "dynamic",
                "weight_block_size": [1, 32],
                "scale_fmt": "ue8m0",
            });
        }
        _ => {
            if scheme.parameters.scale == Some(ScaleType::Ue8m0) || is_deepseek {
                value["scale_fmt"] = json!("ue8m0");
            }
            value["weight_block_size"] = json!(scheme.parameters.block.unwrap_or([128, 128]));
        }
    }
    value["modules_to_not_convert"] = json!(listed);
    let experts = Declaration { file: CONFIG, path: &["expert_dtype"], value: json!("fp4") };
    [in_config(value)].into_iter().chain(is_deepseek.then_some(experts)).collect()
}

/// The same declaration for both files of ModelOpt (§4.5).
fn modelopt(family: Family, algorithm: &str, kept: &[String], in_memory: &[String]) -> Vec<Declaration> {
    // ModelOpt's lists cannot have regular expressions.
    let names = in_memory.iter().filter(|module| *module != OUTSIDE_BLOCKS);
    let kept: Vec<&String> = kept.iter().chain(names).collect();
    let group = match family {
        Family::ModelOptNvfp4 | Family::ModelOptNvfp4Weights => Some(16),
        Family::ModelOptMxfp8 => Some(32),
        _ => None,
    };
    let producer = json!({"name": "truecast", "version": env!("CARGO_PKG_VERSION")});
    let mut quantization = json!({"quant_algo": algorithm, "kv_cache_quant_algo": null});
    let mut config = json!({"quant_method": "modelopt", "quant_algo": algorithm});
    if let Some(group) = group {
        quantization["group_size"] = json!(group);
        config["group_size"] = json!(group);
    }
    quantization["exclude_modules"] = json!(kept);
    config["ignore"] = json!(kept);
    config["producer"] = producer.clone();
    let value = json!({"producer": producer, "quantization": quantization});
    vec![in_config(config), Declaration { file: MODELOPT, path: &[], value }]
}

/// `__metadata__` of a result: the source's keys, except keys about storage (§1.7).
///
/// # Examples
/// ```
/// let source = [("format", "pt"), ("_quantization_metadata", "{}")].map(|(key, value)| (key.to_owned(), value.to_owned()));
/// let kept = truecast_schemes::metadata(&source.into(), &[]);
/// assert_eq!(kept.keys().collect::<Vec<_>>(), ["format"]);
/// ```
pub fn metadata(source: &BTreeMap<String, String>, groups: &[Group]) -> BTreeMap<String, String> {
    let is_torchao = source.contains_key("tensor_names") && groups.iter().any(|g| g.scheme.family == Family::Torchao);
    let describes = |key: &str, value: &str| match key {
        "_quantization_metadata" | "quantization_config" => true,
        "general.alignment" | "general.file_type" | "general.quantization_version" => true,
        "tensor_names" => is_torchao,
        _ => is_torchao && value.starts_with('{') && value.contains("\"_type\""),
    };
    source.iter().filter(|(key, value)| !describes(key, value)).map(|(k, v)| (k.clone(), v.clone())).collect()
}
