//! What a tensor of a model is, by its name, its rank and the tensors beside it, and whether a loader expects it quantized:
//! one table (`docs/spec/checkpoints.md §11.3`, which has the sources of its rows).

use std::str::FromStr;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_core::{DType, words};
use truecast_io::Tensor;

use crate::modules::module_of;
use crate::scheme::Family;

words! {
    /// What a tensor of a model is.
    pub enum Layer {
        /// The weight of a linear layer, a row for each output.
        Linear = "linear",
        /// The weights of several experts in one tensor, a matrix for each.
        Experts = "experts",
        /// Of a normalization.
        Norm = "norms",
        /// A bias.
        Bias = "biases",
        /// Which expert is chosen, and other gates of one row for each choice.
        Router = "router",
        /// An output head.
        Head = "lm_head",
        /// A table that is indexed by tokens, positions or patches.
        Embedding = "embeddings",
        /// Of a convolution.
        Convolution = "convolutions",
        /// Of a state-space layer, or of one with a recurrence.
        StateSpace = "ssm",
        /// Of an encoder of images or sound, or of what connects it with the language model.
        Tower = "towers",
        /// Of a head that predicts further tokens.
        NextTokens = "next_tokens",
        /// Loaders keep it in f32, or in a layer that they do not quantize.
        HighPrecision = "high_precision",
        /// A weight with a row for each input.
        InputRows = "input_rows",
        /// No row of the table is about it.
        Unknown = "unknown",
    }
}

/// A name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset {0:?}; presets are norms, embeddings, router, lm_head, ssm")]
pub struct UnknownLayer(pub String);

/// How a row recognizes a name. A name without `.weight` at its end is that of a module; its components lie between dots.
enum Test {
    /// One of the last two components of the name has this in it, in any case.
    EndHas(&'static [&'static str]),
    /// One of the last two components of the module has this in it.
    LastTwoHave(&'static [&'static str]),
    /// The last component of the module is this.
    Last(&'static [&'static str]),
    /// The last component of the module has this in it.
    LastHas(&'static [&'static str]),
    /// The last component of the module begins with this.
    LastBegins(&'static [&'static str]),
    /// Any component is this.
    Any(&'static [&'static str]),
    /// Any component has this in it.
    AnyHas(&'static [&'static str]),
    /// The module is this.
    Whole(&'static [&'static str]),
    /// The name begins with this.
    Begins(&'static [&'static str]),
    /// There are so many dimensions or more.
    Rank(usize),
}

use Test::{Any, AnyHas, Begins, EndHas, Last, LastBegins, LastHas, LastTwoHave, Rank, Whole};

/// The first row that recognizes a name decides.
const TABLE: &[(Layer, Test)] = &[
    (Layer::Norm, EndHas(&["norm", "ln_"])),
    (Layer::Bias, LastHas(&["bias"])),
    (
        Layer::Tower,
        AnyHas(&["visual", "vision_tower", "vision_model", "vision_encoder", "audio_tower", "audio_encoder"]),
    ),
    (Layer::Tower, AnyHas(&["multi_modal_projector", "mm_projector", "embed_vision", "embed_audio"])),
    (Layer::NextTokens, Begins(&["mtp.", "model.mtp."])),
    (Layer::NextTokens, Last(&["eh_proj"])),
    (Layer::Router, AnyHas(&["router", "gate_inp"])),
    (Layer::Router, Last(&["gate", "wg", "shared_expert_gate", "weights_proj"])),
    (Layer::Head, Any(&["lm_head"])),
    (Layer::Head, Last(&["output_layer", "embed_out", "proj_out", "score", "classifier", "qa_outputs"])),
    (Layer::Head, Whole(&["output", "model.output", "head", "cls.predictions.decoder"])),
    (Layer::Head, LastTwoHave(&["shared_head"])),
    (Layer::Embedding, LastTwoHave(&["embed", "embd", "token_types"])),
    (Layer::Embedding, Last(&["wte", "wpe"])),
    (Layer::Embedding, Whole(&["shared"])),
    (
        Layer::Embedding,
        LastBegins(&["pos_", "position", "rel_pos", "relative_position", "freqs", "rotary", "inv_freq"]),
    ),
    (
        Layer::Embedding,
        LastBegins(&["cls_token", "class_token", "mask_token", "dist_token", "register_token", "query_token"]),
    ),
    (Layer::StateSpace, Any(&["A_log", "D", "dt_bias", "conv1d"])),
    (Layer::StateSpace, Last(&["in_proj_a", "in_proj_b", "ssm_a", "ssm_d", "ssm_conv1d"])),
    (Layer::StateSpace, LastBegins(&["time_mix", "time_maa", "time_decay", "time_first", "time_faaaa"])),
    (Layer::Convolution, LastTwoHave(&["conv"])),
    (Layer::Convolution, Rank(4)),
];

/// Components of the names of tensors that hold several experts, in the order of the page.
const EXPERTS: [&str; 3] = ["experts", "block_sparse_moe", "parallel_experts"];

