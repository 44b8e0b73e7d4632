//! Quantized files: one file becomes one unquantized file.

use crate::run::Folder;
use serde_json::json;
use std::collections::BTreeSet;
use truecast_testkit::quantized::scaled;
use truecast_testkit::safetensors::{Parsed, f32s, one_tensor, safetensors};

/// Unexplained scales are an error. A scheme name helps, and `plain` reads the codes as values.
#[test]
fn scales_are_never_passed_over() {
    let folder = Folder::with("a.safetensors", &scaled("a.weight_scale"));
    let convert = "convert a.safetensors b.safetensors --to bf16";
    folder.refused(convert, "orphan-tensor", &["a.safetensors", "orphan scale", "a.weight_scale", "--from-scheme"]);
    folder.run(&format!("{convert} --dry-run")).exits(3);
    assert!(!folder.path("b.safetensors").exists());
    folder.run(&format!("{convert} --from-scheme modelopt:FP8 --quiet")).exits(0);
    folder.run("verify a.safetensors b.safetensors --to bf16 --from-scheme modelopt:FP8").succeeds();
    folder.run("verify a.safetensors b.safetensors --to bf16").exits(3);
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(BTreeSet::from_iter(result.names()), ["a.weight", "a.bias", "ids"].into());
    folder.run("compare a.safetensors b.safetensors").exits(0).warns(&["a.weight_scale", "without scales"]);
    let plain = folder.run(&format!("{convert} --from-scheme plain --force")).exits(0).err;
    assert!(plain.contains("a.weight_scale") && plain.contains("without their scales"), "{plain}");
    assert_eq!(Parsed::new(&folder.read("b.safetensors")).names().len(), 4);
    folder.run("verify a.safetensors b.safetensors --to bf16 --from-scheme plain").succeeds();
    folder.write("a.safetensors", &one_tensor(&[1.0]));
    folder.refused(&format!("{convert} --from-scheme awq --force"), "inconsistent-checkpoint", &["awq"]);
}

#[test]
fn only_quantized_tensors_are_dequantized() {
    let folder = Folder::with("a.safetensors", &scaled("a.scale_weight"));
    let types = |name: &str| {
        let result = Parsed::new(&folder.read(name));
        ["a.weight", "a.bias", "ids"].map(|name| result.dtype(name).to_string())
    };
    let ran = folder.run("dequantize a.safetensors b.safetensors").exits(0);
    assert!(ran.out.contains("1 tensor dequantized, 2 kept"), "{}", ran.out);
    assert_eq!(types("b.safetensors"), ["BF16", "F32", "I32"]);
    let options = "--to bf16 --keep-preset unquantized";
    folder.run(&format!("verify a.safetensors b.safetensors {options}")).succeeds();
    let ran = folder.run("dequantize a.safetensors c.safetensors --to f16 --rule *bias=f64 --json").exits(0);
    assert_eq!(types("c.safetensors"), ["F16", "F64", "I32"]);
    assert!(ran.out.contains("\"unquantized\""), "{}", ran.out);
    let ran = folder.run("convert a.safetensors d.safetensors --to bf16").exits(0);
    assert!(ran.out.contains("1 unquantized tensor changed type too; `truecast dequantize`"), "{}", ran.out);
    assert_eq!(types("d.safetensors"), ["BF16", "BF16", "I32"]);
    let ran = folder.run("convert a.safetensors e.safetensors --to f32").exits(0);
    assert!(!ran.out.contains("dequantize`"), "{}", ran.out);
    folder.refused("dequantize b.safetensors f.safetensors", "unmatched-pattern", &["b.safetensors", "--to"]);
}

