//! What a tensor of a model is, by its name, its rank and the tensors beside it, and whether a loader expects it quantized:
//! one table (`docs/spec/checkpoints.md §11.3`, which has the sources of its rows).

use std::str::FromStr;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_core::{DType, words};
use truecast_io::Tensor;

use crate::blocks::{Blocks, in_block};
use crate::modules::{has_components, module_of};
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
        /// Shifts and scales what a block of an image model works on, by the time step.
        Modulation = "modulation",
        /// Loaders keep it in f32, or in a layer that they do not quantize.
        HighPrecision = "high_precision",
        /// A matrix outside the repeated blocks of the main stack.
        OutsideBlocks = "outside_blocks",
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
    /// A component has this as a word between underscores; of a module in a block, one before the block's number.
    Around(&'static [&'static str]),
    /// A component has this as a word between underscores.
    AnyWord(&'static [&'static str]),
    /// The module lies in no block, and its last component is this.
    LastOutside(&'static [&'static str]),
    /// The last components of the module are these.
    Ends(&'static str),
    /// The module is this.
    Whole(&'static [&'static str]),
    /// The name begins with this.
    Begins(&'static [&'static str]),
    /// There are so many dimensions or more.
    Rank(usize),
}

use Test::{
    Any, AnyHas, AnyWord, Around, Begins, EndHas, Ends, Last, LastBegins, LastHas, LastOutside, LastTwoHave, Rank,
    Whole,
};

/// Words in the names of encoders of images and sound, of what connects them with a language model, of what a pipeline has
/// beside its main model, and of what prepares its conditions.
const TOWERS: &[&str] = &[
    "vision",
    "visual",
    "image",
    "audio",
    "speech",
    "whisper",
    "tower",
    "sam",
    "vpm",
    "apm",
    "talker",
    "code2wav",
    "token2wav",
    "vocoder",
    "projector",
    "connector",
    "resampler",
    "aligner",
    "merger",
    "abstractor",
    "vae",
    "conditioner",
];

/// The first row that recognizes a name decides.
const TABLE: &[(Layer, Test)] = &[
    (Layer::Norm, EndHas(&["norm", "ln_"])),
    (Layer::Bias, LastHas(&["bias"])),
    (Layer::HighPrecision, Any(&["lora_A", "lora_B", "lora_down", "lora_up", "lora_embedding_A", "lora_embedding_B"])),
    (Layer::Tower, Around(TOWERS)),
    (Layer::Tower, Begins(&["mlp1.", "first_stage_model.", "cond_stage_model.", "text_encoders."])),
    (Layer::NextTokens, Begins(&["mtp.", "model.mtp."])),
    (Layer::NextTokens, Last(&["eh_proj"])),
    (Layer::Router, AnyHas(&["router", "gate_inp"])),
    (Layer::Router, Last(&["gate", "wg", "shared_expert_gate", "weights_proj", "to_gate_logits"])),
    (Layer::HighPrecision, Last(&["per_layer_input_gate", "per_layer_projection"])),
    (Layer::HighPrecision, Any(&["compressor"])),
    (Layer::HighPrecision, Ends("DenseReluDense.wo")),
    (Layer::Head, Any(&["lm_head"])),
    (Layer::Head, LastOutside(&["output_layer", "embed_out", "proj_out", "score", "classifier", "qa_outputs"])),
    (Layer::Head, Whole(&["output", "model.output", "head", "cls.predictions.decoder"])),
    (Layer::Head, LastTwoHave(&["shared_head"])),
    (Layer::Embedding, LastTwoHave(&["embed", "embd", "token_types", "codebook"])),
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
    (Layer::Modulation, AnyHas(&["modulation", "adaln"])),
    (Layer::Modulation, AnyWord(&["mod", "guidance"])),
    (Layer::Modulation, Any(&["emb_layers", "time_emb_proj", "time_emb"])),
    (Layer::Convolution, LastTwoHave(&["conv"])),
    (Layer::Convolution, Rank(4)),
];

/// Components of the names of tensors that hold several experts, in the order of the page.
const EXPERTS: [&str; 3] = ["experts", "block_sparse_moe", "parallel_experts"];

/// The names of the first and the second layer of experts in one tensor, where gate and up are one.
const EXPERT_LAYERS: [(&str, &str); 4] =
    [("gate_up_proj", "down_proj"), ("input_linear", "output_linear"), ("fc1", "fc2"), ("w13", "w2")];

/// Models whose linear layers have a row for each input, and the modules that are such layers.
const INPUT_ROWS: (&[&str], &[&str]) =
    (&["gpt2", "openai-gpt", "imagegpt", "decision_transformer"], &["c_attn", "q_attn", "c_proj", "c_fc"]);

