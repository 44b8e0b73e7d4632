//! `compare` and `verify`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::json::has;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{Tensor, f32s, one_tensor, safetensors};

/// Expected codes by hand: `b` is `a` in f8e4m3fn.
fn converted(tensors: &[Tensor]) -> Folder {
    let source = [
        ("w", "F32", &[3u64][..], f32s(&[1.0, 465.0, -2.0])),
        ("v", "F32", &[1], f32s(&[0.5])),
        ("ids", "I32", &[1], vec![7, 0, 0, 0]),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&source, &[("k", "v")]));
    folder.write("b.safetensors", &safetensors(tensors, &[("k", "v"), ("format", "pt")]));
    folder
}

fn right() -> Vec<Tensor<'static>> {
    vec![
        ("w", "F8_E4M3", &[3], vec![0x38, 0x7e, 0xc0]),
        ("v", "F8_E4M3", &[1], vec![0x30]),
        ("ids", "I32", &[1], vec![7, 0, 0, 0]),
    ]
}

#[track_caller]
fn differences(folder: &Folder, line: &str) -> Vec<Value> {
    let object = folder.run(&format!("verify a.safetensors b.safetensors {line} --json")).exits(1).object("verify");
    assert_eq!(object["equal"], false);
    object["differences"].as_array().unwrap().clone()
}

#[test]
fn verify_accepts_what_convert_writes() {
    let folder = converted(&right());
    folder.run("verify a.safetensors b.safetensors --to f8e4m3fn").succeeds();
    let object = folder.run("verify a.safetensors b.safetensors --to f8e4m3fn --json").succeeds().object("verify");
    assert_eq!((&object["equal"], &object["tensors"], &object["elements"]), (&json!(true), &json!(3), &json!(5)));
    assert_eq!(folder.run("verify a.safetensors b.safetensors --to f8e4m3fn --quiet").succeeds().out, "");
}

#[test]
fn verify_names_a_wrong_element() {
    let mut wrong = right();
    wrong[0].3 = vec![0x38, 0x7f, 0xc1];
    let folder = converted(&wrong);
    let all = differences(&folder, "--to f8e4m3fn");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((&all[0]["tensor"], &all[0]["count"]), (&json!("w"), &json!(2)));
    let first = &all[0]["first"];
    has(first, &json!({ "index": 1, "expected": "0x7e", "actual": "0x7f", "source": "0x43e88000" }));
    let ran = folder.run("verify a.safetensors b.safetensors --to f8e4m3fn").exits(1);
    ran.says(&["\"w\"", "is 1:", "0x7e", "0x7f", "0x43e88000"]);
    let other = differences(&folder, "--to f8e4m3fn --saturate false");
    assert_eq!((&other[0]["count"], &other[0]["first"]["index"]), (&json!(1), &json!(2)));
    let mut wrong = right();
    wrong[2].3 = vec![8, 0, 0, 0];
    assert_eq!(differences(&converted(&wrong), "--to f8e4m3fn")[0]["tensor"], "ids");
}

#[test]
fn verify_names_an_unrelated_result_in_one_line() {
    let folder = converted(&[("a.b", "F32", &[1], f32s(&[1.5])), ("a.c", "F32", &[1], f32s(&[1.5]))]);
    let ran = folder.run("verify a.safetensors b.safetensors --to f8e4m3fn").exits(1);
    assert_eq!(ran.says(&["3 expected tensors", "2 other tensors", "a.b"]).out.lines().count(), 2);
    assert_eq!(differences(&folder, "--to f8e4m3fn").len(), 5);
    let one_of_three = converted(&right()[..1]).run("verify a.safetensors b.safetensors --to f8e4m3fn").exits(1);
    one_of_three.says(&["tensor \"v\" is missing", "tensor \"ids\" is missing"]);
}

/// Each row is (error in the second file, tensors of the second file, kind of difference, name of the tensor).
#[test]
fn verify_finds_wrong_structure() {
    let mut dtype = right();
    dtype[1] = ("v", "F8_E5M2", &[1], vec![0x30]);
    let mut shape = right();
    shape[0].2 = &[3, 1];
    let mut extra = right();
    extra.push(("more", "U8", &[1], vec![0]));
    let mut renamed = right();
    renamed[1].0 = "vv";
    for (what, tensors, kind, tensor) in [
        ("dropped", right()[..2].to_vec(), "missing", "ids"),
        ("extra", extra, "extra", "more"),
        ("dtype", dtype, "header", "v"),
        ("shape", shape, "header", "w"),
        ("renamed", renamed, "missing", "v"),
    ] {
        let all = differences(&converted(&tensors), "--to f8e4m3fn");
        assert!(all.iter().any(|d| d["kind"] == kind && d["tensor"] == tensor), "{what}: {all:?}");
    }
    let folder = converted(&right());
    folder.write("b.safetensors", &safetensors(&right(), &[("k", "other"), ("format", "pt")]));
    assert_eq!(differences(&folder, "--to f8e4m3fn")[0]["kind"], "metadata");
}

