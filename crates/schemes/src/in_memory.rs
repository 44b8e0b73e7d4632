//! Modules whose names in a loader differ from their names in files (`docs/spec/checkpoints.md §11.3`).

use foldhash::HashSet;
use serde_json::Value;
use truecast_io::Tensor;

use crate::layer::Layer;
use crate::model::Model;
use crate::modules::{OUTSIDE_BLOCKS, has_components, in_block, module_of};

/// Head that loaders make from the table of tokens if the files lack a head.
const HEAD: &str = "lm_head";

/// Usual names of the table of tokens and the head, which loaders do not change.
const USUAL: [&str; 2] = ["model.embed_tokens.weight", "lm_head.weight"];

/// Modules in blocks that transformers 5.24.0 renames or derives: name in the file, name in memory.
const IN_MEMORY: [(&str, &str); 15] = [
    ("block_sparse_moe.gate", "router"),
    ("block_sparse_moe.input_linear", "block_sparse_moe.experts"),
    ("k_sconv", "sconv"),
    ("W_down", "mlp.fc1"),
    ("W_up", "mlp.fc2"),
    ("compressor.wkv", "compressor.kv_proj"),
    ("compressor.wgate", "compressor.gate_proj"),
    ("compressor.wkv", "compressor.indexer.kv_proj"),
    ("compressor.wgate", "compressor.indexer.gate_proj"),
    ("bbox_embed.0", "bbox_embed"),
    ("ctc_timestamp", "word_timestamp_encoder"),
    ("moe.down_proj", "mlp.experts"),
    ("flow_net", "flow_head"),
    ("gemma_expert", "dit"),
    ("shared_transf", "shared_transf"),
];

/// Names that transformers 5.24.0 gives to towers in memory. Files may have other names.
const TOWERS_IN_MEMORY: [&str; 5] = ["vision_tower", "vision_model", "vision_encoder", "visual", "audio_tower"];

/// Layers that a loader makes from torch's packed attention, `in_proj_weight`.
const OF_PACKED_ATTENTION: [&str; 4] = ["q_proj", "k_proj", "v_proj", "o_proj"];

/// Entries for transformers' lists of unquantized modules: names and regular expressions.
///
/// transformers matches an entry with the beginning or end of a name, and an expression with the beginning only. A name
/// that ends a quantized module's name is therefore left out. A module inside another module needs an expression. The
/// head needs no expression.
pub(crate) fn in_lists_of_transformers(in_memory: &[String], quantized: &[String]) -> Vec<String> {
    let is_no_end = |module: &&String| !quantized.iter().any(|other| other.ends_with(module.as_str()));
    let names = in_memory.iter().filter(is_no_end).cloned();
    let modules = in_memory.iter().filter(|module| ![HEAD, OUTSIDE_BLOCKS].contains(&module.as_str()));
    names.chain(modules.map(|module| format!(r".*\.{}", regex_lite::escape(module)))).collect()
}

impl<'a> Model<'a> {
    /// Unquantized modules that loaders know by names without a matrix in the files.
    ///
    /// Such modules are a head that shares the table of tokens, and renamed modules. If all `quantized` modules are
    /// in blocks, an expression for all modules outside of blocks is added.
    pub fn modules_in_memory(&self, quantized: &[String]) -> Vec<String> {
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
            all.push(HEAD);
        }
        let is_usual = |name: &str| USUAL.iter().any(|end| name.ends_with(end));
        let is_outside = |module: &str| in_block(module).is_none();
        if !quantized.iter().any(|module| is_outside(module))
            && matrices().any(|(name, _)| is_outside(module_of(name)) && !is_usual(name))
        {
            all.push(OUTSIDE_BLOCKS);
        }
        let is_beside = |module: &str| in_block(module).is_some() && !self.blocks.hold(module);
        let is_tower =
            |name: &str, tensor: &Tensor| is_beside(module_of(name)) || self.by_name(tensor) == Some(Layer::Tower);
        if matrices().any(|(name, tensor)| is_tower(name, tensor)) {
            all.extend(TOWERS_IN_MEMORY);
        }
        let attention = self.tensors.keys().filter_map(|name| name.strip_suffix(".in_proj_weight"));
        // In memory, `attn` is often called `self_attn`.
        let attention: HashSet<&str> =
            attention.filter_map(|module| module.rsplit('.').next()).flat_map(|name| [name, "self_attn"]).collect();
        let of_attention = attention.iter().flat_map(|name| OF_PACKED_ATTENTION.map(|layer| format!("{name}.{layer}")));
        let of_attention: Vec<String> = of_attention.collect();
        all.extend(of_attention.iter().map(String::as_str));
        let is_there = |file: &str| modules.iter().any(|module| has_components(module, file));
        all.extend(IN_MEMORY.iter().filter(|(file, _)| is_there(file)).map(|(_, memory)| memory));
        // Leaves out a name that is part of a quantized module's name in the file.
        all.retain(|name| !quantized.iter().any(|module| has_components(module, name)));
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(str::to_owned).collect()
    }
}
