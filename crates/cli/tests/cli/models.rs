//! `run`, `check` and `vectors` (`docs/interfaces.md §3`, §4, §6). Expected results: `docs/spec/onnx.md §4`.

use crate::run::Folder;
use serde_json::json;
use truecast_testkit::json::has;
use truecast_testkit::npy::{npy, npy_parts};
use truecast_testkit::proto::{attribute, bytes, external, graph, int, model, node, value};
use truecast_testkit::safetensors::f32s;

/// A model with one Cast of FLOAT `x`, shape `[3]`, to `output`.
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

    folder.refused("run m.onnx --input x=x.npy --output-dir out", "destination-exists", &["a%2Fb.npy", "--force"]);
    folder.run("run m.onnx --input x=x.npy --output-dir out --force").succeeds().says(&["out/a%2Fb.npy", "f8e4m3fn"]);

    folder.run("run m.onnx --input x=x.npy --output-dir out --output-format pb --quiet").succeeds();
    let message = [int(1, 3), int(2, E4M3FN), bytes(8, "a/b"), bytes(9, [0x38, 0x7e, 0xc0])].concat();
    assert_eq!(folder.read("out/a%2Fb.pb"), message);
    folder.write("x.pb", &[int(1, 3), int(2, 1), bytes(9, f32s(&[1.0, 465.0, -2.0]))].concat());
    folder.run("run m.onnx --input x=x.pb --output-dir again").succeeds();
    assert_eq!(folder.read("again/a%2Fb.npy"), file);
}

/// `--force` never replaces an input. File names have at most 255 bytes, and an escaped name may be longer than the
/// original.
#[test]
fn an_output_whose_name_no_file_can_have() {
    for (output, bytes) in [("n".repeat(252), 256), ("ü".repeat(42), 256)] {
        let folder = folder(21, &output, 10);
        let said = format!("{bytes} bytes, at most 255 are possible; rename the output in the model");
        folder.refused("run m.onnx --input x=x.npy --output-dir out", "limit-exceeded", &[&said]);
        assert_eq!(folder.names(), ["m.onnx", "x.npy"]);
    }
    let (longest, fits) = ("n".repeat(251), "ü".repeat(41));
    for output in [longest, fits] {
        folder(21, &output, 10).run("run m.onnx --input x=x.npy --output-dir out").succeeds();
    }
}

#[test]
fn run_keeps_what_it_reads() {
    let folder = folder(19, "y", E4M3FN);
    let input = folder.read("x.npy");
    folder.write("y.npy", &input);
    folder.refused("run m.onnx --input x=y.npy --output-dir . --force", "same-file", &["y.npy", "--output-dir"]);
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
    folder.refused(&line("--input x=x.npy"), "illegal-operation", &["m.onnx", "\"y\"", "opset 18", "f8e4m3fn"]);
    folder.write("m.onnx", &cast_model(19, "y", E4M3FN));
    folder.refused(&line("--input z=x.npy"), "invalid-value", &["\"z\"", "\"x\""]);
    folder.refused(&line("--input x=x.npy --input x=x.npy"), "invalid-value", &["twice"]);
    folder.refused(&line("--input x=none.npy"), "not-found", &["none.npy"]);
    folder.write("short.npy", &npy("<f4", 2, &f32s(&[1.0, 2.0])));
    folder.refused(&line("--input x=short.npy"), "shape-mismatch", &["\"x\"", "[2]", "[3]"]);
    folder.write("wide.npy", &npy("<f8", 3, &[0; 24]));
    folder.refused(&line("--input x=wide.npy"), "type-mismatch", &["wide.npy", "f64", "f32"]);
    folder.write("m.onnx", b"\xff\xff");
    folder.refused(&line("--input x=x.npy"), "truncated-file", &["m.onnx"]);
    folder.refused("run x.npy --output-dir out", "unknown-file-kind", &["x.npy", ".onnx"]);
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
    has(first, &json!({ "index": 0, "input": "0x43e88000", "actual": "0x5e", "permitted": ["0x5f"] }));
    assert!(first["clause"].as_str().unwrap().contains("§4.6"));
    assert_eq!(object["violations"].as_array().unwrap().len(), 2);
    let ran = folder.run(&format!("{line} --show 1")).exits(1).says(&["NOT PERMITTED"]);
    assert_eq!(ran.out.lines().filter(|line| line.contains("onnx.md")).count(), 1, "{}", ran.out);
}

