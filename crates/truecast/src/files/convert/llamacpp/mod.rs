//! Checkpoints as llama.cpp loads them: its names, its order of elements, hyperparameters and vocabulary
//! (`docs/spec/checkpoints.md §9.10`).

mod back;
mod by_name;
mod by_value;
mod like;
mod names;
mod strided;
mod view;

use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::{Contents, quantized, stored};
use crate::files::convert::options::Options;
use crate::files::convert::planner::listed;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::select::SourceScheme;
pub(crate) use back::restored;
use like::{Match, Reference};
use names::{Attention, is_always_f32};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::Keys;
use truecast_io::{Escaped, Tensor, counted};
use truecast_schemes::{Detection, Group};
use view::{Renamed, Target, Values};

/// What a file for llama.cpp has beside its tensors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    pub keys: Keys,
    /// Names of tensors that keep type f32 unless a rule names them.
    pub fixed: HashSet<Arc<str>>,
    /// Types of tensors unless an option chooses one.
    pub types: HashMap<Arc<str>, DType>,
    pub warnings: Vec<String>,
}

/// Architecture of llama.cpp for a `model_type`.
const ARCHITECTURES: [(&str, &str); 12] = [
    ("llama", "llama"),
    ("mistral", "llama"),
    ("mixtral", "llama"),
    ("qwen2", "qwen2"),
    ("qwen3", "qwen3"),
    ("qwen3_moe", "qwen3moe"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3"),
    ("gemma3_text", "gemma3"),
    ("gpt_oss", "gpt-oss"),
    ("deepseek_v2", "deepseek2"),
    ("deepseek_v3", "deepseek2"),
];

/// Renames and rearranges the tensors of a model's folder. Other sources keep their names.
///
/// # Errors
/// An architecture, a tensor or a shape that is not understood; a reference that is not the same model.
pub(crate) fn renamed(folder: Folder, contents: Contents, options: &Options) -> Result<(Folder, Contents), Error> {
    let SourceScheme { like, keep_names, .. } = &options.source_scheme;
    let is_model = || contents.documents.config.as_ref().is_some_and(|config| config.get("model_type").is_some());
    if *keep_names || like.is_none() && !is_model() {
        return Ok((folder, contents));
    }
    let folder = Arc::new(folder);
    let all = items(&folder, &contents);
    let (targets, keys, warnings) = match like {
        Some(like) => {
            let reference = Reference::open(like)?;
            let Match { targets, notes } = reference.matched(&folder, all)?;
            (targets, reference.keys, notes)
        }
        None => {
            let refused = |what: String| Error::checkpoint(folder.path(), CheckpointError::NotOfLlamacpp { what });
            let config = contents.documents.config.as_ref().expect("the folder is that of a model");
            let (targets, warning) = from_config(config, all).map_err(refused)?;
            let mut keys = Keys::new();
            keys.set_text("general.architecture", architecture(config).map_err(refused)?);
            let path = folder.path().display();
            (targets, keys, warning.map(|warning| format!("{path}: {warning}")).into_iter().collect())
        }
    };
    let fixed = targets.iter().filter(|target| is_always_f32(&target.tensor.name, &target.tensor.shape));
    let fixed = fixed.map(|target| target.tensor.name.clone()).collect();
    let header = Header { keys, fixed, types: HashMap::new(), warnings };
    let folder = Renamed::new(folder, targets)?.into_folder()?;
    let stored: Vec<Stored> = stored(&folder).collect();
    let roles = stored.iter().map(|_| truecast_schemes::Role::Plain).collect();
    let found = Detection { roles, groups: Vec::new(), ..contents.found };
    Ok((folder, Contents { stored, found, documents: contents.documents, llamacpp: Some(header) }))
}

/// The folder of a model with the names of llama.cpp; `None` if it is not understood.
pub(crate) fn for_llamacpp(path: &Path, follow_links: bool) -> Option<Folder> {
    let folder = Arc::new(Folder::open(path, follow_links).ok()?);
    let contents = Contents::detect(&folder, &truecast_schemes::Options::default()).ok()?;
    let (targets, _) = from_config(contents.documents.config.as_ref()?, items(&folder, &contents)).ok()?;
    Renamed::new(folder, targets).ok()?.into_folder().ok()
}

/// A tensor of a checkpoint. A quantized tensor has one row for each output.
#[derive(Clone, Debug)]
struct Item {
    name: Arc<str>,
    shape: Vec<u64>,
    values: Values,
    /// Type of the values.
    dtype: DType,
}

/// Tensors of a checkpoint in the order of their data.
fn items(folder: &Folder, contents: &Contents) -> Vec<Item> {
    let (all, _) = listed(folder, &contents.stored, &contents.found, &HashMap::new());
    let item = |(at, group, Tensor { name, dtype, shape, .. }): (Stored, Option<&Group>, Tensor)| {
        let mut shape = shape.to_vec();
        let Some(group) = group else { return Item { name, shape, values: Values::Plain(at), dtype } };
        let mut values = quantized(folder, &contents.stored, group);
        if let ([.., rows, cols], true) = (&mut shape[..], values.layout.transposed) {
            std::mem::swap(rows, cols);
            values = values.transposed();
        }
        Item { name, shape, values: Values::Quantized(Box::new(values)), dtype: DType::F32 }
    };
    all.into_iter().map(item).collect()
}

/// Targets of a model whose architecture is known, and a warning about what is left out.
fn from_config(config: &Value, all: Vec<Item>) -> Result<(Vec<Target>, Option<String>), String> {
    let (mut targets, other_modes) = by_name::targets(architecture(config)?, attention(config)?, all)?;
    targets.extend(rope_factors(config)?.map(|factors| Target::known("rope_freqs.weight", factors)));
    let warning = (other_modes > 0).then(|| {
        let tensors = counted(other_modes, "tensor");
        format!("{tensors} of its encoders of images are left out; llama.cpp reads them from a file of their own")
    });
    Ok((targets, warning))
}

/// Configuration of the language model.
fn of_text(config: &Value) -> &Value {
    config.get("text_config").filter(|text| text.is_object()).unwrap_or(config)
}

fn architecture(config: &Value) -> Result<&'static str, String> {
    let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let found = ARCHITECTURES.iter().find(|(name, _)| *name == model_type);
    found.map(|(_, architecture)| *architecture).ok_or_else(|| {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
        format!("model_type {} is not one of {}", Escaped(model_type), known.join(", "))
    })
}

