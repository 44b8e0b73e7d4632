//! Keys shared by several methods, and keys of methods that declare little (`docs/spec/checkpoints.md §5.3.1`).
//!
//! Sources: transformers 5.23.0, vLLM 0.33.0, compressed-tensors 0.20.0, ModelOpt 0.47.0; the writers GPTQModel,
//! AutoGPTQ, AutoAWQ, AutoRound, torchao, mlx-lm, ComfyUI; published configurations.

use super::keys::{Inner, Keys};

/// Keys of lists of unquantized modules.
pub(super) const EXCEPTIONS: &str = "ignore ignored_layers modules_to_not_convert exclude_modules";

/// Keys of any method: about caches, and for loaders that dequantize weights or fuse modules.
pub(super) const COMMON: &str =
    "producer provider kv_cache_scheme kv_cache_quant_algo dequantize packed_modules_mapping run_compressed";

/// Keys about the quantization of activations at run time.
pub(super) const ACTIVATIONS: &str = "activation_scheme act_per_tensor activation_scale_ub";

/// Keys of method `fp8`, used by DeepSeek and others (`docs/spec/checkpoints.md §4.1, §4.2`). `scale_fmt` is checked
/// but not used, because the types of the scales state it.
pub(super) const FP8: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method fmt weight_block_size expert_dtype"],
    silent: &[COMMON, ACTIVATIONS, "modules_to_convert"],
    only: &[("scale_fmt", &["\"ue8m0\"", "\"float\""]), ("weight_per_tensor", &["false"])],
    ..Keys::NONE
};

/// Keys of `mxfp8` (§4.8).
pub(super) const MXFP8: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method fmt weight_block_size"],
    silent: FP8.silent,
    only: &[("scale_fmt", &["\"ue8m0\""])],
    ..Keys::NONE
};

/// Keys of methods that declare only their name, such as `mxfp4` of gpt-oss (§4.3).
pub(crate) const METHOD_ONLY: Keys = Keys { used: &[EXCEPTIONS, "quant_method"], silent: &[COMMON], ..Keys::NONE };

/// Keys of FBGEMM (§4.14).
pub(crate) const FBGEMM: Keys =
    Keys { used: &[EXCEPTIONS, "quant_method"], silent: &[COMMON, ACTIVATIONS], ..Keys::NONE };

/// Keys of BitNet (§4.11). `online` (quantization at run time) and a norm in the layer would change the weights.
pub(super) const BITNET: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method linear_class"],
    silent: &[COMMON, "rms_norm_eps"],
    only: &[("quantization_mode", &["\"offline\""]), ("use_rms_norm", &["false"]), ("bits", &["2", "1.58"])],
    ..Keys::NONE
};

/// Keys of bitsandbytes (§4.16).
pub(super) const BITSANDBYTES: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method load_in_4bit load_in_8bit bnb_4bit_quant_type llm_int8_skip_modules"],
    silent: &[
        COMMON,
        "_load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage bnb_4bit_use_double_quant \
            llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold",
    ],
    ..Keys::NONE
};

/// Keys of torchao (§4.7). Headers describe each tensor's storage.
pub(super) const TORCHAO: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method"],
    silent: &[COMMON, "quant_type quant_type_kwargs include_input_output_embeddings untie_embedding_weights"],
    ..Keys::NONE
};

/// Keys that a header has for the attributes of a torchao tensor.
pub(crate) const TORCHAO_TENSOR: Keys = Keys {
    used: &["block_size dtype elem_dtype _elem_dtype orig_dtype _orig_dtype is_swizzled_scales \
            _is_swizzled_scales"],
    silent: &["act_quant_kwargs activation_quantization target_dtype reduce_range kernel_preference mm_config \
            hp_value_lb hp_value_ub use_triton_kernel quantize_to_nvfp4_kernel_choice \
            nvfp4_quantize_kernel_choice gemm_kernel_choice requires_grad shape device"],
    // All other values pack codes in a kernel's layout, for example four codes of six bits.
    only: &[("pack_fp6", &["false"]), ("_pack_fp6", &["false"]), ("packing_format", &["\"plain\"", "\"PLAIN\""])],
    ..Keys::NONE
};