#[test]
fn check_asks_for_the_type_once() {
    let folder = Folder::with("x.npy", &npy("|V1", 1, &[0x38]));
    folder.write("y.npy", &npy("<f2", 1, &[0, 0x3c]));
    let error = folder
        .refused("check cast --to f16 --input x.npy --actual y.npy", "type-not-stated", &["x.npy", "--from"])
        .text;
    assert_eq!(error.matches("--from").count(), 1, "{error}");
}

/// `docs/spec/onnx.md §4.11`: U5 permits three roundings, U6 two values before opset 24.
#[test]
fn check_accepts_and_counts_what_is_open() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[2.5, 1e9, 2.0])));
    folder.write("y.npy", &npy("|u1", 3, &[4, 0, 2]));
    let object =
        folder.run("check cast --from f32 --to i4 --input x.npy --actual y.npy --json").exits(1).object("check");
    has(&object, &json!({ "wrong": 1, "undefined": 1 }));
    assert_eq!(object["violations"][0]["permitted"], json!(["0x2", "0x3"]));
    folder.write("x.npy", &npy("<f4", 1, &f32s(&[f32::INFINITY])));
    folder.write("y.npy", &npy("|u1", 1, &[0x80]));
    let line = "check cast --from f32 --to f8e4m3fnuz --input x.npy --actual y.npy";
    folder.run(&format!("{line} --spec onnx@23")).succeeds();
    folder.run(&format!("{line} --spec onnx@24")).exits(1);
}

/// `docs/spec/onnx.md §4.11` (U7, U9). The texts to check are in a `.pb` file, then in a `.npy` file.
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
    folder.run("check cast --from string --to f16 --input s.npy --actual h.npy").succeeds().says(&["1 left open"]);
    // Copied text must be equal, not just the same number.
    folder.write("t.npy", &npy("<U8", 2, &cells(["65519.99", "16"])));
    let line = "check cast --from string --to string --input s.npy --actual t.npy --json";
    assert_eq!(folder.run(line).exits(1).object("check")["violations"][0]["permitted"], json!(["\"sixteen\""]));
}

