//! `verify`: extent and methods, options from a report, many differences of one kind.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{Tensor, f32s, safetensors};

/// Number of elements: several blocks of 64 KiB.
const MANY: usize = 200_000;

/// Writes `a.npy`, and converts the file to `b.npy` of type f8e4m3fn.
fn large() -> Folder {
    let values: Vec<f32> = (0..MANY).map(|i| (i as f32 - 1000.0) / 777.0).collect();
    let folder = Folder::with("a.npy", &npy("<f4", MANY, &f32s(&values)));
    folder.run("convert a.npy b.npy --to f8e4m3fn --quiet").succeeds();
    folder
}

/// Changes one element of b.npy; the elements are the last bytes of the file.
fn spoil(folder: &Folder, index: usize) {
    let mut bytes = folder.read("b.npy");
    let at = bytes.len() - MANY + index;
    bytes[at] ^= 1;
    folder.write("b.npy", &bytes);
}

fn methods(object: &Value) -> Vec<(String, u64)> {
    let all = object["methods"].as_object().unwrap();
    all.iter().map(|(name, n)| (name.clone(), n.as_u64().unwrap())).filter(|(_, n)| *n > 0).collect()
}

#[test]
fn a_sample_has_the_ends_and_says_what_it_is() {
    let folder = large();
    let line = "verify a.npy b.npy --to f8e4m3fn --sample";
    let object = folder.run(&format!("{line} 10% --sample-seed 7 --json")).succeeds().object("verify");
    assert_eq!((&object["sampled"], &object["sample_seed"], &object["equal"]), (&json!(true), &json!(7), &json!(true)));
    let (coverage, elements) = (object["coverage"].as_f64().unwrap(), object["elements"].as_u64().unwrap());
    assert!((0.1..1.0).contains(&coverage), "{coverage}");
    assert_eq!(elements as f64 / MANY as f64, coverage);
    let ran = folder.run(&format!("{line} 0.1")).succeeds();
    ran.says(&["verified", "sampled", " % of 200_000 elements", "(seed 0)", "--full checks all"]);
    // Every sample includes both ends.
    for index in [0, MANY - 1] {
        spoil(&folder, index);
        let object = folder.run(&format!("{line} 0.1% --json")).exits(1).object("verify");
        assert_eq!(object["differences"][0]["first"]["index"], index);
        spoil(&folder, index);
    }
    // The wrong element is in some samples only.
    spoil(&folder, MANY / 2);
    let seen: Vec<Option<i32>> =
        (0..30).map(|seed| folder.run(&format!("{line} 10% --sample-seed {seed}")).code).collect();
    assert!(seen.contains(&Some(0)) && seen.contains(&Some(1)), "{seen:?}");
    let object = folder.run("verify a.npy b.npy --to f8e4m3fn --full --json").exits(1).object("verify");
    assert_eq!(
        (&object["sampled"], &object["sample_seed"], &object["coverage"]),
        (&json!(false), &Value::Null, &json!(1.0))
    );
    assert_eq!(object["differences"][0]["first"]["index"], MANY / 2);
    folder.run("verify a.npy b.npy --to f8e4m3fn").exits(1);
    folder.run("verify a.npy b.npy --to f8e4m3fn --full --sample-seed 1").exits(2);
    folder.run("verify a.npy b.npy --to f8e4m3fn --full --sample 0.5").exits(2);
    for part in ["0", "1.5", "200%", "zork", "-0.1"] {
        folder.run(&format!("verify a.npy b.npy --to f8e4m3fn --sample={part}")).exits(2);
    }
}

