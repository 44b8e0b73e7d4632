//! Configurations of published checkpoints (long lists are cut), each with a few matching tensors. Detection gives no
//! error and no warning (§5.3.1).

use crate::{Case, f32s, i64s, names, tensors};

/// Schemes of the groups; detection must give no warning.
fn schemes(case: &Case) -> String {
    let found = case.detect();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    names(&found).join(" ")
}

const BLOCKS: &str = "model.layers.3.mlp.up_proj.weight f8e4m3fn 256x384
    model.layers.3.mlp.up_proj.weight_scale_inv f32 2x3
    lm_head.weight bf16 64x384";
const CHANNELS: &str = "model.layers.0.mlp.up_proj.weight f8e4m3fn 64x128
    model.layers.0.mlp.up_proj.weight_scale bf16 64x1
    lm_head.weight bf16 64x128";

#[test]
fn block_fp8_of_deepseek_qwen_kimi_and_minimax() {
    for config in [
        // DeepSeek-V3, DeepSeek-R1, Kimi-K2-Instruct, Qwen3-30B-A3B-FP8.
        r#"{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}"#,
        // DeepSeek-V3.1, DeepSeek-V3.2-Exp.
        r#"{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0",
            "weight_block_size": [128, 128]}"#,
        // Qwen3-Next-80B-A3B-Instruct-FP8.
        r#"{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128],
            "modules_to_not_convert": ["lm_head", "model.embed_tokens", "model.layers.0.linear_attn.conv1d",
            "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate"]}"#,
        // Qwen3.5 FP8.
        r#"{"quant_method": "fp8", "activation_scheme": "dynamic", "weight_per_tensor": false, "act_per_tensor": false,
            "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}"#,
        // MiniMax-M2.
        r#"{"activation_scheme": "dynamic", "fmt": "float8_e4m3fn", "quant_method": "fp8", "weight_block_size": [128, 128],
            "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]}"#,
    ] {
        assert_eq!(schemes(&tensors(BLOCKS).quantization(config)), "fp8-block:128x128", "{config}");
    }
}

#[test]
fn deepseek_v4() {
    let case = tensors(
        "layers.0.ffn.experts.0.w1.weight i8 128x64
         layers.0.ffn.experts.0.w1.scale f8e8m0 128x4
         layers.0.attn.wq_a.weight f8e4m3fn 128x256
         layers.0.attn.wq_a.scale f8e8m0 1x2",
    )
    .config(
        r#"{"expert_dtype": "fp4", "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3",
            "quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}}"#,
    );
    assert_eq!(schemes(&case), "deepseek-v4,block=128x128");
}

#[test]
fn ministral_3_in_both_of_its_files() {
    let hf = tensors(
        "model.layers.0.mlp.up_proj.weight f8e4m3fn 64x128
         model.layers.0.mlp.up_proj.weight_scale_inv bf16 -
         model.layers.0.mlp.up_proj.activation_scale bf16 -",
    )
    .quantization(
        r#"{"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": null, "dequantize": false,
            "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"]}"#,
    );
    assert_eq!(schemes(&hf), "fp8-tensor");
    let own = tensors(
        "layers.0.feed_forward.w1.weight f8e4m3fn 64x128
         layers.0.feed_forward.w1.qscale_weight f32 -
         layers.0.feed_forward.w1.qscale_act f32 -",
    )
    .params(
        r#"{"dim": 3072, "yarn": {"factor": 16.0}, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}"#,
    );
    assert_eq!(schemes(&own), "mistral-fp8");
    // Mistral-Large-3 NVFP4 and similar checkpoints have a configuration of compressed-tensors in params.json.
    let params = tensors(CHANNELS).params(
        r#"{"dim": 128, "quantization": {"config_groups": {"group_0": {"input_activations": {"dynamic": true, "num_bits": 8,
            "observer": null, "strategy": "token", "symmetric": true, "type": "float"}, "targets": ["Linear"],
            "weights": {"dynamic": false, "num_bits": 8, "observer": "minmax", "strategy": "channel", "symmetric": true,
            "type": "float"}}}, "format": "float-quantized", "ignore": ["lm_head", "output"],
            "quant_method": "compressed-tensors", "quantization_status": "compressed"}}"#,
    );
    assert_eq!(schemes(&params), "ct:float-quantized,strategy=channel");
}

