//! §2.5: the possible places of a configuration.

use crate::tensors;

const LINES: &str = "a.weight f8e4m3fn 128x128\na.weight_scale_inv f32 1x1";
const FP8: &str = r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#;

#[test]
fn every_place_is_read() {
    for config in [
        format!(r#"{{"quantization_config": {FP8}}}"#),
        format!(r#"{{"text_config": {{"quantization_config": {FP8}}}}}"#),
        format!(r#"{{"compression_config": {{"quantization_config": {FP8}}}}}"#),
        format!(r#"{{"quantization_config": {FP8}, "text_config": {{"quantization_config": {FP8}}}}}"#),
    ] {
        assert_eq!(tensors(LINES).config(&config).detect().groups.len(), 1, "{config}");
    }
}

#[test]
fn mlx_writes_it_twice() {
    let both = r#"{"group_size": 64, "bits": 4}"#;
    let case = tensors("a.weight u32 6x8\na.scales bf16 6x1\na.biases bf16 6x1")
        .config(&format!(r#"{{"quantization": {both}, "quantization_config": {both}}}"#));
    assert_eq!(case.detect().schemes.len(), 1);
}

#[test]
fn caches_alone_are_no_scheme() {
    let case = tensors("a.weight bf16 6x8\na.k_scale f32 -")
        .hf_quant_config(r#"{"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}}"#);
    assert!(case.detect().groups.is_empty());
}

#[test]
fn from_scheme_takes_what_the_file_says() {
    let case = tensors("a.weight f8e4m3fn 64x64\na.weight_scale_inv f32 2x2")
        .quantization(r#"{"quant_method": "fp8", "weight_block_size": [32, 32]}"#);
    assert_eq!(case.asked_for("fp8-block").unwrap().schemes[0].to_string(), "fp8-block:32x32");
    assert!(case.asked_for("fp8-block:64x64").is_err());
}

#[test]
fn names_of_schemes_parse_and_print() {
    for family in truecast_schemes::Family::all() {
        let scheme = family.name().parse::<truecast_schemes::Scheme>().unwrap();
        assert_eq!((scheme.family, scheme.to_string().as_str()), (family, family.name()));
    }
    for (text, printed) in [
        ("fp8-block:64x128,scale=ue8m0", "fp8-block:64x128,scale=ue8m0"),
        ("fp8-block,block=64x128", "fp8-block:64x128"),
        ("modelopt:nvfp4", "modelopt:NVFP4"),
        ("modelopt:W4A16_NVFP4", "modelopt:W4A16_NVFP4"),
        ("ct:pack-quantized,group=32,bits=4", "ct:pack-quantized,bits=4,group=32"),
    ] {
        assert_eq!(text.parse::<truecast_schemes::Scheme>().unwrap().to_string(), printed);
    }
    for (text, error) in [
        ("fp8", "unknown scheme \"fp8\""),
        ("awq,bits=4", "scheme awq has no parameter \"bits\"; it has group"),
        ("plain,bits=4", "scheme plain has no parameter \"bits\"; it has none"),
        ("gptq,bits=9", "scheme gptq: bits=\"9\", expected a number from 1 to 8"),
        ("gptq,bits=4,bits=4", "scheme gptq: bits is given twice"),
        ("fp8-block:0x1", "scheme fp8-block: block=\"0x1\", expected two numbers such as 128x128"),
        ("fp8-block:1x1,block=2x2", "scheme fp8-block: block is given twice"),
    ] {
        let found = text.parse::<truecast_schemes::Scheme>().unwrap_err().to_string();
        assert!(found.starts_with(error), "{found}");
    }
}
