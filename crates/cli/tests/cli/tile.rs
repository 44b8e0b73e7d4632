//! Tile IR: `run` and `check` of text and bytecode, `--spec tile`, `explain --spec tile` (`docs/spec/tile-ir.md`;
//! vectors from §8).

use crate::run::Folder;
use serde_json::json;
use truecast_testkit::json::has;
use truecast_testkit::npy::npy;

const MODULE: &str = "entry @k(%a: tile<i32>) {
  %f = constant <f32: [300.0, 1.5, -0.0, 0x7FC00000]> : tile<4xf32>
  %i = ftoi %f signed : tile<4xf32> -> tile<4xi8>
  %wide = exti %i signed : tile<4xi8> -> tile<4xi32>
  %small = itof %a signed : tile<i32> -> tile<f8E4M3FN>
  return
}
";

#[test]
fn run_a_module() {
    let folder = Folder::with("m.mlir", MODULE.as_bytes());
    folder.write("a.npy", &npy("<i4", None, &465i32.to_le_bytes()));
    let ran = folder.run("run m.mlir --input a=a.npy --output-dir out --json");
    let object = ran.exits(0).object("run");
    assert_eq!(object["status"], "valid");
    let names: Vec<_> = object["outputs"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["i", "wide", "small"]);
    assert!(folder.read("out/i.npy").ends_with(&[0x7f, 1, 0, 0]));
    assert!(folder.read("out/small.npy").ends_with(&[0x7f])); // 465 is beyond 464: NaN (U7)
    let undefined = &object["undefined"];
    assert_eq!(undefined[0]["conversion"], json!("%i = ftoi"));
    assert_eq!((&undefined[0]["elements"], &undefined[0]["undefined"]), (&json!(4), &json!(1)));
    assert!(object["warnings"].to_string().contains("U7"), "{}", object["warnings"]);
    folder.run("run m.mlir --input a=a.npy --output-dir hw --profile hw").exits(0);
    assert!(folder.read("hw/i.npy").ends_with(&[0x2c, 1, 0, 0]));
    assert!(folder.read("hw/small.npy").ends_with(&[0x7e]));
    folder.refused("run m.mlir --output-dir strict --tile-option strict", "undefined-result", &["m.mlir", "3:8", "U8"]);
    assert!(!folder.path("strict").exists());
}

#[test]
fn a_run_that_fails_leaves_nothing() {
    let text = "entry @k() {
  %f = constant <f32: [1.0, 300.0]> : tile<2xf32>
  %h = ftof %f : tile<2xf32> -> tile<2xf16>
  %i = ftoi %f signed : tile<2xf32> -> tile<2xi8>
  return
}";
    let folder = Folder::with("m.mlir", text.as_bytes());
    folder.refused("run m.mlir --output-dir a/b/out --tile-option strict", "undefined-result", &["U8"]);
    assert_eq!(folder.names(), ["m.mlir"]);
    folder.write("out/i.npy", b"old");
    folder.refused("run m.mlir --output-dir out", "destination-exists", &["out/i.npy", "--force"]);
    let names: Vec<_> = std::fs::read_dir(folder.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!((names.len(), folder.read("out/i.npy")), (1, b"old".to_vec()));
    folder.run("run m.mlir --output-dir out --force").exits(0);
    assert!(folder.read("out/h.npy").ends_with(&[0x00, 0x3c, 0xb0, 0x5c]));
    folder.run("run m.mlir --output-dir a/b/out").exits(0);
    assert!(folder.path("a/b/out/h.npy").exists());
}

/// Errors in a file have their own exit code (`docs/interfaces.md §5`).
#[test]
fn exit_codes_of_files() {
    let text = "entry @k(%a: tile<i32>) {
  %f = itof %a signed : tile<i32> -> tile<f32>
  return
}";
    let folder = Folder::with("m.mlir", text.as_bytes());
    folder.write("a.npy", &npy("<i4", 2, &[1, 0, 0, 0, 2, 0, 0, 0]));
    folder.refused("run m.mlir --input a=a.npy --output-dir out", "shape-mismatch", &["input \"%a\"", "[2]", "[]"]);
    folder.refused("run m.mlir --input a --output-dir out", "invalid-value", &["NAME=FILE"]);
    for nothing in ["", "\n", "// nothing\n"] {
        folder.write("empty.mlir", nothing.as_bytes());
        for line in ["run empty.mlir --output-dir out", "check empty.mlir --spec tile", "inspect empty.mlir"] {
            folder.refused(line, "malformed-file", &["empty.mlir", "T015: expected \"entry\"", "end"]);
        }
    }
    folder.write("empty.mlir", b"module { }");
    folder.refused("run empty.mlir --output-dir out", "unsupported-file", &["empty.mlir", "has no entry"]);
}