#[test]
fn minimax_m3_mxfp8() {
    let case = tensors(
        "model.layers.0.mlp.up_proj.weight f8e4m3fn 64x128
         model.layers.0.mlp.up_proj.weight_scale_inv u8 64x4",
    )
    .quantization(
        r#"{"quant_method": "mxfp8", "activation_scheme": "dynamic", "weight_block_size": [1, 32],
            "ignored_layers": ["lm_head", "model.embed_tokens", "model.layers.3.block_sparse_moe.gate"]}"#,
    );
    assert_eq!(schemes(&case), "mxfp8");
}

#[test]
fn gpt_oss() {
    let case = tensors(
        "model.layers.0.mlp.experts.down_proj_blocks u8 2x64x2x16
         model.layers.0.mlp.experts.down_proj_scales u8 2x64x2",
    )
    .quantization(
        r#"{"modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"], "quant_method": "mxfp4"}"#,
    );
    assert_eq!(schemes(&case), "gpt-oss");
}

#[test]
fn kimi_k2_thinking_and_k2_5() {
    let config = r#"{"config_groups": {"group_0": {"input_activations": null, "output_activations": null,
        "targets": ["Linear"], "weights": {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 32,
        "num_bits": 4, "observer": "minmax", "observer_kwargs": {}, "strategy": "group", "symmetric": true,
        "type": "int"}}}, "format": "pack-quantized", "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"], "kv_cache_scheme": null, "quant_method": "compressed-tensors",
        "quantization_status": "compressed"}"#;
    let case = tensors(
        "model.layers.1.mlp.experts.0.up_proj.weight_packed i32 64x16
         model.layers.1.mlp.experts.0.up_proj.weight_scale bf16 64x4
         model.layers.1.mlp.experts.0.up_proj.weight_shape i32 2",
    )
    .holds("model.layers.1.mlp.experts.0.up_proj.weight_shape", [64u8, 0, 0, 0, 128, 0, 0, 0]);
    let expected = "ct:pack-quantized,bits=4,strategy=group,group=32,symmetric=true";
    assert_eq!(schemes(&case.clone().quantization(config)), expected);
    let nested = format!(r#"{{"model_type": "kimi_k25", "text_config": {{"quantization_config": {config}}}}}"#);
    assert_eq!(schemes(&case.config(&nested)), expected);
}

#[test]
fn kimi_k3() {
    let case = tensors(
        "model.layers.1.mlp.experts.0.up_proj.weight_packed u8 64x64
         model.layers.1.mlp.experts.0.up_proj.weight_scale u8 64x4",
    )
    .quantization(
        r#"{"config_groups": {"group_0": {"format": "mxfp4-pack-quantized", "input_activations": null,
            "output_activations": null, "targets": ["Linear"], "weights": {"actorder": null, "block_structure": null,
            "dynamic": false, "group_size": 32, "num_bits": 4, "observer": "minmax", "observer_kwargs": {},
            "scale_dtype": "torch.uint8", "strategy": "group", "symmetric": true, "type": "float", "zp_dtype": null}}},
            "format": "mxfp4-pack-quantized", "global_compression_ratio": null, "ignore": ["re:.*self_attn.*",
            "re:.*lm_head.*", "re:.*vision_tower.*"], "kv_cache_scheme": null, "quant_method": "compressed-tensors",
            "quantization_status": "compressed"}"#,
    );
    assert_eq!(schemes(&case), "ct:mxfp4-pack-quantized");
}

/// RedHatAI's Llama 3.1 FP8-dynamic, and GLM-4.5-FP8: one scheme, two releases of the package.
#[test]
fn fp8_by_channels_of_llm_compressor() {
    let activations = r#"{"block_structure": null, "dynamic": true, "group_size": null, "num_bits": 8,
        "observer": "memoryless", "observer_kwargs": {}, "strategy": "token", "symmetric": true, "type": "float"}"#;
    let weights = r#"{"block_structure": null, "dynamic": false, "group_size": null, "num_bits": 8, "observer": "minmax",
        "observer_kwargs": {}, "strategy": "channel", "symmetric": true, "type": "float"}"#;
    for more in [
        r#""global_compression_ratio": 1.239290831149584"#,
        r#""global_compression_ratio": null, "sparsity_config": {}, "transform_config": {}, "version": "0.10.3.dev47+ge463fe6""#,
    ] {
        let case = tensors(CHANNELS).quantization(&format!(
            r#"{{"config_groups": {{"group_0": {{"input_activations": {activations}, "output_activations": null,
                "targets": ["Linear"], "weights": {weights}}}}}, "format": "float-quantized", {more}, "ignore": ["lm_head"],
                "kv_cache_scheme": null, "quant_method": "compressed-tensors", "quantization_status": "compressed"}}"#
        ));
        assert_eq!(schemes(&case), "ct:float-quantized,strategy=channel");
    }
}

