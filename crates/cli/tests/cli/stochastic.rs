//! `convert --seed`: casts with stochastic rounding, and their `verify`.

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::json::has;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

/// Number of elements: several blocks, and several pieces at a small memory limit.
const MANY: usize = 300_000;

fn weights(n: usize) -> Vec<f32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_769) >> 8) as f32 / (1 << 24) as f32 - 0.5).collect()
}

fn array() -> Folder {
    Folder::with("a.npy", &npy("<f4", MANY, &f32s(&weights(MANY))))
}

/// `vectors --seed`, which the definition checks, has the same random bits: see `models.rs`.
#[test]
fn the_seed_decides() {
    let folder = array();
    folder.run("convert a.npy b.npy --to f8e4m3fn --seed 7 --threads 1 --max-memory 8M").succeeds();
    folder.run("convert a.npy c.npy --to f8e4m3fn --rounding stochastic --seed 7 --threads 5").succeeds();
    let bytes = folder.read("b.npy");
    assert!(folder.read("c.npy") == bytes, "threads, memory and the name of the rounding change nothing");
    folder.run("convert a.npy d.npy --to f8e4m3fn --seed 8").succeeds();
    assert!(folder.read("d.npy") != bytes);
}

#[test]
fn verify_recomputes_it() {
    let folder = array();
    let report = folder.run("convert a.npy b.npy --to f8e4m3fn --seed 7 --report r.json").succeeds();
    report.says(&["options: --spec onnx@28 --seed 7 --to f8e4m3fn"]);
    assert_eq!(folder.json("r.json")["options"]["seed"], json!(7));
    for options in [
        "--to f8e4m3fn --seed 7", "--to f8e4m3fn --rounding stochastic --seed 7", "--report r.json",
        "--report r.json --rounding stochastic",
    ] {
        let object = folder.run(&format!("verify a.npy b.npy {options} --json")).succeeds().object("verify");
        has(&object, &json!({ "equal": true, "elements": MANY, "methods": { "definition": MANY } }));
    }
    folder.run("verify a.npy b.npy --to f8e4m3fn --seed 8").exits(1).says(&["wrong elements"]);
    folder.run("verify a.npy b.npy --to f8e4m3fn").exits(1);
    folder.refused("verify a.npy b.npy --report r.json --seed 8", "conflicting-options", &["--seed", "--report"]);
    let mut bytes = folder.read("b.npy");
    let at = bytes.len() - MANY / 3;
    bytes[at] ^= 1;
    folder.write("b.npy", &bytes);
    let object = folder.run("verify a.npy b.npy --to f8e4m3fn --seed 7 --json").exits(1).object("verify");
    assert_eq!(object["differences"][0]["count"], json!(1));
}

#[test]
fn folders_and_dequantized_tensors() {
    let folder = Folder::new();
    let codes: Vec<u8> = (0..64u8).map(|i| i.wrapping_mul(3) & 0x77).collect();
    let file = safetensors(
        &[
            ("a.bias", "F32", &[1000], f32s(&weights(1000))),
            ("b.weight", "F8_E4M3", &[8, 8], codes),
            ("b.weight_scale_inv", "F32", &[1, 1], f32s(&[0.3])),
        ],
        &[],
    );
    folder.write_shards("model", &json!({}), &[("1.safetensors", file)]);
    let config = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": [8, 8] } });
    folder.write("model/config.json", config.to_string().as_bytes());
    folder.run("convert model out --to bf16 --seed 3 --quiet").succeeds();
    folder.run("convert model nearest --to bf16 --quiet").succeeds();
    let tensor = |name: &str, of: &str| Parsed::new(&folder.read(&format!("{of}/1.safetensors"))).bytes(name).to_vec();
    for name in ["a.bias", "b.weight"] {
        assert!(tensor(name, "out") != tensor(name, "nearest"), "{name}");
    }
    let object = folder.run("verify model out --json").succeeds().object("verify");
    assert_eq!(object["equal"], json!(true));
    folder.run("verify model out --to bf16 --seed 4").exits(1);
    let before = tree(&folder, "out");
    folder.refused("convert model out --to bf16 --seed 4 --resume", "not-resumable", &["3", "4"]);
    folder.run("convert model out --to bf16 --seed 3 --resume --quiet").succeeds();
    assert_eq!(tree(&folder, "out"), before);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = array();
    for to in ["bool", "string", "nf4"] {
        let spec = if to == "nf4" { "openvino" } else { "onnx" };
        let line = format!("a.npy b.npy --spec {spec} --to {to} --seed 1");
        folder.refused(&format!("convert {line}"), "unsupported-pair", &["f32"]);
        folder.refused(&format!("convert {line} --dry-run"), "unsupported-pair", &["f32"]);
    }
    assert_eq!(folder.names(), ["a.npy"]);
    folder.write("w.safetensors", &safetensors(&[("l.weight", "F32", &[64, 64], f32s(&weights(4096)))], &[]));
    folder.refused(
        "convert w.safetensors q.safetensors --scheme comfy:mxfp8 --to bf16 --seed 1",
        "inapplicable-option",
        &["no effect", "rounds to nearest"],
    );
    folder.write("b.npy", &npy("|b1", 3, &[1, 0, 1]));
    folder.run("convert b.npy c.npy --to bool --seed 1").succeeds();
    let object: Value = folder.run("verify b.npy c.npy --to bool --seed 1 --json").succeeds().object("verify");
    assert_eq!(object["equal"], json!(true));
}

/// A quarter of the way from 1.0 to 1.125, by hand; exact values and other specifications.
#[test]
fn explain_has_both_results_with_their_probabilities() {
    let results = |line: &str| -> Vec<(String, String)> {
        let ran = Folder::new().run(&format!("explain {line} --rounding stochastic --json")).succeeds();
        let object = ran.object("explain");
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        object["results"].as_array().unwrap().iter().map(|row| (text(row, "attributes"), text(row, "bits"))).collect()
    };
    let both = [("probability=0.75".into(), "0x38".into()), ("probability=0.25".into(), "0x39".into())];
    assert_eq!(results("1.03125 --to f8e4m3fn"), both);
    assert_eq!(results("1.03125 --to f8e4m3fn --spec onnx"), both);
    assert_eq!(results("1.125 --to f8e4m3fn"), [("probability=1".into(), "0x39".into())]);
    assert_eq!(
        results("-2.5 --to i8"),
        [("probability=0.5".into(), "0xfe".into()), ("probability=0.5".into(), "0xfd".into())]
    );
    let ran = Folder::new().run("help specs").succeeds();
    assert!(ran.out.replace(['\n', ' '], "").contains("explain--roundingstochastic"));
    Folder::new().run("vectors -h").succeeds().says(&["--seed", "stochastically"]);
}
