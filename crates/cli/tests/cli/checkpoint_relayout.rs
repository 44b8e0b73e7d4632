//! Codes and scales are carried over to another scheme as they are: `docs/spec/checkpoints.md §8`.

use crate::run::Folder;
use truecast_testkit::safetensors::{Found, Parsed, f32s, safetensors};

const FILE: &str = "model.safetensors";
const NAME: &str = "l.0.q_proj.weight";

/// A matrix with a given largest magnitude, an embedding and a norm.
fn dense(largest: f32) -> Folder {
    let folder = Folder::new();
    let value = |i: u32| if i == 7 { largest } else { ((i * 37 % 1009) as f32 - 504.0) * 0.001 };
    let tensors = [
        (NAME, "F32", &[48u64, 64][..], f32s(&(0..48 * 64).map(value).collect::<Vec<_>>())),
        ("embed.weight", "F32", &[4, 8], f32s(&[0.5; 32])),
        ("norm.weight", "F32", &[2], f32s(&[1.0, 2.0])),
    ];
    folder.write(&format!("dense/{FILE}"), &safetensors(&tensors, &[("format", "pt")]));
    folder.write("dense/config.json", b"{}");
    folder
}

fn quantize(folder: &Folder, scheme: &str) {
    folder.run(&format!("convert dense a --scheme {scheme} --keep-preset embeddings --quiet --force")).succeeds();
}

/// Every tensor with its type, shape and bytes.
pub fn tensors(folder: &Folder, dir: &str) -> Vec<Found> {
    Parsed::new(&folder.read(&format!("{dir}/{FILE}"))).tensors()
}

/// There and back gives the original, and unquantized tensors made of both are the same.
fn there_and_back(folder: &Folder, from: &str, to: &str) {
    for dir in ["b", "c", "f32", "same"] {
        drop(std::fs::remove_dir_all(folder.path(dir)));
    }
    let ran = folder.run(&format!("convert a b --scheme {to} --relayout exact --report r.json --force")).exits(0);
    assert!(ran.out.contains("--relayout exact"), "{}", ran.out);
    folder.run("verify a b").succeeds();
    folder.run("verify a b --report r.json").succeeds();
    folder.run(&format!("convert b c --scheme {from} --relayout exact --quiet")).succeeds();
    assert_eq!(tensors(folder, "c"), tensors(folder, "a"), "{from} {to}");
    assert_eq!(folder.json("c/config.json"), folder.json("a/config.json"), "{from} {to}");
    folder.run("convert a f32 --to f32 --quiet").succeeds();
    folder.run("convert b same --to f32 --quiet").succeeds();
    assert_eq!(tensors(folder, "f32"), tensors(folder, "same"), "{from} {to}");
}

#[test]
fn the_same_bytes_under_other_names() {
    let folder = dense(3.3);
    for (from, to) in [
        ("mxfp8", "ct:mxfp8-quantized"),
        ("ct:mxfp8-quantized", "modelopt:MXFP8"),
        ("fp8-block:32x32", "ct:float-quantized,strategy=block,block=32x32"),
        ("fp8-channel,scale=f32", "modelopt:FP8_PER_CHANNEL_PER_TOKEN"),
    ] {
        quantize(&folder, from);
        there_and_back(&folder, from, to);
    }
    // Unquantized tensors are listed.
    quantize(&folder, "mxfp8");
    folder.run("convert a b --scheme ct:mxfp8-quantized --relayout exact --quiet --force").succeeds();
    let ignored = &folder.json("b/config.json")["quantization_config"]["ignore"];
    let outside = r"re:[^.]*(\.[0-9]*[^.0-9][^.]*)*(\.[0-9]+)*$";
    for entry in ["embed", outside, "lm_head", r"re:(.*\.)?lm_head(\..*)?$"] {
        assert!(ignored.as_array().unwrap().contains(&entry.into()), "{entry}: {ignored}");
    }
    let path = format!("b/{FILE}");
    let right = folder.read(&path);
    for (byte, bit) in [(Parsed::new(&right).place(NAME) + 9, 1), (right.len() - 1, 0x40)] {
        folder.run_with_flipped(&path, byte, bit, "verify a b");
    }
}

/// The global scale of one multiplies, of the other divides: 2^-10 has an inverse, 3.3 / 2688 has none that gives the same.
#[test]
fn second_scales() {
    let (modelopt, ct) = ("modelopt:W4A16_NVFP4", "ct:nvfp4-pack-quantized");
    let folder = dense(2.625);
    quantize(&folder, modelopt);
    there_and_back(&folder, modelopt, ct);
    let global = Parsed::new(&folder.read(&format!("b/{FILE}"))).bytes(&format!("{NAME}_global_scale")).to_vec();
    assert_eq!(global, f32s(&[1024.0]));
    let folder = dense(3.3);
    quantize(&folder, modelopt);
    let said = [NAME, modelopt, ct, "global scale", "--relayout lossy"];
    folder.run(&format!("convert a b --scheme {ct} --relayout exact")).fails(2, &said);
    assert!(!folder.path("b").exists());
    folder.run(&format!("convert a b --scheme {ct} --relayout lossy")).exits(0).warns(&["the global scale is rounded"]);
    folder.run("verify a b").succeeds();
    let [a, b] = ["a", "b"].map(|dir| Parsed::new(&folder.read(&format!("{dir}/{FILE}"))));
    assert_eq!(a.bytes(NAME), b.bytes(&format!("{NAME}_packed")));
    assert_eq!(a.bytes(&format!("{NAME}_scale")), b.bytes(&format!("{NAME}_scale")));
    let scale = f32::from_le_bytes(a.bytes(&format!("{NAME}_scale_2")).try_into().unwrap());
    assert_eq!(b.bytes(&format!("{NAME}_global_scale")), f32s(&[1.0 / scale]));
    folder.run_with_flipped(&format!("b/{FILE}"), b.place(&format!("{NAME}_global_scale")), 1, "verify a b");
}

#[test]
fn what_cannot_be_carried_over_is_an_error() {
    let folder = dense(3.3);
    for (from, to, said) in [
        ("fp8-block:32x32", "ct:mxfp4-pack-quantized", "codes have another type"),
        ("fp8-block:32x32", "fp8-block:16x16", "scales cover other blocks"),
        ("fp8-block:32x32", "fp8-block:32x32,scale=bf16", "scales is not exact"),
        ("ct:mxfp4-pack-quantized", "comfy:nvfp4", "scales cover other blocks"),
    ] {
        quantize(&folder, from);
        folder.run(&format!("convert a b --scheme {to} --relayout exact")).fails(2, &[NAME, said]);
        assert!(!folder.path("b").exists(), "{to}");
    }
    // Blocks of GGUF files are made of values only.
    quantize(&folder, "modelopt:W4A16_NVFP4");
    for (to, said) in [("gguf:nvfp4", "gguf:NVFP4 can be read, not written"), ("gguf:q8_0", "gguf:Q8_0")] {
        folder.run(&format!("convert a b.gguf --scheme {to} --relayout exact")).fails(2, &[said]);
        assert!(!folder.path("b.gguf").exists(), "{to}");
    }
    folder.run("convert dense b --scheme fp8-block --relayout exact").fails(2, &["relayout has no effect"]);
    folder.run("convert a b --scheme fp8-block --relayout exact --to f32").fails(2, &["--relayout"]);
    folder.run("convert a b --to f32 --relayout exact").fails(2, &["--relayout"]);
}