/// Models whose class keeps modules of a name in f32.
const IN_F32: [(&[&str], &str); 1] = [(&["t5", "mt5", "umt5", "longt5", "switch_transformers", "udop"], "wo")];

/// Heads that loaders make of the table of tokens and that have no tensor of their own.
const TIED_HEADS: [&str; 5] = ["lm_head", "decoder", "proj_out", "output_projection", "embed_out"];

/// Modules that transformers 5.24.0 knows under another name than that of the file, or makes of another: both names.
const IN_MEMORY: [(&str, &str); 22] = [
    ("embed_out", "lm_head"),
    ("head", "lm_head"),
    ("output", "lm_head"),
    ("fine_acoustics", "lm_heads"),
    ("encoder.out", "ctc_head"),
    ("log_softmax.mlp.layer0", "proj_out"),
    ("value_embeddings", "unembedding_projection"),
    ("block_sparse_moe.gate", "router"),
    ("k_sconv", "sconv"),
    ("bbox_predictor", "bbox_embed"),
    ("enc_bbox_head", "bbox_embed"),
    ("enc_score_head", "class_embed"),
    ("decoder_order_head", "relative_order_head"),
    ("decoder_roor_order_head", "successor_order_head"),
    ("encoder_decoder_proj", "decoder.proj"),
    ("pre_encode.out", "subsampling.linear"),
    ("adapter.mlp", "merger.mlp"),
    ("head.linear1", "projection_head"),
    ("patchifier", "patch_embed"),
    ("flow_net", "flow_head"),
    ("out_eos", "eos_head"),
    ("gemma_expert", "dit"),
];

/// What transformers 5.24.0 calls towers and what connects them, whatever files do.
const TOWERS_IN_MEMORY: [&str; 7] =
    ["vision_tower", "vision_model", "vision_encoder", "visual", "audio_tower", "multi_modal_projector", "projector"];

/// The layers that a loader makes of torch's packed attention.
const OF_PACKED_ATTENTION: [&str; 4] = ["q_proj", "k_proj", "v_proj", "o_proj"];

/// Parts of `config.json` that describe the language model of a model of several.
const LANGUAGE_CONFIGS: [&str; 4] = ["text_config", "language_config", "llm_config", "thinker_config"];

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
        Layer::by_name_in(name, rank, "")
    }

    /// The same in a model of this type, whose own words tell no tower.
    fn by_name_in(name: &str, rank: usize, model_type: &str) -> Option<Layer> {
        let module = module_of(name);
        let has_word = |part: &str, words: &[&str]| {
            part.split('_').any(|of| words.iter().any(|word| of.eq_ignore_ascii_case(word)))
        };
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
            AnyWord(words) => components().any(|part| has_word(part, words)),
            Around(words) => {
                let around = in_block(module).map_or(module, |(list, _)| list);
                let tells = |word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
                let is_own = |word: &str| model_type.split(['-', '_']).any(|own| own.eq_ignore_ascii_case(word));
                around.split(['.', '_']).any(|word| tells(word) && !is_own(word))
            }
            LastOutside(words) => words.contains(&last) && in_block(module).is_none(),
            Ends(end) => module.strip_suffix(end).is_some_and(|front| front.ends_with('.')),
            Whole(words) => words.contains(&module),
            Begins(words) => words.iter().any(|word| name.starts_with(word)),
            Rank(least) => rank >= *least,
        };
        TABLE.iter().find(|(_, test)| holds(test)).map(|(layer, _)| *layer)
    }
}

/// Tables of tokens, which llama.cpp quantizes (§11.3).
const TOKENS: [&str; 5] = ["token_embd", "embed_tokens", "tok_embeddings", "word_embeddings", "wte"];

/// Words of matrices that llama.cpp keeps (§11.3).
const KEPT_IN_GGUF: [&str; 4] = ["altup", "laurel", "per_layer_model_proj", "attn_rel_b"];

/// Whether a name is that of a normalization.
pub(crate) fn is_norm(name: &str) -> bool {
    Layer::by_name(name, 1) == Some(Layer::Norm)
}

