//! Names of tensors in Hugging Face checkpoints and in files of llama.cpp (`docs/spec/checkpoints.md §9.12`).

use super::arrangement::How;

struct Row {
    /// Architectures, separated by spaces; empty for all.
    of: &'static str,
    from: &'static str,
    to: &'static str,
    how: How,
}

const fn row(of: &'static str, from: &'static str, to: &'static str) -> Row {
    Row { of, from, to, how: How::AsIs }
}

const fn arranged(of: &'static str, from: &'static str, to: &'static str, how: How) -> Row {
    Row { of, from, to, how }
}

/// `#` means the number of a layer, `@` the number of an expert. A name may continue with `.weight` or
/// `.bias` on both sides. The first row of an architecture that fits applies; several rows with one source and
/// different results all apply.
///
/// Source: gguf-py 0.19.0 (`tensor_mapping.py`), and the files that llama.cpp loads.
const ROWS: &[Row] = &[
    row("", "embed_tokens", "token_embd"),
    row("", "norm", "output_norm"),
    row("", "lm_head", "output"),
    row("", "layers.#.input_layernorm", "blk.#.attn_norm"),
    arranged("llama", "layers.#.self_attn.q_proj", "blk.#.attn_q", How::Rotary),
    arranged("llama", "layers.#.self_attn.k_proj", "blk.#.attn_k", How::Rotary),
    row("", "layers.#.self_attn.q_proj", "blk.#.attn_q"),
    row("", "layers.#.self_attn.k_proj", "blk.#.attn_k"),
    row("", "layers.#.self_attn.v_proj", "blk.#.attn_v"),
    row("", "layers.#.self_attn.o_proj", "blk.#.attn_output"),
    row("", "layers.#.self_attn.q_norm", "blk.#.attn_q_norm"),
    row("", "layers.#.self_attn.k_norm", "blk.#.attn_k_norm"),
    row("gemma2 gemma3", "layers.#.post_attention_layernorm", "blk.#.post_attention_norm"),
    row("gpt-oss", "layers.#.post_attention_layernorm", "blk.#.post_attention_norm"),
    row("", "layers.#.post_attention_layernorm", "blk.#.ffn_norm"),
    row("gemma2 gemma3", "layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm"),
    row("gemma2 gemma3", "layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm"),
    row("", "layers.#.mlp.gate_proj", "blk.#.ffn_gate"),
    row("", "layers.#.mlp.up_proj", "blk.#.ffn_up"),
    row("", "layers.#.mlp.down_proj", "blk.#.ffn_down"),
    // Experts.
    row("qwen3moe deepseek2", "layers.#.mlp.gate", "blk.#.ffn_gate_inp"),
    row("qwen3moe deepseek2", "layers.#.mlp.experts.@.gate_proj", "blk.#.ffn_gate_exps"),
    row("qwen3moe deepseek2", "layers.#.mlp.experts.@.up_proj", "blk.#.ffn_up_exps"),
    row("qwen3moe deepseek2", "layers.#.mlp.experts.@.down_proj", "blk.#.ffn_down_exps"),
    row("llama", "layers.#.block_sparse_moe.gate", "blk.#.ffn_gate_inp"),
    row("llama", "layers.#.block_sparse_moe.experts.@.w1", "blk.#.ffn_gate_exps"),
    row("llama", "layers.#.block_sparse_moe.experts.@.w3", "blk.#.ffn_up_exps"),
    row("llama", "layers.#.block_sparse_moe.experts.@.w2", "blk.#.ffn_down_exps"),
    // Multi-head latent attention.
    row("deepseek2", "layers.#.self_attn.q_a_proj", "blk.#.attn_q_a"),
    row("deepseek2", "layers.#.self_attn.q_a_layernorm", "blk.#.attn_q_a_norm"),
    row("deepseek2", "layers.#.self_attn.q_b_proj", "blk.#.attn_q_b"),
    row("deepseek2", "layers.#.self_attn.kv_a_proj_with_mqa", "blk.#.attn_kv_a_mqa"),
    row("deepseek2", "layers.#.self_attn.kv_a_layernorm", "blk.#.attn_kv_a_norm"),
    arranged("deepseek2", "layers.#.self_attn.kv_b_proj", "blk.#.attn_k_b", How::KeyRows),
    arranged("deepseek2", "layers.#.self_attn.kv_b_proj", "blk.#.attn_v_b", How::ValueRows),
    row("deepseek2", "layers.#.mlp.shared_experts.gate_proj", "blk.#.ffn_gate_shexp"),
    row("deepseek2", "layers.#.mlp.shared_experts.up_proj", "blk.#.ffn_up_shexp"),
    row("deepseek2", "layers.#.mlp.shared_experts.down_proj", "blk.#.ffn_down_shexp"),
    row("deepseek2", "layers.#.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias"),
    // gpt-oss: gate and up projection share a tensor, row by row.
    row("gpt-oss", "layers.#.self_attn.sinks", "blk.#.attn_sinks.weight"),
    row("gpt-oss", "layers.#.mlp.router", "blk.#.ffn_gate_inp"),
    arranged("gpt-oss", "layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", How::Interleaved(0)),
    arranged("gpt-oss", "layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", How::Interleaved(1)),
    arranged("gpt-oss", "layers.#.mlp.experts.gate_up_proj_bias", "blk.#.ffn_gate_exps.bias", How::Interleaved(0)),
    arranged("gpt-oss", "layers.#.mlp.experts.gate_up_proj_bias", "blk.#.ffn_up_exps.bias", How::Interleaved(1)),
    arranged("gpt-oss", "layers.#.mlp.experts.down_proj", "blk.#.ffn_down_exps.weight", How::Transposed),
    row("gpt-oss", "layers.#.mlp.experts.down_proj_bias", "blk.#.ffn_down_exps.bias"),
];