/// `.npy` cannot hold text that is not UTF-8, or that ends in NUL; `.pb` can.
#[test]
fn run_changes_no_text() {
    const STRING: i64 = 8;
    let copy = |texts: &[&[u8]]| {
        let tensor = [int(1, texts.len() as i64), int(2, STRING), bytes(8, "s")].concat();
        let tensor = [tensor, texts.iter().flat_map(|t| bytes(6, t)).collect()].concat();
        let others = bytes(12, [bytes(1, "y"), bytes(2, bytes(1, int(1, STRING)))].concat());
        model(10, 28, &graph(&[node("Identity", &["s"], &["y"], &[])], &[tensor], others))
    };
    let folder = Folder::new();
    for (texts, why) in [([&b"ok"[..], b"\xff\xfe"], "not UTF-8"), ([b"ok", b"a\0"], "NUL")] {
        folder.write("m.onnx", &copy(&texts));
        let words = ["\"y\"", "element 1", why, "--output-format pb"];
        folder.refused("run m.onnx --output-dir out/in", "invalid-text", &words);
        assert_eq!(folder.names(), ["m.onnx"]);
        folder.run("run m.onnx --output-dir out --output-format pb").succeeds();
        let head = [int(1, 2), int(2, STRING), bytes(8, "y")].concat();
        assert_eq!(folder.read("out/y.pb"), [head, texts.iter().flat_map(|t| bytes(6, t)).collect()].concat());
        std::fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

/// One long text makes every cell of a `.npy` array long. The disk limit must be hit before the memory limit.
#[test]
fn cells_of_a_long_text_are_refused_at_once() {
    let texts: Vec<u8> = [bytes(6, "a".repeat(1 << 20)), bytes(6, "").repeat(4000)].concat();
    let tensor = [int(1, 4001), int(2, 8), bytes(8, "s"), texts].concat();
    let others = bytes(12, [bytes(1, "y"), bytes(2, bytes(1, int(1, 8)))].concat());
    let folder = Folder::new();
    folder.write("m.onnx", &model(10, 28, &graph(&[node("Identity", &["s"], &["y"], &[])], &[tensor], others)));
    // The result has 16 GiB; the limits are 64 MiB per file and 4 GiB of memory.
    let limits = "ulimit -f 65536; ulimit -v 4194304; trap '' XFSZ";
    folder.run_after(limits, "run m.onnx --output-dir out").exits(4).warns(&["y.npy", "reserving space"]);
    assert_eq!(folder.names(), ["m.onnx"]);
}

#[test]
fn run_tells_the_status_of_what_has_no_result() {
    let folder = folder(18, "y", E4M3FN);
    let line = "run m.onnx --input x=x.npy --output-dir out --json";
    let error = folder.run(line).exits(3).object("run");
    assert_eq!(error["status"], "error");
    assert!(error["message"].as_str().unwrap().contains("opset 18"), "{error}");
    assert_eq!(folder.names(), ["m.onnx", "x.npy"]);
    folder.write("m.onnx", &cast_model(19, "y", E4M3FN));
    assert_eq!(folder.run("run m.onnx --output-dir out --json").exits(2).out, "");
    assert_eq!(folder.names(), ["m.onnx", "x.npy"]);
}

fn external_model() -> Folder {
    let weight = [int(1, 32), int(1, 32), int(2, 1), bytes(8, "w"), external(&[("location", "w.data")])].concat();
    let nodes = [node("MatMul", &["x", "w"], &["y"], &[])];
    let folder = Folder::with("m.onnx", &model(8, 13, &graph(&nodes, &[weight], vec![])));
    folder.write("w.data", &f32s(&[0.1; 1024]));
    folder
}

#[test]
fn a_report_is_not_the_data_of_the_model() {
    let folder = external_model();
    let line = "convert m.onnx o.onnx --to f16 --report";
    folder.refused(&format!("{line} o.onnx.data"), "unsuitable-destination", &["o.onnx.data", "report"]);
    folder.refused(&format!("{line} ./o.onnx.data --force"), "unsuitable-destination", &["o.onnx.data", "report"]);
    folder.refused(&format!("{line} w.data --force"), "unsuitable-destination", &["w.data", "report"]);
    assert_eq!(folder.names(), ["m.onnx", "w.data"]);
    folder.run(&format!("{line} r.json")).succeeds();
    assert_eq!(folder.names(), ["m.onnx", "o.onnx", "o.onnx.data", "r.json", "w.data"]);
}

#[test]
fn verify_reads_all_of_the_external_data() {
    let folder = external_model();
    folder.run("convert m.onnx o.onnx --to f16").succeeds();
    let line = "verify m.onnx o.onnx --to f16";
    folder.run(line).succeeds();
    let data = folder.read("o.onnx.data");
    folder.write("o.onnx.data", &[&data[..], b"more"].concat());
    folder.run(line).exits(1);
    let object = folder.run(&format!("{line} --json")).exits(1).object("verify");
    let expected = json!([{ "kind": "external_data", "location": "o.onnx.data", "offset": data.len() }]);
    assert_eq!(object["differences"], expected);
}

#[test]
fn check_refuses_with_one_line() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &[0; 8]));
    folder.write("y.npy", &npy("<f2", 3, &[0; 6]));
    let line = |rest: &str| format!("check cast --from f32 --input x.npy --actual y.npy {rest}");
    folder.refused(&line("--to f16"), "shape-mismatch", &["y.npy", "[3]", "[2]"]);
    folder.refused(&line("--to f32"), "type-mismatch", &["y.npy", "f16", "f32"]);
    folder.refused(&line(""), "missing-argument", &["--to"]);
    folder.refused(&line("--to f6e2m3 --spec onnx@27"), "unsupported-type", &["f6e2m3", "opset 28", "--spec ieee"]);
    folder.refused("check m.onnx --spec ieee", "invalid-value", &["onnx@OPSET"]);
}

