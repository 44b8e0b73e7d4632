//! `run`, `check` and `vectors` (`docs/interfaces.md §3`, §4, §6). What conversions give is `docs/spec/onnx.md §4`'s.

use crate::files::{f32s, npy, npy_parts};
use crate::proto::{attribute, bytes, graph, int, model, node, value};
use crate::run::Folder;
use serde_json::json;

/// A model with one Cast from FLOAT `x`, of three elements, to `output`.
fn cast_model(opset: i64, output: &str, data_type: i64) -> Vec<u8> {
    let to = attribute("to", 2, int(3, data_type));
    let others = [bytes(11, value("x", 1, &[3])), bytes(12, value(output, data_type, &[3]))].concat();
    model(10, opset, &graph(&[node("Cast", &["x"], &[output], &[to])], &[], others))
}

fn folder(opset: i64, output: &str, data_type: i64) -> Folder {
    let folder = Folder::with("m.onnx", &cast_model(opset, output, data_type));
    folder.write("x.npy", &npy("<f4", 3, &f32s(&[1.0, 465.0, -2.0])));
    folder
}

const E4M3FN: i64 = 17;

#[test]
fn run_writes_each_output() {
    let folder = folder(19, "a/b", E4M3FN);
    let ran = folder.run("run m.onnx --input x=x.npy --output-dir out --json").succeeds();
    let object = ran.object("run");
    assert_eq!(object["status"], "valid");
    let expected = json!([{ "name": "a/b", "dtype": "f8e4m3fn", "shape": [3], "path": "out/a%2Fb.npy" }]);
    assert_eq!(object["outputs"], expected);
    let file = folder.read("out/a%2Fb.npy");
    assert_eq!(npy_parts(&file).1, [0x38, 0x7e, 0xc0]);

    // What exists is kept unless told otherwise; text says where things are.
    folder.run("run m.onnx --input x=x.npy --output-dir out").fails(2, &["a%2Fb.npy", "--force"]);
    let ran = folder.run("run m.onnx --input x=x.npy --output-dir out --force").succeeds();
    assert!(ran.out.contains("out/a%2Fb.npy") && ran.out.contains("f8e4m3fn"), "{}", ran.out);

    // A TensorProto: dims, data_type, name, raw_data; it is read as an input too.
    folder.run("run m.onnx --input x=x.npy --output-dir out --output-format pb --quiet").succeeds();
    let message = [int(1, 3), int(2, E4M3FN), bytes(8, "a/b"), bytes(9, [0x38, 0x7e, 0xc0])].concat();
    assert_eq!(folder.read("out/a%2Fb.pb"), message);
    folder.write("x.pb", &[int(1, 3), int(2, 1), bytes(9, f32s(&[1.0, 465.0, -2.0]))].concat());
    folder.run("run m.onnx --input x=x.pb --output-dir again").succeeds();
    assert_eq!(folder.read("again/a%2Fb.npy"), file);
}

/// An input is never replaced, not even with `--force`.
#[test]
fn run_keeps_what_it_reads() {
    let folder = folder(19, "y", E4M3FN);
    let input = folder.read("x.npy");
    folder.write("y.npy", &input);
    folder.run("run m.onnx --input x=y.npy --output-dir . --force").fails(2, &["y.npy", "--output-dir"]);
    assert_eq!(folder.read("y.npy"), input);
    folder.run("run m.onnx --input x=x.npy --output-dir . --force").succeeds();
    assert_ne!(folder.read("y.npy"), input);
}

