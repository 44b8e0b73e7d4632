//! Declarations with an unknown key, or with an unknown value of a known key (§5.3.1). The error names place, key and
//! value.

use truecast_core::ErrorKind;
use truecast_schemes::Error;

use crate::{Case, tensors};

/// Checks that the error contains all of `parts`.
fn refused(case: &Case, parts: &[&str]) {
    let error = case.detect_with(&Default::default()).expect_err(parts[0]);
    let text = error.to_string();
    assert_eq!(error.error_code().kind(), ErrorKind::Input, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

/// Schemes that an error suggests. The case must be readable in each.
fn proposed(case: &Case) -> Vec<String> {
    match case.detect_with(&Default::default()) {
        Err(Error::Advised { schemes, .. }) => {
            assert!(schemes.iter().all(|scheme| !case.asked_for(scheme).unwrap().groups.is_empty()), "{schemes:?}");
            schemes
        }
        Err(_) => Vec::new(),
        Ok(found) => panic!("{found:?}"),
    }
}

const PLACE: &str = "config.json: quantization_config: ";

fn config(method: &str, more: &str) -> Case {
    let rest = match method {
        "gptq" => r#""bits": 4, "group_size": 128, "#,
        "awq" => r#""bits": 4, "group_size": 128, "version": "gemm", "#,
        "modelopt" => r#""quant_algo": "NVFP4", "#,
        _ => "",
    };
    tensors("a.weight f8e4m3fn 128x128").quantization(&format!(r#"{{"quant_method": "{method}", {rest}{more}}}"#))
}

#[test]
fn keys_of_methods() {
    // Each row is (method, more keys, key in the error, start of that key's value). The rows include rotations that the
    // runtime undoes, an old export of Quark, and rules that change the width of single modules.
    let all = r#"
        compressed-tensors; "config_groups": {}, "transform_config": {"config_groups": {"u": {"type": "hadamard"}}}; transform_config; {"config_groups"
        compressed-tensors; "config_groups": {}, "moe_sparsity_config": {"method": "novice"}; moe_sparsity_config; {
        compressed-tensors; "config_groups": {}, "sparsity_config": {"format": "2:4"}; sparsity_config.format; "2:4"
        compressed-tensors; "config_groups": {}, "sparsity_config": {"mask": 1}; sparsity_config.mask; 1
        compressed-tensors; "config_groups": {"g": {"targets": [], "codebook": "E8"}}; config_groups.g.codebook; "E8"
        compressed-tensors; "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "rotation": 128}}}; config_groups.g.weights.rotation; 128
        compressed-tensors; "config_groups": {"g": {"targets": ["Linear"], "input_activations": {"num_bits": 8, "smooth": true}}}; config_groups.g.input_activations.smooth; true
        fp8; "weight_per_tensor": true; weight_per_tensor; true
        fp8; "store_dtype": "mxfp4"; store_dtype; "mxfp4"
        fp8; "scale_fmt": "e5m3"; scale_fmt; "e5m3"
        fp8; "rotation": "hadamard"; rotation; "hadamard"
        fp8; "export": {"pack_method": "reorder"}; export; {"pack_method"
        mxfp8; "scale_fmt": "float"; scale_fmt; "float"
        mxfp4; "block_size": 16; block_size; 16
        fbgemm_fp8; "smooth": {}; smooth; {}
        bitnet; "quantization_mode": "online"; quantization_mode; "online"
        bitnet; "use_rms_norm": true; use_rms_norm; true
        torchao; "rotate": 1; rotate; 1
        gptq; "dynamic": {"+:.*down_proj": {"bits": 8}}; dynamic; {"+:.*down_proj"
        gptq; "rotation": "hadamard"; rotation; "hadamard"
        gptq; "adapter": {"name": "eora", "rank": 64}; adapter; {"name"
        gptq; "is_marlin_format": true; is_marlin_format; true
        gptq; "pack_dtype": "int64"; pack_dtype; "int64"
        gptq; "mixed_precision": true; mixed_precision; true
        gptq; "backend": "bitblas"; backend; "bitblas"
        awq; "backend": "llm-awq"; backend; "llm-awq"
        awq; "krot": 8; krot; 8
        awq; "extra_config": {"a": {"bits": 8}}; extra_config; {"a"
        modelopt; "weight_scale_encoding": "csf"; weight_scale_encoding; "csf"
        modelopt; "has_zero_point": true; has_zero_point; true
        modelopt; "config_groups": {"g": {"targets": ["Linear"], "lora_rank": 32}}; config_groups.g.lora_rank; 32
    "#;
    for line in all.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [method, more, key, value] = line.split("; ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        refused(&config(method, more), &[PLACE, &format!("{key:?} is {value}"), "its effect on the weights"]);
    }
}

#[test]
fn keys_of_other_places() {
    let fp8 = tensors("a.weight f8e4m3fn 128x128");
    let layers = r#"{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers":
        {"a": {"quant_algo": "NVFP4", "group_size": 16, "weight_scale_encoding": "csf"}}}}"#;
    refused(
        &fp8.clone().hf_quant_config(layers),
        &["hf_quant_config.json: quantization: ", r#""quantized_layers.a.weight_scale_encoding" is "csf""#],
    );
    let file = r#"{"quantization": {"quant_algo": "FP8"}, "transforms": [1]}"#;
    refused(&fp8.clone().hf_quant_config(file), &["hf_quant_config.json: ", r#""transforms" is [1]"#]);
    let params = r#"{"quantization": {"qformat_weight": "fp8_e5m2"}}"#;
    refused(&fp8.clone().params(params), &["params.json: quantization: ", r#""qformat_weight" is "fp8_e5m2""#]);
    for (quantization, key) in [
        (r#"{"group_size": 64, "bits": 4, "hadamard": 64}"#, r#""hadamard" is 64"#),
        (r#"{"group_size": 64, "bits": 4, "a": {"bits": 4, "offset": 1}}"#, r#""a.offset" is 1"#),
        (r#"{"group_size": 64, "bits": 4, "mode": "mxfp4"}"#, "group_size is 64, expected 32"),
    ] {
        let case = fp8.clone().config(&format!(r#"{{"quantization": {quantization}}}"#));
        refused(&case, &["config.json: quantization: ", key]);
    }
    let nested = r#"{"compression_config": {"quantization_config": {"quant_method": "fp8"}, "sparsity_config":
        {"format": "sparse-bitmask"}}}"#;
    refused(
        &fp8.config(nested),
        &["config.json: compression_config: ", r#""sparsity_config.format" is "sparse-bitmask""#],
    );
}

#[test]
fn markers_and_headers() {
    let marker = tensors("a.weight f8e4m3fn 64x64\na.weight_scale f32 -\na.comfy_quant u8 3");
    for (text, key) in [
        (r#"{"format": "float8_e4m3fn", "rotation": 64}"#, r#""rotation" is 64"#),
        (r#"{"format": "float8_e4m3fn", "params": {"codebook": [1]}}"#, r#""params.codebook" is [1]"#),
        (r#"{"format": "float8_e4m3fn", "convrot": true}"#, "its weights are rotated"),
    ] {
        refused(&marker.clone().holds("a.comfy_quant", text), &["tensor \"a.comfy_quant\": ", key]);
    }
    let header = tensors("a.weight f8e4m3fn 64x64\na.weight_scale f32 -");
    for (text, says) in [
        (r#"{"format_version": "1.0", "layers": {}, "transforms": [1]}"#, r#""transforms" is [1]"#),
        (r#"{"layers": [1]}"#, "layers is [1], expected an object"),
        ("[1]", "the text is [1], expected an object"),
    ] {
        refused(&header.clone().metadata("_quantization_metadata", text), &["_quantization_metadata: ", says]);
    }
    let torchao = tensors("a._weight_qdata f8e4m3fn 64x128\na._weight_scale f32 64x1")
        .metadata("tensor_names", r#"["a.weight"]"#)
        .metadata("a.weight", r#"{"_type": "Float8Tensor", "_data": {"block_size": [1, 128], "rotation": "R1"}}"#);
    refused(&torchao, &["__metadata__: \"a.weight\": ", r#""rotation" is "R1""#]);
}

#[test]
fn values_of_the_wrong_kind() {
    for (method, more, says) in [
        ("fp8", r#""fmt": 4"#, "fmt is 4, expected a string"),
        ("fp8", r#""expert_dtype": "fp6""#, "expert_dtype is \"fp6\", expected fp4 or fp8"),
        ("gptq", r#""desc_act": "yes""#, "desc_act is \"yes\", expected true or false"),
        (
            "gptq",
            r#""format": "gptq_v2", "checkpoint_format": "gptq""#,
            "format is \"gptq_v2\", expected the value of checkpoint_format",
        ),
        ("awq", r#""w_bit": 8"#, "w_bit is 8, expected the value of bits, 4"),
        ("awq", r#""zero_point": 1"#, "zero_point is 1, expected true or false"),
        ("bitnet", r#""linear_class": "linear""#, "linear_class is \"linear\", expected bitlinear"),
        ("compressed-tensors", r#""version": 1"#, "version is 1, expected a string"),
        ("compressed-tensors", r#""sparsity_config": "dense""#, "sparsity_config is \"dense\", expected an object"),
        (
            "compressed-tensors",
            r#""config_groups": {"g": {"targets": ["Linear"], "weights": {"symmetric": "no"}}}"#,
            "config_groups.g.weights.symmetric is \"no\", expected true or false",
        ),
        (
            "compressed-tensors",
            r#""config_groups": {"g": {"targets": ["Linear"], "weights": {"actorder": "rows"}}}"#,
            "config_groups.g.weights.actorder is \"rows\", expected weight",
        ),
    ] {
        refused(&config(method, more), &[PLACE, says]);
    }
    for (file, value) in
        [("config.json", "[1]"), ("config.json", "\"x\""), ("hf_quant_config.json", "3"), ("params.json", "true")]
    {
        let mut case = tensors("a.weight bf16 4x4");
        let documents = &mut case.documents;
        let place = match file {
            "config.json" => &mut documents.config,
            "hf_quant_config.json" => &mut documents.hf_quant_config,
            _ => &mut documents.params,
        };
        *place = Some(serde_json::from_str(value).unwrap());
        let says = format!("the file is {value}, expected an object");
        refused(&case, &[&format!("{file}: "), &says]);
        // A requested scheme does not avoid this error.
        assert!(case.asked_for("plain").is_err());
    }
}

/// Parts that a configuration promises must exist.
#[test]
fn parts_that_are_promised() {
    let integers = tensors("a.qweight i32 32x64\na.qzeros i32 2x8\na.scales f16 2x64");
    let gptq = |more| format!(r#"{{"quant_method": "gptq", "bits": 4, "group_size": {more}}}"#);
    let case = integers.clone().quantization(&gptq(r#"128, "desc_act": true"#));
    refused(&case, &["missing ", "needs tensor \"a.g_idx\""]);
    assert_eq!(integers.quantization(&gptq(r#"128, "desc_act": false"#)).detect().groups.len(), 1);
    let awq = tensors("a.qweight i32 256x8\na.scales f16 2x64");
    let config = r#"{"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}"#;
    refused(&awq.quantization(config), &["missing zero points", "needs tensor \"a.qzeros\""]);
    let packed = tensors("a.weight_packed i32 12x8\na.weight_scale bf16 12x2\na.weight_shape i64 2");
    for (more, tensor) in
        [(r#""symmetric": false"#, "a.weight_zero_point"), (r#""actorder": "group""#, "a.weight_g_idx")]
    {
        let config = format!(
            r#"{{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {{"g": {{"targets":
                ["Linear"], "weights": {{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, {more}}}}}}}}}"#
        );
        refused(&packed.clone().quantization(&config), &["missing ", tensor]);
    }
}

/// `--from-scheme` ignores the unknown key, and keeps everything else that the file declares.
#[test]
fn the_way_around() {
    let case = tensors("a.weight f8e4m3fn 64x64\na.weight_scale_inv f32 2x2")
        .quantization(r#"{"quant_method": "fp8", "weight_block_size": [32, 32], "rotation": "hadamard"}"#);
    refused(&case, &[PLACE, r#""rotation" is "hadamard""#]);
    assert_eq!(proposed(&case), ["fp8-block:32x32"]);
    assert_eq!(case.asked_for("fp8-block").unwrap().schemes[0].to_string(), "fp8-block:32x32");
    // A key with the value null counts as absent.
    let case = tensors("a.weight f8e4m3fn 64x64\na.weight_scale_inv f32 2x2")
        .quantization(r#"{"quant_method": "fp8", "weight_block_size": [32, 32], "rotation": null}"#);
    assert_eq!(case.detect().groups.len(), 1);
}

#[test]
fn factors_that_no_scheme_has() {
    let lines = "a.weight f8e4m3fn 64x64\na.weight_scale_inv f32 1x1\na.pre_quant_scale f32 2";
    let config = r#"{"quant_method": "fp8", "weight_block_size": [64, 64]}"#;
    let case = tensors(lines).quantization(config);
    let bytes = |values: &[f32]| crate::f32s(values);
    refused(
        &case.clone().holds("a.pre_quant_scale", bytes(&[1.0, 0.5])),
        &["a.pre_quant_scale", "factor in addition to the weight"],
    );
    assert_eq!(case.holds("a.pre_quant_scale", bytes(&[1.0, 1.0])).detect().groups.len(), 1);
    let smoothed = tensors(
        "a._weight_qdata i8 64x2\na._weight_scale f32 64x1\na._weight_act_pre_scale f32 2\na._weight_act_quant_scale f32 1",
    )
    .metadata("tensor_names", r#"["a.weight"]"#)
    .metadata("a.weight", r#"{"_type": "Int8Tensor", "_data": {"block_size": [1, 2], "reduce_range": true}}"#);
    let other = smoothed.clone().holds("a._weight_act_pre_scale", bytes(&[1.0, 2.0]));
    refused(&other, &["a._weight_act_pre_scale", "factor in addition to the weight"]);
    let found = smoothed.holds("a._weight_act_pre_scale", bytes(&[1.0, 1.0])).detect();
    assert!(found.roles.iter().all(|role| *role != truecast_schemes::Role::Plain), "{:?}", found.roles);
}