fn number(config: &Value, field: &str) -> Result<Option<u64>, String> {
    match of_text(config).get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|number| *number <= u64::from(u32::MAX)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{field} in config.json is not a number of 32 bits")),
        },
    }
}

fn attention(config: &Value) -> Result<Attention, String> {
    let heads = number(config, "num_attention_heads")?.ok_or("config.json has no num_attention_heads")?;
    let kv_heads = number(config, "num_key_value_heads")?.unwrap_or(heads);
    let (key_rows, value_rows) = (number(config, "qk_nope_head_dim")?, number(config, "v_head_dim")?);
    Ok(Attention { heads, kv_heads, key_rows: key_rows.unwrap_or(0), value_rows: value_rows.unwrap_or(0) })
}

/// Divisors of the rotation's frequencies for a longer context, as `rope_type` `llama3` defines them.
fn rope_factors(config: &Value) -> Result<Option<Vec<f32>>, String> {
    let text = of_text(config);
    let scaling = ["rope_scaling", "rope_parameters"].iter().find_map(|field| text.get(field)?.as_object());
    let Some(scaling) = scaling else { return Ok(None) };
    let kind = ["rope_type", "type"].iter().find_map(|field| scaling.get(*field)?.as_str());
    if kind != Some("llama3") {
        return Ok(None);
    }
    let of = |field: &str| scaling.get(field).and_then(Value::as_f64).or_else(|| text.get(field)?.as_f64());
    let needed = |field: &str| {
        let value = of(field).filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or_else(|| format!("{field} of the rotation in config.json is not a positive number"))
    };
    let (factor, context) = (needed("factor")? as f32, needed("original_max_position_embeddings")? as f32);
    let (low, high) = (needed("low_freq_factor")? as f32, needed("high_freq_factor")? as f32);
    let base = of("rope_theta").unwrap_or(10_000.0);
    let heads = number(config, "num_attention_heads")?.unwrap_or(0);
    let of_heads = number(config, "hidden_size")?.unwrap_or(0).checked_div(heads);
    let head = number(config, "head_dim")?.or(of_heads).filter(|head| (1..=1 << 16).contains(head));
    let head = head.ok_or("head_dim is not in config.json, and does not follow from hidden_size")?;
    let factor_of = |at: u64| {
        let frequency = 1.0 / base.powf((2 * at) as f64 / head as f64) as f32;
        let length = std::f32::consts::TAU / frequency;
        if length < context / high {
            1.0
        } else if length > context / low {
            factor
        } else {
            let smooth = (context / length - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    };
    Ok(Some((0..head / 2).map(factor_of).collect()))
}
