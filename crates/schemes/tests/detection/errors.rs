//! A checkpoint for every error of §5.5, §2.5 and §4.15. The error names the cause.

use truecast_core::ErrorKind;

use crate::{Case, f32s, i64s, tensors};

const FP8: &str = r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#;
const PACK: &str = r#"{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
    {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}}"#;

fn says(case: &Case, expected: &str) {
    assert_eq!(case.error(), expected);
}

#[test]
fn a_missing_scale() {
    let case =
        tensors("a.weight f8e4m3fn 256x256\nb.weight f8e4m3fn 128x128\nb.weight_scale_inv f32 1x1").quantization(FP8);
    says(&case, r#"missing scales for "a.weight": fp8-block:128x128 needs tensor "a.weight_scale_inv""#);
}

#[test]
fn an_orphan_scale() {
    let case = tensors(
        "a.weight f8e4m3fn 256x256\na.weight_scale_inv f32 2x2\nb.weight bf16 128x128\nb.weight_scale_inv f32 1x1\n",
    )
    .quantization(FP8);
    says(
        &case,
        "orphan scale \"b.weight_scale_inv\": no configuration and no naming rule assigns it to a group; \"b.weight\" is \
         bf16 [128, 128]",
    );
    let case =
        tensors("a.weight f8e4m3fn 128x128\na.weight_scale_inv f32 1x1\nb.weight_scale_inv f32 1x1").quantization(FP8);
    says(&case, r#"orphan scale "b.weight_scale_inv": "b.weight" is missing"#);
    for name in ["x.qzeros", "x.weight_shape", "x.absmax", "gate_up_proj_scale_inv", "x.comfy_quant2.g_idx"] {
        assert!(tensors(&format!("{name} f32 3")).error().starts_with("orphan scale"), "{name}");
    }
    assert!(tensors("x.weight_packed u8 4x4").error().starts_with("orphan codes"));
    assert!(tensors("x.weight f8e4m3fn 4x4\nx.weight_scale f32 1").error().starts_with("orphan scale"));
}

#[test]
fn a_grid_that_does_not_fit() {
    // 576 rows are four blocks and a half.
    let case = tensors("a.weight f8e4m3fn 576x256\na.weight_scale_inv f32 4x2").quantization(FP8);
    says(
        &case,
        "tensor \"a.weight_scale_inv\": the scales have shape [4, 2]; fp8-block:128x128 needs [5, 2] for \"a.weight\" of \
         shape [576, 256]",
    );
    let case = tensors("a.weight f8e4m3fn 576x256\na.weight_scale_inv f32 5x2")
        .quantization(r#"{"quant_method": "fp8", "activation_scheme": "dynamic"}"#);
    assert!(case.error().contains("fp8-tensor needs [] or [1] or [1, 1] or [576, 1] or [576]"), "{}", case.error());
}

#[test]
fn a_type_that_the_scheme_lacks() {
    let case = tensors("a.weight f8e4m3fn 128x128\na.weight_scale_inv i32 1x1").quantization(FP8);
    says(
        &case,
        "tensor \"a.weight_scale_inv\": fp8-block:128x128 does not have scales of type i32; expected f32, bf16, f16, f8e8m0 or u8",
    );
}

#[test]
fn a_tensor_that_two_groups_need() {
    let case = tensors("x_blocks u8 6x1x16\nx.blocks u8 6x1x16\nx_scales u8 6x1");
    says(&case, r#"tensor "x_scales" belongs to both "x_blocks" and "x.blocks""#);
}

#[test]
fn a_dense_name_that_is_taken() {
    let case = tensors("a.weight bf16 24x256\na.qweight i32 256x3\na.scales f16 2x24")
        .quantization(r#"{"quant_method": "awq", "bits": 4, "group_size": 128}"#);
    says(&case, r#"tensor "a.weight" would be written twice: "a.qweight" also converts to this name"#);
}

#[test]
fn codes_without_a_scale_among_others() {
    let case =
        tensors("a.weight f8e4m3fn 128x128\na.weight_scale_inv f32 1x1\nembed.table f8e4m3fn 6x6").quantization(FP8);
    says(
        &case,
        "tensor \"embed.table\": f8e4m3fn without a scale in a checkpoint that has scales; truecast never copies raw codes",
    );
}

#[test]
fn a_configuration_that_is_out_of_date() {
    let case = tensors("a.weight bf16 128x128").quantization(FP8);
    says(&case, "config.json: quantization_config declares fp8-block:128x128, but no tensor uses it");
    assert!(case.asked_for("plain").unwrap().groups.is_empty());
    let error = case.asked_for("gptq,bits=4").unwrap_err();
    assert!(error.to_string().starts_with("the request declares gptq,bits=4"), "{error}");
    assert_eq!(error.error_code().kind(), ErrorKind::Input);
}

#[test]
fn two_places_that_disagree() {
    let case = tensors("a.weight f8e4m3fn 64x64\na.weight_scale u8 64x2")
        .quantization(r#"{"quant_method": "mxfp8"}"#)
        .hf_quant_config(r#"{"quantization": {"quant_algo": "MXFP8"}}"#);
    says(
        &case,
        "tensor \"a.weight\": config.json: quantization_config says mxfp8, hf_quant_config.json says modelopt:MXFP8",
    );
    assert_eq!(case.asked_for("mxfp8").unwrap().groups.len(), 1);
}

#[test]
fn methods_that_are_refused() {
    for method in "hqq quanto eetq aqlm vptq spqr higgs fp_quant sinq fouroversix metal gemma gguf nvfp4 new".split(' ')
    {
        let case = tensors("a.weight u8 6x6").quantization(&format!(r#"{{"quant_method": "{method}"}}"#));
        says(&case, &format!("config.json: quantization_config: scheme \"{method}\" is not supported"));
    }
    let case = tensors("a.weight u8 6x6")
        .quantization(r#"{"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": {}}"#);
    assert!(case.error().contains("ct:marlin-24"));
    let case = tensors("a.weight u8 6x6").hf_quant_config(r#"{"quantization": {"quant_algo": "W4A8_AWQ"}}"#);
    assert!(case.error().contains("modelopt:W4A8_AWQ"));
    let case = tensors("a.qweight i32 6x6").quantization(r#"{"quant_method": "awq", "bits": 4, "version": "gemv"}"#);
    assert!(case.error().contains("only gemm is read"));
}

#[test]
fn a_value_that_a_configuration_cannot_have() {
    for (config, key) in [
        (r#"{"quant_method": "fp8", "fmt": "e5m2"}"#, "fmt is \"e5m2\", expected e4m3"),
        (r#"{"quant_method": "fp8", "weight_block_size": 128}"#, "weight_block_size is 128, expected two numbers"),
        (r#"{"quant_method": "fp8", "weight_block_size": [0, 128]}"#, "weight_block_size is 0, expected a number"),
        (r#"{"quant_method": "gptq", "bits": 9}"#, "bits is 9, expected 2, 3, 4 or 8"),
        (r#"{"quant_method": 3}"#, "quant_method is 3"),
        (r#"{"bits": 3}"#, "quant_method is null"),
        (r#"[]"#, "quantization_config is [], expected an object"),
        (r#"{"quant_method": "awq", "modules_to_not_convert": 7}"#, "modules_to_not_convert is 7, expected a list"),
    ] {
        let error = tensors("a.weight bf16 6x6").quantization(config).error();
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn what_only_a_configuration_tells() {
    let case = tensors("a.weight f8e4m3fn 256x256\na.scale f8e8m0 2x2");
    assert!(case.error().contains("the block of deepseek-v4 is not known"), "{}", case.error());
    assert_eq!(case.asked_for("deepseek-v4").unwrap().groups.len(), 1);
    let case = tensors("a.weight_packed i32 12x8\na.weight_scale bf16 12x2\na.weight_shape i64 2")
        .holds("a.weight_shape", i64s(&[12, 64]));
    assert!(case.error().contains("the width of ct:pack-quantized is not known"), "{}", case.error());
    assert_eq!(case.asked_for("ct:pack-quantized,bits=4,group=32").unwrap().groups.len(), 1);
}

#[test]
fn global_scales_that_look_inverted() {
    let lines = "a.weight u8 6x16\na.weight_scale f8e4m3fn 6x2\na.weight_scale_2 f32 -";
    for value in [1.0, 2688.0, f32::NAN, f32::INFINITY] {
        let case = tensors(lines).holds("a.weight_scale_2", f32s(&[value]));
        assert!(case.error().contains("a.weight_scale_2"), "{value}");
        let options = truecast_schemes::Options { trust_scales: true, ..Default::default() };
        assert_eq!(case.detect_with(&options).unwrap().groups.len(), 1);
    }
    let case = tensors("a.weight_packed u8 6x16\na.weight_scale f8e4m3fn 6x2\na.weight_global_scale f32 1")
        .holds("a.weight_global_scale", f32s(&[0.5]));
    assert!(case.error().contains("if the scale divides"), "{}", case.error());
}

#[test]
fn factors_beside_a_weight() {
    let case =
        tensors("a.weight u8 6x16\na.weight_scale f8e4m3fn 6x2\na.weight_scale_2 f32 -\na.pre_quant_scale f32 2")
            .holds("a.weight_scale_2", f32s(&[0.5]))
            .holds("a.pre_quant_scale", f32s(&[1.0, 1.5]));
    assert!(case.error().contains("a factor in addition to the weight is not supported"), "{}", case.error());
}

#[test]
fn packed_codes_that_do_not_fit_their_shape() {
    for (stated, expected) in [
        (vec![12, 72], "take 9 words per row"),
        (vec![13, 64], "is not a shape of ct:pack-quantized"),
        (vec![64], "[64], expected a shape"),
        (vec![-1, 64], "[-1, 64], expected a shape"),
        (vec![i64::MAX, i64::MAX], "expected a shape"),
    ] {
        let case = tensors(&format!(
            "a.weight_packed i32 12x8\na.weight_scale bf16 12x2\na.weight_shape i64 {}",
            stated.len()
        ))
        .holds("a.weight_shape", i64s(&stated))
        .quantization(PACK);
        assert!(case.error().contains(expected), "{}", case.error());
    }
}

#[test]
fn experts_of_another_type_than_declared() {
    let case = tensors("layers.0.ffn.experts.0.w1.weight f8e4m3fn 128x128\nlayers.0.ffn.experts.0.w1.scale f32 1x1").config(
        r#"{"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#,
    );
    assert!(!case.error().is_empty());
}

#[test]
fn names_that_occur_twice() {
    assert_eq!(tensors("a f32 3\na f32 3").error(), r#"tensor "a" occurs twice"#);
}

#[test]
fn markers_that_say_nothing_useful() {
    let case = tensors("a.weight u8 6x16\na.comfy_quant u8 3").holds("a.comfy_quant", *b"{x}");
    assert!(case.error().starts_with("tensor \"a.comfy_quant\":"), "{}", case.error());
    let case =
        tensors("a.weight i8 6x16\na.comfy_quant u8 3").holds("a.comfy_quant", *br#"{"format": "convrot_w4a4"}"#);
    assert!(case.error().contains("ComfyUI format \"convrot_w4a4\" is not supported"), "{}", case.error());
    let case = tensors("b.weight i8 6x16\na.comfy_quant u8 3").holds("a.comfy_quant", *br#"{"format": "nvfp4"}"#);
    assert!(case.error().starts_with("orphan marker \"a\""), "{}", case.error());
    assert!(tensors("a.weight i8 6x16\na.comfy_quant u8 2000000").error().contains("too many"));
}

/// Refused, also if the names have no module.
#[test]
fn integers_beside_a_scale() {
    for prefix in ["", "a."] {
        let error = tensors(&format!("{prefix}weight i8 8x8\n{prefix}weight_scale f32 8x1")).error();
        assert!(error.contains(&format!("{prefix}weight_scale")), "{error}");
    }
}
