//! Hyperparameters: from `config.json` by the table of [`models`](super::models).

use super::fields::{CONFIG, Fields, is_same, refused, shown};
use super::models::{COMMON, KINDS, Kind, Row, Type};
use super::rope::Rope;
use super::source::Files;
use crate::files::convert::error::CheckpointError;
use serde_json::{Map, Value, json};
use truecast_io::gguf::Keys;

/// Numbers of layers by which llama.cpp knows the largest Gemma models, which scale attention in another way.
const LARGEST_GEMMA: [u32; 2] = [46, 62];
/// Numbers of layers by which llama.cpp knows DeepSeek models without a low rank of queries.
const LITE_DEEPSEEK: [u32; 2] = [26, 27];

/// An architecture, and dimensions by which tensors are permuted, split and stacked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Dimensions<'a> {
    /// llama.cpp's name.
    pub architecture: &'a str,
    pub heads: u64,
    /// Heads of keys and values in the source.
    pub kv_heads: u64,
    /// Rows of a head's keys without rotation, and rows of a head's values, in attention by a latent vector (DeepSeek).
    pub key_rows: u64,
    pub value_rows: u64,
    /// Number of layers. Later ones, which predict further tokens, are left out.
    pub layers: Option<u64>,
    /// Elements of a head, where all heads have the same number.
    pub head: Option<u64>,
    /// Number of experts; 0 without experts.
    pub experts: Option<u64>,
    /// Rows of the table of tokens.
    pub tokens: Option<u64>,
}

/// A model that llama.cpp knows.
#[derive(Debug)]
pub(super) struct Model {
    pub kind: &'static Kind,
    /// `config.json` with the defaults of transformers.
    pub fields: Fields,
    rope: Rope,
}

impl Model {
    pub fn new(config: &Value) -> Result<Model, CheckpointError> {
        let Value::Object(config) = config else { return Err(refused(format!("{CONFIG} is missing"))) };
        let mut fields = Fields { place: CONFIG.into(), values: config.clone() };
        let known = || KINDS.iter().map(|kind| kind.model_type).collect::<Vec<_>>().join(", ");
        let name = fields.text("model_type")?.unwrap_or_default();
        let kind = KINDS.iter().find(|kind| kind.model_type == name);
        let kind = kind.ok_or_else(|| fields.unexpected("model_type", &format!("one of {}", known())))?;
        let class = fields.get("architectures").and_then(|classes| classes.get(0));
        if class.is_some_and(|class| !kind.classes.iter().any(|known| class == known)) {
            return Err(fields.unexpected("architectures", &format!("[\"{}\"]", kind.classes[0])));
        }
        if let Some(Value::Object(text)) = config.get("text_config") {
            fields.values.extend(text.clone());
        }
        fill(&mut fields.values, (kind.defaults)());
        let rope = Rope::new(kind, &fields)?;
        derive(kind, &mut fields)?;
        let model = Model { kind, fields, rope };
        model.check()?;
        Ok(model)
    }

    /// Refuses what llama.cpp would load and compute in another way.
    fn check(&self) -> Result<(), CheckpointError> {
        let fields = &self.fields;
        let Value::Object(fixed) = (self.kind.fixed)() else { return Ok(()) };
        for (name, expected) in &fixed {
            if fields.get(name).is_some_and(|found| !is_same(found, expected)) {
                return Err(fields.unexpected(name, &shown(expected)));
            }
        }
        if fields.bool("is_causal")? == Some(false) {
            return Err(fields.unexpected("is_causal", "true"));
        }
        let layers = fields.needed_u32("num_hidden_layers")?;
        let heads = fields.needed_u32("num_attention_heads")?;
        if heads == 0 {
            return Err(fields.unexpected("num_attention_heads", "more than none"));
        }
        if let (Some(period), Some(Value::Array(types))) = (self.kind.period, fields.get("layer_types")) {
            let is_full = |i: usize| (i + 1).is_multiple_of(period);
            let expected = |i| if is_full(i) { "full_attention" } else { "sliding_attention" };
            if let Some((i, other)) = types.iter().enumerate().find(|(i, found)| *found != expected(*i)) {
                let found = shown(other);
                return Err(refused(format!("{CONFIG}: layer_types[{i}] is {found}, expected {:?}", expected(i))));
            }
        }
        if let Some(scalar) = fields.f64("query_pre_attn_scalar")? {
            let is_largest = LARGEST_GEMMA.contains(&layers);
            let expected = if is_largest { fields.needed_u32("hidden_size")? / heads } else { self.head_dim()? };
            if scalar != f64::from(expected) {
                return Err(fields.unexpected("query_pre_attn_scalar", &expected.to_string()));
            }
        }
        if fields.get("kv_lora_rank").is_some()
            && fields.get("q_lora_rank").is_none()
            && !LITE_DEEPSEEK.contains(&layers)
        {
            let expected = "26 or 27 in a model without q_lora_rank";
            return Err(fields.unexpected("num_hidden_layers", expected));
        }
        Ok(())
    }

