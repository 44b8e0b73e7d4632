//! Quantization of checkpoints: text, hints and errors (`docs/spec/checkpoints.md §7`, `docs/interfaces.md §4.2`).

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::folder::{FIRST, linear_model, weights};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

fn model() -> Folder {
    let folder = Folder::new();
    linear_model().iter().for_each(|(file, bytes)| folder.write(&format!("model/{file}"), bytes));
    folder
}

const KEEP: &str = "--keep-preset embeddings";

#[test]
fn what_cannot_be_done_is_said_before() {
    let folder = model();
    for (options, code, said) in [
        ("--to bf16 --quantize *embed*", "missing-argument", &["--scheme"][..]),
        ("--scheme modelopt:W4A16_NVFP4 --share-global [", "invalid-pattern", &["--share-global"]),
        ("--scheme modelopt:FP8", "missing-argument", &["--activation-ranges", "modelopt:FP8_PER_CHANNEL_PER_TOKEN"]),
        ("--scheme ct:mxfp4-pack-quantized", "inapplicable-option", &["groups of 32", "1 other", "q_proj"]),
        (
            "--scheme ct:mxfp4-pack-quantized --quantize *proj*",
            "unquantizable-tensor",
            &["groups of 32", "also 1 other", "k_proj", "--keep"],
        ),
        (
            "--scheme fp8-block --mx-scale floor",
            "inapplicable-option",
            &["mx_scale has no effect", "omit --mx-scale", "no scales that are powers of two"],
        ),
        ("--scheme fp8-block --keep *", "inapplicable-option", &["scheme has no effect", "--quantize GLOB"]),
        ("--scale-search mse --to f16", "missing-argument", &["--scheme"]),
        ("--nonfinite saturate --to f16", "missing-argument", &["--scheme"]),
        ("--scheme fp8-block --keep-preset norm", "invalid-value", &["norm", "norms"]),
        ("--scheme fp8-block --overflow saturate", "inapplicable-option", &["--overflow"]),
        ("--scheme fp8-block --spec onnx", "inapplicable-option", &["--spec", "casts nothing", "--to"]),
        ("--scheme fp8-block --keep *norm* --nan canonical", "inapplicable-option", &["--spec", "casts nothing"]),
    ] {
        folder.refused(&format!("convert model out {options}"), code, said);
        assert!(!folder.path("out").exists(), "{options}");
    }
    folder.run("convert model plain --scheme plain --to bf16 --quiet").succeeds();
    folder.run("convert model bf16 --to bf16 --quiet").succeeds();
    assert_eq!(tree(&folder, "plain"), tree(&folder, "bf16"));
}

