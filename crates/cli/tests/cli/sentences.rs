//! Errors about common mistakes: clear words and a remedy.

use crate::run::Folder;
use truecast_testkit::gguf::gguf;
use truecast_testkit::npy::npy;
use truecast_testkit::quantized::files;
use truecast_testkit::safetensors::{Tensor, f32s, safetensors};

fn folder() -> Folder {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[525.0, -1.5])));
    folder.write("ints.npy", &npy("<i4", 1, &[1, 0, 0, 0]));
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F32", &[1, 2], f32s(&[1.0, 2.0]))], &[]));
    folder
}

/// Each line of `mistakes.txt` is refused with its code and words, and leaves no files.
#[test]
fn mistakes() {
    let folder = folder();
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.write("one.hex", b"3c00\n");
    folder.write("with a.npy", &folder.read("a.npy"));
    folder.write("model.safetensors", &safetensors(&[("norm.weight", "F32", &[1], f32s(&[1.5]))], &[]));
    let layer = ["1.norm.weight", "1.up.weight"].map(|name| (name, "F32", &[32u64, 32][..], f32s(&[1.0; 1024])));
    folder.write("m/model.safetensors", &safetensors(&layer, &[]));
    folder.write("m/config.json", b"{}");
    let blocks = ["token_embd.weight", "blk.0.ffn_up.weight"].map(|name| (name, &[32u64, 2][..], 8, vec![0; 68]));
    folder.write("blocks.gguf", &gguf(&[], &blocks));
    folder.write("d/a.npy", &folder.read("a.npy"));
    folder.write("x.npy", &npy("|i1", 2, &[4, 4]));
    let before = folder.names();
    for case in include_str!("mistakes.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (line, said) = case.split_once(" => ").unwrap();
        let mut words = said.split(" | ");
        let code = words.next().unwrap();
        let said = folder.refused(line, code, &words.collect::<Vec<_>>()).text;
        assert_eq!(folder.names(), before, "{line}");
        // A line to type may fail because of a file, but not because of its words.
        if let Some((_, typed)) = said.split_once("ype: truecast ").or(said.split_once("for example: truecast ")) {
            let err = folder.run_after("true", typed).err;
            let code = |error: serde_json::Value| error["code"].as_str().map(String::from);
            let code = serde_json::from_str(&err).ok().and_then(code).unwrap_or_default();
            let is_wrong = ["unknown-", "invalid-", "missing-a", "unexpected-", "conflicting-", "ambiguous-", "same-"];
            assert!(!is_wrong.iter().any(|wrong| code.starts_with(wrong)), "{line}: {typed}: {err}");
            for made in folder.names().iter().filter(|name| !before.contains(name)) {
                let path = folder.path(made);
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
            }
        }
    }
    folder.run("man benhc").fails(2, &["bench?"]);
    folder.run("help --color always").fails(2, &["--color"]);
    if cfg!(unix) {
        let line = "convert a.npy b.npy --to f16 --report /dev/null --force";
        folder.refused(line, "unsuitable-destination", &["/dev/null", "--json"]);
    }
    folder.refused("convert a.npy o.npy --to f8e4m3", "ambiguous-type", &["f8e4m3fn"]).lacks(&["did you mean"]);
    folder.refused("convert a.npy b.npy --zork", "unknown-option", &["--zork", "convert"]).lacks(&["did you mean"]);
    folder.write("none.npy", &[]);
    folder.refused("convert none.npy o.npy --to f16", "malformed-file", &["none.npy"]);
}