/// RedHatAI *-quantized.w4a16.
#[test]
fn w4a16_of_llm_compressor() {
    let case = tensors(
        "model.layers.0.mlp.up_proj.weight_packed i32 64x16
         model.layers.0.mlp.up_proj.weight_scale bf16 64x1
         model.layers.0.mlp.up_proj.weight_shape i64 2",
    )
    .holds("model.layers.0.mlp.up_proj.weight_shape", i64s(&[64, 128]))
    .quantization(
        r#"{"config_groups": {"group_0": {"input_activations": null, "output_activations": null, "targets": ["Linear"],
            "weights": {"actorder": "weight", "block_structure": null, "dynamic": false, "group_size": 128, "num_bits": 4,
            "observer": "mse", "observer_kwargs": {}, "strategy": "group", "symmetric": true, "type": "int"}}},
            "format": "pack-quantized", "global_compression_ratio": 1.89, "ignore": ["lm_head"], "kv_cache_scheme": null,
            "quant_method": "compressed-tensors", "quantization_status": "compressed", "sparsity_config":
            {"format": "dense", "global_sparsity": 0.1197, "ignore": [], "registry_requires_subclass": false,
            "sparsity_structure": "unstructured", "targets": []}}"#,
    );
    assert_eq!(schemes(&case), "ct:pack-quantized,bits=4,strategy=group,group=128,symmetric=true");
}

/// RedHatAI/Qwen3-Next-80B-A3B-Instruct-NVFP4.
#[test]
fn nvfp4_of_llm_compressor() {
    let case = tensors(
        "model.layers.0.mlp.up_proj.weight_packed u8 64x64
         model.layers.0.mlp.up_proj.weight_scale f8e4m3fn 64x8
         model.layers.0.mlp.up_proj.weight_global_scale f32 1
         model.layers.0.mlp.up_proj.input_global_scale f32 1",
    )
    .holds("model.layers.0.mlp.up_proj.weight_global_scale", f32s(&[9000.0]))
    .quantization(
        r#"{"config_groups": {"group_0": {"format": "nvfp4-pack-quantized", "input_activations": {"actorder": null,
            "block_structure": null, "dynamic": "local", "group_size": 16, "num_bits": 4, "observer": "static_minmax",
            "observer_kwargs": {}, "scale_dtype": "torch.float8_e4m3fn", "strategy": "tensor_group", "symmetric": true,
            "type": "float", "zp_dtype": null}, "output_activations": null, "targets": ["Linear"], "weights":
            {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 16, "num_bits": 4, "observer": "mse",
            "observer_kwargs": {}, "scale_dtype": "torch.float8_e4m3fn", "strategy": "tensor_group", "symmetric": true,
            "type": "float", "zp_dtype": null}}}, "format": "nvfp4-pack-quantized", "global_compression_ratio": null,
            "ignore": ["model.layers.0.linear_attn.in_proj_qkvz", "model.layers.0.mlp.gate", "lm_head"],
            "kv_cache_scheme": null, "quant_method": "compressed-tensors", "quantization_status": "compressed",
            "sparsity_config": {}, "transform_config": {}, "version": "0.13.1.dev47+gcfc24ef"}"#,
    );
    assert_eq!(schemes(&case), "ct:nvfp4-pack-quantized");
}

const NVFP4: &str = "model.layers.0.mlp.up_proj.weight u8 64x64
    model.layers.0.mlp.up_proj.weight_scale f8e4m3fn 64x8
    model.layers.0.mlp.up_proj.weight_scale_2 f32 -
    model.layers.0.mlp.up_proj.input_scale f32 -";