/// Presets also apply to plain casts (§11.3).
#[test]
fn presets_of_plain_casts() {
    let folder = model();
    let line = "--to bf16 --keep-preset norms,embeddings";
    let ran = folder.run(&format!("convert model out {line} --report r.json")).exits(0);
    ran.says(&[&format!("{line}\n"), "kept: embeddings 1 tensor, norms 1 tensor\n"]);
    let (first, source) =
        (Parsed::new(&folder.read(&format!("out/{FIRST}"))), Parsed::new(&folder.read(&format!("model/{FIRST}"))));
    for (name, by) in [
        ("model.embed_tokens.weight", Some("embeddings")),
        ("model.layers.0.input_layernorm.weight", Some("norms")),
        ("model.layers.0.self_attn.q_proj.weight", None),
    ] {
        let report = folder.json("r.json");
        let row = report["tensors"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        assert_eq!(row.get("kept_by").and_then(Value::as_str), by, "{name}");
        match by {
            Some(_) => assert_eq!((first.dtype(name), first.bytes(name)), ("F32", source.bytes(name)), "{name}"),
            None => assert_eq!(first.dtype(name), "BF16"),
        }
    }
    assert_eq!(folder.json("r.json")["options"]["keep_preset"], json!(["norms", "embeddings"]));
    assert_eq!(folder.json("out/truecast-manifest.json")["options"]["keep_preset"], json!(["norms", "embeddings"]));
    folder.run("verify model out").succeeds();
    folder.run(&format!("verify model out {line}")).succeeds();
    folder.run("verify model out --report r.json --keep-preset norms").exits(2);
    folder.run("verify model out --to bf16").exits(1);
    // A rule takes precedence over a preset; vectors are kept with every preset.
    let bytes = folder.read(&format!("model/{FIRST}"));
    folder.write("a.safetensors", &bytes);
    let rule = "--rule *embed*=f16 --keep-preset embeddings";
    let ran = folder.run(&format!("convert a.safetensors b.safetensors --to bf16 {rule} --report f.json")).exits(0);
    ran.says(&["f32 kept (1-D)"]);
    folder.run("convert a.safetensors c.safetensors --to bf16 --keep *embed*").exits(0).says(&["f32 kept (--keep)"]);
    let made = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(made.dtype("model.embed_tokens.weight"), "F16");
    assert_eq!(made.dtype("model.layers.0.input_layernorm.weight"), "F32");
    folder.run("verify a.safetensors b.safetensors --report f.json").succeeds();
    for (line, says) in [
        ("--to bf16 --keep-preset router", "keep_preset has no effect: no tensor has such a name"),
        ("--rule *embed*=f16 --keep-preset norms", "keep_preset has no effect: without a type"),
    ] {
        folder.run(&format!("convert model other {line}")).exits(2).warns(&[says]);
        folder.run(&format!("convert a.safetensors other.safetensors {line}")).exits(2);
    }
    // With a scheme, the report gives the reason for each tensor that keeps its type.
    folder.run("convert model fp8 --scheme fp8-block --keep-preset norms,embeddings --report s.json").exits(0);
    let report = folder.json("s.json");
    let kept = report["tensors"].as_array().unwrap().iter().filter_map(|row| Some((&row["name"], row.get("kept_by")?)));
    let norm = "model.layers.0.input_layernorm.weight";
    let expected = [("model.embed_tokens.weight", "embeddings"), (norm, "dimensions")];
    let kept = kept.map(|(name, by)| (name.as_str().unwrap(), by.as_str().unwrap()));
    assert_eq!(kept.collect::<Vec<_>>(), expected);
}

#[test]
fn odd_scales_are_said() {
    let folder = Folder::with("a/config.json", b"{}");
    let write = |values: &[f32]| {
        let of = [("l.0.q_proj.weight", "F32", &[2u64, 64][..], f32s(values))];
        folder.write("a/model.safetensors", &safetensors(&of, &[("format", "pt")]));
        folder.run("convert a b --scheme ct:pack-quantized,group=32,scale=f16 --force").exits(0).out
    };
    assert!(!write(&[0.25; 128]).contains("blocks:"));
    let said = write(&[[1e9; 32], [0.25; 32], [1e9; 32], [3.0; 32]].concat());
    assert!(said.contains("of 4 blocks: 2 have the largest scale"), "{said}");
}

#[test]
fn quantized_sources() {
    let folder = model();
    folder.run(&format!("convert model fp8 --scheme fp8-block {KEEP} --quiet")).exits(0);
    let said = folder.run(&format!("convert model tensor --scheme fp8-tensor {KEEP}")).exits(0);
    said.says(&["--scheme fp8-tensor --keep-preset embeddings", "quantized: ", " bits per weight"]);
    folder.run("compare model fp8 --summary").exits(0).says(&["fp8 is quantized by: fp8-block:128x128"]);
    for line in
        ["convert fp8 out --scheme fp8-block --relayout exact --to f32", "convert fp8 out --to f32 --relayout exact"]
    {
        folder.refused(line, "conflicting-options", &["--relayout"]);
    }
    folder.run("convert fp8 out --scheme fp8-tensor").exits(0).says(&["quantized by: fp8-block"]);
    folder.run("verify fp8 out --sample 30%").succeeds();
    let exact = "convert fp8 same --scheme fp8-block --relayout exact --report r.json";
    folder.run(exact).exits(0).says(&["--relayout exact", "exact: every value stays the same"]);
    folder.run("verify fp8 same --report r.json").succeeds();
    let path = format!("same/{FIRST}");
    let at = Parsed::new(&folder.read(&path)).place("model.layers.0.self_attn.q_proj.weight");
    folder.run_with_flipped(&path, at + 777, 1, "verify fp8 same").says(&["q_proj", "777"]);
    let mut config = folder.json("same/config.json");
    config["model_type"] = json!("other");
    folder.write("same/config.json", config.to_string().as_bytes());
    let said = ["same/config.json", ": model_type: \"other\", not \"x\"", "DIFFERENT: 1 file; no difference in"];
    folder.run("verify fp8 same").exits(1).says(&said);
}

/// `fp8`, `nvfp4` and `mxfp8` mean ComfyUI's layout for a file, and a layout of vLLM and transformers for a folder.
#[test]
fn short_names_of_schemes_mean_what_loads() {
    let folder = Folder::new();
    let weight = ("model.layers.0.self_attn.q_proj.weight", "F32", &[128u64, 32][..], f32s(&weights()[..4096]));
    let file = safetensors(&[weight], &[]);
    folder.write("image.safetensors", &file);
    std::fs::create_dir(folder.path("model")).unwrap();
    folder.write("model/model.safetensors", &file);
    folder.write("model/config.json", b"{\"model_type\": \"llama\"}");
    let rows = [
        ("fp8", "comfy:float8_e4m3fn", "fp8-channel"),
        ("FP8_scaled", "comfy:float8_e4m3fn", "fp8-channel"),
        ("fp8_e4m3fn", "comfy:float8_e4m3fn", "fp8-channel"),
        ("nvfp4", "comfy:nvfp4", "ct:nvfp4-pack-quantized"),
        ("mxfp8", "comfy:mxfp8", "mxfp8"),
    ];
    for (typed, of_file, of_folder) in rows {
        let ran = folder.run(&format!("quantize image.safetensors out.safetensors {typed} --force")).exits(0);
        let first = ran.out.lines().next().unwrap();
        assert_eq!(first, format!("{typed} for a single file: {of_file}"));
        for line in [format!("quantize model out {typed}"), format!("convert model out --scheme {typed}")] {
            let ran = folder.run(&format!("{line} --dry-run --json")).exits(0);
            let planned: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(planned["options"]["scheme"], of_folder, "{line}");
        }
        let line = format!("quantize image.safetensors out.safetensors --scheme {typed} --force");
        assert_eq!(folder.run(&line).exits(0).out.lines().next(), Some(first), "{line}");
        folder.run(&format!("verify image.safetensors out.safetensors --scheme {typed}")).exits(0);
        folder.run(&format!("schemes {typed}")).exits(0).says(&[of_file, of_folder]);
    }
    folder.refused("quantize image.safetensors x.gguf fp8", "unsuitable-destination", &["fp8-channel"]);
    // A missing source is reported before the others are converted.
    folder.refused("quantize model missing both fp8", "not-found", &["missing"]);
    assert!(!folder.path("both").exists());
}