/// The modules that a loader may quantize and that the tensor belongs to: that of a matrix, the one that holds all experts, or
/// those that it makes of packed attention.
pub fn loaded_modules(tensor: &Tensor) -> Vec<String> {
    let module = module_of(&tensor.name);
    let is_weight = module.len() < tensor.name.len();
    let around = module.rsplit_once('.').map(|(around, _)| around);
    match (tensor.shape.len(), around) {
        (0 | 1, _) => Vec::new(),
        _ if is_weight && Layer::by_name(&tensor.name, 2) == Some(Layer::Norm) => Vec::new(),
        _ if is_weight => vec![module.to_owned()],
        (2, Some(around)) if module.ends_with(".in_proj_weight") => {
            OF_PACKED_ATTENTION.iter().map(|layer| format!("{around}.{layer}")).collect()
        }
        (3, Some(around)) if around.ends_with("experts") => vec![around.to_owned()],
        _ => Vec::new(),
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
    tensors: HashMap<&'a str, &'a Tensor>,
    config: Option<&'a Value>,
    blocks: Blocks<'a>,
    /// Most elements of matrices are of 16 bits, so that those of 32 are so for a reason.
    has_half_precision: bool,
}

impl<'a> Model<'a> {
    /// Of the tensors by their logical names, and `config.json`.
    pub fn new(tensors: &'a [Tensor], config: Option<&'a Value>) -> Model<'a> {
        let mut by_name = HashMap::with_capacity(tensors.len());
        by_name.extend(tensors.iter().map(|tensor| (&*tensor.name, tensor)));
        let of_bits = |bits: u32| {
            let matrices = tensors.iter().filter(|tensor| tensor.shape.len() >= 2 && tensor.dtype.is_float());
            matrices
                .filter(|tensor| tensor.dtype.storage_bits() == Some(bits))
                .map(Tensor::len)
                .fold(0, u64::saturating_add)
        };
        let mut model = Model {
            tensors: by_name,
            config,
            blocks: Blocks::default(),
            has_half_precision: of_bits(16) > of_bits(32),
        };
        let in_no_tower = tensors.iter().filter(|tensor| model.by_name(tensor) != Some(Layer::Tower));
        model.blocks = Blocks::of(in_no_tower, |tensor| model.is_table_of_tokens(tensor));
        model
    }

    fn shape(&self, name: &str) -> Option<&'a [u64]> {
        self.tensors.get(name).map(|tensor| &*tensor.shape)
    }

    /// What the name and the number of dimensions tell, in a model of this type.
    fn by_name(&self, tensor: &Tensor) -> Option<Layer> {
        let is_of_several =
            self.config.is_some_and(|config| LANGUAGE_CONFIGS.iter().any(|key| config.get(key).is_some()));
        let model_type = self.model_type().filter(|_| !is_of_several).unwrap_or_default();
        Layer::by_name_in(&tensor.name, tensor.shape.len(), model_type)
    }

    /// A matrix with a row for each token: it has its name, or as many rows as the vocabulary.
    fn is_table_of_tokens(&self, tensor: &Tensor) -> bool {
        let [rows, _] = *tensor.shape else { return false };
        let last = module_of(&tensor.name).rsplit('.').next().unwrap_or_default();
        let vocabulary = self.value("vocab_size").and_then(Value::as_u64);
        match self.by_name(tensor) {
            Some(Layer::Embedding) => TOKENS.contains(&last) || Some(rows) == vocabulary || last == "shared",
            Some(_) => false,
            None => Some(rows) == vocabulary,
        }
    }

    /// A value of the configuration, or of the part of it that is about the language model.
    fn value(&self, key: &str) -> Option<&'a Value> {
        let config = self.config?;
        let own = |config: &'a Value| config.get(key).filter(|value| !value.is_null());
        own(config).or_else(|| LANGUAGE_CONFIGS.iter().find_map(|part| own(config.get(part)?)))
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
    /// let tensors = [tensor("h.0.mlp.c_fc.weight", &[8, 32]), tensor("h.0.mlp.c_fc.bias", &[32]), tensor("h.0.x.weight", &[8, 8])];
    /// let model = Model::new(&tensors, None);
    /// assert_eq!(model.layer(&tensors[0]), Layer::InputRows); // the bias has an element for each column
    /// assert_eq!(model.layer(&tensors[2]), Layer::Linear);
    /// ```
    pub fn layer(&self, tensor: &Tensor) -> Layer {
        self.by_name(tensor).unwrap_or_else(|| match self.by_neighbors(tensor) {
            Layer::Linear | Layer::Experts | Layer::InputRows if !self.blocks.hold(module_of(&tensor.name)) => {
                Layer::OutsideBlocks
            }
            layer => layer,
        })
    }

    /// What the tensors beside it, its rank and its type tell.
    fn by_neighbors(&self, tensor: &Tensor) -> Layer {
        let (name, rank) = (&*tensor.name, tensor.shape.len());
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
        let is_type = |types: &[&str]| self.model_type().is_some_and(|model_type| types.contains(&model_type));
        let is_stored_in_f32 = self.tensors.get(name).is_some_and(|stored| stored.dtype == DType::F32);
        if is_packed_attention
            || self.has_half_precision && is_stored_in_f32
            || is_type(&["switch_transformers"]) && last == "wo"
        {
            return Layer::HighPrecision;
        }
        let is_named = INPUT_ROWS.1.contains(&last);
        let has_input_rows = match (self.shape(&format!("{module}.bias")), &*tensor.shape) {
            (Some([of_bias]), [rows, columns]) => of_bias == columns && of_bias != rows,
            _ => false,
        };
        if is_named && (is_type(INPUT_ROWS.0) || has_input_rows) { Layer::InputRows } else { Layer::Linear }
    }

    /// Whether `--scheme` quantizes a tensor of this kind if nothing else is said.
    pub fn is_quantized(&self, tensor: &Tensor, layer: Layer, family: Family) -> bool {
        let is_gguf = matches!(family, Family::Gguf(_));
        match layer {
            _ if is_gguf && KEPT_IN_GGUF.iter().any(|word| tensor.name.contains(word)) => false,
            Layer::Linear => family != Family::GptOss,
            Layer::Experts if is_gguf => true,
            // Loaders of stacks name them gate_up_proj and down_proj, without a module for each.
            Layer::Experts if tensor.name.ends_with(".weight") => false,
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

    /// Loaders of the scheme make a layer of each expert of this kind of model, though files have them in one tensor.
    pub fn splits_experts(&self, family: Family) -> bool {
        let is_split = |model_type: &str| ["llama4", "llama4_text"].contains(&model_type);
        family.name().starts_with("ct:") && self.model_type().is_some_and(is_split)
    }

    /// The matrices of an [`Layer::Experts`] tensor have a row for each input, not for each output: told by the sizes of the
    /// first and the second layer, which share one, or by the width of the model.
    pub fn has_input_rows(&self, tensor: &Tensor) -> bool {
        let [_, rows, columns] = *tensor.shape else { return false };
        let beside = |from: &str, to: &str| match tensor.name.contains(from) {
            true => self.shape(&tensor.name.replace(from, to)),
            false => None,
        };
        let by_sizes =
            EXPERT_LAYERS.iter().find_map(|&(first, second)| match (beside(first, second), beside(second, first)) {
                // Gate and up lie together: [2 N, K] and [K, N], or [K, 2 N] and [N, K].
                (Some([_, of_rows, of_columns]), _) => Some(rows == *of_columns && columns == 2 * of_rows),
                (_, Some([_, of_rows, of_columns])) => Some(columns == *of_rows && *of_columns == 2 * rows),
                _ => None,
            });
        by_sizes.unwrap_or_else(|| {
            let width = self.value("hidden_size").and_then(Value::as_u64);
            let is_down = EXPERT_LAYERS.iter().any(|(_, second)| tensor.name.contains(second));
            rows != columns && width == Some(if is_down { columns } else { rows })
        })
    }

    /// Modules that loaders keep and know by names that no matrix has: a head that shares the table of tokens, which has a bias
    /// at most, and modules with another name in memory.
    pub fn modules_in_memory(&self) -> Vec<String> {
        let vocabulary = self.value("vocab_size").and_then(Value::as_u64);
        let is_head = |name: &str, tensor: &Tensor| {
            Layer::by_name(name, 2) == Some(Layer::Head)
                && name.ends_with("weight")
                && vocabulary.is_none_or(|tokens| tensor.shape.first() == Some(&tokens))
        };
        let matrices = || self.tensors.iter().filter(|(_, tensor)| tensor.shape.len() >= 2);
        let modules: Vec<&str> = matrices().map(|(name, _)| module_of(name)).collect();
        let mut all: Vec<&str> = Vec::new();
        if !self.tensors.iter().any(|(name, tensor)| is_head(name, tensor)) {
            all.extend(TIED_HEADS);
            all.extend(self.biases_of_tokens());
        }
        let is_beside = |module: &str| in_block(module).is_some() && !self.blocks.hold(module);
        let is_tower =
            |name: &str, tensor: &Tensor| is_beside(module_of(name)) || self.by_name(tensor) == Some(Layer::Tower);
        if matrices().any(|(name, tensor)| is_tower(name, tensor)) {
            all.extend(TOWERS_IN_MEMORY);
        }
        let is_there = |file: &str| modules.iter().any(|module| has_components(module, file));
        all.extend(IN_MEMORY.iter().filter(|(file, _)| is_there(file)).map(|(_, memory)| memory));
        // A layer of a block may have the name of a head.
        let is_in_main = |module: &str| in_block(module).is_some() && self.blocks.hold(module);
        all.retain(|name| !modules.iter().any(|module| is_in_main(module) && has_components(module, name)));
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Modules outside of blocks that have a bias with an entry for each token, and no weight.
    fn biases_of_tokens(&self) -> impl Iterator<Item = &'a str> {
        let vocabulary = self.value("vocab_size").and_then(Value::as_u64);
        self.tensors.iter().filter_map(move |(name, tensor)| {
            let module = name.strip_suffix(".bias").filter(|module| in_block(module).is_none())?;
            let has_weight = self.tensors.contains_key(format!("{module}.weight").as_str());
            (!has_weight && tensor.shape.len() == 1 && Some(tensor.shape[0]) == vocabulary).then_some(module)
        })
    }
}
