//! Quantized checkpoints become quantized by another scheme in one run: `docs/interfaces.md §4.2`. The result is equal
//! to the result of two runs, the first with `--to f32`.

use crate::checkpoint::tree;
use crate::run::{Folder, has};
use serde_json::json;
use truecast_testkit::safetensors::{Found, Parsed, f32s, safetensors};

const ROWS: u64 = 66;
const COLS: u64 = 160;
const FILES: [&str; 2] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

/// Two shards of f32: a matrix in each, an embedding, a norm.
fn dense() -> Folder {
    let folder = Folder::new();
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
    folder.write_shards("dense", &json!({}), &[(FILES[0], first), (FILES[1], second)]);
    folder.write("dense/config.json", b"{\n  \"model_type\": \"x\",\n  \"torch_dtype\": \"float32\"\n}\n");
    folder
}

/// Every tensor of each file.
fn tensors(folder: &Folder, dir: &str) -> [Vec<Found>; 2] {
    FILES.map(|file| Parsed::new(&folder.read(&format!("{dir}/{file}"))).tensors())
}

const KEEP: &str = "--keep-preset embeddings";

#[test]
fn one_run_makes_what_two_runs_make() {
    let sources = [
        "fp8-block:64x64",
        "ct:pack-quantized,bits=4,group=32,symmetric=false",
        "modelopt:W4A16_NVFP4",
        "comfy:mxfp8",
        "ct:mxfp6-pack-quantized",
    ];
    let targets = [
        "ct:mxfp4-pack-quantized",
        "modelopt:W4A16_NVFP4",
        "fp8-tensor",
        "ct:int-quantized",
        "comfy:nvfp4",
        "fp8-block:64x64",
    ];
    for from in sources {
        let folder = dense();
        folder.run(&format!("convert dense source --scheme {from} {KEEP} --quiet")).succeeds();
        folder.run("convert source f32 --to f32 --quiet").succeeds();
        for to in targets {
            let line = format!("--scheme {to} {KEEP}");
            let one = folder.run(&format!("convert source one {line} --report one.json")).exits(0);
            let family = from.split(',').next().unwrap_or_default();
            assert!(one.out.contains(&format!("quantized by: {family}")), "{}", one.out);
            folder.run(&format!("convert f32 two {line} --quiet --report two.json")).succeeds();
            assert_eq!(tensors(&folder, "one"), tensors(&folder, "two"), "{from} to {to}");
            let [one, two] = ["one", "two"].map(|dir| folder.json(&format!("{dir}/config.json")));
            assert_eq!(one, two, "{from} to {to}");
            assert!(folder.path("one/hf_quant_config.json").exists() == to.starts_with("modelopt"), "{from} to {to}");
            // Losses are counted between values; a row has both schemes.
            let [one, two] = ["one.json", "two.json"].map(|file| folder.json(file)["tensors"].clone());
            for (one, two) in one.as_array().unwrap().iter().zip(two.as_array().unwrap()) {
                has(one, &json!({ "name": two["name"], "sqnr_db": two["sqnr_db"], "exact": two["exact"] }));
                assert_eq!(one.get("scheme").is_some(), one.get("to_scheme").is_some());
            }
            folder.run("verify source one").succeeds();
            folder.run("verify source one --report one.json --full").succeeds();
            for dir in ["one", "two"] {
                std::fs::remove_dir_all(folder.path(dir)).unwrap();
            }
            ["one.json", "two.json"].iter().for_each(|file| std::fs::remove_file(folder.path(file)).unwrap());
        }
    }
}