/// A comparison never calls a damaged tensor normal: whatever the damage, the type, and the order of the files.
#[test]
fn damage_is_not_normal() {
    let values: Vec<f32> = (0..4096).map(|i| (((i * 7919) % 4096) as f32 - 2047.3) * 1e-5).collect();
    let file = |a: &[f32], b: &[f32]| {
        safetensors(&[("a.weight", "F32", &[64, 64], f32s(a)), ("b.weight", "F32", &[64, 64], f32s(b))], &[])
    };
    let folder = Folder::with("m.safetensors", &file(&values, &values));
    let changed = |change: fn(usize, f32) -> f32| values.iter().enumerate().map(|(i, x)| change(i, *x)).collect();
    let damages: [Vec<f32>; 6] = [
        changed(|_, _| 0.0),
        changed(|i, x| if i == 70 { f32::NAN } else { x }),
        changed(|i, x| if i == 70 { f32::INFINITY } else { x }),
        changed(|i, x| if i < 64 { 0.0 } else { x }),
        changed(|_, x| x * 1.02),
        values.iter().rev().copied().collect(),
    ];
    for (to, name) in [("--to bf16", "bf16"), ("--to f16", "f16"), ("--scheme comfy:float8_e4m3fn", "comfy")] {
        folder.run(&format!("convert m.safetensors whole.safetensors --force {to}")).succeeds();
        let normal = format!("\nnormal for {name}");
        folder.run("compare m.safetensors whole.safetensors").says(&[&normal]);
        for damaged in &damages {
            folder.write("d.safetensors", &file(&values, damaged));
            for files in ["d.safetensors whole.safetensors", "whole.safetensors d.safetensors"] {
                folder.run(&format!("compare {files}")).lacks(&["\nnormal"]).exits(0);
            }
        }
    }
}

/// The value is finite in f64, but not in f32. Scales are computed in f32.
#[test]
fn values_beyond_f32_have_no_scale() {
    let folder = Folder::new();
    let values: Vec<u8> = [1.0, 1e39].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F64", &[1, 2], values)], &[]));
    folder.refused(
        "convert a.safetensors b.safetensors --scheme comfy:float8_e4m3fn",
        "invalid-code",
        &["a.weight", "1", "f32"],
    );
}

/// Arrays store i48 in 64 bits.
#[test]
fn vectors_of_i48_are_checked() {
    let folder = folder();
    folder.run("vectors cast --from i48 --to i32 --spec ieee --format npy -o v").succeeds();
    let line = "check cast --from i48 --to i32 --spec ieee --input v.input.npy --actual v.output.npy";
    folder.run(line).exits(0);
    let wide: Vec<u8> = [1i64, 1 << 47].iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.write("wide.npy", &npy("<i8", 2, &wide));
    folder.write("two.npy", &npy("<i4", 2, &[0; 8]));
    let line = "check cast --from i48 --to i32 --spec ieee --input wide.npy --actual two.npy";
    folder.refused(line, "invalid-code", &["wide.npy", "1", "48"]);
    let one: Vec<u8> = [-1i64, 5].iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.write("one.npy", &npy("<i8", 2, &one));
    let ran = folder.run("check cast --from i48 --to i32 --spec ieee --input one.npy --actual two.npy --json").exits(1);
    assert_eq!(ran.object("check")["violations"][0]["input"], "0xffffffffffff");
}

#[test]
fn advice_names_the_option_that_helps() {
    let folder = folder();
    folder.run("convert a.npy f8.npy --to f8e4m3fn --quiet").succeeds();
    folder.refused("compare a.npy f8.npy", "type-not-stated", &["f8.npy: descr", "--to"]).lacks(&["--from"]);
    folder.run("compare a.npy f8.npy --to f8e4m3fn").exits(0);
    folder.refused("compare f8.npy a.npy", "type-not-stated", &["--from"]);
    folder.run("compare f8.npy a.npy --from f8e4m3fn").exits(0);
    folder.run("help convert inspect").fails(2, &["help", "truecast convert --help"]);
}

#[test]
fn help_of_a_command_with_its_operation() {
    let folder = folder();
    for line in ["check cast", "check castlike", "check rescale", "vectors cast"] {
        let command = line.split(' ').next().unwrap();
        let help = folder.run(&format!("help {command}")).succeeds().out;
        assert_eq!(folder.run(&format!("help {line}")).succeeds().out, help, "{line}");
    }
}