/// Tensors that llama.cpp computes itself.
const COMPUTED: [&str; 3] = [".rotary_emb.inv_freq", ".attention.masked_bias", ".attention.bias"];
/// Modules that read images or sound. llama.cpp expects them in a file of their own.
const OTHER_MODES: [&str; 4] = ["vision_tower.", "multi_modal_projector.", "audio_tower.", "embed_vision."];
/// Tensors that stay f32 whatever type the model gets, as vectors do.
const ALWAYS_F32: [&str; 3] = ["ffn_gate_inp.weight", "_norm.weight", ".bias"];

/// Role of a tensor of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Names and rearrangements of the results, and the numbers of layer and expert.
    Mapped(Vec<(String, How)>, Numbers),
    /// Computed by llama.cpp.
    Computed,
    /// Part of an encoder of images or sound.
    OtherMode,
    Unknown,
}

/// Name of a tensor in the language model.
fn short(mut name: &str) -> &str {
    while let Some(rest) = ["model.", "language_model."].iter().find_map(|start| name.strip_prefix(start)) {
        name = rest;
    }
    name
}

/// Number of the layer that a tensor of the source is part of.
pub(super) fn layer(name: &str) -> Option<u64> {
    short(name).strip_prefix("layers.")?.split('.').next()?.parse().ok()
}

/// Role of a tensor that a file of the language model does not hold.
pub(super) fn left_out(architecture: &str, name: &str) -> Option<Role> {
    let short = short(name);
    // Gemma's head is its table of tokens.
    let is_head = architecture.starts_with("gemma") && short == "lm_head.weight";
    if is_head || COMPUTED.iter().any(|end| name.ends_with(end)) {
        return Some(Role::Computed);
    }
    OTHER_MODES.iter().any(|start| short.starts_with(start)).then_some(Role::OtherMode)
}

pub(super) fn role(architecture: &str, name: &str) -> Role {
    if let Some(role) = left_out(architecture, name) {
        return role;
    }
    let short = short(name);
    let (mut results, mut all, mut first) = (Vec::new(), Numbers::default(), None);
    for row in rows(architecture) {
        let Some((numbers, end)) = found(row.from, short) else { continue };
        // Later rows with another arrangement of the same name are for other architectures.
        if first.is_some_and(|first| first != row.of) {
            continue;
        }
        first = Some(row.of);
        results.push((numbers.filled(row.to) + end, row.how));
        all = numbers;
    }
    if results.is_empty() { Role::Unknown } else { Role::Mapped(results, all) }
}

