//! Requirements of particular schemes: gpt-oss, activation scales, types of scales (`docs/spec/checkpoints.md §4.3`,
//! §7.2, §7.3, §7.8, §11.3).

use crate::work::{FILE, Work};
use serde_json::{Value, json};
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{Parsed, f32s};

const WEIGHT: &str = "layers.0.mlp.up_proj.weight";

fn bf16s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_bits().to_le_bytes()[2..].to_vec()).collect()
}

fn model(work: &Work, dir: &str, tensors: &[(&str, &[u64])], config: &Value) {
    let values = |shape: &[u64]| -> Vec<f32> {
        (0..shape.iter().product()).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.03125).collect()
    };
    let all: Vec<_> = tensors.iter().map(|(name, shape)| (*name, "BF16", *shape, bf16s(&values(shape)))).collect();
    work.model(dir, &all, &config.to_string());
}

fn parsed(work: &Work, dir: &str) -> Parsed {
    work.parsed(&format!("{dir}/{FILE}"))
}

/// Only the experts of gpt-oss become blocks, along the inputs.
#[test]
fn experts_of_gpt_oss() {
    let work = Work::new();
    let (gate_up, down) = ("layers.0.mlp.experts.gate_up_proj", "layers.0.mlp.experts.down_proj");
    let tensors: [(&str, &[u64]); 6] = [
        (gate_up, &[2, 64, 192]),
        (down, &[2, 96, 64]),
        ("layers.0.mlp.experts.gate_up_proj_bias", &[2, 192]),
        ("layers.0.mlp.router.weight", &[2, 64]),
        ("layers.0.self_attn.q_proj.weight", &[64, 64]),
        ("embed_tokens.weight", &[8, 64]),
    ];
    model(&work, "a", &tensors, &json!({"model_type": "gpt_oss", "torch_dtype": "bfloat16"}));
    assert_eq!(work.convert("a", "b", "scheme=gpt-oss").bits_per_weight(), Some(4.25));
    let made = parsed(&work, "b");
    assert_eq!(made.shape(&format!("{gate_up}_blocks")), &json!([2, 192, 2, 16]));
    assert_eq!(made.shape(&format!("{down}_scales")), &json!([2, 64, 3]));
    for (name, _) in &tensors[2..] {
        assert_eq!(made.dtype(name), "BF16", "{name}");
    }
    let declared = work.json("b/config.json")["quantization_config"].clone();
    assert_eq!(
        (&declared["quant_method"], &declared["modules_to_not_convert"][2]),
        (&json!("mxfp4"), &json!("embed_tokens"))
    );
    work.verify("a", "b", "");
    // A block has 32 inputs of one output. The block here belongs to column 5 of the first expert.
    let (source, scales) = (parsed(&work, "a"), made.bytes(&format!("{gate_up}_scales")).to_vec());
    let element = |row: usize, col: usize| {
        let at = (row * 192 + col) * 2;
        let bytes = &source.bytes(gate_up)[at..at + 2];
        f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16)
    };
    let amax = (0..32).fold(0f32, |most, row| most.max(element(row, 5).abs()));
    assert_eq!(i32::from(scales[5 * 2]) - 127, (amax / 6.0).log2().ceil() as i32);
    let path = format!("b/{FILE}");
    let right = work.read(&path);
    for byte in [right.len() - 1, right.len() / 2] {
        work.flipped(&path, byte, 1, "", || work.checked("a", "b", ""));
    }
    work.convert("b", "c", "to=bf16");
    assert_eq!(
        (parsed(&work, "c").shape(gate_up), parsed(&work, "c").shape(down)),
        (&json!([2, 64, 192]), &json!([2, 96, 64]))
    );
    work.convert("a", "few", "scheme=gpt-oss threads=1 mebibytes=2");
    assert!(work.read(&format!("few/{FILE}")) == right);
    work.convert("c", "again", "scheme=gpt-oss");
    work.convert("again", "d", "to=bf16");
    assert!(work.read(&format!("d/{FILE}")) == work.read(&format!("c/{FILE}")));
    let warnings = work.convert("a", "e", "scheme=fp8-block:32x32").warnings.join("\n");
    assert!(warnings.contains(gate_up) && warnings.contains("1 other"), "{warnings}");
    assert_eq!(parsed(&work, "e").dtype(gate_up), "BF16");
    let kept = work.json("e/config.json")["quantization_config"]["modules_to_not_convert"].to_string();
    assert!(kept.contains("layers.0.mlp.experts"), "{kept}");
}