#[test]
fn lists_hold_only_what_is_taken() {
    let folder = folder();
    folder.run("convert a.npy b.npy --to f16 --quiet").succeeds();
    for (line, option) in [
        ("convert a.npy c.npy --to f16 --force", "--fail-on"),
        ("convert a.npy c.npy --to f16 --force", "--sort"),
        ("convert a.npy d.npy --to f16 --dry-run", "--sort"),
        ("compare a.npy b.npy", "--fail-on"),
        ("compare a.npy b.npy", "--sort"),
        ("inspect a.npy", "--sort"),
        ("inspect a.npy --stats", "--sort"),
        ("convert a.npy c.npy --to f16 --force --spec ieee", "--rounding"),
        ("check cast --from f32 --to f16 --input a.npy --actual b.npy", "--spec"),
    ] {
        let error = folder.run(&format!("{line} {option} zork")).exits(2).err;
        let (_, list) = error.split_once(" one of ").or(error.split_once(" are ")).unwrap_or_else(|| panic!("{error}"));
        let words: Vec<&str> = list.split(';').next().unwrap().trim().split(", ").collect();
        assert!(words.len() >= 3, "{error}");
        for word in words {
            let ran = folder.run(&format!("{line} {option} {word}"));
            let has_no_such_pair = ran.err.contains("does not convert f32 to f16");
            assert!(has_no_such_pair || matches!(ran.code, Some(0 | 1)), "{line} {option} {word}: {}", ran.err);
        }
    }
}

#[test]
fn nothing_of_the_right_type_is_no_sample() {
    let folder = Folder::with("a.npy", &npy("<f4", 1 << 20, &vec![0; 4 << 20]));
    folder.run("convert a.npy b.npy --to f16 --quiet").succeeds();
    for extent in ["--sample 0.01", "--full"] {
        let ran = folder.run(&format!("verify a.npy b.npy --to bf16 {extent}")).exits(1);
        assert!(ran.out.ends_with("\nDIFFERENT: 1 tensor, no element was compared\n"), "{}", ran.out);
        let ran = folder.run(&format!("verify a.npy b.npy --to f16 {extent}")).succeeds();
        assert_eq!(ran.out.contains("sampled "), extent != "--full", "{}", ran.out);
    }
}

#[test]
fn verify_says_what_it_lacks() {
    let folder = folder();
    folder.refused("verify a.npy nosuch.npy", "not-found", &["nosuch.npy: opening: "]);
    folder.refused("verify nosuch.npy a.npy --to f16", "not-found", &["nosuch.npy: opening: "]);
    let said = ["ints.npy records none; it holds i32: truecast verify a.npy ints.npy --to i32"];
    let ran = folder.refused("verify a.npy ints.npy", "missing-argument", &said);
    assert!(!ran.text.contains("nothing to do"), "{}", ran.text);
    folder.run("convert a.safetensors b.safetensors --to f16 --quiet").succeeds();
    let others = ["b.safetensors records other options, ", "--to f16: truecast verify a.safetensors b.safetensors\n"];
    folder.run("verify a.safetensors b.safetensors --to bf16").exits(1).says(&others);
    folder.run("verify a.safetensors b.safetensors").succeeds();
    folder.write("b.safetensors", &safetensors(&[("a.weight", "F16", &[1, 2], vec![0; 4])], &[]));
    folder.run("verify a.safetensors b.safetensors --to bf16").exits(1).lacks(&["records"]);
}