#[test]
fn pipes_are_no_modules() {
    let folder = Folder::new();
    for (pipe, code) in [
        ("pipe.mlir", "not-regular-file"),
        ("pipe.xml", "not-regular-file"),
        ("pipe.onnx", "not-regular-file"),
        ("pipe", "unknown-file-kind"),
    ] {
        let made = std::process::Command::new("mkfifo").arg(folder.path(pipe)).status().unwrap();
        assert!(made.success());
        folder.refused(&format!("run {pipe} --output-dir out"), code, &[pipe]);
        folder.refused(&format!("check {pipe} --spec tile"), code, &[pipe]);
        folder.refused(&format!("inspect {pipe}"), code, &[pipe]);
    }
}

/// §3.2, U14: tf32 is stored as f32 whose low bits are ignored; machine code would keep the bits.
#[test]
fn words_of_tf32() {
    let text = "entry @k() {
  %t, %token = load_view_tko weak : partition_view<tile=(2)> -> tile<2xtf32>, token
  %f = ftof %t : tile<2xtf32> -> tile<2xf32>
  return
}";
    let folder = Folder::with("m.mlir", text.as_bytes());
    folder.write("t.npy", &npy("<f4", 2, &[0x3f80_2000u32, 0x3f80_2001].map(u32::to_le_bytes).concat()));
    folder.run("run m.mlir --input t=t.npy --output-dir out").succeeds();
    assert!(folder.read("out/f.npy").ends_with(&[0x3f80_2000u32; 2].map(u32::to_le_bytes).concat()));
    let ran = folder.run("run m.mlir --input t=t.npy --output-dir hw --profile hw").exits(0);
    assert!(ran.err.contains("input %t: 1 element has another value in other implementations: U14"), "{}", ran.err);
}

#[test]
fn run_with_supplied_values() {
    let text = "entry @k() {
  %t, %token = load_view_tko weak : partition_view<tile=(2)> -> tile<2xf32>, token
  %h = ftof %t : tile<2xf32> -> tile<2xbf16>
  return
}";
    let folder = Folder::with("m.mlir", text.as_bytes());
    let elements = [1.0f32, 65519.996].map(f32::to_le_bytes).concat();
    folder.write("t.npy", &npy("<f4", 2, &elements));
    folder.run("run m.mlir --input %t=t.npy --output-dir out").exits(0);
    assert!(folder.read("out/h.npy").ends_with(&[0x80, 0x3f, 0x80, 0x47]));
    let unknown = folder.run("run m.mlir --output-dir none --json").exits(0).object("run");
    assert_eq!(unknown["outputs"], json!([]));
    assert!(unknown["warnings"][0].as_str().unwrap().contains("%h = ftof: operand %t is unknown; supply it"));
    let text = folder.run("run m.mlir --output-dir nothing").exits(0).out;
    assert_eq!(text, "no outputs\n");
    folder.refused("run m.mlir --input z=t.npy --output-dir x", "invalid-value", &["value"]);
    folder.refused("run m.mlir --entry other --output-dir x", "invalid-value", &["\"other\""]);
}

#[test]
fn check_a_module() {
    let source =
        MODULE.replace("ftoi %f signed :", "ftof %f rounding<zero> :").replace("-> tile<4xi8>", "-> tile<4xf8E5M2>");
    let source = source.replace("%wide = exti %i signed : tile<4xi8> -> tile<4xi32>", "");
    let folder = Folder::with("bad.mlir", source.as_bytes());
    folder.write("good.mlir", MODULE.as_bytes());
    folder.run("check good.mlir --spec tile@13.5").exits(0);
    let checked = folder.run("check bad.mlir --spec tile@13.5 --json");
    let object = checked.exits(1).object("check");
    assert_eq!(object["illegal"][0]["node"], "3:8");
    let message = object["illegal"][0]["error"].as_str().unwrap();
    assert!(message.starts_with("T008: %i (tile<4xf32> -> tile<4xf8E5M2>): ftof: zero is not allowed"), "{message}");
    folder.refused("run bad.mlir --output-dir out", "illegal-operation", &["bad.mlir:3:8: T008"]);
    folder.write("syntax.mlir", b"entry @k() { %x = ftof }");
    folder.refused("check syntax.mlir --spec tile", "malformed-file", &["syntax.mlir:1:24", "T015"]);
    folder.refused("check good.mlir --spec onnx", "inapplicable-option", &["tile", "--spec tile"]);
    // U24: a warning under 13.2, which names only the requested release.
    let nearest = "entry @k(%a: tile<f32>) {\n  %r = ftof %a : tile<f32> -> tile<f8E8M0FNU>\n  return\n}";
    folder.write("nearest.mlir", nearest.as_bytes());
    folder.run("check nearest.mlir --spec tile@13.2").exits(0).warns(&["2:8: T008", "has no value"]).lacks(&["13.5"]);
    folder.write("empty.tilebc", b"");
    folder.refused("check empty.tilebc --spec tile", "malformed-file", &["empty.tilebc:1:1: T015"]);
    folder.write("misspelled.mlir", MODULE.replace("ftoi", "ftio").as_bytes());
    let object = folder.run("check misspelled.mlir --spec tile --json").exits(1).object("check");
    let message = "T018: operation \"ftio\" is not known in Tile IR; did you mean \"ftoi\"?";
    assert_eq!(object["illegal"][0]["error"], message);
    folder.refused("run misspelled.mlir --output-dir out", "unsupported-operator", &[message]);
    folder.write("other.mlir", b"entry @k() {\n  %t = make_token : token\n  return\n}");
    let checked = folder.run("check other.mlir --spec tile").exits(0);
    assert_eq!(checked.out, "legal: no conversions found\n");
    folder.write("none.mlir", b"module { }");
    folder.run("check none.mlir --spec tile").exits(0).warns(&["T021: the module has no entry"]);
    // Only profile seed has the rounding modes of the text.
    let down = "entry @k() {\n  %f = constant <f32: -1.5> : tile<f32>\n  %r = ftoi %f signed rounding<negative_inf> : tile<f32> -> tile<i8>\n  return\n}";
    folder.write("down.mlir", down.as_bytes());
    folder.run("check down.mlir --spec tile").exits(1);
    folder.run("check down.mlir --spec tile --profile seed").exits(0);
    folder.refused("run down.mlir --output-dir down", "illegal-operation", &["T008"]);
    folder.run("run down.mlir --profile seed --output-dir down").exits(0);
    assert_eq!(folder.read("down/r.npy").last(), Some(&0xFE)); // -2
    folder.write("cut.bin", b"\x7fTileIR\0\x0d\x05\0\0");
    folder.refused("check cut.bin --spec tile", "malformed-file", &["cut.bin:offset", "12", "T017"]);
}