#[test]
fn scales_of_activations() {
    let work = Work::new();
    model(&work, "a", &[(WEIGHT, &[32, 64]), ("layers.0.mlp.down_proj.weight", &[64, 32])], &json!({}));
    for (scheme, other) in
        [("modelopt:NVFP4", "modelopt:W4A16_NVFP4"), ("modelopt:FP8", "modelopt:FP8_PER_CHANNEL_PER_TOKEN")]
    {
        let said = [scheme, WEIGHT, "1 other"];
        work.refused("a", "b", &format!("scheme={scheme}"), "missing-argument", &said);
        work.convert("a", "b", &format!("scheme={other}"));
        let algorithm = other.split(':').nth(1).unwrap();
        assert_eq!(work.json("b/config.json")["quantization_config"]["quant_algo"], json!(algorithm));
        assert_eq!(work.json("b/hf_quant_config.json")["quantization"]["quant_algo"], json!(algorithm));
        work.remove(&["b"]);
    }
    work.write("some.json", br#"{"layers.0.mlp.up_proj": 896}"#);
    work.refused("a", "b", "scheme=modelopt:FP8 activation_ranges=some.json", "missing-argument", &["down_proj"]);
    for wrong in ["[]", r#"{"a": "b"}"#, r#"{"a": 0}"#, r#"{"a": -1}"#, "{"] {
        work.write("wrong.json", wrong.as_bytes());
        work.refused("a", "b", "scheme=modelopt:FP8 activation_ranges=wrong.json", "malformed-file", &["wrong.json"]);
    }
    work.refused("a", "b", "scheme=modelopt:FP8 activation_ranges=none.json", "not-found", &["none.json"]);
    work.refused("a", "b", "scheme=fp8-block activation_ranges=some.json", "inapplicable-option", &["fp8-block"]);
    work.write("all.json", br#"{"layers.0.mlp.up_proj": 896, "layers.0.mlp.down_proj.weight": 672}"#);
    let scale = |dir: &str, name: &str| parsed(&work, dir).bytes(&format!("layers.0.mlp.{name}")).to_vec();
    for (dir, scheme, of_up, of_down) in [
        ("fp8", "modelopt:FP8", 896.0 / 448.0, 672.0 / 448.0),
        ("nvfp4", "modelopt:NVFP4", 896.0 / 2688.0, 672.0 / 2688.0),
    ] {
        work.convert("a", dir, &format!("scheme={scheme} activation_ranges=all.json"));
        assert_eq!(
            (scale(dir, "up_proj.input_scale"), scale(dir, "down_proj.input_scale")),
            (f32s(&[of_up]), f32s(&[of_down]))
        );
        assert_eq!(parsed(&work, dir).shape("layers.0.mlp.up_proj.input_scale"), &json!([]));
        work.verify("a", dir, "");
    }
    let right = work.read(&format!("nvfp4/{FILE}"));
    let at = right.windows(4).position(|bytes| bytes == f32s(&[0.25])).unwrap();
    work.flipped(&format!("nvfp4/{FILE}"), at, 1, "", || work.checked("a", "nvfp4", ""));
    work.convert("nvfp4", "same", "scheme=modelopt:NVFP4 relayout=exact");
    assert_eq!(scale("same", "up_proj.input_scale"), scale("nvfp4", "up_proj.input_scale"));
    work.convert("nvfp4", "ct", "scheme=ct:nvfp4-pack-quantized relayout=lossy");
    assert_eq!(scale("ct", "down_proj.input_global_scale"), f32s(&[4.0]));
    let group = work.json("ct/config.json")["quantization_config"]["config_groups"]["group_0"].clone();
    has(&group, &json!({ "input_activations": { "num_bits": 4, "dynamic": "local" } }));
    work.verify("nvfp4", "ct", "");
    work.convert("ct", "back", "scheme=modelopt:FP8");
    assert_eq!(scale("back", "down_proj.input_scale"), f32s(&[672.0 / 448.0]));
    work.verify("ct", "back", "");
    // Without known magnitudes, only weights are quantized.
    work.convert("a", "weights", "scheme=ct:nvfp4-pack-quantized");
    let group = work.json("weights/config.json")["quantization_config"]["config_groups"]["group_0"].clone();
    assert_eq!(group["input_activations"], Value::Null);
}

/// Type of scales: the requested type, the configuration's, or the weights'.
#[test]
fn types_of_scales() {
    let work = Work::new();
    for (config, options, dtype) in [
        (json!({}), "", "BF16"),
        (json!({"torch_dtype": "float16"}), "", "F16"),
        (json!({"text_config": {"dtype": "float32"}}), "", "F32"),
        (json!({"torch_dtype": "float16"}), "to=bf16", "BF16"),
    ] {
        model(&work, "a", &[(WEIGHT, &[32, 64]), ("norm.weight", &[4])], &config);
        for scheme in ["fp8-channel", "ct:pack-quantized,bits=4,group=32", "ct:int-quantized", "ct:float-quantized"] {
            work.convert("a", "b", &format!("scheme={scheme} {options} replace"));
            assert_eq!(parsed(&work, "b").dtype(&format!("{WEIGHT}_scale")), dtype, "{config} {scheme}");
            work.verify("a", "b", "");
            work.convert("a", "c", &format!("scheme={scheme},scale=f32 {options} replace"));
            assert_eq!(parsed(&work, "c").dtype(&format!("{WEIGHT}_scale")), "F32", "{config} {scheme}");
        }
        work.convert("a", "b", "scheme=fp8-block replace");
        assert_eq!(parsed(&work, "b").dtype(&format!("{WEIGHT}_scale_inv")), "F32");
    }
    model(&work, "a", &[(WEIGHT, &[32, 64])], &json!({}));
    let report = work.convert("a", "b", "scheme=ct:pack-quantized,bits=4,group=32 replace");
    assert_eq!(report.bits_per_weight().map(|bits| (bits * 100.0).round()), Some(456.0));
    let values: Vec<f32> = (0..64).map(|i| if i % 3 == 0 { f32::MAX } else { f32::MAX / (i as f32) }).collect();
    work.model("a", &[(WEIGHT, "F32", &[2, 32], f32s(&values))], "{}");
    for scheme in ["ct:mxfp4-pack-quantized", "ct:mxfp6-pack-quantized", "ct:mxfp8-quantized", "mxfp8"] {
        for rule in ["floor", "rceil", "even", "ct"] {
            let report = work.convert("a", "b", &format!("scheme={scheme} mx_scale={rule} replace"));
            assert_eq!(report.total.all.counts.to_inf, 0, "{scheme} {rule}");
            work.verify("a", "b", "");
            work.convert("b", "c", "to=f32 replace");
            let back = parsed(&work, "c");
            let is_finite = |four: &[u8]| f32::from_le_bytes(four.try_into().unwrap()).is_finite();
            assert!(back.bytes(WEIGHT).chunks(4).all(is_finite), "{scheme} {rule}");
        }
    }
}