/// Names in a folder of the tensors that a tensor of the file is made of. `experts` is its number of experts.
pub(super) fn source_names(architecture: &str, result: &str, experts: u64) -> Vec<String> {
    for row in rows(architecture) {
        let Some((numbers, end)) = found(row.to, result) else { continue };
        // Another result of the same source gives its name.
        if matches!(row.how, How::ValueRows | How::Interleaved(1)) {
            return Vec::new();
        }
        let name = numbers.filled(row.from) + end;
        let name = if row.from == "lm_head" { name } else { format!("model.{name}") };
        let one = name.replacen('@', "0", 1);
        if !matches!(role(architecture, &one), Role::Mapped(all, _) if all.iter().any(|(name, _)| name == result)) {
            continue;
        }
        if !name.contains('@') {
            return vec![name];
        }
        return (0..experts).map(|expert| name.replacen('@', &expert.to_string(), 1)).collect();
    }
    Vec::new()
}

/// Numbers in a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub layer: Option<u64>,
    pub expert: Option<u64>,
}

impl Numbers {
    /// A pattern with the layer's number.
    fn filled(self, pattern: &str) -> String {
        self.layer.map_or_else(|| pattern.to_owned(), |layer| pattern.replacen('#', &layer.to_string(), 1))
    }
}

fn rows(architecture: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.of.is_empty() || row.of.split(' ').any(|of| of == architecture))
}

/// Numbers in a name that is a pattern, or a pattern that continues; and the end.
fn found(pattern: &str, name: &str) -> Option<(Numbers, &'static str)> {
    let ends = ["", ".weight", ".bias"];
    ends.into_iter().find_map(|end| Some((matched(pattern, name.strip_suffix(end)?)?, end)))
}

fn matched(pattern: &str, name: &str) -> Option<Numbers> {
    let (mut of_pattern, mut of_name) = (pattern.split('.'), name.split('.'));
    let mut numbers = Numbers::default();
    loop {
        match (of_pattern.next(), of_name.next()) {
            (None, None) => return Some(numbers),
            (Some("#"), Some(number)) => numbers.layer = Some(number.parse::<u32>().ok()?.into()),
            (Some("@"), Some(number)) => numbers.expert = Some(number.parse::<u32>().ok()?.into()),
            (Some(a), Some(b)) if a == b => {}
            _ => return None,
        }
    }
}

/// Whether llama.cpp computes with a tensor as f32 only.
pub(crate) fn is_always_f32(name: &str, shape: &[u64]) -> bool {
    shape.len() < 2 || ALWAYS_F32.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(architecture: &str, name: &str) -> Vec<(String, How)> {
        match role(architecture, name) {
            Role::Mapped(results, _) => results,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn a_name_is_found_by_architecture() {
        let one = |architecture, name| results(architecture, name).pop().unwrap();
        let q = "model.layers.7.self_attn.q_proj.weight";
        assert_eq!(one("llama", q), ("blk.7.attn_q.weight".into(), How::Rotary));
        assert_eq!(one("qwen3", q), ("blk.7.attn_q.weight".into(), How::AsIs));
        let norm = "model.language_model.layers.0.post_attention_layernorm.weight";
        assert_eq!(one("gemma3", norm).0, "blk.0.post_attention_norm.weight");
        assert_eq!(one("llama", norm).0, "blk.0.ffn_norm.weight");
        assert_eq!(one("qwen2", "model.layers.0.self_attn.k_proj.bias").0, "blk.0.attn_k.bias");
        let expert = role("qwen3moe", "model.layers.3.mlp.experts.12.up_proj.weight");
        assert_eq!(
            expert,
            Role::Mapped(
                vec![("blk.3.ffn_up_exps.weight".into(), How::AsIs)],
                Numbers { layer: Some(3), expert: Some(12) }
            )
        );
        let kv = results("deepseek2", "model.layers.1.self_attn.kv_b_proj.weight");
        assert_eq!(
            kv.iter().map(|(name, _)| &**name).collect::<Vec<_>>(),
            ["blk.1.attn_k_b.weight", "blk.1.attn_v_b.weight"]
        );
        assert_eq!(role("llama", "model.layers.x.mlp.up_proj.weight"), Role::Unknown);
        assert_eq!(role("gemma3", "model.vision_tower.encoder.weight"), Role::OtherMode);
        assert_eq!(role("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"), Role::Computed);
    }
}
