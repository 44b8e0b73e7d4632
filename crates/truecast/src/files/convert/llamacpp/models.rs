//! The table of model types: where each key of llama.cpp comes from.

use serde_json::{Value, json};

/// Type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    U32,
    F32,
    Bool,
}

use Type::{Bool, F32, U32};

/// A key after the name of the architecture, and the field of `config.json` that has its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub key: &'static str,
    pub field: &'static str,
    pub kind: Type,
    /// True if the model has the field; otherwise a missing field means no key.
    pub is_needed: bool,
}

const fn needed(key: &'static str, field: &'static str, kind: Type) -> Row {
    Row { key, field, kind, is_needed: true }
}

const fn optional(key: &'static str, field: &'static str, kind: Type) -> Row {
    Row { key, field, kind, is_needed: false }
}

/// Rows of every type.
pub(super) const COMMON: &[Row] = &[
    needed("block_count", "num_hidden_layers", U32),
    needed("context_length", "max_position_embeddings", U32),
    needed("embedding_length", "hidden_size", U32),
    needed("feed_forward_length", "intermediate_size", U32),
    needed("attention.head_count", "num_attention_heads", U32),
    needed("attention.head_count_kv", "num_key_value_heads", U32),
    needed("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32),
    optional("attention.key_length", "head_dim", U32),
    optional("attention.value_length", "head_dim", U32),
];

const LLAMA: &[Row] = &[needed("vocab_size", "vocab_size", U32), needed("rope.dimension_count", "head_dim", U32)];

const EXPERTS: &[Row] = &[
    needed("expert_used_count", "num_experts_per_tok", U32),
    needed("expert_feed_forward_length", "moe_intermediate_size", U32),
    needed("expert_count", "experts", U32),
];

const GEMMA2: &[Row] = &[
    needed("attention.sliding_window", "sliding_window", U32),
    needed("attn_logit_softcapping", "attn_logit_softcapping", F32),
    needed("final_logit_softcapping", "final_logit_softcapping", F32),
];

const GEMMA3: &[Row] = &[
    needed("attention.sliding_window", "sliding_window", U32),
    optional("final_logit_softcapping", "final_logit_softcapping", F32),
];

const GPT_OSS: &[Row] = &[
    needed("attention.sliding_window", "sliding_window", U32),
    needed("expert_used_count", "num_experts_per_tok", U32),
    needed("expert_feed_forward_length", "intermediate_size", U32),
    needed("expert_count", "experts", U32),
];

/// llama.cpp sees one head of keys, the latent vector. The fields that say so are computed.
const DEEPSEEK: &[Row] = &[
    needed("vocab_size", "vocab_size", U32),
    needed("leading_dense_block_count", "first_k_dense_replace", U32),
    optional("attention.q_lora_rank", "q_lora_rank", U32),
    needed("attention.kv_lora_rank", "kv_lora_rank", U32),
    needed("attention.key_length", "key_length", U32),
    needed("attention.value_length", "kv_lora_rank", U32),
    needed("attention.key_length_mla", "key_length_mla", U32),
    needed("attention.value_length_mla", "v_head_dim", U32),
    needed("rope.dimension_count", "qk_rope_head_dim", U32),
    needed("expert_used_count", "num_experts_per_tok", U32),
    needed("expert_feed_forward_length", "moe_intermediate_size", U32),
    needed("expert_count", "experts", U32),
    needed("expert_shared_count", "n_shared_experts", U32),
    optional("expert_group_count", "n_group", U32),
    optional("expert_group_used_count", "topk_group", U32),
    optional("expert_weights_scale", "routed_scaling_factor", F32),
    optional("expert_weights_norm", "norm_topk_prob", Bool),
];

/// Where a type's vocabulary comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tokens {
    /// `tokenizer.json` of bytes.
    Bytes,
    /// `tokenizer.model`, otherwise `tokenizer.json`.
    PiecesOrBytes,
    /// `tokenizer.model`, otherwise `tokenizer.json`, of bytes or with bytes as a fallback.
    Any,
    /// `tokenizer.model`, otherwise `tokenizer.json` with bytes as a fallback. Texts get no space before them.
    Pieces,
}

/// A `model_type` of `config.json`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub model_type: &'static str,
    /// llama.cpp's name.
    pub architecture: &'static str,
    pub classes: &'static [&'static str],
    pub rows: &'static [Row],
    pub tokens: Tokens,
    /// Layers after which one attends to all tokens, and the others to a window. llama.cpp does not read it.
    pub period: Option<usize>,
    /// Values that transformers takes for missing fields.
    pub defaults: fn() -> Value,
    /// Fields that have one value in all models that llama.cpp computes.
    pub fixed: fn() -> Value,
}

const LLAMA_3: Kind = Kind {
    model_type: "llama",
    architecture: "llama",
    classes: &["LlamaForCausalLM"],
    rows: LLAMA,
    tokens: Tokens::Any,
    period: None,
    defaults: || json!({"max_position_embeddings": 2048, "rms_norm_eps": 1e-6}),
    fixed: || json!({"hidden_act": "silu"}),
};