#[test]
fn verify_finds_wrong_structure_around_one_tensor() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    let one = ("w", "F32", &[1u64][..], f32s(&[1.0]));
    for (what, tensors) in [
        ("extra", vec![one.clone(), ("x", "F32", &[1], f32s(&[1.0]))]),
        ("renamed", vec![("x", "F32", &[1], f32s(&[1.0]))]),
        ("none", vec![]),
    ] {
        folder.write("b.safetensors", &safetensors(&tensors, &[("format", "pt")]));
        let ran = folder.run("verify a.safetensors b.safetensors --to f32");
        assert_eq!(ran.code, Some(1), "{what}: {}{}", ran.out, ran.err);
    }
    folder.write("empty.safetensors", &safetensors(&[], &[]));
    folder.write("b.safetensors", &safetensors(&[one], &[("format", "pt")]));
    folder.run("verify empty.safetensors b.safetensors --to f32").exits(1);
}

#[test]
fn verify_reads_arrays_as_the_type_asked_for() {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[1.0, 465.0])));
    for to in ["f8e4m3fn", "bf16", "f64", "u8"] {
        folder.run(&format!("convert a.npy {to}.npy --to {to} --quiet")).succeeds();
    }
    folder.write("f1.npy", &npy("<f1", 2, &[0x38, 0x7e])); // right bytes, but other readers take them for f8e5m2
    for (file, to) in [("f64", "f8e4m3fn"), ("f8e4m3fn", "f64"), ("u8", "i4"), ("bf16", "i4"), ("f1", "f8e4m3fn")] {
        folder.run(&format!("verify a.npy {file}.npy --to {to}")).exits(1);
    }
}

#[test]
fn verify_needs_the_options_of_the_conversion() {
    let folder = converted(&right());
    folder.refused("verify a.safetensors b.safetensors", "missing-argument", &["--to"]);
    folder.refused("verify a.safetensors b.safetensors --to f8e4m3fn --rule no*=f16", "unmatched-pattern", &["no*"]);
}

fn pair(a: &[Tensor], b: &[Tensor]) -> Folder {
    let folder = Folder::with("a.safetensors", &safetensors(a, &[]));
    folder.write("b.safetensors", &safetensors(b, &[]));
    folder
}

#[test]
fn compare_across_types() {
    let a = [("w", "F32", &[3u64][..], f32s(&[1.0, 465.0, f32::NAN]))];
    let b = [("w", "F8_E4M3", &[3u64][..], vec![0x38, 0x7e, 0x7f])];
    let folder = pair(&a, &b);
    let object = folder.run("compare a.safetensors b.safetensors --json").succeeds().object("compare");
    let row = &object["tensors"][0];
    has(row, &json!({ "elements": 3, "exact": 2, "inexact": 1, "max_abs_error": 17.0, "index_max_abs": 1 }));
    assert_eq!(object["equal"], false);
    assert_eq!(row["worst"], json!({ "index": [1], "first": 465.0, "second": 448.0 }));
    folder
        .run("compare a.safetensors b.safetensors")
        .succeeds()
        .says(&["f32 | f8e4m3fn", "different: ", "largest error: [1]: 465 | 448 in tensor \"w\""]);
    assert_eq!(folder.run("compare a.safetensors b.safetensors --quiet").exits(1).out, "");
    let same = folder.run("compare a.safetensors a.safetensors --json").succeeds().object("compare");
    assert_eq!(same["equal"], true);
}