#[test]
fn text_goes_in_and_out() {
    const STRING: i64 = 8;
    let folder = folder(28, "y", STRING);
    folder.run("run m.onnx --input x=x.npy --output-dir out").succeeds();
    let cells = |texts: &[&str]| {
        let width = texts.iter().map(|t| t.len()).max().unwrap();
        let points = texts.iter().flat_map(|t| t.chars().chain(std::iter::repeat('\0')).take(width));
        points.flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<_>>()
    };
    assert_eq!(npy_parts(&folder.read("out/y.npy")).1, cells(&["1.0", "465.0", "-2.0"]));
    folder.run("run m.onnx --input x=x.npy --output-dir out --output-format pb").succeeds();
    let texts: Vec<u8> = ["1.0", "465.0", "-2.0"].iter().flat_map(|t| bytes(6, t)).collect();
    assert_eq!(folder.read("out/y.pb"), [int(1, 3), int(2, STRING), bytes(8, "y"), texts].concat());

    // And back, from either form.
    let to = attribute("to", 2, int(3, 1));
    let others = [bytes(11, value("s", STRING, &[3])), bytes(12, value("z", 1, &[3]))].concat();
    folder.write("back.onnx", &model(10, 28, &graph(&[node("Cast", &["s"], &["z"], &[to])], &[], others)));
    for form in ["npy", "pb"] {
        folder.run(&format!("run back.onnx --input s=out/y.{form} --output-dir out --force")).succeeds();
        assert_eq!(npy_parts(&folder.read("out/z.npy")).1, f32s(&[1.0, 465.0, -2.0]), "{form}");
    }
}

#[test]
fn run_refuses_with_one_line() {
    let folder = folder(18, "y", E4M3FN);
    let line = |rest: &str| format!("run m.onnx {rest} --output-dir out");
    folder.run(&line("--input x=x.npy")).fails(3, &["m.onnx", "\"y\"", "opset 18", "f8e4m3fn"]);
    folder.write("m.onnx", &cast_model(19, "y", E4M3FN));
    folder.run(&line("")).fails(2, &["\"x\"", "missing"]);
    folder.run(&line("--input z=x.npy")).fails(2, &["z=x.npy", "the inputs are \"x\""]);
    folder.run(&line("--input x=x.npy --input x=x.npy")).fails(2, &["twice"]);
    folder.run(&line("--input x=none.npy")).fails(4, &["none.npy"]);
    folder.write("short.npy", &npy("<f4", 2, &f32s(&[1.0, 2.0])));
    folder.run(&line("--input x=short.npy")).fails(3, &["\"x\"", "[2]", "[3]"]);
    folder.write("wide.npy", &npy("<f8", 3, &[0; 24]));
    folder.run(&line("--input x=wide.npy")).fails(3, &["wide.npy", "f64", "f32"]);
    folder.write("m.onnx", b"\xff\xff");
    folder.run(&line("--input x=x.npy")).fails(3, &["m.onnx"]);
    folder.run("run x.npy --output-dir out").fails(2, &["x.npy", ".onnx"]);
    assert!(!folder.path("out/y.npy").exists());
}

#[test]
fn check_judges_results() {
    let folder = Folder::with("x.npy", &npy("<f4", 4, &f32s(&[465.0, f32::NAN, 1.0, -0.0])));
    let line = "check cast --from f32 --to f8e5m2 --input x.npy --actual y.npy";
    folder.write("y.npy", &npy("<f1", 4, &[0x5f, 0xfd, 0x3c, 0x80])); // 448; any NaN is right
    let ran = folder.run(line).succeeds();
    assert!(ran.out.starts_with("permitted by onnx@28: 4 elements"), "{}", ran.out);
    folder.run(&format!("{line} --exact-nan")).exits(1);
    folder.write("y.npy", &npy("<f1", 4, &[0x5e, 0x7e, 0x3c, 0x00]));
    let ran = folder.run(&format!("{line} --json")).exits(1);
    let object = ran.object("check");
    assert_eq!((&object["elements"], &object["wrong"], &object["undefined"]), (&json!(4), &json!(2), &json!(0)));
    let first = &object["violations"][0];
    assert_eq!((&first["index"], &first["input"], &first["actual"]), (&json!(0), &json!("0x43e88000"), &json!("0x5e")));
    assert_eq!(first["permitted"], json!(["0x5f"]));
    assert!(first["clause"].as_str().unwrap().contains("§4.6"));
    assert_eq!(object["violations"].as_array().unwrap().len(), 2);
    let ran = folder.run(&format!("{line} --show 1")).exits(1);
    assert!(ran.out.contains("NOT PERMITTED") && ran.out.lines().count() == 3, "{}", ran.out);
}

