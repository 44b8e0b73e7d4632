//! Checkpoints as llama.cpp loads them: its names, its order of elements, hyperparameters and vocabulary
//! (`docs/spec/checkpoints.md §9.10`).

mod names;
mod strided;
mod view;

use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::{Contents, quantized, stored};
use crate::files::convert::options::Options;
use crate::files::convert::planner::listed;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use names::{Attention, Role, arrangement, is_always_f32, role};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use strided::Strided;
use truecast_core::{DType, Layout};
use truecast_io::folder::Folder;
use truecast_io::gguf::Keys;
use truecast_io::{Escaped, Tensor, counted};
use truecast_schemes::Detection;
use view::{Piece, Renamed, Target, Values};

/// What a file for llama.cpp has beside its tensors.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub keys: Keys,
    /// Names of tensors that keep type f32 unless a rule names them.
    pub fixed: HashSet<Arc<str>>,
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
/// An architecture, a tensor or a shape that is not understood.
pub(crate) fn renamed(folder: Folder, contents: Contents, options: &Options) -> Result<(Folder, Contents), Error> {
    let is_model = || contents.documents.config.as_ref().is_some_and(|config| config.get("model_type").is_some());
    if options.source_scheme.keep_names || !is_model() {
        return Ok((folder, contents));
    }
    let path = folder.path().to_path_buf();
    let refused = |what: String| Error::checkpoint(&path, CheckpointError::NotOfLlamacpp { what });
    let config = contents.documents.config.as_ref().ok_or_else(|| refused("it has no config.json".into()))?;
    let architecture = architecture(config).map_err(refused)?;
    let attention = attention(config).map_err(refused)?;
    let is_gemma = architecture.starts_with("gemma");
    let (all, _) = listed(&folder, &contents.stored, &contents.found, &HashMap::new());
    let (mut other_modes, mut targets) = (0, Vec::<Target>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut experts: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (at, group, tensor) in &all {
        let (results, expert) = match role(architecture, &tensor.name) {
            Role::Mapped(results, expert) => (results, expert),
            Role::Computed => continue,
            Role::OtherMode => {
                other_modes += 1;
                continue;
            }
            Role::Unknown => {
                let name = Escaped(&tensor.name);
                return Err(refused(format!("tensor {name} is not known for architecture {architecture}")));
            }
        };
        for (name, how) in results {
            let mut shape = tensor.shape.to_vec();
            let (values, from) = match group {
                Some(group) => {
                    let quantized = quantized(&folder, &contents.stored, group);
                    let has_input_rows = quantized.layout.transposed;
                    let quantized = if has_input_rows { quantized.transposed() } else { quantized };
                    if let ([.., rows, cols], true) = (&mut shape[..], has_input_rows) {
                        std::mem::swap(rows, cols);
                    }
                    (Values::Quantized(Box::new(quantized)), DType::F32)
                }
                None => (Values::Plain(*at), tensor.dtype),
            };
            // Dense weights of fused experts have one row for each input.
            let arranged = arrangement(&name, how, &shape, attention, group.is_none());
            let (shape, order) = arranged.ok_or_else(|| {
                let shape = &tensor.shape;
                refused(format!("the shape {shape:?} of tensor {} does not fit config.json", Escaped(&tensor.name)))
            })?;
            let piece = Piece { values, order };
            let add = (is_gemma && name.ends_with("norm.weight")).then_some(1.0);
            let always_f32 = is_always_f32(&name, &shape) || add.is_some();
            let place = *places.entry(name.clone()).or_insert(targets.len());
            match (targets.get_mut(place), expert) {
                (None, _) => {
                    let dtype = if always_f32 && from.is_float() { DType::F32 } else { from };
                    let tensor = Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: shape.into() };
                    targets.push(Target { tensor, from, pieces: vec![piece], add });
                }
                (Some(target), Some(_)) if target.from == from && *target.tensor.shape == *shape => {
                    target.pieces.push(piece);
                }
                (Some(target), _) => {
                    let name = Escaped(&target.tensor.name).to_string();
                    return Err(refused(format!("the parts of {name} have different types or shapes")));
                }
            }
            if let Some(expert) = expert {
                experts.entry(place).or_default().push(expert);
            }
        }
    }
    for (place, numbers) in experts {
        stack(&mut targets[place], &numbers).map_err(refused)?;
    }
    if let Some(factors) = rope_factors(config).map_err(refused)? {
        let (name, shape) = ("rope_freqs.weight".into(), [factors.len() as u64].into());
        let order = Strided::whole(factors.len() as u64);
        let tensor = Tensor { name, dtype: DType::F32, layout: Layout::Packed, shape };
        let pieces = vec![Piece { values: Values::Known(factors), order }];
        targets.push(Target { tensor, from: DType::F32, pieces, add: None });
    }
    let warnings = (other_modes > 0).then(|| {
        let tensors = counted(other_modes, "tensor");
        format!("{}: {tensors} of its encoders of images are left out: llama.cpp reads them from a file of their own", path.display())
    });
    let fixed = targets.iter().filter(|target| is_always_f32(&target.tensor.name, &target.tensor.shape));
    let fixed = fixed.map(|target| target.tensor.name.clone()).collect();
    let mut keys = Keys::new();
    keys.set_text("general.architecture", architecture);
    let header = Header { keys, fixed, warnings: warnings.into_iter().collect() };
    let folder = Renamed::folder(folder, targets)?;
    let stored: Vec<Stored> = stored(&folder).collect();
    let roles = stored.iter().map(|_| truecast_schemes::Role::Plain).collect();
    let found = Detection { roles, groups: Vec::new(), ..contents.found };
    Ok((folder, Contents { stored, found, documents: contents.documents, llamacpp: Some(header) }))
}

/// Makes a tensor of all experts of the matrices of each.
fn stack(target: &mut Target, numbers: &[u64]) -> Result<(), String> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|at| numbers[*at]);
    if order.iter().enumerate().any(|(expert, at)| numbers[*at] != expert as u64) {
        return Err(format!("experts of {} are missing", Escaped(&target.tensor.name)));
    }
    let mut pieces: Vec<Option<Piece>> = std::mem::take(&mut target.pieces).into_iter().map(Some).collect();
    target.pieces = order.into_iter().filter_map(|at| pieces[at].take()).collect();
    target.tensor.shape = [&[numbers.len() as u64], &*target.tensor.shape].concat().into();
    Ok(())
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
    let heads = number(config, "num_attention_heads")?.unwrap_or(0);
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
