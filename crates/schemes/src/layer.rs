//! Kinds of layers, and the table that recognizes them by name and rank. `docs/spec/checkpoints.md §11.3` states the
//! source of each row.

use std::str::FromStr;

use truecast_core::words;
use truecast_io::Tensor;

use crate::modules::{in_block, module_of};

words! {
    /// Kind of a model's tensor.
    pub enum Layer {
        /// Weight of a linear layer, one row per output.
        Linear = "linear",
        /// Weights of several experts in one tensor, one matrix each.
        Experts = "experts",
        /// Parameter of a normalization.
        Norm = "norms",
        /// A bias.
        Bias = "biases",
        /// Router of experts, or another gate, one row per choice.
        Router = "router",
        /// An output head.
        Head = "lm_head",
        /// A table indexed by tokens, positions or patches.
        Embedding = "embeddings",
        /// Parameter of a convolution.
        Convolution = "convolutions",
        /// Parameter of a state-space or recurrent layer.
        StateSpace = "ssm",
        /// Part of an encoder of images or sound, or part that connects such an encoder to the language model.
        Tower = "towers",
        /// Part of a head that predicts further tokens.
        NextTokens = "next_tokens",
        /// Parameter that computes shift and scale of an image model's block from the time step.
        Modulation = "modulation",
        /// Weight that loaders keep in f32, or weight of a layer that loaders do not quantize.
        HighPrecision = "high_precision",
        /// Matrix outside the repeated blocks of the main stack.
        OutsideBlocks = "outside_blocks",
        /// First or last layer of a diffusion model: input of image, text or time step, or output.
        InputOutput = "input_output",
        /// Weight with one row per input.
        InputRows = "input_rows",
        /// Tensor that the source does not quantize, whatever its name.
        Unquantized = "unquantized",
        /// Tensor that matches no row of the table.
        Unknown = "unknown",
    }
}

/// Error: unknown name of a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset {0:?}; presets are norms, embeddings, router, lm_head, ssm, unquantized")]
pub struct UnknownLayer(pub String);

/// Condition on a tensor, true for any of the listed texts.
///
/// Dots separate the components of a name. A module is a tensor's name without a final `.weight`.
enum Test {
    /// The text is in one of the last two components of the name, in any case. Each component counts with `_` before
    /// it.
    EndHas(&'static [&'static str]),
    /// The text is in one of the last two components of the module, in any case.
    LastTwoHave(&'static [&'static str]),
    /// The module's last component equals the text.
    Last(&'static [&'static str]),
    /// The module's last component contains the text in any case.
    LastHas(&'static [&'static str]),
    /// The module's last component begins with the text.
    LastBegins(&'static [&'static str]),
    /// A component of the module equals the text.
    Any(&'static [&'static str]),
    /// A component of the module contains the text in any case.
    AnyHas(&'static [&'static str]),
    /// The text is a word of a component, in any case; `_` separates words. In a block, only components before the
    /// block's number count. The model's own words do not count.
    Around(&'static [&'static str]),
    /// The text is a word of a component, in any case; `_` separates words.
    AnyWord(&'static [&'static str]),
    /// The module is outside of blocks, and its last component equals the text.
    LastOutside(&'static [&'static str]),
    /// The module ends with the text, after another component.
    Ends(&'static str),
    /// A matrix in the module of a normalization: the component before the last one has `norm` in it, in any case.
    /// Numbers at the end do not count.
    MatrixInNorm,
    Whole(&'static [&'static str]),
    Begins(&'static [&'static str]),
    Rank(usize),
}

use Test::{
    Any, AnyHas, AnyWord, Around, Begins, EndHas, Ends, Last, LastBegins, LastHas, LastOutside, LastTwoHave,
    MatrixInNorm, Rank, Whole,
};

/// Words in names of secondary models: encoders of images and sound, connectors to a language model, other models of a
/// pipeline.
const TOWERS: &[&str] = &[
    "vision", "visual", "image", "audio", "speech", "whisper", "tower", "sam", "vpm", "apm", "talker", "code2wav",
    "token2wav", "vocoder", "projector", "connector", "resampler", "aligner", "merger", "abstractor", "vae",
    "conditioner",
];