/// `docs/spec/onnx.md §4.11`: U1 accepts anything, U5 three roundings, U6 two values before opset 24.
#[test]
fn check_accepts_and_counts_what_is_open() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[2.5, 1e9, 2.0])));
    let line = "check cast --from f32 --to i4 --input x.npy --actual y.npy --json";
    for (actual, code, wrong) in [([3, 5, 2], 0, 0), ([2, 0, 2], 0, 0), ([4, 0, 2], 1, 1), ([2, 0, 3], 1, 1)] {
        folder.write("y.npy", &npy("|u1", 3, &actual));
        let object = folder.run(line).exits(code).object("check");
        assert_eq!(object["wrong"], wrong, "{actual:?}");
        assert_eq!(object["undefined"], 2 - (actual[0] == 4) as i64, "{actual:?}");
    }
    folder.write("y.npy", &npy("|u1", 3, &[4, 0, 2]));
    let first = folder.run(line).exits(1).object("check")["violations"][0].clone();
    assert_eq!(first["permitted"], json!(["0x2", "0x3"]));
    folder.write("x.npy", &npy("<f4", 1, &f32s(&[f32::INFINITY])));
    folder.write("y.npy", &npy("|u1", 1, &[0x80]));
    let line = "check cast --from f32 --to f8e4m3fnuz --input x.npy --actual y.npy";
    folder.run(&format!("{line} --spec onnx@23")).succeeds();
    folder.run(&format!("{line} --spec onnx@24")).exits(1);
    folder.run(&format!("{line} --spec onnx@24 --saturate false")).succeeds();
}

/// `docs/spec/onnx.md §4.11` U7, U9; text as `.npy` and as `.pb`.
#[test]
fn check_judges_text() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &f32s(&[1.0 / 3.0, f32::NAN])));
    let texts = |all: &[&str]| [int(1, 2), int(2, 8), all.iter().flat_map(|t| bytes(6, t)).collect()].concat();
    folder.write("s.pb", &texts(&["0.333333343", "NaN"]));
    folder.run("check cast --from f32 --to string --input x.npy --actual s.pb").succeeds();
    folder.write("s.pb", &texts(&["0.333333", "NaN"]));
    let object =
        folder.run("check cast --from f32 --to string --input x.npy --actual s.pb --json").exits(1).object("check");
    assert_eq!((&object["wrong"], &object["undefined"]), (&json!(1), &json!(1)));
    assert_eq!(object["violations"][0]["actual"], "\"0.333333\"");
    assert!(object["violations"][0]["permitted"][0].as_str().unwrap().starts_with("\"0.33333334\""));

    let cells = |texts: [&str; 2]| {
        let points = texts.iter().flat_map(|t| t.chars().chain(std::iter::repeat('\0')).take(8));
        points.flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<_>>()
    };
    folder.write("s.npy", &npy("<U8", 2, &cells(["65519.99", "sixteen"])));
    folder.write("h.npy", &npy("<f2", 2, &[0xff, 0x7b, 0x34, 0x12]));
    let ran = folder.run("check cast --from string --to f16 --input s.npy --actual h.npy").succeeds();
    assert!(ran.out.contains("1 left open"), "{}", ran.out);
    folder.write("h.npy", &npy("<f2", 2, &[0x00, 0x7c, 0x34, 0x12]));
    folder.run("check cast --from string --to f16 --input s.npy --actual h.npy").exits(1);
    folder.run("check cast --from string --to string --input s.npy --actual s.npy").succeeds();
}

#[test]
fn check_refuses_with_one_line() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &[0; 8]));
    folder.write("y.npy", &npy("<f2", 3, &[0; 6]));
    let line = |rest: &str| format!("check cast --from f32 --input x.npy --actual y.npy {rest}");
    folder.run(&line("--to f16")).fails(3, &["y.npy", "[3]", "[2]"]);
    folder.run(&line("--to f32")).fails(3, &["y.npy", "f16", "f32"]);
    folder.run(&line("")).fails(2, &["--to"]);
    folder.run(&line("--to f6e2m3 --spec onnx@27")).fails(3, &["f6e2m3", "opset 28", "--spec ieee"]);
    folder.run("check cast --from f32 --to f16 --input x.npy").fails(2, &["--actual"]);
    folder.run("check m.onnx --to f16").fails(2, &["--to"]);
    folder.run("check m.onnx --spec ieee").fails(2, &["onnx@OPSET"]);
}