#[test]
fn check_judges_models() {
    let folder = folder(19, "y", E4M3FN);
    let ran = folder.run("check m.onnx").succeeds();
    assert_eq!(ran.out, "legal: 1 conversion\n");
    let object = folder.run("check m.onnx --spec onnx@18 --json").exits(1).object("check");
    assert_eq!((&object["conversions"], &object["unknown_types"]), (&json!(1), &json!(0)));
    let finding = &object["illegal"][0];
    assert!(finding["node"].as_str().unwrap().contains("\"y\""));
    assert!(finding["error"].as_str().unwrap().contains("f8e4m3fn"));
    let ran = folder.run("check m.onnx --spec onnx@18").exits(1);
    assert!(ran.out.contains("opset 18") && ran.out.ends_with("ILLEGAL: 0 legal, 1 illegal\n"), "{}", ran.out);
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
    folder.write("w.undefined.npy", b"");
    folder.run("vectors cast --from bf16 --to f4e2m1 --format npy -o w").fails(2, &["w.undefined.npy", "--force"]);
    assert!(!folder.names().iter().any(|name| name == "w.input.npy" || name == "w.output.npy"));
    folder.run("vectors cast --from bf16 --to f4e2m1 -o v.hex").succeeds();
    assert!(folder.read("v.hex").starts_with(b"# truecast vectors"));
}

#[test]
fn vectors_in_hexadecimal_are_checked() {
    let folder = Folder::new();
    for line in [
        "cast --from f32 --to f8e4m3fn --spec onnx", "cast --from f16 --to f4e2m1 --spec onnx",
        "cast --from f64 --to i64 --spec c", "rescale --from i48 --to i32 --multiplier 16385 --shift 20",
    ] {
        folder.run(&format!("vectors {line} -o v.hex --force")).succeeds();
        let checked = |actual: &str| folder.run(&format!("check {line} --input v.hex --actual {actual}"));
        checked("v.hex").exits(0);
        folder.run(&format!("check {line} --input v.hex")).exits(0);
        folder.run(&format!("check {line} --actual v.hex")).exits(0);
        // One code a line, as a simulator prints them.
        let text = String::from_utf8(folder.read("v.hex")).unwrap();
        let results = text.lines().skip(1).map(|line| format!("0x{}", line.split(' ').nth(1).unwrap().to_uppercase()));
        let results: Vec<String> = results.collect();
        folder.write("one.hex", results.join("\r\n").as_bytes());
        checked("one.hex").exits(0);
        folder.write("short.hex", results[1..].join("\n").as_bytes());
        folder.refused(&format!("check {line} --input v.hex --actual short.hex"), "shape-mismatch", &["short.hex"]);
    }
    folder.write("in.hex", b"43e88000\n3f800000\n");
    folder.write("out.hex", b"# 465 and 1\n7f\n38\n");
    let ran = folder.run("check cast --from f32 --to f8e4m3fn --input in.hex --actual out.hex --json").exits(1);
    assert_eq!(ran.object("check")["violations"][0]["actual"], "0x7f");
    // `$writememh` states addresses and comments; files of a suite mark open results with one letter.
    folder.write("out.mem", b"// simulated\n@0\n7f // 465\n@1\n38 o\n");
    let ran = folder.run("check cast --from f32 --to f8e4m3fn --input in.hex --actual out.mem --json").exits(1);
    assert_eq!(ran.object("check")["violations"][0]["actual"], "0x7f");
    for (bytes, key) in [
        ("100", "line 1"),
        ("38 \n\nz\u{1b}z", "line 3"),
        ("z\u{1b}z", "found \"z\\u{1b}z\""),
        ("-", "line 1"),
        ("@1\n38", "@0"),
        ("@0\n38\n@z\n38", "line 3"),
        (&*"3".repeat(5000), "1024 bytes"),
    ] {
        folder.write("bad.hex", bytes.as_bytes());
        folder.refused(
            "check cast --from f32 --to f8e4m3fn --input in.hex --actual bad.hex",
            "malformed-file",
            &["bad.hex", key],
        );
    }
    folder.refused("check cast --to f8e4m3fn --input in.hex --actual out.hex", "missing-argument", &["--from"]);
}