/// nvidia/DeepSeek-R1-FP4 and nvidia/Llama-3.1-8B-Instruct-FP8, of early and later releases.
#[test]
fn modelopt() {
    let nvfp4 = tensors(NVFP4).holds("model.layers.0.mlp.up_proj.weight_scale_2", f32s(&[0.001]));
    let file = r#"{"producer": {"name": "modelopt", "version": "0.23.0"}, "quantization": {"quant_algo": "NVFP4",
        "kv_cache_quant_algo": null, "group_size": 16, "exclude_modules": ["lm_head", "model.layers.*.self_attn*"]}}"#;
    assert_eq!(schemes(&nvfp4.clone().hf_quant_config(file)), "modelopt:NVFP4");
    let config = r#"{"config_groups": {"group_0": {"input_activations": {"dynamic": false, "num_bits": 4, "type": "float",
        "group_size": 16}, "weights": {"dynamic": false, "num_bits": 4, "type": "float", "group_size": 16},
        "targets": ["Linear"]}}, "ignore": ["lm_head", "model.layers.*.self_attn*"], "quant_algo": "NVFP4",
        "kv_cache_scheme": {"dynamic": false, "num_bits": 8, "type": "float"}, "producer": {"name": "modelopt",
        "version": "0.33.0"}, "quant_method": "modelopt"}"#;
    assert_eq!(schemes(&nvfp4.quantization(config).hf_quant_config(file)), "modelopt:NVFP4");
    let fp8 = tensors(
        "model.layers.0.mlp.up_proj.weight f8e4m3fn 64x128
         model.layers.0.mlp.up_proj.weight_scale f32 -
         model.layers.0.mlp.up_proj.input_scale f32 -
         model.layers.0.self_attn.k_proj.k_scale f32 -",
    )
    .hf_quant_config(
        r#"{"producer": {"name": "modelopt", "version": "0.19.0"}, "quantization": {"quant_algo": "FP8",
            "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#,
    );
    assert_eq!(schemes(&fp8), "modelopt:FP8");
}

/// NVIDIA-Nemotron-3: experts in NVFP4, other modules in FP8.
#[test]
fn modelopt_of_two_algorithms() {
    let case = tensors(
        "backbone.layers.1.mixer.experts.0.up_proj.weight u8 64x64
         backbone.layers.1.mixer.experts.0.up_proj.weight_scale f8e4m3fn 64x8
         backbone.layers.1.mixer.experts.0.up_proj.weight_scale_2 f32 -
         backbone.layers.0.mixer.in_proj.weight f8e4m3fn 64x128
         backbone.layers.0.mixer.in_proj.weight_scale f32 -",
    )
    .holds("backbone.layers.1.mixer.experts.0.up_proj.weight_scale_2", f32s(&[0.001]))
    .quantization(
        r#"{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "kv_cache_scheme": {"dynamic": false,
            "num_bits": 8, "type": "float"}, "producer": {"name": "modelopt", "version": "0.43.0"}, "ignore": [],
            "config_groups": {"group_0": {"input_activations": {"dynamic": false, "num_bits": 8, "type": "float"},
            "weights": {"dynamic": false, "num_bits": 8, "type": "float"}, "targets": ["backbone.layers.0.mixer.in_proj"]}},
            "quantized_layers": {"backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"},
            "backbone.layers.1.mixer.experts.0.up_proj": {"quant_algo": "NVFP4", "group_size": 16}}}"#,
    );
    assert_eq!(schemes(&case), "modelopt:NVFP4 modelopt:FP8");
}

const INTEGERS: &str = "model.layers.0.mlp.up_proj.qweight i32 32x64
    model.layers.0.mlp.up_proj.qzeros i32 2x8
    model.layers.0.mlp.up_proj.scales f16 2x64
    model.layers.0.mlp.up_proj.g_idx i32 256";