#[test]
fn check_judges_models() {
    let folder = folder(19, "y", E4M3FN);
    let ran = folder.run("check m.onnx").succeeds();
    assert_eq!(ran.out, "legal: 1 conversions, 0 illegal\n");
    let object = folder.run("check m.onnx --spec onnx@18 --json").exits(1).object("check");
    assert_eq!((&object["conversions"], &object["unknown_types"]), (&json!(1), &json!(0)));
    let finding = &object["illegal"][0];
    assert!(finding["node"].as_str().unwrap().contains("\"y\""));
    assert!(finding["error"].as_str().unwrap().contains("f8e4m3fn"));
    let ran = folder.run("check m.onnx --spec onnx@18").exits(1);
    assert!(ran.out.contains("opset 18") && ran.out.ends_with("ILLEGAL: 1 conversions, 1 illegal\n"), "{}", ran.out);
}

#[test]
fn vectors_in_each_format() {
    let folder = Folder::new();
    let ran = folder.run("vectors cast --from f32 --to f8e4m3fnuz --spec onnx@23").succeeds();
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(lines[0].starts_with("# truecast vectors: cast f32 f8e4m3fnuz, onnx@23"));
    assert!(lines.contains(&"43780000 7f") && lines.contains(&"43700000 7f")); // 248, 240
    assert!(lines.contains(&"7f800000 7f undefined") && lines.contains(&"80000000 00"));
    assert!(lines[1..].iter().all(|l| l.len() >= 11 && l.as_bytes()[8] == b' '));

    let object = folder.run("vectors cast --from f16 --to i4 --format json").succeeds().object("vectors");
    let found = object["vectors"].as_array().unwrap().iter().find(|v| v["input"] == "0x4100").unwrap(); // 2.5
    assert_eq!((&found["output"], &found["accepted"]), (&json!("0x2"), &json!(["0x2", "0x3"])));
    let nan = object["vectors"].as_array().unwrap().iter().find(|v| v["input"] == "0x7e00").unwrap();
    assert_eq!(nan["accepted"], "any");

    folder.run("vectors cast --from bf16 --to f4e2m1 --level exhaustive --format npy -o v.npy").succeeds();
    assert_eq!(folder.names(), ["v.input.npy", "v.output.npy", "v.undefined.npy"]);
    assert_eq!(npy_parts(&folder.read("v.output.npy")).1.len(), 65536);
    let undefined = folder.read("v.undefined.npy");
    assert_eq!(npy_parts(&undefined).1.iter().filter(|b| **b == 1).count(), 2 * 127); // every NaN: U4
    folder.run("check cast --from bf16 --to f4e2m1 --input v.input.npy --actual v.output.npy").succeeds();
    folder.run("vectors cast --from bf16 --to f4e2m1 --format npy -o v.npy").fails(2, &["v.input.npy", "--force"]);
    // All three or none.
    folder.write("w.undefined.npy", b"");
    folder.run("vectors cast --from bf16 --to f4e2m1 --format npy -o w").fails(2, &["w.undefined.npy", "--force"]);
    assert!(!folder.names().iter().any(|name| name == "w.input.npy" || name == "w.output.npy"));
    folder.run("vectors cast --from bf16 --to f4e2m1 -o v.hex").succeeds();
    assert!(folder.read("v.hex").starts_with(b"# truecast vectors"));
}

#[test]
fn vectors_refuse_with_one_line() {
    let folder = Folder::new();
    let line = |rest: &str| format!("vectors {rest}");
    folder.run(&line("cast --from f32 --to f16 --level exhaustive")).fails(2, &["f32", "16 bits", "boundary"]);
    folder.run(&line("cast --from f32 --to string")).fails(2, &["string"]);
    folder.run(&line("cast --from f32 --to f8e3m4")).fails(3, &["f8e3m4", "--spec ieee"]);
    folder.run(&line("cast --from f32 --to f16 --format npy")).fails(2, &["-o"]);
    folder.run(&line("round --from f32 --to f16")).fails(2, &["round", "cast", "rescale"]);
}
