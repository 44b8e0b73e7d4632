//! `inspect`: several files, order and selection of tensors, their magnitudes, and conversions in ONNX models.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::npy::npy;
use truecast_testkit::proto::{attribute, bytes, graph, int, model, node, value};
use truecast_testkit::safetensors::{Tensor, f32s, safetensors};

fn folder() -> Folder {
    let tensors: [Tensor; 3] = [
        ("b.norm", "F32", &[4], f32s(&[1.0, -2.0, 0.25, f32::NAN])),
        ("a.weight", "F32", &[1], f32s(&[-100.0])),
        ("c.weight", "F32", &[2], f32s(&[0.0, 3.0])),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.write("x.npy", &npy("<f4", 3, &f32s(&[1.0, 1.5, 4.0])));
    folder
}

fn listed(folder: &Folder, line: &str) -> Vec<String> {
    let object = folder.run(&format!("inspect a.safetensors {line} --json")).succeeds().object("inspect");
    let names = object["tensors"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_string());
    let text = folder.run(&format!("inspect a.safetensors {line}")).succeeds().out;
    let in_text: Vec<&str> =
        text.lines().filter_map(|l| l.split(' ').next()).filter(|word| word.contains('.')).collect();
    let names: Vec<String> = names.collect();
    assert_eq!(in_text, names, "{line}: {text}");
    names
}

#[test]
fn several_files_each_with_its_heading() {
    let folder = folder();
    let text = folder.run("inspect a.safetensors x.npy").succeeds().out;
    let (first, second) = text.split_once("\nx.npy\n").unwrap();
    assert!(first.starts_with("a.safetensors\ntensor") && first.contains("3 tensors"), "{text}");
    assert!(second.starts_with("tensor") && second.contains("1 tensor,"), "{text}");
    let all = folder.run("inspect a.safetensors x.npy --json").succeeds().object("inspect");
    let one = |name: &str| {
        let mut object = folder.run(&format!("inspect {name} --json")).succeeds().object("inspect");
        object.as_object_mut().unwrap().retain(|key, _| key != "truecast" && key != "command");
        object
    };
    assert_eq!(all["files"], json!([one("a.safetensors"), one("x.npy")]));
}

#[test]
fn one_of_several_cannot_be_read() {
    let folder = folder();
    folder.write("bad.npy", b"\x93NUMPY");
    let ran = folder.run("inspect missing.npy x.npy bad.npy").exits(4).says(&["x.npy", "1 tensor,"]);
    assert!(ran.err.lines().count() == 2 && ran.err.contains("missing.npy") && ran.err.contains("bad.npy"));
    folder.run("inspect x.npy bad.npy").exits(3);
    let ran = folder.run("inspect x.npy bad.npy --json").exits(3);
    let object: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(object["files"][0]["tensors"].as_array().unwrap().len(), 1);
    assert_eq!(object["files"][1]["path"], "bad.npy");
    assert!(object["files"][1]["error"].as_str().unwrap().contains("bad.npy"));
}

#[test]
fn filters_choose_tensors() {
    let folder = folder();
    assert_eq!(listed(&folder, "--filter *.weight"), ["a.weight", "c.weight"]);
    assert_eq!(listed(&folder, "--filter b* --filter [c]*"), ["b.norm", "c.weight"]);
    folder.run("inspect a.safetensors --filter *.weight").succeeds().says(&["2 of 3 tensors, 12 B of data"]);
    folder.refused("inspect a.safetensors --filter *.bias", "unmatched-pattern", &["--filter \"*.bias\""]);
    folder.refused("inspect a.safetensors --filter a* --filter z", "unmatched-pattern", &["--filter \"z\""]);
    folder.refused("inspect a.safetensors --filter [a", "invalid-pattern", &["--filter \"[a\"", "']'"]);
    folder.run("inspect a.safetensors x.npy --filter *.norm").succeeds();
}

#[test]
fn sorted_by_columns() {
    let folder = folder();
    assert_eq!(listed(&folder, "--sort name"), ["a.weight", "b.norm", "c.weight"]);
    assert_eq!(listed(&folder, "--sort size"), ["b.norm", "c.weight", "a.weight"]);
    assert_eq!(listed(&folder, "--sort elements"), ["b.norm", "c.weight", "a.weight"]);
    assert_eq!(listed(&folder, "--stats --sort min"), ["a.weight", "b.norm", "c.weight"]);
    assert_eq!(listed(&folder, "--stats --sort max"), ["c.weight", "b.norm", "a.weight"]);
    assert_eq!(listed(&folder, "--stats --sort NaN"), ["b.norm", "a.weight", "c.weight"]);
    assert_eq!(listed(&folder, "--stats --sort zero")[0], "c.weight");
    folder.refused("inspect a.safetensors --sort min", "inapplicable-option", &["--sort min", "--stats"]);
    folder.refused("inspect a.safetensors --sort zork", "invalid-value", &["zork", "subnormal"]);
}

#[test]
fn magnitudes_of_values() {
    let folder = folder();
    let object = folder.run("inspect a.safetensors --stats --sort name --json").succeeds().object("inspect");
    let magnitudes = |i: usize| object["tensors"][i]["stats"]["magnitudes"].clone();
    assert_eq!(magnitudes(0), json!({ "first": 6, "counts": [1], "every": 1 })); // 100 lies between 2^6 and 2^7
    assert_eq!(magnitudes(1), json!({ "first": -2, "counts": [1, 0, 1, 1], "every": 1 }));
    assert_eq!(magnitudes(2), json!({ "first": 1, "counts": [1], "every": 1 }));
    folder.run("inspect a.safetensors --stats").succeeds().says(&["2^-2 █ ██ 2^1\n", "2^6 █\n"]);
    // Every element of a tensor of less than 1 Mi elements counts, in every chunk.
    let ones: Vec<f32> = (0..150_000).map(|i| if i % 3 == 0 { 1.0 } else { 8.0 }).collect();
    folder.write("many.npy", &npy("<f4", ones.len(), &f32s(&ones)));
    let object = folder.run("inspect many.npy --stats --json").succeeds().object("inspect");
    let expected = json!({ "first": 0, "counts": [50_000, 0, 0, 100_000], "every": 1 });
    assert_eq!(object["tensors"][0]["stats"]["magnitudes"], expected);
}

#[test]
fn conversions_of_onnx_models() {
    let to = |data_type: i64| attribute("to", 2, int(3, data_type));
    let nodes = [
        node("Cast", &["x"], &["a"], &[to(17), attribute("saturate", 2, int(3, 0))]),
        node("Cast", &["a"], &["b"], &[to(24)]), // FLOAT8E8M0, which comes with opset 24
        node("Relu", &["a"], &["c"], &[]),
        node("Cast", &["c"], &["e"], &[to(1)]),
        node("Mystery", &["a"], &["f"], &[]),
        node("Cast", &["f"], &["d"], &[to(1)]),
    ];
    let ends = [bytes(11, value("x", 1, &[3])), bytes(12, value("d", 1, &[3]))].concat();
    let folder = Folder::with("m.onnx", &model(10, 19, &graph(&nodes, &[], ends)));
    let object = folder.run("inspect m.onnx --json").succeeds().object("inspect");
    let all = object["model"]["conversions"].as_array().unwrap();
    let row = |i: usize| [&all[i]["operation"], &all[i]["from"], &all[i]["to"], &all[i]["legal"]];
    assert_eq!(row(0), [&json!("Cast saturate=0"), &json!("f32"), &json!("f8e4m3fn"), &json!(true)]);
    assert_eq!(row(1), [&json!("Cast"), &json!("f8e4m3fn"), &json!("f8e8m0"), &json!(false)]);
    assert!(all[1]["error"].as_str().unwrap().contains("opset 2"), "{}", all[1]["error"]);
    assert_eq!(row(2), [&json!("Cast"), &json!("f8e4m3fn"), &json!("f32"), &json!(true)]);
    assert_eq!(row(3), [&json!("Cast"), &json!("?"), &json!("f32"), &json!(null)]);
    let ran = folder.run("inspect m.onnx").succeeds();
    ran.says(&["conversion", "Cast saturate=0", "f8e4m3fn", "yes", "NO: ", "does not state"]);
    let ran = folder.run("check m.onnx").exits(1);
    ran.says(&["ILLEGAL: 2 legal, 1 illegal, 1 unknown: the model does not give the type of its input\n"]);
    let checked = folder.run("check m.onnx --spec onnx@24 --json").exits(0).object("check");
    assert_eq!(["conversions", "legal", "unknown"].map(|field| checked[field].as_u64()), [Some(4), Some(3), Some(1)]);
    folder.run("check m.onnx --spec onnx@24").exits(0).says(&["UNKNOWN: 3 legal, 1 unknown: the model"]);
    folder.run("check m.onnx --spec onnx@24 --fail-on unknown").exits(1);
}

#[test]
fn elements_by_type() {
    let tensors = [
        ("w", "BF16", &[2u64, 3][..], vec![0; 12]),
        ("v", "BF16", &[4][..], vec![0; 8]),
        ("ids", "I64", &[2][..], vec![0; 16]),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.run("inspect a.safetensors").succeeds().says(&["\n10 parameters; 12 elements: bf16 10, i64 2\n3 tensors, "]);
    let object = folder.run("inspect a.safetensors --json").succeeds().object("inspect");
    assert_eq!((&object["elements"], &object["elements_by_type"]), (&json!(12), &json!({ "bf16": 10, "i64": 2 })));
    let fp8 =
        [("w.weight", "F8_E4M3", &[4u64, 4][..], vec![0x38; 16]), ("w.weight_scale", "F32", &[][..], f32s(&[0.5]))];
    folder.write("q.safetensors", &safetensors(&fp8, &[]));
    folder.run("inspect q.safetensors --stats").succeeds().says(&["of the codes, without scales"]);
    folder.run("inspect q.safetensors").succeeds().lacks(&["without scales"]);
}

#[test]
fn values_are_shown() {
    let numbers: Vec<f32> = (0..24).map(|i| i as f32 / 10.0).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&[("w", "F32", &[4, 6], f32s(&numbers))], &[]));
    let values = |slice: &str| {
        let ran = folder.run_args(["show", "a.safetensors", &format!("w{slice}"), "--json"]).succeeds();
        ran.object("show")["values"].clone()
    };
    let at = |i: usize| f64::from(numbers[i]);
    for (slice, expected) in [
        ("[1, 2]", json!(at(8))),
        ("[-1, -2:]", json!([at(22), at(23)])),
        ("[::2, 0]", json!([at(0), at(12)])),
        ("[0, 4:1:-2]", json!([at(4), at(2)])),
        ("[0, ::-1]", json!([at(5), at(4), at(3), at(2), at(1), at(0)])),
        ("[1:1]", json!([])),
        ("[3, 100:]", json!([])),
    ] {
        assert_eq!(values(slice), expected, "{slice}");
    }
    let ran = folder.run_args(["show", "a.safetensors", "w[:2, :3]"]).succeeds();
    assert_eq!(ran.out, "w f32 [2, 3]\n[[  0 0.1 0.2]\n [0.6 0.7 0.8]]\n");
    for (tensor, why) in [("w[4]", "outside of dimension 0"), ("w[0,0,0]", "2 dimensions"), ("w[::0]", "a step of 0")] {
        folder.refused_args(["show", "a.safetensors", tensor], "invalid-value", &[why]);
    }
    folder.refused("show a.safetensors v", "unknown-tensor", &["v"]);
    folder.write("many.npy", &npy("<f4", 1000, &f32s(&[0.5; 1000])));
    assert_eq!(folder.run("show many.npy").succeeds().out, "data f32 [1000]\n[0.5 0.5 0.5 ... 0.5 0.5 0.5]\n");
    folder.write("i.npy", &npy("<i4", 2, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]));
    assert_eq!(folder.run("show i.npy [1]").succeeds().out, "data i32 []\n-1\n");
    let scale = ("w.weight_scale_inv", "F32", &[1u64, 1][..], f32s(&[0.5]));
    let fp8 = safetensors(&[("w.weight", "F8_E4M3", &[2u64, 2][..], vec![0x38; 4]), scale], &[]);
    folder.write_shards("model", &json!({}), &[("1.safetensors", fp8)]);
    let config = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": [8, 8] } });
    folder.write("model/config.json", config.to_string().as_bytes());
    folder.run("show model w.weight").succeeds().says(&["w.weight f32 [2, 2]\n[[0.5 0.5]\n [0.5 0.5]]\n"]);
}