#[test]
fn pieces_threads_and_parts_change_no_byte() {
    let folder = dense();
    folder.run(&format!("convert dense source --scheme fp8-block:64x64 {KEEP} --quiet")).succeeds();
    let line = format!("--scheme modelopt:W4A16_NVFP4 {KEEP} --share-global *q_proj*,*k_proj* --quiet");
    folder.run(&format!("convert source out {line}")).succeeds();
    folder.run("verify source out").succeeds();
    let [first, second] = FILES.map(|file| Parsed::new(&folder.read(&format!("out/{file}"))));
    let [q, k] = ["q", "k"].map(|x| format!("model.layers.0.self_attn.{x}_proj.weight_scale_2"));
    assert_eq!(first.bytes(&q), second.bytes(&k));
    folder.run(&format!("convert source few {line} --threads 1 --max-memory 3M")).succeeds();
    folder.run(&format!("convert source parts {line} --part 2/2")).succeeds();
    folder.run(&format!("convert source parts {line} --part 1/2")).succeeds();
    assert_eq!(tree(&folder, "few"), tree(&folder, "out"));
    assert_eq!(tree(&folder, "parts"), tree(&folder, "out"));
    // A bit of a code or of a scale of the result is found, and one of the source.
    let path = format!("out/{}", FILES[0]);
    let right = folder.read(&path);
    for at in [right.len() - 1, right.len() / 2] {
        folder.run_with_flipped(&path, at, 4, "verify source out");
    }
    let path = format!("source/{}", FILES[1]);
    let at = folder.read(&path).len() - 3 * (ROWS * COLS) as usize / 4;
    folder.run_with_flipped(&path, at, 0x10, "verify source out");
}

/// gpt-oss has its tensors transposed: their columns are rows on the disk.
#[test]
fn transposed_experts() {
    let folder = Folder::new();
    let name = "model.layers.0.mlp.experts.down_proj";
    let blocks: Vec<u8> = (0..2 * 96 * 2 * 16u32).map(|i| (i * 37 % 251) as u8).collect();
    let scales: Vec<u8> = (0..2 * 96 * 2u32).map(|i| (120 + i % 13) as u8).collect();
    let tensors = [
        (&format!("{name}_blocks")[..], "U8", &[2u64, 96, 2, 16][..], blocks),
        (&format!("{name}_scales")[..], "U8", &[2, 96, 2], scales),
    ];
    folder.write("source/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("source/config.json", br#"{"quantization_config": {"quant_method": "mxfp4"}}"#);
    folder.run("convert source f32 --to f32 --quiet").succeeds();
    for to in ["fp8-block:32x32", "ct:float-quantized,strategy=tensor --quantize *"] {
        folder.run(&format!("convert source one --scheme {to} --quiet --force")).succeeds();
        folder.run(&format!("convert f32 two --scheme {to} --quiet --force")).succeeds();
        let [one, two] = ["one", "two"].map(|dir| Parsed::new(&folder.read(&format!("{dir}/model.safetensors"))));
        assert_eq!((one.dtype(name), one.shape(name)), ("F8_E4M3", &json!([2, 64, 96])));
        assert_eq!(one.names(), two.names());
        one.names().iter().for_each(|name| assert_eq!(one.bytes(name), two.bytes(name), "{to} {name}"));
        folder.run("verify source one").succeeds();
        folder.run("verify source one --sample 30%").succeeds();
    }
}

/// A tensor that was quantized and is not quantized again needs a type.
#[test]
fn what_is_kept_becomes_dense() {
    let folder = dense();
    folder.run("convert dense source --scheme fp8-block:64x64 --quantize *embed* --quiet").succeeds();
    let said = ["model.embed_tokens.weight", "fp8-block", "--to"];
    folder.run(&format!("convert source out --scheme fp8-channel {KEEP}")).fails(2, &said);
    folder.run(&format!("convert source out --scheme fp8-channel {KEEP} --to bf16 --report r.json --quiet")).succeeds();
    folder.run("convert source bf16 --to bf16 --quiet").succeeds();
    let [out, bf16] = ["out", "bf16"].map(|dir| Parsed::new(&folder.read(&format!("{dir}/{}", FILES[0]))));
    let name = "model.embed_tokens.weight";
    assert_eq!((out.dtype(name), out.bytes(name)), ("BF16", bf16.bytes(name)));
    let config = folder.json("out/config.json");
    assert_eq!(config["quantization_config"]["quant_method"], "compressed-tensors");
    assert_eq!(
        (&config["quantization_config"]["ignore"], &config["torch_dtype"]),
        (&json!([r"re:(.*\.)?embed_tokens$", "lm_head", r"re:(.*\.)?lm_head(\..*)?$"]), &json!("bfloat16"))
    );
    let rows = folder.json("r.json")["tensors"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    assert_eq!((&row["kept_by"], row.get("to_scheme")), (&json!("embeddings"), None));
    folder.run("verify source out").succeeds();
}