/// `check` rounds by the seed, or by the random bits that the lines state.
#[test]
fn stochastic_vectors_are_checked() {
    let folder = Folder::new();
    for spec in ["--spec onnx", "--spec tosa", "--spec onnx --rounding stochastic"] {
        let line = format!("cast --from f32 --to f8e4m3fn {spec}");
        folder.run(&format!("vectors {line} --seed 7 -o v.hex --force")).succeeds();
        folder.run(&format!("vectors {line} --seed 7 --format npy -o v --force")).succeeds();
        let arrays = "--input v.input.npy --actual v.output.npy";
        folder.run(&format!("check {line} --input v.hex")).exits(0).says(&["with the stated random bits"]);
        folder.run(&format!("check {line} --input v.hex --seed 7")).exits(0).says(&["seed=7"]);
        folder.run(&format!("check {line} {arrays} --seed 7")).exits(0);
        // Another seed, and rounding to the nearest.
        folder.run(&format!("check {line} {arrays} --seed 8")).exits(1);
        let text = String::from_utf8(folder.read("v.hex")).unwrap();
        // The result of the midpoint 1.0625 becomes the other neighbor.
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("3f880000")).unwrap();
        let words: Vec<&str> = lines[at].split(' ').collect();
        let other = u8::from_str_radix(words[1], 16).unwrap() ^ 1;
        let wrong = format!("{} {other:02x} {}", words[0], words[2]);
        folder.write("w.hex", text.replace(lines[at], &wrong).as_bytes());
        let object = folder.run(&format!("check {line} --input w.hex --json")).exits(1).object("check");
        assert_eq!((&object["wrong"], &object["violations"][0]["index"]), (&json!(1), &json!(at - 1)));
        folder.write("m.hex", text.replace(lines[at], &lines[at][..11]).as_bytes());
        folder.refused(&format!("check {line} --input m.hex"), "malformed-file", &["m.hex", "random bits"]);
    }
    let line = "check cast --from f32 --to f8e4m3fn --input v.input.npy --actual v.output.npy";
    folder.run(line).exits(1);
    folder.refused(&format!("{line} --rounding stochastic"), "missing-argument", &["--seed"]);
    folder.refused(&format!("{line} --spec ieee --rounding up --seed 1"), "conflicting-options", &["--seed"]);
    folder.run("vectors cast --from f32 --to bf16 --format npy -o b").succeeds();
    folder.refused(
        "check cast --from f32 --to bool --input b.input.npy --actual b.undefined.npy --seed 1",
        "unsupported-pair",
        &["f32"],
    );
}