    /// Warns about layers that attend to a window of tokens where llama.cpp attends to all.
    pub fn warning(&self) -> Result<Option<String>, CheckpointError> {
        let fields = &self.fields;
        let is_written = self.kind.rows.iter().any(|row| row.field == "sliding_window");
        if is_written || fields.bool("use_sliding_window")? == Some(false) {
            return Ok(None);
        }
        let layers = fields.needed_u32("num_hidden_layers")?;
        let has_window = match fields.get("layer_types") {
            Some(Value::Array(types)) => types.iter().any(|kind| kind == "sliding_attention"),
            _ => fields.u32("max_window_layers")?.is_none_or(|first| first < layers),
        };
        let most = fields.needed_u32("max_position_embeddings")?;
        let window = fields.u32("sliding_window")?.filter(|window| has_window && *window < most);
        Ok(window.map(|window| {
            format!("layers attend to {window} tokens, and in llama.cpp to all: longer texts give other results")
        }))
    }

    fn head_dim(&self) -> Result<u32, CheckpointError> {
        let fields = &self.fields;
        match fields.u32("head_dim")? {
            Some(head_dim) => Ok(head_dim),
            None => Ok(fields.needed_u32("hidden_size")? / fields.needed_u32("num_attention_heads")?),
        }
    }

    pub fn keys(&self, keys: &mut Keys) -> Result<(), CheckpointError> {
        let architecture = self.kind.architecture;
        for Row { key, field, kind, is_needed } in COMMON.iter().chain(self.kind.rows).copied() {
            let key = format!("{architecture}.{key}");
            let found = match kind {
                Type::U32 => self.fields.u32(field)?.map(|value| keys.set(&key, &value)),
                Type::F32 => self.fields.f64(field)?.map(|value| keys.set(&key, &(value as f32))),
                // The converter writes true flags only.
                Type::Bool => self.fields.bool(field)?.map(|is_set| {
                    if is_set {
                        keys.set(&key, &true)
                    }
                }),
            };
            if is_needed && found.is_none() {
                return Err(self.fields.unexpected(field, ""));
            }
        }
        let gating = match self.fields.text("scoring_func")? {
            Some("softmax") => Some(1u32),
            Some("sigmoid") => Some(2),
            _ => None,
        };
        if let Some(gating) = gating {
            keys.set(&format!("{architecture}.expert_gating_func"), &gating);
        }
        keys.extend(&self.rope.keys);
        Ok(())
    }

    pub fn dimensions(&self) -> Result<Dimensions<'static>, CheckpointError> {
        let fields = &self.fields;
        let number = |name| fields.needed_u32(name).map(u64::from);
        let heads = number("num_attention_heads")?;
        let is_latent = fields.u32("kv_lora_rank")?.is_some();
        let of_latent = |name| if is_latent { number(name) } else { Ok(0) };
        Ok(Dimensions {
            architecture: self.kind.architecture,
            heads,
            kv_heads: if is_latent { heads } else { number("num_key_value_heads")? },
            key_rows: of_latent("qk_nope_head_dim")?,
            value_rows: of_latent("v_head_dim")?,
            layers: Some(number("num_hidden_layers")?),
            head: if is_latent { None } else { Some(self.head_dim()?.into()) },
            experts: Some(fields.u32("experts")?.unwrap_or(0).into()),
            tokens: Some(number("vocab_size")?),
        })
    }

    /// Values of the tensor `rope_freqs.weight`.
    pub fn rope_factors(&self) -> Result<Option<Vec<f32>>, CheckpointError> {
        self.rope.factors(self.head_dim()?)
    }
}