/// `docs/interfaces.md §3`: a graph of conversion nodes also has operations.
#[test]
fn inspect_a_module() {
    let folder = Folder::with("m.mlir", MODULE.as_bytes());
    let object = folder.run("inspect m.mlir --json").succeeds().object("inspect");
    assert_eq!(object["constants"], json!([{ "name": "%f", "dtype": "f32", "shape": "[4]" }]));
    let operators = json!({ "constant": 1, "exti": 1, "ftoi": 1, "itof": 1, "return": 1 });
    assert_eq!((&object["model"]["operators"], &object["model"]["nodes"]), (&operators, &json!(5)));
    let third = &object["model"]["conversions"][2];
    has(third, &json!({ "node": "5:12 k %small", "operation": "itof signed", "from": "tile<i32>" }));
    folder.run("inspect m.mlir").succeeds().says(&["ftoi signed", "tile<4xi8>", "5 operations: "]);
    assert_eq!(object["model"]["version"], json!(null)); // text has none
    folder.write("bad.mlir", b"entry");
    folder.refused("inspect bad.mlir", "malformed-file", &["bad.mlir:1:6: T015"]);
}

/// Vectors of §8.1 and §8.6, through `check cast` and `explain`.
#[test]
fn casts() {
    let folder = Folder::new();
    folder.write("x.npy", &npy("<f4", 3, &[464.0f32, 1e9, f32::INFINITY].map(f32::to_le_bytes).concat()));
    folder.write("y.npy", &npy("|u1", 3, &[0x5f, 0x7b, 0x7b]));
    folder.write("z.npy", &npy("|u1", 3, &[0x5f, 0x7b, 0x7c]));
    let check = |actual: &str, options: &str| {
        let line = format!("check cast --spec tile{options} --from f32 --to f8e5m2 --input x.npy --actual {actual}");
        folder.run(&line).code
    };
    assert_eq!((check("y.npy", "@13.5"), check("z.npy", "")), (Some(0), Some(1)));
    assert_eq!(check("z.npy", " --tile-option preserve_inf"), Some(0));
    let results = folder.run("explain 300 --to i8 --spec tile --json").exits(0).object("explain")["results"].clone();
    let rows: Vec<_> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|r| format!("{} {}", r["attributes"].as_str().unwrap(), r["bits"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, ["profile=spec 0x7f", "profile=hw 0x2c", "profile=seed 0x7f", "profile=spec, saturating 0x7f"]);
    for line in ["explain 1 --from string --to i8 --spec tile", "explain 1 --to string --spec tile"] {
        folder.refused(line, "unsupported-type", &["13.5"]);
    }
    let vectors = folder.run("vectors cast --from f16 --to f8e5m2 --spec tile --tile-option preserve_inf").succeeds();
    assert!(vectors.out.contains("tile@13.5 profile=spec tile-option=preserve_inf\n"), "{}", vectors.out);
    folder.run("convert x.npy o.npy --to f8e5m2 --spec tile@13.5").exits(0);
    assert!(folder.read("o.npy").ends_with(&[0x5f, 0x7b, 0x7b]));
    folder.refused("convert x.npy p.npy --to f8e4m3fn --spec tile --rounding zero", "illegal-operation", &["T008"]);
    folder.refused("convert x.npy p.npy --to i8 --spec tile --profile hw", "unsupported-pair", &[] as &[&str]);
}