/// Random bits belong to the index of a vector, as `convert --seed` has them.
#[test]
fn stochastic_vectors_are_those_of_convert() {
    let folder = Folder::new();
    folder.run("vectors cast --from f32 --to f8e4m3fn --seed 7 --format npy -o v").succeeds();
    assert_eq!(folder.names(), ["v.input.npy", "v.output.npy", "v.random.npy", "v.undefined.npy"]);
    folder.run("convert v.input.npy converted.npy --to f8e4m3fn --seed 7 --quiet").succeeds();
    let codes = |name: &str| npy_parts(&folder.read(name)).1.to_vec();
    assert_eq!(codes("converted.npy"), codes("v.output.npy"));
    let nearest = folder.run("vectors cast --from f32 --to f8e4m3fn").succeeds().out;
    let random = folder.run("vectors cast --from f32 --to f8e4m3fn --rounding stochastic --seed 7").succeeds().out;
    let line = random.lines().nth(1).unwrap();
    let bits = u32::from_le_bytes(codes("v.random.npy")[..4].try_into().unwrap());
    assert_eq!(line.split(' ').nth(2).unwrap(), format!("{bits:08x}"));
    assert_eq!(nearest.lines().count(), random.lines().count());
}

/// `docs/spec/onnx.md §1.4`: CastLike has the results of Cast, but its own types and opsets.
#[test]
fn cast_like_has_types_of_its_own() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &f32s(&[465.0, 1.0])));
    folder.write("y.npy", &npy("<V1", 2, &[0x7e, 0x38]));
    let line = "--from f32 --to f8e4m3fn --input x.npy --actual y.npy";
    let ran = folder.run(&format!("check castlike {line}")).succeeds();
    assert!(ran.out.starts_with("permitted by onnx@28 operator=CastLike: 2 elements"), "{}", ran.out);
    folder.run(&format!("check CastLike {line} --saturate false")).exits(1);
    folder.refused(&format!("check castlike {line} --spec onnx@18"), "unsupported-type", &["CastLike-15", "opset 19"]);
    folder.refused(&format!("check castlike {line} --spec ieee"), "inapplicable-option", &["CastLike", "--spec onnx"]);
    // In opset 28, only Cast has float6.
    folder.run("vectors cast --from f8e5m2 --to f6e2m3").succeeds();
    let vectors = folder.run("vectors castlike --from f8e5m2 --to f4e2m1").succeeds().out;
    let heading = "# truecast vectors: castlike f8e5m2 f4e2m1, onnx@28 operator=CastLike\n";
    assert!(vectors.starts_with(heading), "{vectors}");
    let cast = folder.run("vectors cast --from f8e5m2 --to f4e2m1").succeeds().out;
    assert!(vectors.lines().skip(1).eq(cast.lines().skip(1)));
}

#[test]
fn vectors_refuse_with_one_line() {
    let folder = Folder::new();
    let line = |rest: &str| format!("vectors {rest}");
    folder.refused(&line("cast --from f32 --to f16 --level exhaustive"), "invalid-value", &["16 bits", "boundary"]);
    folder.refused(&line("cast --from f32 --to f8e3m4"), "unsupported-type", &["f8e3m4", "--spec ieee"]);
    folder.run(&line("cast --from f32 --to f16 --format npy")).fails(2, &["-o"]);
}

/// A weight of shape `[32, 32]`; all elements are 0.1.
fn weight(name: &str) -> Vec<u8> {
    [int(1, 32), int(1, 32), int(2, 1), bytes(8, name), bytes(9, f32s(&[0.1; 1024]))].concat()
}

#[test]
fn weights_of_sensitive_operators_are_kept_in_functions_too() {
    let in_domain = |node: Vec<u8>| [node, bytes(7, "d")].concat();
    let body = bytes(7, node("DequantizeLinear", &["x", "s"], &["y"], &[]));
    let function =
        [bytes(1, "F"), bytes(4, "x"), bytes(4, "s"), bytes(5, "y"), body, bytes(9, int(2, 13)), bytes(10, "d")];
    let nodes = [in_domain(node("F", &["q", "scale"], &["a"], &[])), node("MatMul", &["a", "w"], &["y"], &[])];
    let source = model(8, 13, &graph(&nodes, &[weight("scale"), weight("w")], vec![]));
    let folder = Folder::with("m.onnx", &[source, bytes(25, function.concat())].concat());
    let object = folder.run("convert m.onnx o.onnx --to f16 --json").succeeds().object("convert");
    let types: Vec<_> = object["tensors"].as_array().unwrap().iter().map(|t| (&t["name"], &t["to"])).collect();
    assert_eq!(types, [(&json!("scale"), &json!("f32")), (&json!("w"), &json!("f16"))]);
}

