//! Quantized checkpoints are dequantized: `docs/spec/checkpoints.md §3`, §4, with the arithmetic written out here.

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::formats::{E2M1, bf16, e4m3, halves};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

fn config(folder: &Folder, value: &Value) {
    folder.write("model/config.json", serde_json::to_string_pretty(value).unwrap().as_bytes());
}

const ROWS: usize = 130;
const COLS: usize = 300;

fn scales() -> Vec<f32> {
    (0..6).map(|i| 0.0123 * (i + 1) as f32).collect()
}

fn codes() -> Vec<u8> {
    (0..ROWS * COLS).map(|i| (i * 37 + i / 256) as u8).collect()
}

/// Blocks of 128 x 128, cut off at the edges, the scales in another file.
fn deepseek() -> Folder {
    let folder = Folder::new();
    let shape = [ROWS as u64, COLS as u64];
    let first =
        [("a.weight", "F8_E4M3", &shape[..], codes()), ("norm.weight", "BF16", &[2], vec![0x80, 0x3f, 0, 0x40])];
    let second =
        [("a.weight_scale_inv", "F32", &[2u64, 3][..], f32s(&scales())), ("b.bias", "F32", &[1], f32s(&[0.1]))];
    let (one, two) = (safetensors(&first, &[("format", "pt")]), safetensors(&second, &[]));
    let files = [("one.safetensors", one), ("two.safetensors", two)];
    folder.write_shards("model", &json!({}), &files);
    config(
        &folder,
        &json!({
            "torch_dtype": "bfloat16",
            "quantization_config": { "quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128] }
        }),
    );
    folder
}

#[test]
fn block_fp8_becomes_bf16() {
    let folder = deepseek();
    folder.run("convert model out --to bf16 --report r.json --quiet").succeeds();
    let one = Parsed::new(&folder.read("out/one.safetensors"));
    let scales = scales();
    let expected = codes().into_iter().enumerate().map(|(i, code)| {
        let (row, col) = (i / COLS, i % COLS);
        bf16(e4m3(code) * scales[row / 128 * 3 + col / 128])
    });
    let expected: Vec<u16> = expected.collect();
    assert_eq!((one.dtype("a.weight"), one.shape("a.weight")), ("BF16", &json!([ROWS, COLS])));
    assert_eq!(halves(one.bytes("a.weight")), expected);
    assert_eq!(one.bytes("norm.weight"), [0x80, 0x3f, 0, 0x40]);
    // The scales are gone from the other file, from the index and from the configuration.
    let two = Parsed::new(&folder.read("out/two.safetensors"));
    assert_eq!((two.names(), two.dtype("b.bias")), (vec!["b.bias"], "BF16"));
    let index = folder.json("out/model.safetensors.index.json");
    assert_eq!(index["metadata"]["total_size"], json!(2 * ROWS * COLS + 4 + 2));
    assert_eq!(index["weight_map"].as_object().unwrap().len(), 3);
    assert_eq!(folder.json("out/config.json"), json!({ "torch_dtype": "bfloat16" }));
    let report = folder.json("r.json");
    assert_eq!(report["tensors"][0]["from"], "f8e4m3fn");
    assert_eq!(
        (&report["tensors"][0]["scheme"], &report["tensors"][0]["group"]),
        (&json!("fp8-block:128x128"), &json!("converted"))
    );
    assert_eq!(report["tensors"][0]["bytes_in"], json!(ROWS * COLS + 24));
    folder.run("verify model out").succeeds();
    folder.run("verify model out --report r.json --full").succeeds();
    // One bit is found.
    let ran = folder.run_with_flipped("out/one.safetensors", one.place("a.weight") + 2 * 777, 1, "verify model out");
    assert!(ran.out.contains("tensor \"a.weight\": 1 wrong element; the first is 777"), "{}", ran.out);
}

#[test]
fn pieces_threads_and_parts_change_no_bit() {
    let folder = deepseek();
    folder.run("convert model out --to f16 --quiet").succeeds();
    let expected = tree(&folder, "out");
    folder.run("convert model small --to f16 --quiet --max-memory 1MiB --threads 1").succeeds();
    assert_eq!(tree(&folder, "small"), expected);
    folder.run("convert model parts --to f16 --quiet --part 2/2").succeeds();
    folder.run("convert model parts --to f16 --quiet --part 1/2").succeeds();
    assert_eq!(tree(&folder, "parts"), expected);
}

/// NaN and infinite scales are values (`docs/spec/checkpoints.md §3.6`); missing or unsuitable scales are an error.
#[test]
fn odd_scales() {
    let folder = deepseek();
    let odd: Vec<f32> = vec![f32::NAN, f32::INFINITY, 1.0, 1.0, 1.0, 1.0];
    folder.write(
        "model/two.safetensors",
        &safetensors(&[("a.weight_scale_inv", "F32", &[2, 3], f32s(&odd)), ("b.bias", "F32", &[1], f32s(&[0.1]))], &[]),
    );
    let report = folder.run("convert model out --to bf16 --json").exits(0).object("convert");
    assert!(report["total"]["nan_out"].as_u64().unwrap() >= 128 * 128);
    folder.run("verify model out").succeeds();
    for (tensors, said) in [
        (vec![("b.bias", "F32", &[1u64][..], f32s(&[0.1]))], ["missing", "a.weight_scale_inv"]),
        (
            vec![("a.weight_scale_inv", "F32", &[2, 2], f32s(&[1.0; 4])), ("b.bias", "F32", &[1], f32s(&[0.1]))],
            ["a.weight_scale_inv", "[2, 3]"],
        ),
        (
            vec![("a.weight_scale_inv", "I32", &[2, 3], vec![0; 24]), ("b.bias", "F32", &[1], f32s(&[0.1]))],
            ["a.weight_scale_inv", "i32"],
        ),
    ] {
        let folder = deepseek();
        let one = ("one.safetensors", folder.read("model/one.safetensors"));
        let two = ("two.safetensors", safetensors(&tensors, &[]));
        folder.write_shards("model", &json!({}), &[one, two]);
        folder.run("convert model out --to bf16").fails(3, &said);
        assert!(!folder.path("out").exists());
    }
    let folder = deepseek();
    folder.run("convert model out --to bf16 --keep a.weight").fails(2, &["a.weight", "fp8-block:128x128"]);
}

/// The Hugging Face names are written transposed (§4.3).
#[test]
fn gpt_oss_becomes_bf16() {
    let folder = Folder::new();
    let (experts, rows, groups) = (2, 6, 3);
    let blocks: Vec<u8> = (0..experts * rows * groups * 16).map(|i| (i * 53 + i / 7) as u8).collect();
    let scales: Vec<u8> = (0..experts * rows * groups).map(|i| (120 + i % 13) as u8).collect();
    let name = |suffix: &str| format!("model.layers.0.mlp.experts.gate_up_proj_{suffix}");
    let (of_blocks, of_scales) = (name("blocks"), name("scales"));
    let tensors = [
        (of_blocks.as_str(), "U8", &[2u64, 6, 3, 16][..], blocks.clone()),
        (of_scales.as_str(), "U8", &[2, 6, 3], scales.clone()),
    ];
    folder.write("model/model.safetensors", &safetensors(&tensors, &[]));
    config(&folder, &json!({ "quantization_config": { "quant_method": "mxfp4" } }));
    folder.run("convert model out --to bf16 --quiet").succeeds();
    let out = Parsed::new(&folder.read("out/model.safetensors"));
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
    folder.run("verify model out").succeeds();
}

/// A key that is not known, and values that decide: `docs/spec/checkpoints.md §5.3.1`.
#[test]
fn what_a_declaration_says_is_understood_or_refused() {
    let folder = deepseek();
    let declared = |more: &str| {
        let text =
            format!(r#"{{"quantization_config": {{"quant_method": "fp8", "weight_block_size": [128, 128]{more}}}}}"#);
        folder.write("model/config.json", text.as_bytes());
    };
    declared(r#", "transform_config": {"u": {"type": "hadamard"}}"#);
    for command in
        ["convert model out --to bf16", "convert model out --scheme nvfp4", "convert model out --to bf16 --dry-run"]
    {
        let said = &["config.json: quantization_config", "\"transform_config\" is {", "--from-scheme fp8-block"];
        folder.run(command).fails(3, said);
    }
    assert!(!folder.path("out").exists());
    folder.run("convert model out --to bf16 --from-scheme fp8-block --quiet").exits(0);
    declared("");
    folder.run("convert model known --to bf16 --quiet").exits(0);
    assert_eq!(folder.read("out/one.safetensors"), folder.read("known/one.safetensors"));
    // The scales are not dropped for a type that needs some, unless a rule insists.
    let said =
        &["quantized (fp8-block:128x128", "f8e4m3fn would drop the scales", "--scheme NAME", "--to bf16", "--rule"];
    folder.run("convert model narrow --to f8e4m3fn").fails(2, said);
    folder.run("convert model narrow --to i8").fails(2, &["i8 would drop the scales"]);
    assert!(!folder.path("narrow").exists());
    folder.run("convert model narrow --rule *=f8e4m3fn --quiet").exits(0);
    folder.run("verify model narrow --rule *=f8e4m3fn").succeeds();
}

#[test]
fn a_configuration_is_an_object_and_there_is_one() {
    let folder = Folder::new();
    let values: Vec<f32> = (0..128 * 128).map(|i| (i % 97) as f32 - 48.0).collect();
    folder.write("model/model.safetensors", &safetensors(&[("a.weight", "F32", &[128, 128], f32s(&values))], &[]));
    for text in ["[1]", "\"x\"", "7"] {
        folder.write("model/config.json", text.as_bytes());
        for command in ["convert model out --to bf16", "convert model out --scheme fp8-block"] {
            folder.run(command).fails(3, &["config.json", &format!("is {text}, expected an object")]);
        }
    }
    std::fs::remove_file(folder.path("model/config.json")).unwrap();
    let ran = folder.run("convert model out --scheme fp8-block").exits(0);
    ran.warns(&["no config.json; the written config.json holds only quantization_config"]);
    let text = String::from_utf8(folder.read("out/config.json")).unwrap();
    assert!(
        text.starts_with("{\n  \"quantization_config\": {\n    \"quant_method\": \"fp8\",\n")
            && text.ends_with("\n}\n"),
        "{text}"
    );
    folder.run("verify model out").succeeds();
    assert!(!folder.run("convert model dense --to bf16").exits(0).err.contains("config.json"));
}