/// Keys about quantization to integers (method, target kernels), in AutoGPTQ, GPTQModel, optimum, AutoRound, AutoAWQ.
pub(super) const INTEGER_QUANTIZER_KEYS: &str = "act_group_aware auto_forward_data_parallel batch_size block_name_to_quantize cache_block_outputs \
    calibration_data_device compute_device_filter damp_auto_increment damp_percent dataset dense_vram_strategy \
    dense_vram_strategy_devices device disable_exllama do_fuse exllama_config failsafe fail_safe fallback foem \
    fuse_max_seq_len gc_mode gptaq hessian hyb_act lm_head max_input_length meta mock_quantization \
    model_file_base_name model_name_or_path model_seqlen module_name_preceding_first_block \
    modules_in_block_to_quantize modules_to_fuse moe moe_vram_strategy moe_vram_strategy_devices mse \
    offload_to_disk offload_to_disk_path pack_impl pad_token_id static_groups tokenizer true_sequential \
    use_cuda_fp16 use_exllama v2 v2_alpha v2_memory_device vram_strategy wait_for_submodule_finalizers";

/// Keys that describe AutoRound's run. They occur in files with the layout of GPTQ or AutoAWQ.
pub(super) const AUTOROUND: &str = "amp autoround_version block_list enable_minmax_tuning enable_norm_bias_tuning enable_quanted_input \
    gradient_accumulate_steps iters low_cpu_mem_usage low_gpu_mem_usage lr minmax_lr model_free nsamples \
    provider quant_block_list scale_dtype seqlen to_quant_block_names train_bs";

/// Accepted values of keys of GPTQ and AutoAWQ. Any other value changes the weights: rules for modules, other words,
/// rotations, adapters, or a kernel's packing.
const HARMLESS_INTEGER_VALUES: &[(&str, &[&str])] = &[
    ("dynamic", &["{}", "false"]),
    ("extra_config", &["{}"]),
    ("pack_dtype", &["\"int32\""]),
    ("data_type", &["\"int\""]),
    ("is_marlin_format", &["false"]),
    ("rotation", &["\"\"", "false"]),
    ("adapter", &["{}"]),
    ("packing_format", &["\"auto_round:auto_gptq\"", "\"auto_gptq\""]),
    (
        "backend",
        &[
            "\"auto\"", "\"auto_trainable\"", "\"autoawq\"", "\"exllama_v1\"", "\"exllama_v2\"", "\"gemm\"",
            "\"gemm_triton\"", "\"machete\"", "\"marlin\"", "\"torch\"", "\"torch_awq\"", "\"torch_fused_awq\"",
            "\"triton\"",
        ],
    ),
];

/// Keys of GPTQ (§4.10).
pub(super) const GPTQ: Keys = Keys {
    used: &[EXCEPTIONS, "quant_method bits group_size sym desc_act checkpoint_format format"],
    silent: &[COMMON, INTEGER_QUANTIZER_KEYS, AUTOROUND],
    only: HARMLESS_INTEGER_VALUES,
    ..Keys::NONE
};

/// Keys of AutoAWQ (§4.9).
pub(super) const AWQ: Keys = Keys {
    used: &[
        EXCEPTIONS,
        "quant_method bits w_bit group_size q_group_size sym zero_point version format checkpoint_format",
    ],
    silent: &[COMMON, INTEGER_QUANTIZER_KEYS, AUTOROUND, "desc_act"],
    only: HARMLESS_INTEGER_VALUES,
    ..Keys::NONE
};

/// Keys of Mistral's own configuration (§4.13).
pub(super) const MISTRAL: Keys = Keys {
    used: &["weight_block_size block_size"],
    silent: &[ACTIVATIONS, "qscheme_act"],
    only: &[("qformat_weight", &["\"fp8_e4m3\""])],
    ..Keys::NONE
};

/// Keys of a header in which ComfyUI describes layers.
pub(crate) const COMFY_HEADER: Keys = Keys { used: &["layers"], silent: &["format_version"], ..Keys::NONE };

/// Keys of a ComfyUI marker (§4.6.2). Old tools put parameters into `params`.
pub(crate) const COMFY: Keys = Keys {
    used: &["format group_size orig_dtype params per_row"],
    silent: COMFY_SILENT,
    only: COMFY_ONLY,
    objects: &[("params", Inner::One(&COMFY_PARAMETERS))],
    ..Keys::NONE
};
const COMFY_PARAMETERS: Keys =
    Keys { used: &["group_size per_row"], silent: COMFY_SILENT, only: COMFY_ONLY, ..Keys::NONE };
const COMFY_ONLY: &[(&str, &[&str])] = &[("convrot", &["false"]), ("transposed", &["false"])];
const COMFY_SILENT: &[&str] =
    &[ACTIVATIONS, "full_precision_matrix_mult is_weight per_channel orig_shape convrot_groupsize input_scale"];