/// Adds the fields that are missing. Null is a value.
fn fill(values: &mut Map<String, Value>, defaults: Value) {
    let Value::Object(defaults) = defaults else { return };
    for (name, value) in defaults {
        values.entry(name).or_insert(value);
    }
}

/// Adds fields that transformers computes from others.
fn derive(kind: &Kind, fields: &mut Fields) -> Result<(), CheckpointError> {
    if fields.get("num_key_value_heads").is_none() {
        let heads = fields.needed_u32("num_attention_heads")?;
        fields.values.insert("num_key_value_heads".into(), heads.into());
    }
    let experts =
        ["num_local_experts", "num_experts", "n_routed_experts"].into_iter().find_map(|name| fields.get(name));
    match experts.cloned() {
        Some(experts) => drop(fields.values.insert("experts".into(), experts)),
        None if kind.rows.iter().any(|row| row.field == "experts") => return Err(fields.unexpected("num_experts", "")),
        None => {}
    }
    if kind.architecture == "deepseek2" {
        // All groups of experts are one group, as llama.cpp wants it.
        if fields.get("topk_group").is_some() && fields.get("topk_group") == fields.get("n_group") {
            for name in ["n_group", "topk_group"] {
                fields.values.insert(name.into(), 1.into());
            }
        }
        let rotated = fields.needed_u32("qk_rope_head_dim")?;
        let rank = fields.needed_u32("kv_lora_rank")?;
        let rest = fields.needed_u32("qk_nope_head_dim")?;
        fields.values.insert("key_length".into(), (u64::from(rank) + u64::from(rotated)).into());
        fields.values.insert("key_length_mla".into(), (u64::from(rest) + u64::from(rotated)).into());
        fields.values.insert("num_key_value_heads".into(), 1.into());
        fields.values.remove("head_dim");
        if fields.get("n_shared_experts").is_none() {
            fields.values.insert("n_shared_experts".into(), 0.into());
        }
    } else if kind.architecture == "llama" && fields.get("head_dim").is_none() {
        let heads = fields.needed_u32("num_attention_heads")?;
        let head_dim = fields.needed_u32("hidden_size")?.checked_div(heads);
        fields.values.insert("head_dim".into(), json!(head_dim));
    }
    Ok(())
}

/// Fields of `generation_config.json`: name, key, and whether the value is an integer.
const SAMPLING: [(&str, &str, bool); 11] = [
    ("top_k", "top_k", true),
    ("top_p", "top_p", false),
    ("min_p", "min_p", false),
    ("xtc_probability", "xtc_probability", false),
    ("xtc_threshold", "xtc_threshold", false),
    ("temperature", "temp", false),
    ("penalty_last_n", "penalty_last_n", true),
    ("penalty_repeat", "penalty_repeat", false),
    ("mirostat", "mirostat", true),
    ("mirostat_tau", "mirostat_tau", false),
    ("mirostat_eta", "mirostat_eta", false),
];

/// Sets the keys that recommend how tokens are sampled.
pub(super) fn sampling(files: &Files, keys: &mut Keys) -> Result<(), CheckpointError> {
    let Some(Value::Object(values)) = &files.generation_config else { return Ok(()) };
    let fields = Fields { place: "generation_config.json".into(), values: values.clone() };
    if let Some(sequence) = fields.text("sequence")? {
        keys.set("general.sampling.sequence", sequence);
    }
    for (name, key, is_integer) in SAMPLING {
        let key = format!("general.sampling.{key}");
        let Some(value) = fields.f64(name)? else { continue };
        if !is_integer {
            keys.set(&key, &(value as f32));
        } else if value.fract() == 0.0 && value.abs() < f64::from(i32::MAX) {
            keys.set(&key, &(value as i32));
        } else {
            return Err(fields.unexpected(name, "an integer of 32 bits"));
        }
    }
    Ok(())
}