#[test]
fn schemes_that_cannot_be() {
    let folder = Folder::new();
    let codes = [0x38u8; 256 * 256];
    let tensors = [
        ("a.weight", "F8_E4M3", &[256u64, 256][..], codes.to_vec()),
        ("a.weight_scale_inv", "F32", &[2, 2], f32s(&[1.0; 4])),
    ];
    folder.write("model/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("model/config.json", b"{}");
    folder.run("inspect model").exits(0).says(&["the quantization of the tensors is not understood: model: tensor"]);
    let object = folder.run("inspect model --json").exits(0).object("inspect");
    assert!(
        object["unknown_scheme"].as_str().unwrap().contains("looks like block scales") && object["schemes"].is_null()
    );
    folder.run("convert model out --to bf16 --from-scheme fp8-block:128x128 --quiet").succeeds();
    folder.refused("convert out other --scheme gptq", "unwritable-scheme", &[] as &[&str]);
}

#[test]
fn inspect_says_how_tensors_are_quantized() {
    let folder = Folder::new();
    let tensors = [
        ("a.weight", "F32", &[256u64, 256][..], f32s(&[1.0; 256 * 256])),
        ("norm.weight", "F32", &[2], f32s(&[1.0; 2])),
    ];
    folder.write("model/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("model/config.json", b"{}");
    folder.run("convert model fp8 --scheme fp8-block --quiet").exits(0);
    folder.run("inspect fp8").succeeds().says(&["\nquantized by: fp8-block:128x128 (1 tensor)\n"]);
    let object = folder.run("inspect fp8 --json").succeeds().object("inspect");
    assert_eq!(object["schemes"], serde_json::json!([{ "scheme": "fp8-block:128x128", "tensors": 1 }]));
    folder.run("convert model/model.safetensors c.safetensors --scheme comfy:float8_e4m3fn --quiet").exits(0);
    folder.run("inspect c.safetensors").succeeds().says(&["\nquantized by: comfy:float8_e4m3fn (1 tensor)\n"]);
    folder.run("inspect model").succeeds().lacks(&["quantized"]);
}

/// A sentence about a tensor or a number of tensors agrees with the lists of the same checkpoint: `show` finds every
/// listed tensor, and no line says "no tensors".
#[test]
fn sentences_agree_with_lists() {
    for (kind, bytes) in files() {
        let folder = Folder::with("a.safetensors", &bytes);
        folder.write("dir/model.safetensors", &bytes);
        folder.write("other.npy", &npy("<f4", 1, &f32s(&[1.0])));
        for src in ["a.safetensors", "dir"] {
            let listed = folder.run(&format!("inspect {src} --json")).succeeds().object("inspect");
            let names: Vec<&str> =
                listed["tensors"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
            for name in &names {
                let shown = folder.run_args(["show", src, name]).succeeds().out;
                assert!(shown.starts_with(name), "{kind}: {shown}");
            }
            assert_eq!(folder.run(&format!("show {src} absent")).exits(2).out, "");
            let dst = src.replace("a.", "x.").replace("dir", "x");
            let planned = format!("convert {src} {dst} --to f16 --dry-run");
            for line in
                [format!("{planned} --summary"), planned, format!("inspect {src}"), format!("compare {src} other.npy")]
            {
                let ran = folder.run(&line);
                assert!(!(ran.out + &ran.err).contains("no tensors"), "{kind}: {line}");
            }
        }
    }
}

/// A sentence about the kind of a file is about a file that exists.
#[test]
fn kinds_are_those_of_files_that_exist() {
    let folder = Folder::with("a.npy", &npy("<f4", 1, &f32s(&[1.0])));
    for name in
        ["y.pt", "y.bin", "y.ckpt", "y.onnx.data", "y.h5", "y.json", "config.json", "model.safetensors.index.json", "y"]
    {
        for line in
            [format!("convert a.npy {name} --to f16"), format!("inspect {name}"), format!("compare a.npy {name}")]
        {
            let ran = folder.run(&line);
            assert_ne!(ran.code, Some(0), "{line}");
            assert!(!ran.err.contains("this is a") && !ran.err.contains("this looks like"), "{line}: {}", ran.err);
            assert!(!ran.err.contains("this file"), "{line}: {}", ran.err);
        }
    }
}

/// The verdict counts only tensors that differ, even if other files differ too.
#[test]
fn only_different_tensors_are_counted() {
    let tensors: Vec<Tensor> = ["a.weight", "b.weight", "c.weight"]
        .map(|name| (name, "F32", &[4u64][..], f32s(&[1.0, 2.5, -3.0, 0.1])))
        .into();
    let folder = Folder::new();
    folder.write("src/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("src/config.json", br#"{"model_type": "llama"}"#);
    folder.write("src/notes.txt", b"notes");
    folder.run("convert src out --to bf16").succeeds();
    for (file, tensors) in [("config.json", 0), ("notes.txt", 0), ("model.safetensors", 1)] {
        let right = folder.read(&format!("out/{file}"));
        let mut wrong = right.clone();
        let last = wrong.len() - 1;
        wrong[last] = if tensors > 0 { wrong[last] ^ 1 } else { b' ' };
        folder.write(&format!("out/{file}"), &wrong);
        let text = folder.run("verify src out").exits(1).out;
        let verdict = text.lines().last().unwrap();
        let wrong = if tensors > 0 { ", 1 of 3 tensors" } else { "; no difference in 3 tensors" };
        let expected = format!("DIFFERENT: 1 file{wrong}, ");
        assert!(verdict.starts_with(&expected), "{file}: {text}");
        folder.write(&format!("out/{file}"), &right);
    }
    folder.run("verify src out").succeeds();
}