#[test]
fn compare_fails_on_what_is_asked_for() {
    let a = [("w", "F32", &[2u64][..], f32s(&[1.0, 2.0]))];
    let b = [("w", "F32", &[2u64][..], f32s(&[1.5, f32::NAN]))];
    let folder = pair(&a, &b);
    for (options, code) in [
        ("", 1),
        ("--fail-on inexact", 1),
        ("--fail-on nan=1", 0),
        ("--fail-on left_out", 1),
        ("--fail-on inf", 0),
        ("--fail-on zork", 2),
    ] {
        folder.run(&format!("compare a.safetensors b.safetensors --quiet {options}")).exits(code);
    }
    for line in ["compare a.safetensors b.safetensors", "convert b.safetensors c.safetensors --to bool --rule *=i8"] {
        let ran = folder.run(&format!("{line} --json --fail-on inexact,to_nan,nan_in")).exits(1);
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
        assert_eq!(error["exit_code"], 1, "{error}");
        assert!(error["error"].as_str().unwrap().starts_with("--fail-on: "), "{error}");
    }
}

#[test]
fn compare_names_what_cannot_be_compared() {
    let f = |v: f32| f32s(&[v]);
    let a = [("x", "F32", &[1u64][..], f(1.0)), ("only-a", "F32", &[1], f(1.0)), ("s", "F32", &[1], f(1.0))];
    let b = [("x", "F32", &[1u64][..], f(1.0)), ("only-b", "F32", &[1], f(1.0)), ("s", "F32", &[1, 1], f(1.0))];
    let folder = pair(&a, &b);
    let object = folder.run("compare a.safetensors b.safetensors --json").succeeds().object("compare");
    assert_eq!((&object["only_first"], &object["only_second"]), (&json!(["only-a"]), &json!(["only-b"])));
    assert_eq!(object["incomparable"][0]["name"], "s");
    assert_eq!(object["equal"], false);
    let said = ["only-a", "only-b", "[1, 1]", "could not be compared"];
    folder.run("compare a.safetensors b.safetensors").succeeds().says(&said);
    folder.run("compare a.safetensors b.safetensors --fail-on inexact=9").exits(1);
}

#[test]
fn compare_one_tensor_by_name() {
    let folder = pair(&[("x", "F32", &[1], f32s(&[1.0]))], &[("y", "F32", &[1], f32s(&[1.0]))]);
    let object = folder.run("compare a.safetensors b.safetensors --json").succeeds().object("compare");
    has(&object, &json!({ "equal": false, "only_first": ["x"], "only_second": ["y"] }));
    folder.write("c.npy", &npy("<f4", 1, &f32s(&[1.0])));
    assert_eq!(folder.run("compare a.safetensors c.npy --json").succeeds().object("compare")["equal"], true);
}

/// The Casts that `convert` inserts between nodes must not change the names of tensors below unnamed nodes.
#[test]
fn verify_finds_tensors_below_unnamed_nodes() {
    use truecast_testkit::proto::{attribute, bytes, graph, model, node, tensor, value};
    let weights = |name: &str| [tensor(name, 1, &[1024]), bytes(9, f32s(&[1.5; 1024]))].concat();
    let branch = |name: &str| attribute(name, 5, bytes(6, graph(&[], &[weights(name)], bytes(12, bytes(1, name)))));
    let nodes = [
        node("Add", &["w", "x"], &["a"], &[]),
        node("If", &["condition"], &["y"], &[branch("then_branch"), branch("else_branch")]),
    ];
    let infos =
        [bytes(11, value("x", 1, &[1024])), bytes(11, value("condition", 9, &[])), bytes(12, value("y", 1, &[1024]))];
    let folder = Folder::with("a.onnx", &model(8, 17, &graph(&nodes, &[weights("w")], infos.concat())));
    folder.run("convert a.onnx b.onnx --to bf16").exits(0).says(&["model: opset 17\n"]);
    let verified = folder.run("verify a.onnx b.onnx --to bf16 --json").succeeds().object("verify");
    assert_eq!((&verified["equal"], &verified["tensors"]), (&json!(true), &json!(3)));
}

#[test]
fn quiet_answers_by_the_exit_code() {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[1.0, 2.1])));
    folder.run("convert a.npy b.npy --to f16 --quiet").succeeds();
    for (line, code) in [
        ("compare a.npy b.npy --quiet", 1),
        ("compare a.npy a.npy --quiet", 0),
        ("compare a.npy b.npy --quiet --fail-on to_inf", 0),
        ("compare a.npy b.npy", 0),
    ] {
        let ran = folder.run(line).exits(code);
        assert!(ran.err.is_empty() && ran.out.is_empty() == line.contains("quiet"), "{line}: {} {}", ran.out, ran.err);
    }
    folder.run("compare a.npy b.npy").says(&["different: 1 value in 1 tensor"]);
    folder.run("compare a.npy none.npy --quiet").exits(4);
}
