//! Quantized checkpoints, quantized again by another scheme in one run: `docs/interfaces.md §4.2`. The result equals
//! that of two runs through f32.

use crate::work::{FILE, Work};
use serde_json::json;
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{Found, f32s, safetensors};

const ROWS: u64 = 66;
const COLS: u64 = 160;
const FILES: [&str; 2] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

/// Two shards of f32: two matrices, an embedding, a norm.
fn dense() -> Work {
    let work = Work::new();
    let values = |seed: u64| -> Vec<f32> {
        let value = |i: u64| ((i * 37 + seed) % 1009) as f32 - 504.0;
        (0..ROWS * COLS).map(|i| value(i) * 0.0137 * if i < COLS { 60.0 } else { 1.0 }).collect()
    };
    let shape = [ROWS, COLS];
    let first = [
        ("model.embed_tokens.weight", "F32", &[32u64, 32][..], f32s(&values(5)[..1024])),
        ("model.layers.0.self_attn.q_proj.weight", "F32", &shape, f32s(&values(1))),
    ];
    let second = [
        ("model.layers.0.self_attn.k_proj.weight", "F32", &shape[..], f32s(&values(77))),
        ("model.norm.weight", "F32", &[64], f32s(&values(3)[..64])),
    ];
    let (first, second) = (safetensors(&first, &[("format", "pt")]), safetensors(&second, &[]));
    work.write_shards("dense", &json!({}), &[(FILES[0], first), (FILES[1], second)]);
    work.write("dense/config.json", b"{\n  \"model_type\": \"x\",\n  \"torch_dtype\": \"float32\"\n}\n");
    work
}

fn tensors(work: &Work, dir: &str) -> [Vec<Found>; 2] {
    FILES.map(|file| work.parsed(&format!("{dir}/{file}")).tensors())
}

const KEEP: &str = "keep_preset=embeddings";

#[test]
fn one_run_makes_what_two_runs_make() {
    let sources = [
        "fp8-block:64x64", "ct:pack-quantized,bits=4,group=32,symmetric=false", "modelopt:W4A16_NVFP4", "comfy:mxfp8",
        "ct:mxfp6-pack-quantized",
    ];
    let targets = [
        "ct:mxfp4-pack-quantized", "modelopt:W4A16_NVFP4", "fp8-tensor", "ct:int-quantized", "comfy:nvfp4",
        "fp8-block:64x64",
    ];
    for from in sources {
        let work = dense();
        work.convert("dense", "source", &format!("scheme={from} {KEEP}"));
        work.convert("source", "f32", "to=f32");
        for to in targets {
            let words = format!("scheme={to} {KEEP}");
            let reports = [("source", "one"), ("f32", "two")].map(|(src, dst)| work.convert(src, dst, &words));
            assert_eq!(tensors(&work, "one"), tensors(&work, "two"), "{from} to {to}");
            let [one, two] = ["one", "two"].map(|dir| work.json(&format!("{dir}/config.json")));
            assert_eq!(one, two, "{from} to {to}");
            assert!(work.path("one/hf_quant_config.json").exists() == to.starts_with("modelopt"), "{from} to {to}");
            // Losses are relative to the dequantized values. A row of the report has both schemes.
            let [one, two] = reports.map(|report| serde_json::to_value(&report).unwrap()["tensors"].clone());
            for (one, two) in one.as_array().unwrap().iter().zip(two.as_array().unwrap()) {
                has(one, &json!({ "name": two["name"], "sqnr_db": two["sqnr_db"], "exact": two["exact"] }));
                assert_eq!(one.get("scheme").is_some(), one.get("to_scheme").is_some());
            }
            work.verify("source", "one", "");
            work.remove(&["one", "two"]);
        }
    }
}

