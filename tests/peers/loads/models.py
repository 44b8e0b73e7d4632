"""Small models of transformers' own classes with random weights, saved as their checkpoints are."""

import torch
import transformers
from transformers import AutoConfig

# What a family of decoders has in common. Every size is a multiple of 128 unless the family says otherwise.
TEXT = dict(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=64, max_position_embeddings=128, tie_word_embeddings=False,
            pad_token_id=0, bos_token_id=1, eos_token_id=2)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=128)
VISION = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2, image_size=28,
              patch_size=14)
SIZES = {
    "Llama": ("llama", "LlamaForCausalLM", {}),
    "Llama (tied)": ("llama", "LlamaForCausalLM", dict(tie_word_embeddings=True)),
    # 320, 448 and 160 are multiples of 32 and none of 128.
    "Llama (odd sizes)": ("llama", "LlamaForCausalLM", dict(hidden_size=320, intermediate_size=448, head_dim=80)),
    "Qwen3 (tied)": ("qwen3", "Qwen3ForCausalLM", dict(tie_word_embeddings=True)),
    "Qwen3-MoE": ("qwen3_moe", "Qwen3MoeForCausalLM", dict(EXPERTS, num_experts=4)),
    "Qwen2-MoE": ("qwen2_moe", "Qwen2MoeForCausalLM",
                  dict(EXPERTS, num_experts=4, shared_expert_intermediate_size=256)),
    "Qwen3-Next": ("qwen3_next", "Qwen3NextForCausalLM",
                   dict(EXPERTS, num_experts=4, shared_expert_intermediate_size=256, linear_num_value_heads=4,
                        linear_num_key_heads=2, linear_key_head_dim=64, linear_value_head_dim=64,
                        layer_types=["linear_attention", "full_attention"])),
    "Gemma 2": ("gemma2", "Gemma2ForCausalLM", dict(tie_word_embeddings=True)),
    "Gemma 3 (text)": ("gemma3_text", "Gemma3ForCausalLM", dict(tie_word_embeddings=True)),
    "Gemma 3": ("gemma3", "Gemma3ForConditionalGeneration", None),
    "Mistral": ("mistral", "MistralForCausalLM", {}),
    "Mixtral": ("mixtral", "MixtralForCausalLM", dict(num_local_experts=4)),
    "gpt-oss": ("gpt_oss", "GptOssForCausalLM", dict(num_local_experts=4, intermediate_size=256)),
    "DeepSeek V3": ("deepseek_v3", "DeepseekV3ForCausalLM",
                    dict(EXPERTS, num_key_value_heads=4, n_routed_experts=4, n_group=2, topk_group=1, q_lora_rank=128,
                         kv_lora_rank=64, qk_rope_head_dim=64, qk_nope_head_dim=64, v_head_dim=64,
                         first_k_dense_replace=1, topk_method="noaux_tc")),
    "Llama 4": ("llama4_text", "Llama4ForCausalLM",
                dict(intermediate_size=256, intermediate_size_mlp=512, num_local_experts=4, num_experts_per_tok=1,
                     interleave_moe_layer_step=2, no_rope_layers=[1, 1], attn_temperature_tuning=False)),
    "Phi-3": ("phi3", "Phi3ForCausalLM", {}),
    "Qwen2.5-VL": ("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", None),
    "LLaVA": ("llava", "LlavaForConditionalGeneration", None),
    "BERT": ("bert", "BertForMaskedLM", {}),
    "Whisper": ("whisper", "WhisperForConditionalGeneration", None),
    "T5": ("t5", "T5ForConditionalGeneration", None),
    "ViT": ("vit", "ViTForImageClassification", None),
}


def settings(family):
    """The configuration of a family."""
    kind, _, changes = SIZES[family]
    if changes is not None:
        return AutoConfig.for_model(kind, **{**TEXT, **changes})
    if family == "Gemma 3":
        return AutoConfig.for_model(kind, text_config=dict(TEXT, tie_word_embeddings=True), vision_config=VISION,
                                    mm_tokens_per_image=4, image_token_index=500, tie_word_embeddings=True)
    if family == "LLaVA":
        return AutoConfig.for_model(
            kind, text_config=dict(TEXT, model_type="llama"), image_token_index=500, tie_word_embeddings=False,
            vision_config=dict(VISION, model_type="clip_vision_model", projection_dim=128))
    if family == "Qwen2.5-VL":
        vision = dict(depth=2, hidden_size=128, intermediate_size=256, num_heads=2, out_hidden_size=256,
                      fullatt_block_indexes=[1])
        text = dict(TEXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[8, 12, 12]))
        return AutoConfig.for_model(kind, text_config=text, vision_config=vision, tie_word_embeddings=False,
                                    image_token_id=500, video_token_id=501, vision_start_token_id=502,
                                    vision_end_token_id=503)
    if family == "Whisper":
        return AutoConfig.for_model(kind, vocab_size=512, d_model=256, encoder_layers=2, decoder_layers=2,
                                    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=512,
                                    decoder_ffn_dim=512, num_mel_bins=16, max_source_positions=32,
                                    max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                    decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None)
    if family == "T5":
        return AutoConfig.for_model(kind, vocab_size=512, d_model=256, d_kv=64, d_ff=512, num_layers=2, num_heads=4,
                                    decoder_start_token_id=0, feed_forward_proj="gated-gelu")
    if family == "ViT":
        return AutoConfig.for_model(kind, **VISION, num_labels=10)
    raise KeyError(family)


def build(family, folder):
    """Writes the checkpoint of a family in bf16: every parameter random, none as the class would start with."""
    torch.manual_seed(sum(map(ord, family)))
    model = model_class(family)(settings(family)).to(torch.bfloat16)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.02 if parameter.ndim > 1 else 0.1
            parameter.copy_(torch.randn(parameter.shape) * spread + (1 if "norm" in name and parameter.ndim == 1 else 0))
    model.save_pretrained(folder, max_shard_size="1MB")


def model_class(family):
    return getattr(transformers, SIZES[family][1])


def inputs(family):
    """What a model is called with."""
    tokens = torch.arange(3, 27).reshape(2, 12) * 7 % 480
    if family == "ViT":
        return dict(pixel_values=torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(1)))
    if family == "Whisper":
        return dict(input_features=torch.randn(1, 16, 64, generator=torch.Generator().manual_seed(1)),
                    decoder_input_ids=tokens[:1])
    if family == "T5":
        return dict(input_ids=tokens, decoder_input_ids=tokens[:, :5])
    return dict(input_ids=tokens)