#[test]
fn an_opset_is_only_raised_where_it_has_to_be() {
    let source = |opset| model(8, opset, &graph(&[node("Abs", &["w"], &["y"], &[])], &[weight("w")], vec![]));
    let folder = Folder::with("m.onnx", &source(12));
    assert_eq!(folder.run("convert m.onnx o.onnx --to f16").succeeds().err, "");
    folder.run("convert m.onnx p.onnx --to bf16").exits(0).warns(&["opset 12 becomes 13"]);
    let graph = "m.onnx: only the weights are written, not the graph";
    folder.run("convert m.onnx p.onnx --to bf16 --force").lacks(&[graph]);
    folder.run("convert m.onnx w.safetensors --to bf16").exits(0).warns(&[graph]);
    folder.refused("quantize m.onnx q.onnx q8_0", "inapplicable-option", &["quantize is for", "this is m.onnx"]);
}

#[test]
fn inspect_shows_text_too() {
    let text = [int(1, 2), int(2, 8), bytes(8, "names"), bytes(6, "a"), bytes(6, b"\xff")].concat();
    let folder = Folder::with("m.onnx", &model(8, 13, &graph(&[], &[weight("w"), text], vec![])));
    let object = folder.run("inspect m.onnx --json").succeeds().object("inspect");
    assert_eq!(object["tensors"].as_array().unwrap().len(), 1);
    assert_eq!(object["model"]["texts"], json!([{ "name": "names", "shape": [2], "elements": 2 }]));
    let shown = folder.run("inspect m.onnx --stats").succeeds().out;
    assert!(shown.lines().any(|line| line.starts_with("names") && line.contains("string")), "{shown}");
    assert!(shown.contains("2 tensors"), "{shown}");
}

#[test]
fn examples_are_legal_and_run() {
    let example = |name: &str| format!("{}/../../examples/models/{name}", env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::with("x.npy", &npy("<f4", 2, &f32s(&[465.0, 0.1])));
    folder.write("scalar.npy", &npy("<f4", None, &f32s(&[465.0])));
    folder.write("a.npy", &npy("<f2", 3, &[0, 0x3c, 0, 0x40, 0, 0x38]));
    folder.write("b.npy", &npy("<i4", 3, &[1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0]));
    for model in ["casts.onnx", "casts.mlir", "promote.xml"] {
        assert!(folder.run(&format!("check {}", example(model))).succeeds().out.starts_with("legal"), "{model}");
    }
    let output = |name: &str| npy_parts(&folder.read(name)).1.to_vec();
    folder.run(&format!("run {} --input x=x.npy --output-dir onnx", example("casts.onnx"))).succeeds();
    assert_eq!(output("onnx/y.npy"), f32s(&[448.0, 13.0 / 128.0]));
    folder.run(&format!("run {} --input x=scalar.npy --output-dir tile", example("casts.mlir"))).succeeds();
    assert_eq!(output("tile/y.npy"), f32s(&[448.0]));
    let promote = example("promote.xml");
    folder.run(&format!("run {promote} --input a=a.npy --input b=b.npy --output-dir ir")).succeeds();
    assert_eq!(output("ir/first.npy"), [0, 0x3c, 0, 0x40, 0, 0x38]);
    assert_eq!(output("ir/second.npy"), [0, 0x3c, 0, 0x42, 0, 0x40]);
}