#[test]
fn pieces_threads_and_parts_change_no_byte() {
    let work = dense();
    work.convert("dense", "source", &format!("scheme=fp8-block:64x64 {KEEP}"));
    let line = format!("scheme=modelopt:W4A16_NVFP4 {KEEP} share_global=*q_proj*,*k_proj*");
    work.convert("source", "out", &line);
    work.verify("source", "out", "");
    let [first, second] = FILES.map(|file| work.parsed(&format!("out/{file}")));
    let [q, k] = ["q", "k"].map(|x| format!("model.layers.0.self_attn.{x}_proj.weight_scale_2"));
    assert_eq!(first.bytes(&q), second.bytes(&k));
    work.convert("source", "few", &format!("{line} threads=1 mebibytes=3"));
    work.convert("source", "parts", &format!("{line} part=2/2"));
    work.convert("source", "parts", &format!("{line} part=1/2"));
    assert_eq!(work.files("few"), work.files("out"));
    assert_eq!(work.files("parts"), work.files("out"));
    let path = format!("out/{}", FILES[0]);
    let right = work.read(&path);
    for at in [right.len() - 1, right.len() / 2] {
        work.flipped(&path, at, 4, "", || work.checked("source", "out", ""));
    }
    let path = format!("source/{}", FILES[1]);
    let at = work.read(&path).len() - 3 * (ROWS * COLS) as usize / 4;
    work.flipped(&path, at, 0x10, "", || work.checked("source", "out", ""));
}

/// gpt-oss stores its tensors transposed.
#[test]
fn transposed_experts() {
    let work = Work::new();
    let name = "model.layers.0.mlp.experts.down_proj";
    let blocks: Vec<u8> = (0..2 * 96 * 2 * 16u32).map(|i| (i * 37 % 251) as u8).collect();
    let scales: Vec<u8> = (0..2 * 96 * 2u32).map(|i| (120 + i % 13) as u8).collect();
    let tensors = [
        (&format!("{name}_blocks")[..], "U8", &[2u64, 96, 2, 16][..], blocks),
        (&format!("{name}_scales")[..], "U8", &[2, 96, 2], scales),
    ];
    work.write(&format!("source/{FILE}"), &safetensors(&tensors, &[]));
    work.write("source/config.json", br#"{"quantization_config": {"quant_method": "mxfp4"}}"#);
    work.convert("source", "f32", "to=f32");
    for to in ["fp8-block:32x32", "ct:float-quantized,strategy=tensor quantize=*"] {
        work.convert("source", "one", &format!("scheme={to} replace"));
        work.convert("f32", "two", &format!("scheme={to} replace"));
        let [one, two] = ["one", "two"].map(|dir| work.parsed(&format!("{dir}/model.safetensors")));
        assert_eq!((one.dtype(name), one.shape(name)), ("F8_E4M3", &json!([2, 64, 96])));
        assert_eq!(one.names(), two.names());
        one.names().iter().for_each(|name| assert_eq!(one.bytes(name), two.bytes(name), "{to} {name}"));
        work.verify("source", "one", "");
    }
}

/// A quantized tensor that is not quantized again needs a type.
#[test]
fn what_is_kept_becomes_dense() {
    let work = dense();
    work.convert("dense", "source", "scheme=fp8-block:64x64 quantize=*embed*");
    let said = ["model.embed_tokens.weight", "fp8-block"];
    work.refused("source", "out", &format!("scheme=fp8-channel {KEEP}"), "scales-lost", &said);
    let report = work.convert("source", "out", &format!("scheme=fp8-channel {KEEP} to=bf16"));
    work.convert("source", "bf16", "to=bf16");
    let [out, bf16] = ["out", "bf16"].map(|dir| work.parsed(&format!("{dir}/{}", FILES[0])));
    let name = "model.embed_tokens.weight";
    assert_eq!((out.dtype(name), out.bytes(name)), ("BF16", bf16.bytes(name)));
    let config = work.json("out/config.json");
    assert_eq!(config["quantization_config"]["quant_method"], "compressed-tensors");
    assert_eq!(
        (&config["quantization_config"]["ignore"], &config["torch_dtype"]),
        (&json!([r"re:(.*\.)?embed_tokens$", "lm_head", r"re:(.*\.)?lm_head(\..*)?$"]), &json!("bfloat16"))
    );
    let rows = serde_json::to_value(&report).unwrap()["tensors"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    assert_eq!((&row["kept_by"], row.get("to_scheme")), (&json!("embeddings"), None));
    work.verify("source", "out", "");
}