#[test]
fn gptq() {
    for (config, scheme) in [
        // TheBloke/Llama-2-7B-Chat-GPTQ.
        (
            r#"{"bits": 4, "group_size": 128, "damp_percent": 0.01, "desc_act": true, "sym": true, "true_sequential": true,
                "model_name_or_path": null, "model_file_base_name": "model", "quant_method": "gptq"}"#,
            "gptq,bits=4,group=128",
        ),
        // Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4.
        (
            r#"{"batch_size": 1, "bits": 4, "block_name_to_quantize": null, "cache_block_outputs": true,
                "damp_percent": 0.01, "dataset": null, "desc_act": false, "exllama_config": {"version": 1},
                "group_size": 128, "max_input_length": null, "model_seqlen": null,
                "module_name_preceding_first_block": null, "modules_in_block_to_quantize": null, "pad_token_id": null,
                "quant_method": "gptq", "sym": true, "tokenizer": null, "true_sequential": true, "use_cuda_fp16": false,
                "use_exllama": true}"#,
            "gptq,bits=4,group=128",
        ),
        // GPTQModel.
        (
            r#"{"bits": 4, "checkpoint_format": "gptq_v2", "format": "gptq_v2", "desc_act": false, "dynamic": null,
                "group_size": 128, "hyb_act": false, "lm_head": false, "meta": {"act_group_aware": true,
                "damp_auto_increment": 0.01, "damp_percent": 0.05, "mse": 0.0, "quantizer": ["gptqmodel:4.2.5"],
                "static_groups": false, "true_sequential": true, "v2": false, "v2_alpha": 0.25}, "pack_dtype": "int32",
                "pack_impl": "cpu", "adapter": null, "rotation": null, "offload_to_disk": true, "quant_method": "gptq",
                "sym": true}"#,
            "gptq_v2,bits=4,group=128",
        ),
        // AutoRound, in GPTQ's layout.
        (
            r#"{"autoround_version": "0.4.7", "bits": 4, "damp_percent": 0.01, "data_type": "int", "desc_act": false,
                "enable_quanted_input": true, "group_size": 128, "iters": 200, "low_gpu_mem_usage": true, "lr": 0.005,
                "minmax_lr": 0.005, "nsamples": 128, "provider": "auto-round", "quant_method": "gptq", "seqlen": 2048,
                "sym": true, "true_sequential": false}"#,
            "gptq,bits=4,group=128",
        ),
    ] {
        // The midpoint as each format stores it.
        let zero = if scheme.starts_with("gptq_v2") { 0x88 } else { 0x77 };
        let case = tensors(INTEGERS).holds("model.layers.0.mlp.up_proj.qzeros", [zero; 64]);
        assert_eq!(schemes(&case.quantization(config)), scheme, "{config}");
    }
}

/// Qwen/Qwen2.5-7B-Instruct-AWQ, and older files.
#[test]
fn awq() {
    let lines = "model.layers.0.mlp.up_proj.qweight i32 256x8
        model.layers.0.mlp.up_proj.qzeros i32 2x8
        model.layers.0.mlp.up_proj.scales f16 2x64";
    for config in [
        r#"{"bits": 4, "group_size": 128, "modules_to_not_convert": null, "quant_method": "awq", "version": "gemm",
            "zero_point": true}"#,
        r#"{"zero_point": true, "q_group_size": 128, "w_bit": 4, "version": "GEMM", "quant_method": "awq"}"#,
        r#"{"backend": "autoawq", "bits": 4, "do_fuse": false, "exllama_config": null, "fuse_max_seq_len": null,
            "group_size": 128, "modules_to_fuse": null, "modules_to_not_convert": ["visual"], "quant_method": "awq",
            "version": "gemm", "zero_point": true}"#,
    ] {
        assert_eq!(schemes(&tensors(lines).quantization(config)), "awq,group=128");
    }
}

/// microsoft/bitnet-b1.58-2B-4T, and a fine-tuned Llama 3.
#[test]
fn bitnet() {
    let lines = "model.layers.0.mlp.up_proj.weight u8 16x128\nmodel.layers.0.mlp.up_proj.weight_scale bf16 1";
    for config in [
        r#"{"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}"#,
        r#"{"modules_to_not_convert": null, "quant_method": "bitnet"}"#,
    ] {
        assert_eq!(schemes(&tensors(lines).quantization(config)), "bitnet");
    }
}

