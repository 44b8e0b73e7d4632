//! Modules with other names in loaders than in files (`docs/spec/checkpoints.md §11.3`).

use foldhash::HashSet;
use serde_json::Value;
use truecast_io::Tensor;

use crate::layer::Layer;
use crate::model::Model;
use crate::modules::{has_components, in_block, module_of};

/// Heads that share the table of tokens and lack a tensor.
const TIED_HEADS: [&str; 5] = ["lm_head", "decoder", "proj_out", "output_projection", "embed_out"];

/// Suffix of a table of tokens whose head is the first in `TIED_HEADS`.
const USUAL_TABLE: &str = "model.embed_tokens.weight";

/// Modules that transformers 5.24.0 renames or derives: names in the file and in memory.
const IN_MEMORY: [(&str, &str); 37] = [
    ("embed_out", "lm_head"),
    ("head", "lm_head"),
    ("output", "lm_head"),
    ("fine_acoustics", "lm_heads"),
    ("encoder.out", "ctc_head"),
    ("log_softmax.mlp.layer0", "proj_out"),
    ("value_embeddings", "unembedding_projection"),
    ("block_sparse_moe.gate", "router"),
    ("block_sparse_moe.input_linear", "block_sparse_moe.experts"),
    ("entity_predictions.transform", "entity_predictions"),
    ("flow_head.final_layer", "flow_head"),
    ("flow_lm.input_linear", "audio_latent_proj"),
    ("k_sconv", "sconv"),
    ("W_down", "mlp.fc1"),
    ("W_up", "mlp.fc2"),
    ("compressor.wkv", "compressor.kv_proj"),
    ("compressor.wgate", "compressor.gate_proj"),
    ("compressor.wkv", "compressor.indexer.kv_proj"),
    ("compressor.wgate", "compressor.indexer.gate_proj"),
    ("bbox_predictor", "bbox_embed"),
    ("bbox_embed.0", "bbox_embed"),
    ("class_embed.0", "class_embed"),
    ("ctc_timestamp", "word_timestamp_encoder"),
    ("enc_bbox_head", "bbox_embed"),
    ("enc_score_head", "class_embed"),
    ("decoder_order_head", "relative_order_head"),
    ("decoder_roor_order_head", "successor_order_head"),
    ("encoder_decoder_proj", "decoder.proj"),
    ("pre_encode.out", "subsampling.linear"),
    ("adapter.mlp", "merger.mlp"),
    ("head.linear1", "projection_head"),
    ("moe.down_proj", "mlp.experts"),
    ("patch_generator", "patch_projection"),
    ("patchifier", "patch_embed"),
    ("flow_net", "flow_head"),
    ("out_eos", "eos_head"),
    ("gemma_expert", "dit"),
];

/// Names in transformers 5.24.0 for towers and their connectors, whatever files use.
const TOWERS_IN_MEMORY: [&str; 7] =
    ["vision_tower", "vision_model", "vision_encoder", "visual", "audio_tower", "multi_modal_projector", "projector"];

/// Layers that a loader makes from torch's packed attention.
const OF_PACKED_ATTENTION: [&str; 4] = ["q_proj", "k_proj", "v_proj", "o_proj"];

/// Entries for transformers' lists of names. An entry matches the beginning or the end of a name, or as an expression
/// from the beginning; these also match a module, but no head, inside another.
pub(crate) fn below(in_memory: &[String]) -> Vec<String> {
    let modules = in_memory.iter().filter(|module| !TIED_HEADS.contains(&module.as_str()));
    modules.map(|module| format!(r".*\.{}", regex_lite::escape(module))).collect()
}

impl<'a> Model<'a> {
    /// Unquantized modules that loaders know by names without a matrix: a head that shares the table of tokens, with at
    /// most a bias, and renamed modules.
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
            let is_usual = self.tensors.keys().any(|name| name.ends_with(USUAL_TABLE));
            all.extend(if is_usual { &TIED_HEADS[..1] } else { &TIED_HEADS });
            all.extend(self.biases_of_tokens());
        }
        let is_beside = |module: &str| in_block(module).is_some() && !self.blocks.hold(module);
        let is_tower =
            |name: &str, tensor: &Tensor| is_beside(module_of(name)) || self.by_name(tensor) == Some(Layer::Tower);
        if matrices().any(|(name, tensor)| is_tower(name, tensor)) {
            all.extend(TOWERS_IN_MEMORY);
        }
        let attention = self.tensors.keys().filter_map(|name| name.strip_suffix(".in_proj_weight"));
        // `attn` is often `self_attn` in memory.
        let attention: HashSet<&str> =
            attention.filter_map(|module| module.rsplit('.').next()).flat_map(|name| [name, "self_attn"]).collect();
        let of_attention = attention.iter().flat_map(|name| OF_PACKED_ATTENTION.map(|layer| format!("{name}.{layer}")));
        let of_attention: Vec<String> = of_attention.collect();
        all.extend(of_attention.iter().map(String::as_str));
        let is_there = |file: &str| modules.iter().any(|module| has_components(module, file));
        all.extend(IN_MEMORY.iter().filter(|(file, _)| is_there(file)).map(|(_, memory)| memory));
        // A layer of a block may have the name of a head.
        let is_in_main = |module: &str| in_block(module).is_some() && self.blocks.hold(module);
        all.retain(|name| !modules.iter().any(|module| is_in_main(module) && has_components(module, name)));
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Modules outside of blocks with a bias per token and no weight.
    fn biases_of_tokens(&self) -> impl Iterator<Item = &'a str> {
        let vocabulary = self.value("vocab_size").and_then(Value::as_u64);
        self.tensors.iter().filter_map(move |(name, tensor)| {
            let module = name.strip_suffix(".bias").filter(|module| in_block(module).is_none())?;
            let has_weight = self.tensors.contains_key(format!("{module}.weight").as_str());
            (!has_weight && tensor.shape.len() == 1 && Some(tensor.shape[0]) == vocabulary).then_some(module)
        })
    }
}