/// Layers by condition. The first row whose condition holds decides.
const TABLE: &[(Layer, Test)] = &[
    (Layer::Norm, EndHas(&["norm", "_ln_"])),
    (Layer::Bias, LastHas(&["bias"])),
    (Layer::Modulation, MatrixInNorm),
    (Layer::HighPrecision, Any(&["lora_A", "lora_B", "lora_down", "lora_up", "lora_embedding_A", "lora_embedding_B"])),
    (Layer::Tower, Around(TOWERS)),
    (Layer::Tower, Begins(&["mlp1.", "first_stage_model.", "cond_stage_model.", "text_encoders."])),
    (Layer::NextTokens, Begins(&["mtp.", "model.mtp."])),
    (Layer::NextTokens, Last(&["eh_proj"])),
    (Layer::Router, AnyHas(&["router", "gate_inp"])),
    (Layer::Router, Last(&["gate", "wg", "shared_expert_gate", "weights_proj", "to_gate_logits"])),
    (Layer::HighPrecision, Last(&["per_layer_input_gate", "per_layer_projection"])),
    (Layer::HighPrecision, Any(&["compressor", "shared_transf"])),
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
    (Layer::Embedding, LastHas(&["pad_token"])),
    (Layer::StateSpace, Any(&["A_log", "D", "dt_bias", "conv1d"])),
    (Layer::StateSpace, Last(&["in_proj_a", "in_proj_b", "ssm_a", "ssm_d", "ssm_conv1d"])),
    (Layer::StateSpace, LastBegins(&["time_mix", "time_maa", "time_decay", "time_first", "time_faaaa"])),
    (Layer::Modulation, AnyHas(&["modulation", "adaln", "scale_shift"])),
    (Layer::Modulation, AnyWord(&["mod", "modx", "modc", "modcx", "modf", "guidance"])),
    (Layer::Modulation, Last(&["scale", "shift"])),
    (Layer::Modulation, Any(&["emb_layers", "time_emb_proj", "time_emb"])),
    (Layer::Convolution, LastTwoHave(&["conv"])),
    (Layer::Convolution, Rank(4)),
];

impl Layer {
    /// Presets of `--keep-preset`, and their layers.
    pub const PRESETS: [(&'static str, Layer); 6] = [
        ("norms", Layer::Norm),
        ("embeddings", Layer::Embedding),
        ("router", Layer::Router),
        ("lm_head", Layer::Head),
        ("ssm", Layer::StateSpace),
        ("unquantized", Layer::Unquantized),
    ];

    /// Finds the layer by a name and a number of dimensions. `None` if no row of the table matches.
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

    /// Finds the layer that [`by_name`](Layer::by_name) finds, except that the words of `own`, such as a model's type,
    /// do not mark a tower.
    pub(crate) fn by_name_in(name: &str, rank: usize, own: &str) -> Option<Layer> {
        let module = module_of(name);
        let has_word = |path: &str, words: &[&str], own: &str| {
            let tells = |word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
            let is_own = |word: &str| own.split(['-', '_']).any(|own| own.eq_ignore_ascii_case(word));
            path.split(['.', '_']).any(|word| tells(word) && !is_own(word))
        };
        let components = || module.split('.');
        let last = components().next_back().unwrap_or_default();
        let has = |part: &str, words: &[&str]| words.iter().any(|word| part.to_ascii_lowercase().contains(word));
        let holds = |test: &Test| match test {
            EndHas(words) => name.rsplit('.').take(2).any(|part| has(&format!("_{part}"), words)),
            LastTwoHave(words) => components().rev().take(2).any(|part| has(part, words)),
            Last(words) => words.contains(&last),
            LastHas(words) => has(last, words),
            LastBegins(words) => words.iter().any(|word| last.starts_with(word)),
            Any(words) => components().any(|part| words.contains(&part)),
            AnyHas(words) => components().any(|part| has(part, words)),
            AnyWord(words) => has_word(module, words, ""),
            Around(words) => has_word(in_block(module).map_or(module, |(list, _)| list), words, own),
            LastOutside(words) => words.contains(&last) && in_block(module).is_none(),
            MatrixInNorm => {
                let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
                let around = components().rev().skip_while(is_number).nth(1);
                rank >= 2 && around.is_some_and(|around| has(around, &["norm"]))
            }
            Ends(end) => module.strip_suffix(end).is_some_and(|front| front.ends_with('.')),
            Whole(words) => words.contains(&module),
            Begins(words) => words.iter().any(|word| name.starts_with(word)),
            Rank(least) => rank >= *least,
        };
        TABLE.iter().find(|(_, test)| holds(test)).map(|(layer, _)| *layer)
    }
}

pub(crate) fn is_norm(name: &str) -> bool {
    Layer::by_name(name, 1) == Some(Layer::Norm)
}

/// Module that a loader quantizes: the tensor's own, or for experts the module of all experts.
pub fn loaded_module(tensor: &Tensor) -> Option<String> {
    let module = module_of(&tensor.name);
    let is_weight = module.len() < tensor.name.len();
    let around = module.rsplit_once('.').map_or("", |(around, _)| around);
    match tensor.shape.len() {
        _ if module.is_empty() => None,
        0 | 1 => None,
        3 if around.ends_with("experts") => Some(around.to_owned()),
        _ if is_weight && Layer::by_name(&tensor.name, 2) != Some(Layer::Norm) => Some(module.to_owned()),
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