/// Models whose linear layers have a row for each input, and the modules that are such layers.
const INPUT_ROWS: (&[&str], &[&str]) =
    (&["gpt2", "openai-gpt", "imagegpt", "decision_transformer"], &["c_attn", "q_attn", "c_proj", "c_fc"]);

/// Models whose class keeps modules of these names in f32.
const IN_F32: [(&str, &str); 5] =
    [("t5", "wo"), ("mt5", "wo"), ("umt5", "wo"), ("longt5", "wo"), ("switch_transformers", "wo")];

impl Layer {
    /// The words of `--keep-preset`, each a layer.
    pub const PRESETS: [(&'static str, Layer); 5] = [
        ("norms", Layer::Norm),
        ("embeddings", Layer::Embedding),
        ("router", Layer::Router),
        ("lm_head", Layer::Head),
        ("ssm", Layer::StateSpace),
    ];

    /// What the name and the number of dimensions tell; `None` if no row is about them.
    ///
    /// # Examples
    /// ```
    /// use truecast_schemes::Layer;
    /// assert_eq!(Layer::by_name("model.layers.0.input_layernorm.weight", 1), Some(Layer::Norm));
    /// assert_eq!(Layer::by_name("model.layers.0.block_sparse_moe.gate.weight", 2), Some(Layer::Router));
    /// assert_eq!(Layer::by_name("model.layers.0.mlp.gate_proj.weight", 2), None);
    /// ```
    pub fn by_name(name: &str, rank: usize) -> Option<Layer> {
        let module = module_of(name);
        let components = || module.split('.');
        let last = components().next_back().unwrap_or_default();
        let has = |part: &str, words: &[&str]| words.iter().any(|word| part.to_ascii_lowercase().contains(word));
        let holds = |test: &Test| match test {
            EndHas(words) => name.rsplit('.').take(2).any(|part| has(part, words)),
            LastTwoHave(words) => components().rev().take(2).any(|part| has(part, words)),
            Last(words) => words.contains(&last),
            LastHas(words) => has(last, words),
            LastBegins(words) => words.iter().any(|word| last.starts_with(word)),
            Any(words) => components().any(|part| words.contains(&part)),
            AnyHas(words) => components().any(|part| has(part, words)),
            Whole(words) => words.contains(&module),
            Begins(words) => words.iter().any(|word| name.starts_with(word)),
            Rank(least) => rank >= *least,
        };
        TABLE.iter().find(|(_, test)| holds(test)).map(|(layer, _)| *layer)
    }
}

/// Tables of tokens, which llama.cpp quantizes (§11.3).
const TOKENS: [&str; 5] = ["token_embd", "embed_tokens", "tok_embeddings", "word_embeddings", "wte"];

/// The module that a loader may quantize and that the tensor belongs to: that of a matrix, or the one that holds all experts.
pub fn loaded_module(tensor: &Tensor) -> Option<String> {
    let module = module_of(&tensor.name);
    let is_weight = module.len() < tensor.name.len();
    match tensor.shape.len() {
        0 | 1 => None,
        _ if is_weight && Layer::by_name(&tensor.name, 2) == Some(Layer::Norm) => None,
        _ if is_weight => Some(module.to_owned()),
        3 => module
            .rsplit_once('.')
            .filter(|(around, _)| around.ends_with("experts"))
            .map(|(around, _)| around.to_owned()),
        _ => None,
    }
}

impl FromStr for Layer {
    type Err = UnknownLayer;

    fn from_str(name: &str) -> Result<Layer, UnknownLayer> {
        let known = Layer::PRESETS.iter().find(|(known, _)| *known == name);
        known.map(|(_, layer)| *layer).ok_or_else(|| UnknownLayer(name.to_owned()))
    }
}

/// The tensors of a model by their names, and what its configuration says of them.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    shapes: HashMap<&'a str, &'a [u64]>,
    config: Option<&'a Value>,
}