const QWEN_2: Kind = Kind {
    model_type: "qwen2",
    architecture: "qwen2",
    classes: &["Qwen2ForCausalLM"],
    rows: &[],
    tokens: Tokens::PiecesOrBytes,
    defaults: || {
        json!({
            "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "num_key_value_heads": 32,
            "use_sliding_window": false, "max_window_layers": 28
        })
    },
    ..LLAMA_3
};

const GEMMA_3: Kind = Kind {
    model_type: "gemma3_text",
    architecture: "gemma3",
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    rows: GEMMA3,
    tokens: Tokens::Pieces,
    period: Some(6),
    defaults: || {
        json!({
            "vocab_size": 262_208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
            "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131_072,
            "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256, "sliding_window": 4096, "rope_theta": 1_000_000.0,
            "rope_local_base_freq": 10_000.0
        })
    },
    fixed: || {
        json!({
            "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "attn_logit_softcapping": null,
            "sliding_window_pattern": 6, "use_bidirectional_attention": false
        })
    },
};

const DEEPSEEK_3: Kind = Kind {
    model_type: "deepseek_v3",
    architecture: "deepseek2",
    classes: &["DeepseekV3ForCausalLM"],
    rows: DEEPSEEK,
    tokens: Tokens::Bytes,
    period: None,
    defaults: || {
        json!({
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "n_shared_experts": 1, "n_routed_experts": 256,
            "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
            "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8,
            "first_k_dense_replace": 3, "norm_topk_prob": true, "moe_intermediate_size": 2048, "scoring_func": "sigmoid"
        })
    },
    fixed: || {
        json!({
            "hidden_act": "silu", "attention_bias": false, "moe_layer_freq": 1, "scoring_func": "sigmoid",
            "topk_method": "noaux_tc", "rope_interleave": true
        })
    },
};

pub(super) const KINDS: &[Kind] = &[
    LLAMA_3,
    Kind {
        model_type: "mistral",
        classes: &["MistralForCausalLM"],
        defaults: || {
            json!({
                "max_position_embeddings": 131_072, "rms_norm_eps": 1e-6, "num_key_value_heads": 8,
                "sliding_window": 4096
            })
        },
        ..LLAMA_3
    },
    QWEN_2,
    Kind {
        model_type: "qwen3",
        architecture: "qwen3",
        classes: &["Qwen3ForCausalLM"],
        defaults: || {
            json!({
                "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "num_key_value_heads": 32, "head_dim": 128,
                "use_sliding_window": false, "max_window_layers": 28
            })
        },
        fixed: || json!({"hidden_act": "silu", "attention_bias": false}),
        ..QWEN_2
    },
    Kind {
        model_type: "qwen3_moe",
        architecture: "qwen3moe",
        classes: &["Qwen3MoeForCausalLM"],
        rows: EXPERTS,
        tokens: Tokens::Bytes,
        defaults: || {
            json!({
                "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "num_key_value_heads": 4, "num_experts": 128,
                "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": false,
                "use_sliding_window": false
            })
        },
        fixed: || {
            json!({
                "hidden_act": "silu", "attention_bias": false, "decoder_sparse_step": 1, "mlp_only_layers": [],
                "norm_topk_prob": true
            })
        },
        ..QWEN_2
    },
    Kind {
        model_type: "gemma2",
        architecture: "gemma2",
        classes: &["Gemma2ForCausalLM"],
        rows: GEMMA2,
        period: Some(2),
        defaults: || {
            json!({
                "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
                "query_pre_attn_scalar": 256, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
                "final_logit_softcapping": 30.0
            })
        },
        fixed: || {
            json!({
                "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "use_bidirectional_attention": false
            })
        },
        ..GEMMA_3
    },
    GEMMA_3,
    Kind { model_type: "gemma3", ..GEMMA_3 },
    Kind {
        model_type: "gpt_oss",
        architecture: "gpt-oss",
        classes: &["GptOssForCausalLM"],
        rows: GPT_OSS,
        tokens: Tokens::Bytes,
        period: Some(2),
        defaults: || {
            json!({
                "num_local_experts": 128, "num_experts_per_tok": 4, "num_key_value_heads": 8, "head_dim": 64,
                "sliding_window": 128, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5,
                "rope_theta": 150_000.0,
                "rope_parameters": {
                    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                    "original_max_position_embeddings": 4096
                }
            })
        },
        fixed: || json!({"hidden_act": "silu", "attention_bias": true, "swiglu_alpha": 1.702, "swiglu_limit": 7.0}),
    },
    Kind {
        model_type: "deepseek_v2",
        classes: &["DeepseekV2ForCausalLM"],
        defaults: || {
            json!({
                "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "n_shared_experts": 2, "n_routed_experts": 64,
                "routed_scaling_factor": 1.0, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
                "v_head_dim": 128, "qk_nope_head_dim": 128, "first_k_dense_replace": 0, "norm_topk_prob": false,
                "moe_intermediate_size": 1407
            })
        },
        fixed: || {
            json!({
                "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "moe_layer_freq": 1,
                "scoring_func": "softmax"
            })
        },
        ..DEEPSEEK_3
    },
    DEEPSEEK_3,
];