#[test]
fn methods_are_said() {
    let folder = large();
    let run = |line: &str| {
        folder.run(&format!("convert {line} --quiet --force")).succeeds();
        let object = folder.run(&format!("verify {line} --json")).succeeds().object("verify");
        let methods = methods(&object);
        assert_eq!(methods.iter().map(|(_, n)| n).sum::<u64>(), object["elements"].as_u64().unwrap(), "{line}");
        methods.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(run("a.npy c.npy --to f8e4m3fn"), ["intervals"]);
    assert_eq!(run("a.npy d.npy --to f64"), ["arithmetic"]);
    assert_eq!(run("a.npy e.npy --to bf16"), ["definition"]); // too few elements for as many intervals
    assert_eq!(run("e.npy f.npy --from bf16 --to f32"), ["table"]);
    assert_eq!(run("a.npy g.npy --to bool"), ["definition"]);
    assert_eq!(run("a.npy h.safetensors --to f4e2m1"), ["intervals"]);
    assert_eq!(run("h.safetensors i.npz --rule *=f6e2m3"), ["table"]);
    assert_eq!(run("h.safetensors j.safetensors --rule *=f32"), ["table"]);
}

#[test]
fn options_come_from_a_report() {
    let tensors = [
        ("norm", "F32", &[2u64][..], f32s(&[1.0, 465.0])),
        ("key", "F32", &[2], f32s(&[1.0, 465.0])),
        ("ids", "I32", &[1], vec![7, 0, 0, 0]),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let options = "--spec onnx@21 --saturate false --to f8e4m3fn --keep *orm --rule key=f8e5m2";
    folder.run(&format!("convert a.safetensors b.safetensors {options} --report r.json --quiet")).succeeds();
    let line = "verify a.safetensors b.safetensors --report r.json";
    folder.run(line).succeeds();
    for same in ["--to f8e4m3fn", "--saturate false --spec onnx@21", "--keep *orm --rule key=f8e5m2"] {
        folder.run(&format!("{line} {same}")).succeeds();
    }
    for (other, named) in [
        ("--to f16", "--to"),
        ("--from f32", "--from"),
        ("--keep key", "--keep"),
        ("--rule key=f8e5m2 --keep *orm", "--rule"),
        ("--spec onnx", "--spec"),
        ("--spec ieee", "--spec"),
    ] {
        folder.refused(&format!("{line} {other}"), "conflicting-options", &[named, "--report", "--saturate false"]);
    }
    // The digest in the report is the digest of the written file. Any later change of the file is a difference.
    let right = folder.read("b.safetensors");
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --force --quiet").succeeds();
    let object = folder.run(&format!("{line} --json")).exits(1).object("verify");
    let digest = object["differences"].as_array().unwrap().iter().find(|d| d["kind"] == "digest").unwrap().clone();
    assert_eq!(digest["expected"]["bytes"], right.len());
    assert_eq!(digest["expected"]["sha256"].as_str().unwrap().len(), 64);
    assert_ne!(digest["expected"]["sha256"], digest["actual"]["sha256"]);
}

#[test]
fn a_report_that_is_none() {
    let folder = large();
    folder.refused("verify a.npy b.npy --report missing.json", "not-found", &["missing.json"]);
    for (text, word) in [
        ("zork", "line 1"),
        ("[1]", "r.json"),
        (r#"{"command": 3}"#, "r.json"),
        ("{}", "command"),
        (r#"{"command": "compare", "options": {}}"#, "compare"),
        (r#"{"command": "convert", "options": {"spec": "onnx"}}"#, "options."),
    ] {
        folder.write("r.json", text.as_bytes());
        folder.refused("verify a.npy b.npy --report r.json", "malformed-file", &["r.json", word]).lacks(&["struct"]);
        if !text.contains("options") {
            folder.refused("report r.json -o r.html", "malformed-file", &["r.json", "--report FILE.json"]);
        }
    }
}

#[test]
fn forgotten_rules_are_one_difference() {
    let names: Vec<String> = (0..10)
        .flat_map(|i| ["LayerNorm.weight", "LayerNorm.bias", "key.weight"].map(|part| format!("layer.{i}.{part}")))
        .collect();
    let tensors: Vec<Tensor> = names.iter().map(|name| (name.as_str(), "F32", &[1u64][..], f32s(&[1.5]))).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --keep *LayerNorm* --quiet").succeeds();
    let text = folder.run("verify a.safetensors b.safetensors --to f8e4m3fn").exits(1).out;
    assert_eq!(text.lines().count(), 3, "{text}");
    for word in [
        "b.safetensors records other options", "20 tensors have type f32, expected f8e4m3fn", "--keep '*LayerNorm*'",
        "DIFFERENT: 20 of 30 tensors",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let object = folder.run("verify a.safetensors b.safetensors --to f8e4m3fn --json").exits(1).object("verify");
    let differences = object["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 21);
    let metadata = json!({ "kind": "metadata", "key": "truecast.options" });
    assert!(differences.contains(&metadata), "{differences:?}");
    folder.run("verify a.safetensors b.safetensors").succeeds();
    folder.run("verify a.safetensors b.safetensors --to f8e4m3fn --keep *LayerNorm*").succeeds();
}

/// Weights of two types; the norm keeps its type in conversions to BF16 with `--keep`.
fn model() -> Folder {
    let values: Vec<f32> = (0..64 * 64).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect();
    let tensors = [("a.weight", "F32", &[64u64, 64][..], f32s(&values)), ("norm", "F32", &[2], f32s(&[1.5, 1.1]))];
    let folder = Folder::with("model/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("model/config.json", b"{}");
    folder
}

#[test]
fn results_without_a_record_are_recognized() {
    let folder = model();
    let verify = |line: &str, said: &[&str]| {
        let of_options = "verify takes the options of the conversion, and out";
        folder.refused(line, "missing-argument", &[&[of_options], said].concat());
    };
    let advised = |line: &str| {
        let error = folder.run(line).exits(2).err;
        let typed = error.trim_end().split(": truecast ").last().unwrap().to_owned();
        folder.run(&typed.replace('\'', "")).succeeds();
        typed
    };
    for (convert, result, said) in [
        ("quantize model out fp8-tensor --quantize *.weight", "out", " --scheme fp8-tensor"),
        ("quantize model out fp8-tensor --quantize *.weight --to bf16", "out", " --scheme fp8-tensor --to bf16"),
        ("convert model out --to bf16", "out", " --to bf16"),
        ("convert model/model.safetensors out.npz --to f16", "out.npz", " --to f16"),
    ] {
        let source = if result == "out" { "model" } else { "model/model.safetensors" };
        folder.run(&format!("{convert} --force --quiet")).succeeds();
        let _ = std::fs::remove_file(folder.path("out/truecast-manifest.json"));
        let line = format!("verify {source} {result}");
        assert_eq!(advised(&line), format!("{line}{said}"), "{convert}");
    }
    verify("verify model/model.safetensors out.npz", &["records none", "it holds f16"]);
    // A dequantized result.
    folder.run("quantize model fp8 fp8-tensor --quantize *.weight --quiet").succeeds();
    folder.run("dequantize fp8 out --to f32 --force --quiet").succeeds();
    std::fs::remove_file(folder.path("out/truecast-manifest.json")).unwrap();
    std::fs::remove_file(folder.path("fp8/truecast-manifest.json")).unwrap();
    assert_eq!(advised("verify fp8 out"), "verify fp8 out --to f32");
    // The order is a guess only if the first path records options.
    folder.run("convert model out2 --to bf16 --quiet").succeeds();
    let swapped = folder.run("verify out2 model").exits(2).err;
    assert!(swapped.ends_with("if it was made from model, truecast verify model out2\n"), "{swapped}");
    folder.run("verify model out2").succeeds();
    folder.write("copy/model.safetensors", &folder.read("model/model.safetensors"));
    let same = folder.run("verify model copy").exits(2).err;
    assert!(same.ends_with("it has the types of model: truecast compare model copy\n"), "{same}");
}