impl<'a> Model<'a> {
    /// Of the tensors by their logical names, and `config.json`.
    pub fn new(tensors: &'a [Tensor], config: Option<&'a Value>) -> Model<'a> {
        let mut shapes = HashMap::with_capacity(tensors.len());
        shapes.extend(tensors.iter().map(|tensor| (&*tensor.name, &*tensor.shape)));
        Model { shapes, config }
    }

    fn shape(&self, name: &str) -> Option<&'a [u64]> {
        self.shapes.get(name).copied()
    }

    /// A value of the configuration, or of the part of it that is about the language model.
    fn value(&self, key: &str) -> Option<&'a Value> {
        let config = self.config?;
        config.get(key).filter(|value| !value.is_null()).or_else(|| config.get("text_config")?.get(key))
    }

    /// `model_type` of the configuration.
    pub fn model_type(&self) -> Option<&'a str> {
        self.config?.get("model_type")?.as_str()
    }

    /// The type in which a loader holds what is not quantized: that of `dtype` or `torch_dtype`, if it is a float of 16 or 32
    /// bits.
    pub fn dtype(&self) -> Option<DType> {
        let text = self.value("dtype").or_else(|| self.value("torch_dtype"))?.as_str()?;
        match text.strip_prefix("torch.").unwrap_or(text) {
            "bfloat16" => Some(DType::Bf16),
            "float16" | "half" => Some(DType::F16),
            "float32" | "float" => Some(DType::F32),
            _ => None,
        }
    }

    /// What a tensor is.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Layout};
    /// use truecast_io::Tensor;
    /// use truecast_schemes::{Model, Layer};
    /// let tensor = |name: &str, shape: &[u64]| Tensor {
    ///     name: name.into(), dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into(),
    /// };
    /// let tensors = [tensor("h.0.mlp.c_fc.weight", &[8, 32]), tensor("h.0.mlp.c_fc.bias", &[32]), tensor("x.weight", &[8, 8])];
    /// let model = Model::new(&tensors, None);
    /// assert_eq!(model.layer(&tensors[0]), Layer::InputRows); // the bias has an element for each column
    /// assert_eq!(model.layer(&tensors[2]), Layer::Linear);
    /// ```
    pub fn layer(&self, tensor: &Tensor) -> Layer {
        let (name, rank) = (&*tensor.name, tensor.shape.len());
        if let Some(layer) = Layer::by_name(name, rank) {
            return layer;
        }
        let module = module_of(name);
        let (around, last) = module.rsplit_once('.').unwrap_or(("", module));
        let is_expert = |part: &str| EXPERTS.contains(&part) || part.ends_with("_exps");
        if rank == 3 && module.split('.').any(is_expert) {
            return Layer::Experts;
        }
        let is_weight = rank == 2 && (module.len() < name.len());
        if !is_weight {
            return Layer::Unknown;
        }
        let is_packed_attention = self.shape(&format!("{around}.in_proj_weight")).is_some();
        if is_packed_attention || IN_F32.iter().any(|(of, module)| Some(*of) == self.model_type() && *module == last) {
            return Layer::HighPrecision;
        }
        let is_named = INPUT_ROWS.1.contains(&last);
        let has_input_rows = match (self.shape(&format!("{module}.bias")), &*tensor.shape) {
            (Some([of_bias]), [rows, columns]) => of_bias == columns && of_bias != rows,
            _ => false,
        };
        let is_model = self.model_type().is_some_and(|model_type| INPUT_ROWS.0.contains(&model_type));
        if is_named && (is_model || has_input_rows) { Layer::InputRows } else { Layer::Linear }
    }

    /// Whether `--scheme` quantizes a tensor of this kind if nothing else is said.
    pub fn is_quantized(&self, tensor: &Tensor, layer: Layer, family: Family) -> bool {
        let is_gguf = matches!(family, Family::Gguf(_));
        match layer {
            Layer::Linear => family != Family::GptOss,
            Layer::Experts if is_gguf => true,
            // Loaders of compressed-tensors know linear layers only; none but that of gpt-oss knows rows of inputs.
            Layer::Experts => match self.has_input_rows(tensor) {
                true => family == Family::GptOss,
                false => {
                    !family.name().starts_with("ct:")
                        && ![Family::Fp8Channel, Family::Fp8Tensor, Family::GptOss].contains(&family)
                }
            },
            Layer::Head => is_gguf,
            Layer::Embedding => {
                let last = module_of(&tensor.name).rsplit('.').next().unwrap_or_default();
                is_gguf && tensor.shape.len() == 2 && TOKENS.contains(&last)
            }
            _ => false,
        }
    }

    /// The matrices of an [`Layer::Experts`] tensor have a row for each input, not for each output: told by the sizes of the
    /// first and the second layer, which share one, or by the width of the model.
    pub fn has_input_rows(&self, tensor: &Tensor) -> bool {
        let [_, rows, columns] = *tensor.shape else { return false };
        let beside =
            |from: &str, to: &str| tensor.name.contains(from).then(|| self.shape(&tensor.name.replace(from, to)));
        match (beside("gate_up_proj", "down_proj").flatten(), beside("down_proj", "gate_up_proj").flatten()) {
            // Gate and up lie together: [2 N, K] and [K, N], or [K, 2 N] and [N, K].
            (Some([_, of_rows, of_columns]), _) => rows == *of_columns && columns == 2 * of_rows,
            (_, Some([_, of_rows, of_columns])) => columns == *of_rows && *of_columns == 2 * rows,
            _ => {
                let width = self.value("hidden_size").and_then(Value::as_u64);
                let is_down = tensor.name.contains("down_proj");
                rows != columns && width == Some(if is_down { columns } else { rows })
            }
        }
    }

    /// Modules that a loader makes although no tensor is theirs: heads that share the table of tokens.
    pub fn absent_heads(&self) -> Vec<String> {
        let has = |name: &str| self.shapes.contains_key(name);
        let has_head =
            self.shapes.keys().any(|name| Layer::by_name(name, 2) == Some(Layer::Head) && name.ends_with("weight"));
        let mut heads = Vec::new();
        if !has_head {
            heads.push("lm_head".to_owned());
            heads.extend((self.model_type() == Some("whisper")).then(|| "proj_out".to_owned()));
            let of_bert = has("cls.predictions.transform.dense.weight") && !has("cls.predictions.decoder.weight");
            heads.extend(of_bert.then(|| "cls.predictions.decoder".to_owned()));
        }
        heads
    }
}