#[test]
fn a_block_size_is_said_and_not_looked_for() {
    let tensors = [
        ("a.weight", "F8_E4M3", &[4u64, 4][..], vec![0x38; 16]),
        ("a.weight_scale_inv", "F32", &[2, 2], f32s(&[1.0, 2.0, 3.0, 4.0])),
    ];
    let folder = Folder::with("model.safetensors", &safetensors(&tensors, &[]));
    folder.write("config.json", br#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 2]}}"#);
    folder.refused("convert model.safetensors b.safetensors --to f32", "unknown-quantization", &["give the folder"]);
    folder.run("convert model.safetensors b.safetensors --to f32 --from-scheme fp8-block:2x2 --quiet").exits(0);
    let values = [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 3.0, 3.0, 4.0, 4.0];
    assert_eq!(Parsed::new(&folder.read("b.safetensors")).bytes("a.weight"), f32s(&values));
}

#[test]
fn the_destination_is_another_safetensors_file() {
    let folder = Folder::with("a.safetensors", &scaled("a.scale_weight"));
    let source = folder.read("a.safetensors");
    folder.refused("convert a.safetensors b.npz --to f16", "unsuitable-destination", &["b.npz", ".safetensors"]);
    folder.refused("convert a.safetensors b.xyz --to f16", "unknown-file-kind", &["b.xyz"]);
    folder.refused("convert a.safetensors ./a.safetensors --to f16 --force", "same-file", &["the same file"]);
    folder.write("b.safetensors", b"old");
    folder.refused("convert a.safetensors b.safetensors --to f16", "destination-exists", &["--force"]);
    folder.refused(
        "convert a.safetensors b.safetensors --to f16 --keep a.weight --force",
        "scales-lost",
        &["a.weight"],
    );
    assert_eq!((folder.read("a.safetensors"), folder.read("b.safetensors")), (source, b"old".to_vec()));
    for option in ["resume", "merge", "no-sidecars"] {
        folder.refused(
            &format!("convert a.safetensors c.safetensors --to f16 --{option}"),
            "inapplicable-option",
            &["checkpoint folders"],
        );
    }
}

/// NVFP4 of ComfyUI with scales of 2^-10: the high nibble comes first, and the original tensor has two rows fewer.
#[test]
fn nibbles_and_the_shape_of_a_reference() {
    let marker = r#"{"format":"nvfp4"}"#.as_bytes().to_vec();
    let codes: Vec<u8> = (0..32 * 16).map(|i| if i < 30 * 16 { (i * 7 % 256) as u8 } else { 0 }).collect();
    let tensors = [
        ("a.weight", "U8", &[32u64, 16][..], codes.clone()),
        ("a.weight_scale", "F8_E4M3", &[128, 4], vec![0x38; 512]),
        ("a.weight_scale_2", "F32", &[], f32s(&[2f32.powi(-10)])),
        ("a.comfy_quant", "U8", &[marker.len() as u64], marker),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let sign = |code: u8| if code < 8 { 1.0 } else { -1.0 };
    let value = |code: u8| magnitudes[usize::from(code & 7)] * sign(code) * 2f32.powi(-10);
    let high: Vec<f32> = codes.iter().flat_map(|byte| [value(byte >> 4), value(byte & 15)]).collect();
    let low: Vec<f32> = codes.iter().flat_map(|byte| [value(byte & 15), value(byte >> 4)]).collect();
    let dense = safetensors(&[("a.weight", "F32", &[30, 32], f32s(&high[..960]))], &[]);
    folder.write("dense.safetensors", &dense);
    let convert = "convert a.safetensors b.safetensors --to f32 --force";
    let result = |shape: &[u64], values: &[f32]| {
        let result = Parsed::new(&folder.read("b.safetensors"));
        assert_eq!((result.shape("a.weight"), result.bytes("a.weight")), (&json!(shape), &f32s(values)[..]));
    };
    folder.run(convert).exits(0).warns(&["high nibble", "reference checkpoint"]);
    result(&[32, 32], &high);
    folder.run(&format!("{convert} --nibbles low")).exits(0);
    result(&[32, 32], &low);
    folder.run("verify a.safetensors b.safetensors --to f32 --nibbles low").succeeds();
    let ran = folder.run(&format!("{convert} --nibbles low --report n.json")).exits(0);
    assert!(ran.out.contains("--to f32 --nibbles low\nquantized by: comfy:nvfp4, low nibble first\n"), "{}", ran.out);
    let options = folder.json("n.json")["options"].clone();
    assert_eq!((&options["nibbles"], &options["detected"]["nibbles"]), (&json!("low"), &json!("low")));
    folder.run("verify a.safetensors b.safetensors --report n.json").succeeds();
    let said = folder.run(&format!("{convert} --reference dense.safetensors")).exits(0).err;
    assert!(said.contains("dense.safetensors: the nibble order fits 1 tensors"), "{said}");
    result(&[30, 32], &high[..960]);
    folder.run("verify a.safetensors b.safetensors --to f32 --reference dense.safetensors").succeeds();
    let wrong = format!("{convert} --reference dense.safetensors --nibbles low --quiet");
    folder.refused(&wrong, "inconsistent-checkpoint", &["dense.safetensors", "nibble order", "--nibbles"]);
    folder.write("dir/model.safetensors", &folder.read("a.safetensors"));
    folder.run("convert dir out --to f32 --nibbles low --reference dense.safetensors --quiet").exits(3);
    folder.run("convert dir out --to f32 --nibbles low --quiet").exits(0);
    folder.run("verify dir out").succeeds();
    let options = folder.json("out/truecast-manifest.json")["options"].clone();
    assert_eq!(options["nibbles"], "low");
    assert_eq!(options["detected"], json!({ "schemes": ["comfy:nvfp4"], "nibbles": "low" }));
    folder.refused("convert dir out --to f32 --resume --quiet", "not-resumable", &["nibbles"]);
}

/// Only a marker next to `P.weight` shows that a tensor is quantized. Without it, codes would be read as values.
#[test]
fn what_a_marker_cannot_declare_is_not_quantized() {
    for (name, is_told) in
        [("pos_embed", false), ("weight", true), ("a.scale_shift_table", false), ("a.latent_queries", true)]
    {
        let folder = Folder::new();
        let values = f32s(&(0..64 * 64).map(|i| i as f32 * 0.01).collect::<Vec<_>>());
        let b = ("b.weight", "F32", &[64u64, 64][..], values.clone());
        folder.write("a.safetensors", &safetensors(&[(name, "F32", &[64, 64], values), b], &[]));
        let convert = "convert a.safetensors q.safetensors --scheme comfy:float8_e4m3fn";
        let asked = format!("{convert} --quantize {name}");
        folder.refused(&asked, "unquantizable-tensor", &[name, ".weight", "--keep"]);
        let ran = folder.run(convert).exits(0);
        assert_eq!(ran.err.contains(name) && ran.err.contains("not quantized"), is_told, "{}", ran.err);
        folder.run("convert q.safetensors d.safetensors --to f32 --quiet").exits(0);
    }
}

#[test]
fn scales_that_are_nan_are_told() {
    let others = ["", ", and some in 1 other tensor", ", and some in 2 other tensors"];
    for (n, others) in (1..).zip(others) {
        let folder = Folder::new();
        let names = [["a.weight", "a.scale_weight"], ["b.weight", "b.scale_weight"], ["c.weight", "c.scale_weight"]];
        let mut tensors = vec![("scaled_fp8", "F8_E4M3", &[0u64][..], vec![])];
        for [codes, scale] in &names[..n] {
            tensors.push((codes, "F8_E4M3", &[2, 2], vec![0x38; 4]));
            tensors.push((scale, "F32", &[], f32s(&[f32::NAN])));
        }
        folder.write("a.safetensors", &safetensors(&tensors, &[]));
        let report = folder.run("convert a.safetensors d.safetensors --to bf16 --json").exits(0).object("convert");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains(&format!("4 of 4 values are NaN in the source{others}: ")), "{warnings}");
    }
}

#[test]
fn schemes_have_short_names() {
    let folder = Folder::new();
    let values = f32s(&(0..32 * 64).map(|i| i as f32 * 0.01).collect::<Vec<_>>());
    folder.write("dir/model.safetensors", &safetensors(&[("a.weight", "F32", &[32, 64], values)], &[]));
    folder.run("convert dir a --scheme mxfp4 --quiet").exits(0);
    folder.run("convert dir b --scheme ct:mxfp4-pack-quantized --quiet").exits(0);
    assert_eq!(folder.read("a/model.safetensors"), folder.read("b/model.safetensors"));
    folder.run("convert dir c --scheme MXFP4 --quiet").exits(0);
    assert_eq!(folder.read("a/model.safetensors"), folder.read("c/model.safetensors"));
    folder.run("convert dir d --scheme nothing").exits(2).warns(&["`truecast schemes` lists them"]).lacks(&["awq"]);
}

#[test]
fn files_alone() {
    let values: Vec<f32> = (0..64 * 96).map(|i| ((i * 37 % 1001) as f32 - 500.0) * 0.013).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&[("a.weight", "F32", &[64, 96], f32s(&values))], &[]));
    let said = &["fp8-block", "config.json", "give a folder"];
    folder.refused("convert a.safetensors b.safetensors --scheme fp8-block", "unsuitable-destination", said);
    assert_eq!(folder.names(), ["a.safetensors"]);
    folder.run("convert a.safetensors q.safetensors --scheme comfy:float8_e4m3fn --report r.json --quiet").exits(0);
    folder.run("verify a.safetensors q.safetensors --report r.json").succeeds();
    let dry = folder.run("convert q.safetensors b.safetensors --to bf16 --dry-run").exits(0);
    assert!(dry.out.contains("1 tensor left out, such as \"a.comfy_quant\""), "{}", dry.out);
    assert!(!folder.path("b.safetensors").exists());
}