/// mlx-community: 4 bits, and gpt-oss-20b-MXFP4-Q8.
#[test]
fn mlx() {
    let affine = r#"{"group_size": 64, "bits": 4}"#;
    let case = tensors(
        "model.layers.0.mlp.up_proj.weight u32 64x16
         model.layers.0.mlp.up_proj.scales bf16 64x2
         model.layers.0.mlp.up_proj.biases bf16 64x2",
    );
    let config = format!(r#"{{"quantization": {affine}, "quantization_config": {affine}}}"#);
    assert_eq!(schemes(&case.config(&config)), "mlx:affine,bits=4,group=64");
    let mixed = r#"{"group_size": 32, "bits": 4, "mode": "mxfp4",
        "model.layers.0.self_attn.q_proj": {"group_size": 64, "bits": 8, "mode": "affine"},
        "model.layers.0.mlp.router": {"group_size": 64, "bits": 8}}"#;
    let case = tensors(
        "model.layers.0.mlp.experts.up_proj.weight u32 2x64x16
         model.layers.0.mlp.experts.up_proj.scales u8 2x64x4
         model.layers.0.self_attn.q_proj.bias bf16 64
         model.layers.0.mlp.router.weight u32 32x32
         model.layers.0.mlp.router.scales bf16 32x2
         model.layers.0.mlp.router.biases bf16 32x2",
    );
    let config = format!(r#"{{"quantization": {mixed}, "quantization_config": {mixed}}}"#);
    assert_eq!(schemes(&case.config(&config)), "mlx:mxfp4 mlx:affine,bits=8,group=64");
}

/// Float8 by rows, in the form that torchao 0.15 and transformers save.
#[test]
fn torchao() {
    let config = r#"{"include_input_output_embeddings": false, "modules_to_not_convert": null, "quant_method": "torchao",
        "quant_type": {"default": {"_type": "Float8DynamicActivationFloat8WeightConfig", "_version": 2, "_data":
        {"activation_dtype": {"_type": "torch.dtype", "_data": "float8_e4m3fn"}, "granularity": [{"_type": "PerRow",
        "_version": 1, "_data": {}}, {"_type": "PerRow", "_version": 1, "_data": {}}], "set_inductor_config": true,
        "weight_dtype": {"_type": "torch.dtype", "_data": "float8_e4m3fn"}}}}, "quant_type_kwargs": {},
        "untie_embedding_weights": false}"#;
    let case = tensors("a._weight_qdata f8e4m3fn 64x128\na._weight_scale f32 64x1")
        .quantization(config)
        .metadata("tensor_names", r#"["a.weight"]"#)
        .metadata(
            "a.weight",
            r#"{"_type": "Float8Tensor", "_data": {"block_size": [1, 128], "mm_config": {"_type": "Float8MMConfig",
                "_data": {"emulate": false, "use_fast_accum": true, "pad_inner_dim": false}}, "act_quant_kwargs": {"_type":
                "QuantizeTensorToFloat8Kwargs", "_data": {}}, "kernel_preference": {"_type": "KernelPreference",
                "_data": "AUTO"}, "dtype": {"_type": "torch.dtype", "_data": "bfloat16"}},
                "_tensor_data_names": ["qdata", "scale"]}"#,
        );
    assert_eq!(schemes(&case), "torchao");
}

/// meta-llama/Llama-3.1-405B-Instruct-FP8.
#[test]
fn fbgemm() {
    for modules in [r#"["model.layers.0.self_attn.q_proj", "lm_head"]"#, "null"] {
        let case = tensors(
            "model.layers.1.mlp.up_proj.weight f8e4m3fn 64x128
             model.layers.1.mlp.up_proj.weight_scale f32 64x1",
        )
        .quantization(&format!(
            r#"{{"activation_scale_ub": 1200.0, "modules_to_not_convert": {modules}, "quant_method": "fbgemm_fp8"}}"#
        ));
        assert_eq!(schemes(&case), "fbgemm-fp8", "{modules}");
    }
}

/// Files of 2024 with the key's former name, and parts of larger models.
#[test]
fn other_places() {
    let config = r#"{"config_groups": {"group_0": {"input_activations": null, "output_activations": null,
        "targets": ["Linear"], "weights": {"dynamic": false, "num_bits": 8, "strategy": "channel", "symmetric": true,
        "type": "float"}}}, "format": "float-quantized", "ignore": ["lm_head"], "quant_method": "compressed-tensors",
        "quantization_status": "frozen"}"#;
    for config in [
        format!(r#"{{"compression_config": {config}}}"#),
        format!(
            r#"{{"compression_config": {{"quantization_config": {config}, "sparsity_config": {{"format": "dense",
                "global_sparsity": 0.05, "sparsity_structure": "unstructured"}}}}}}"#
        ),
        format!(r#"{{"thinker_config": {{"text_config": {{"quantization_config": {config}}}}}}}"#),
        format!(r#"{{"llm_config": {{"quantization_config": {config}}}}}"#),
    ] {
        let case = tensors(CHANNELS).config(&config);
        assert_eq!(schemes(&case), "ct:float-quantized,strategy=channel", "{config}");
    }
}
