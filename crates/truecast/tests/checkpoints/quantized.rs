//! Dequantization of checkpoints: `docs/spec/checkpoints.md §3`, §4, with independent code for the arithmetic.

use crate::work::Work;
use serde_json::{Value, json};
use truecast::report::Report;
use truecast_testkit::formats::{E2M1, bf16, e4m3, halves};
use truecast_testkit::safetensors::{f32s, safetensors};

fn config(work: &Work, value: &Value) {
    work.write("model/config.json", serde_json::to_string_pretty(value).unwrap().as_bytes());
}

const ROWS: usize = 130;
const COLS: usize = 300;

fn scales() -> Vec<f32> {
    (0..6).map(|i| 0.0123 * (i + 1) as f32).collect()
}

fn codes() -> Vec<u8> {
    (0..ROWS * COLS).map(|i| (i * 37 + i / 256) as u8).collect()
}

/// Blocks of 128 x 128, cut off at the edges. The scales are in another file.
fn deepseek() -> Work {
    let work = Work::new();
    let shape = [ROWS as u64, COLS as u64];
    let first =
        [("a.weight", "F8_E4M3", &shape[..], codes()), ("norm.weight", "BF16", &[2], vec![0x80, 0x3f, 0, 0x40])];
    let second =
        [("a.weight_scale_inv", "F32", &[2u64, 3][..], f32s(&scales())), ("b.bias", "F32", &[1], f32s(&[0.1]))];
    let (one, two) = (safetensors(&first, &[("format", "pt")]), safetensors(&second, &[]));
    let files = [("one.safetensors", one), ("two.safetensors", two)];
    work.write_shards("model", &json!({}), &files);
    config(
        &work,
        &json!({
            "torch_dtype": "bfloat16",
            "quantization_config": { "quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128] }
        }),
    );
    work
}

#[test]
fn block_fp8_becomes_bf16() {
    let work = deepseek();
    let report = serde_json::to_value(work.convert("model", "out", "to=bf16")).unwrap();
    let one = work.parsed("out/one.safetensors");
    let scales = scales();
    let expected = codes().into_iter().enumerate().map(|(i, code)| {
        let (row, col) = (i / COLS, i % COLS);
        bf16(e4m3(code) * scales[row / 128 * 3 + col / 128])
    });
    let expected: Vec<u16> = expected.collect();
    assert_eq!((one.dtype("a.weight"), one.shape("a.weight")), ("BF16", &json!([ROWS, COLS])));
    assert_eq!(halves(one.bytes("a.weight")), expected);
    assert_eq!(one.bytes("norm.weight"), [0x80, 0x3f, 0, 0x40]);
    let two = work.parsed("out/two.safetensors");
    assert_eq!((two.names(), two.dtype("b.bias")), (vec!["b.bias"], "BF16"));
    let index = work.json("out/model.safetensors.index.json");
    assert_eq!(index["metadata"]["total_size"], json!(2 * ROWS * COLS + 4 + 2));
    assert_eq!(index["weight_map"].as_object().unwrap().len(), 3);
    assert_eq!(work.json("out/config.json"), json!({ "torch_dtype": "bfloat16" }));
    assert_eq!(report["tensors"][0]["from"], "f8e4m3fn");
    assert_eq!(
        (&report["tensors"][0]["scheme"], &report["tensors"][0]["group"]),
        (&json!("fp8-block:128x128"), &json!("converted"))
    );
    assert_eq!(report["tensors"][0]["bytes_in"], json!(ROWS * COLS + 24));
    work.verify("model", "out", "");
    let at = one.place("a.weight") + 2 * 777;
    work.flipped("out/one.safetensors", at, 1, "a.weight", || work.checked("model", "out", ""));
}

#[test]
fn pieces_threads_and_parts_change_no_bit() {
    let work = deepseek();
    work.convert("model", "out", "to=f16");
    let expected = work.files("out");
    work.convert("model", "small", "to=f16 mebibytes=1 threads=1");
    assert_eq!(work.files("small"), expected);
    work.convert("model", "parts", "to=f16 part=2/2");
    work.convert("model", "parts", "to=f16 part=1/2");
    assert_eq!(work.files("parts"), expected);
}

/// NaN and infinite scales are values (`docs/spec/checkpoints.md §3.6`). Missing or unsuitable scales are an error.
#[test]
fn odd_scales() {
    let work = deepseek();
    let odd: Vec<f32> = vec![f32::NAN, f32::INFINITY, 1.0, 1.0, 1.0, 1.0];
    work.write(
        "model/two.safetensors",
        &safetensors(&[("a.weight_scale_inv", "F32", &[2, 3], f32s(&odd)), ("b.bias", "F32", &[1], f32s(&[0.1]))], &[]),
    );
    let report = serde_json::to_value(work.convert("model", "out", "to=bf16")).unwrap();
    assert!(report["total"]["nan_out"].as_u64().unwrap() >= 128 * 128);
    work.verify("model", "out", "");
    for (tensors, code, said) in [
        (vec![("b.bias", "F32", &[1u64][..], f32s(&[0.1]))], "scale-missing", ["missing", "a.weight_scale_inv"]),
        (
            vec![("a.weight_scale_inv", "F32", &[2, 2], f32s(&[1.0; 4])), ("b.bias", "F32", &[1], f32s(&[0.1]))],
            "shape-mismatch",
            ["a.weight_scale_inv", "[2, 3]"],
        ),
        (
            vec![("a.weight_scale_inv", "I32", &[2, 3], vec![0; 24]), ("b.bias", "F32", &[1], f32s(&[0.1]))],
            "type-mismatch",
            ["a.weight_scale_inv", "i32"],
        ),
    ] {
        let work = deepseek();
        let one = ("one.safetensors", work.read("model/one.safetensors"));
        let two = ("two.safetensors", safetensors(&tensors, &[]));
        work.write_shards("model", &json!({}), &[one, two]);
        work.refused("model", "out", "to=bf16", code, &said);
    }
    let work = deepseek();
    work.refused("model", "out", "to=bf16 keep=a.weight", "scales-lost", &["a.weight", "fp8-block:128x128"]);
}

/// The tensors with Hugging Face names are transposed (§4.3).
#[test]
fn gpt_oss_becomes_bf16() {
    let work = Work::new();
    let (experts, rows, groups) = (2, 6, 3);
    let blocks: Vec<u8> = (0..experts * rows * groups * 16).map(|i| (i * 53 + i / 7) as u8).collect();
    let scales: Vec<u8> = (0..experts * rows * groups).map(|i| (120 + i % 13) as u8).collect();
    let name = |suffix: &str| format!("model.layers.0.mlp.experts.gate_up_proj_{suffix}");
    let (of_blocks, of_scales) = (name("blocks"), name("scales"));
    let tensors = [
        (of_blocks.as_str(), "U8", &[2u64, 6, 3, 16][..], blocks.clone()),
        (of_scales.as_str(), "U8", &[2, 6, 3], scales.clone()),
    ];
    work.write("model/model.safetensors", &safetensors(&tensors, &[]));
    config(&work, &json!({ "quantization_config": { "quant_method": "mxfp4" } }));
    work.convert("model", "out", "to=bf16");
    let out = work.parsed("out/model.safetensors");
    let dense = "model.layers.0.mlp.experts.gate_up_proj";
    assert_eq!(out.shape(dense), &json!([2, 96, 6]));
    let got = halves(out.bytes(dense));
    for expert in 0..experts {
        for row in 0..rows {
            for col in 0..32 * groups {
                let byte = blocks[(expert * rows + row) * 16 * groups + col / 2];
                let code = if col % 2 == 0 { byte & 15 } else { byte >> 4 };
                let scale = scales[(expert * rows + row) * groups + col / 32];
                let value = E2M1[usize::from(code)] * 2f32.powi(i32::from(scale) - 127);
                assert_eq!(got[(expert * 32 * groups + col) * rows + row], bf16(value), "{expert} {row} {col}");
            }
        }
    }
    work.verify("model", "out", "");
}

/// An unknown key, and values that matter: `docs/spec/checkpoints.md §5.3.1`.
#[test]
fn what_a_declaration_says_is_understood_or_refused() {
    let work = deepseek();
    let declared = |more: &str| {
        let text =
            format!(r#"{{"quantization_config": {{"quant_method": "fp8", "weight_block_size": [128, 128]{more}}}}}"#);
        work.write("model/config.json", text.as_bytes());
    };
    declared(r#", "transform_config": {"u": {"type": "hadamard"}}"#);
    for words in ["to=bf16", "scheme=nvfp4"] {
        work.refused("model", "out", words, "unknown-quantization", &["config.json", "\"transform_config\" is {"]);
    }
    work.convert("model", "out", "to=bf16 from_scheme=fp8-block");
    declared("");
    work.convert("model", "known", "to=bf16");
    assert_eq!(work.read("out/one.safetensors"), work.read("known/one.safetensors"));
    // A narrow type needs scales, so the source's scales are not dropped unless a rule insists.
    work.refused("model", "narrow", "to=f8e4m3fn", "scales-lost", &["fp8-block:128x128", "f8e4m3fn"]);
    work.refused("model", "narrow", "to=i8", "scales-lost", &["i8"]);
    work.convert("model", "narrow", "rule=*=f8e4m3fn");
    work.verify("model", "narrow", "rule=*=f8e4m3fn");
}

#[test]
fn a_configuration_is_an_object_and_there_is_one() {
    let work = Work::new();
    let values: Vec<f32> = (0..128 * 128).map(|i| (i % 97) as f32 - 48.0).collect();
    work.write("model/model.safetensors", &safetensors(&[("a.weight", "F32", &[128, 128], f32s(&values))], &[]));
    for text in ["[1]", "\"x\"", "7"] {
        work.write("model/config.json", text.as_bytes());
        for words in ["to=bf16", "scheme=fp8-block"] {
            work.refused("model", "out", words, "invalid-configuration", &["config.json", text]);
        }
    }
    std::fs::remove_file(work.path("model/config.json")).unwrap();
    let names_it = |report: Report| report.warnings.iter().any(|warning| warning.contains("no config.json"));
    assert!(names_it(work.convert("model", "out", "scheme=fp8-block")));
    let text = String::from_utf8(work.read("out/config.json")).unwrap();
    assert!(
        text.starts_with("{\n  \"quantization_config\": {\n    \"quant_method\": \"fp8\",\n")
            && text.ends_with("\n}\n"),
        "{text}"
    );
    work.verify("model", "out", "");
    assert!(!names_it(work.convert("model", "dense", "to=bf16")));
}
