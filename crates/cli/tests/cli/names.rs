//! Libraries, languages and chips by name: `differ`, and commands with `--spec`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::npy::npy;
use truecast_testkit::proto;
use truecast_testkit::safetensors::f32s;

fn folder(values: &[f32]) -> Folder {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Folder::with("x.npy", &npy("<f4", values.len(), &bytes))
}

/// The number of 16-bit codes beyond 464 is known from the libraries (`docs/spec/torch.md`, `docs/spec/ml_dtypes.md`).
#[test]
fn known_differences_come_out() {
    let folder = Folder::new();
    for (line, different) in [
        ("differ torch@2.15 ml_dtypes --from f16 --to f8e4m3fn", 14_720),
        ("differ torch@2.15 ml_dtypes --from bf16 --to f8e4m3fn", 30_512),
        ("differ torch@2.11 ml_dtypes --from bf16 --to f8e4m3fn", 0),
        ("differ ml_dtypes onnx:saturate=false --from bf16 --to f8e4m3fn", 0),
        ("differ torch@2.11 torch@2.15 --from i8 --to f8e4m3fn", 0),
    ] {
        let object = folder.run(&format!("{line} --json")).succeeds().object("differ");
        assert_eq!(object["pairs"][0]["different"], different, "{line}");
        assert_eq!(object["pairs"][0]["every_input"], true, "{line}");
        let code = u8::from(different > 0);
        folder.run(&format!("{line} --quiet")).exits(code.into());
    }
    let said = folder.run("differ torch@2.11 torch@2.15 --from bf16 --to f8e4m3fn").succeeds().out;
    assert!(said.contains("A: torch@2.11") && said.contains("|x| >= 466") && said.contains("±448"), "{said}");
}

/// All codes of f32 above 464, up to Inf, with both signs. 464 is 0x43e80000, Inf is 0x7f800000.
#[test]
fn wide_sources_are_swept() {
    for (line, older) in [
        ("differ torch onnx", Some("torch@2.11 gives other results than torch@2.15")),
        ("differ torch@2.15 onnx", None),
        ("differ tosa onnx", None),
    ] {
        let said = Folder::new().run(&format!("{line} --from bf16 --to f8e4m3fn")).succeeds().out;
        assert_eq!(said.lines().find(|line| line.contains(" gives other results than ")), older, "{line}");
    }
    let line = "differ torch@2.11 torch@2.15 --from f32 --to f8e4m3fn --json";
    let object = Folder::new().run(line).succeeds().object("differ");
    let pair = &object["pairs"][0];
    let beyond = 2 * (0x7f80_0000u64 - 0x43e8_0000);
    assert_eq!((&pair["inputs"], &pair["different"]), (&json!(1u64 << 32), &json!(beyond)));
    assert_eq!(pair["range_count"], 2);
    let ends = |range: &serde_json::Value| [range["first"].clone(), range["last"].clone()];
    assert_eq!(ends(&pair["ranges"][0]), ["0xff800000", "0xc3e80001"]);
    assert_eq!(ends(&pair["ranges"][1]), ["0x43e80001", "0x7f800000"]);
}

/// The text of Tile IR leaves f32 values outside of i8 open; its hardware profile does not.
#[test]
fn an_open_result_is_no_difference() {
    let line = "differ tile:profile=spec tile:profile=hw --from f32 --to i8";
    let object = Folder::new().run(&format!("{line} --json")).succeeds().object("differ");
    let pair = &object["pairs"][0];
    assert!(pair["different"] == 0 && pair["open"].as_u64() > Some(0) && pair["ranges"][0]["open"] == true, "{pair}");
    Folder::new().run(&format!("{line} --quiet")).exits(0);
}

/// LLVM has poison and C undefined behavior for values that truncate to outside of 0..=255. 256 is 0x5c00 in f16 and
/// 0x4380 in bf16; -1 is 0xbc00 and 0xbf80.
#[test]
fn what_both_leave_open_is_no_agreement() {
    let folder = Folder::new();
    let end = 0x8000;
    for (from, beyond, below) in [("f16", 0x5c00, 0xbc00), ("bf16", 0x4380, 0xbf80)] {
        let line = format!("differ mlir c --from {from} --to u8");
        let object = folder.run(&format!("{line} --json")).succeeds().object("differ");
        let pair = &object["pairs"][0];
        let open = (end - beyond) + (2 * end - below);
        assert_eq!((&pair["different"], &pair["open"]), (&json!(0), &json!(open)), "{from}");
        assert_eq!((&pair["every_input"], &pair["range_count"]), (&json!(true), &json!(2)), "{from}");
        let bits = |code: u64| json!(format!("{code:#x}"));
        let [low, high] = [0, 1].map(|at| &pair["ranges"][at]);
        assert_eq!([&low["first"], &low["last"]], [&bits(2 * end - 1), &bits(below)], "{from}");
        assert_eq!([&high["first"], &high["last"]], [&bits(beyond), &bits(end - 1)], "{from}");
        assert_eq!([&low["open"], &high["open"]], [&json!(true); 2], "{from}");
        let said = folder.run(&line).succeeds().lacks(&["the same", "DIFFERENT"]).out;
        let last = "no defined result differs: mlir and c, 1 pair of types that both convert; ";
        let inputs = " inputs are open in one or both\n";
        assert!(said.lines().last().unwrap().starts_with(last) && said.ends_with(inputs), "{said}");
        folder.run(&format!("{line} --quiet")).exits(0);
    }
}

#[test]
fn many_equal_pairs_are_counted() {
    let folder = Folder::new();
    let all = folder.run("differ rust c --json").succeeds().object("differ");
    let same = all["pairs"].as_array().unwrap().iter().filter(|pair| pair["range_count"] == 0).count();
    assert!(same > 12);
    let said = folder.run("differ rust c").succeeds().out;
    assert!(said.contains(&format!("the same results: {same} pairs of types; --json lists them\n")), "{said}");
    let said = folder.run("differ rust c --from i8").succeeds().out;
    assert!(said.contains("the same results: i8 to u8, ") && !said.contains("--json"), "{said}");
    let said = folder.run("differ torch@2.11 torch@2.15 --from f16").succeeds().out;
    assert!(said.contains("no defined result differs, some are open: f16 to i8, f16 to u8, "), "{said}");
    assert!(said.lines().filter(|line| line.starts_with("f16 ")).all(|line| line.contains(" f8e4m3fn ")), "{said}");
}

/// Known differences: `torch@2.15` saturates beyond 464; C leaves 2^31 to i32 open.
#[test]
fn inputs_are_exact_or_read_back() {
    let folder = Folder::new();
    let after = f32::from_bits(0x43e8_0001).to_string(); // 464 + 2^-15 has 18 digits
    for (line, inputs) in [
        ("torch@2.11 torch@2.15 --from bf16 --to f8e4m3fn", vec!["|x| >= 466"]),
        ("torch@2.11 torch@2.15 --from f16 --to f8e4m3fn", vec!["|x| >= 464.25"]),
        ("mlir c --from f64 --to i32", vec!["x >= 2147483648,", "x <= -2147483649,"]),
        ("ieee ieee:int-overflow=saturate --from i64 --to i32", vec!["x >= 2147483648 "]),
        ("ieee ieee:rounding=up --from f16 --to f4e2m1 --show 99", vec!["  2^-24 <= x <= 0.25 "]),
    ] {
        folder.run(&format!("differ {line}")).succeeds().says(&inputs);
    }
    folder.run("differ torch@2.11 torch@2.15 --from f32").succeeds().says(&[&format!("|x| >= {after}")]);
}

/// The hardware profile of Tile IR compiles to PTX. Differences: f32 to 8 bits, which Tile IR converts through i32, and
/// the default rounding to tf32 (`docs/spec/tile-ir.md §6.7, §6.8`).
#[test]
fn ptx_gives_what_tile_gives_on_hardware() {
    let object = Folder::new().run("differ ptx tile:profile=hw --json").succeeds().object("differ");
    let pairs = object["pairs"].as_array().unwrap();
    assert!(pairs.len() > 140, "{}", pairs.len());
    for pair in pairs.iter().filter(|pair| pair["different"] != 0) {
        let [from, to] = ["from", "to"].map(|side| pair[side].as_str().unwrap());
        let is_byte = ["i8", "u8"].contains(&to) && ["f16", "bf16", "f32", "f64"].contains(&from);
        assert!(is_byte || (from, to) == ("f32", "tf32"), "{from} to {to}");
    }
}

#[test]
fn a_name_decides_as_a_specification_does() {
    let folder = folder(&[1.0, 465.0, f32::NAN, -500.0]);
    for (spec, codes) in [("torch@2.11", [0x38, 0x7f, 0x7f, 0xff]), ("torch", [0x38, 0x7e, 0x7f, 0xfe])] {
        folder.run(&format!("convert x.npy y.npy --to f8e4m3fn --spec {spec} --force --report r.json")).succeeds();
        let file = folder.read("y.npy");
        assert_eq!(file[file.len() - 4..], codes, "{spec}");
        folder.run(&format!("verify x.npy y.npy --to f8e4m3fn --spec {spec}")).succeeds();
        folder.run("verify x.npy y.npy --report r.json").succeeds();
    }
    // The typed number is not a tie in f64; the number rounded to f32 is a tie.
    folder.run("explain 1.00390625000001 --from f64 --to bf16 --spec torch --json").succeeds().says(&["0x3f80"]);
    folder.run("explain -1.5 --to f16 --spec ptx --relu --json").succeeds().says(&["\"bits\": \"0x0000\""]);
}

#[test]
fn values_are_scaled_before_they_are_rounded() {
    let folder = folder(&[1.0, 465.0, f32::NAN, -1000.0]);
    let options = "--to f8e4m3fn --spec arm --scale-exponent -1";
    folder.run(&format!("convert x.npy y.npy {options} --report r.json")).succeeds();
    let file = folder.read("y.npy");
    assert_eq!(file[file.len() - 4..], [0x30, 0x77, 0x7f, 0xff]); // 0.5, 240, NaN, NaN for -500
    folder.run(&format!("verify x.npy y.npy {options}")).succeeds();
    folder.run("verify x.npy y.npy --report r.json").succeeds();
    folder.run("verify x.npy y.npy --to f8e4m3fn --spec arm").exits(1);
    // Counts and errors refer to scaled values. One of three finite values, -500, becomes NaN; 232.5 is off by 7.5.
    let report: Value = serde_json::from_slice(&folder.read("r.json")).unwrap();
    let tensor = &report["tensors"][0];
    assert_eq!((&tensor["to_nan"], &tensor["inexact"]), (&json!(1), &json!(2)));
    assert_eq!(tensor["max_abs_error"], json!(7.5));
    let object = folder.run(&format!("explain 465 {options} --json")).succeeds().object("explain");
    assert_eq!((&object["source"]["scaled"], &object["neighbors"]["midpoint"]), (&json!("232.5"), &json!("232")));
    folder.refused(&format!("explain 465 --from f16 {options}7"), "invalid-attribute", &["-17", "-16", "15", "f16"]);
    // The vectors are around the scaled values: 464 * 2^20 overflows, its neighbor does not.
    let scaled = "vectors cast --from f32 --to f8e4m3fn --spec arm --scale-exponent -20";
    folder.run(scaled).succeeds().says(&["4de80000 7e", "4de80001 7f"]);
}

#[test]
fn a_model_has_no_scale() {
    let folder = Folder::new();
    let graph = proto::graph(
        &[proto::node("Identity", &["w"], &["y"], &[])],
        &[proto::raw("w", 1, &[64, 64], &f32s(&[1.0; 4096]))],
        proto::bytes(12, proto::value("y", 1, &[64, 64])),
    );
    folder.write("m.onnx", &proto::model(10, 21, &graph));
    let line = "convert m.onnx n.onnx --to f8e4m3fn --spec arm --scale-exponent -3 --min-elements 1";
    folder.refused(line, "invalid-attribute", &["scale-exponent", "a model would"]);
}

#[test]
fn a_name_has_its_settings_where_names_are_typed() {
    let folder = folder(&[1.0, 465.0, f32::NAN]);
    let asked =
        |spec: &str| folder.run(&format!("explain 465 --to f8e4m3fn --json {spec}")).succeeds().object("explain");
    assert_eq!(asked("--spec onnx@28:saturate=0")["results"], asked("--spec onnx@28 --saturate 0")["results"]);
    assert_eq!(asked("--spec arm:scale-exponent=-1")["results"][0]["value"], json!("240"));
    folder.write("codes.npy", &npy("<u2", 2, &[0, 0x3c, 0, 0x40]));
    folder.write("results.npy", &npy("|u1", 2, &[0x38, 0x40]));
    let line = "check cast --to f8e4m3fn --input codes.npy --actual results.npy";
    folder.run(line).exits(1).says(&["\"codes.npy\" holds u16; for codes of another type, add --from TYPE"]);
    folder.run(&format!("{line} --from f16")).succeeds();
    // The table of OCP formats has no row for the NaN code.
    folder.run("convert x.npy y.npy --to f8e4m3fn --spec arm").succeeds();
    let check = "check cast --from f32 --to f8e4m3fn --input x.npy --actual y.npy --spec arm";
    folder.run(check).succeeds();
    folder.refused(&format!("{check} --exact-nan"), "inapplicable-option", &["arm", "omit --exact-nan"]);
}

#[test]
fn who_permits_every_result_is_said() {
    let folder = folder(&[1.0, 465.0, f32::INFINITY]);
    folder.run("convert x.npy y.npy --to f8e4m3fn --spec torch@2.11").succeeds();
    let line = "check cast --from f32 --to f8e4m3fn --input x.npy --actual y.npy";
    folder.run(line).exits(1).says(&["permitted by", "torch@2.11", "onnx@28:saturate=0"]);
    let object = folder.run(&format!("{line} --json")).exits(1).object("check");
    let names = object["permitted_by"].as_array().unwrap();
    assert!(names.contains(&json!("ml_dtypes@0.6")) && !names.contains(&json!("torch@2.15")), "{names:?}");
    let object = folder.run(&format!("{line} --spec torch@2.11 --json")).succeeds().object("check");
    assert!(object.get("permitted_by").is_none());
    folder.run(&format!("{line} --spec torch@2.15")).exits(1).says(&["permitted by", "torch@2.11"]);
}

#[test]
fn random_bits_round_one_value() {
    let folder = Folder::new();
    for (bits, code) in [("191/8", "0x38"), ("0xc0/8", "0x39"), ("0/1", "0x38")] {
        let object = folder.run(&format!("explain 1.03125 --to f8e4m3fn --random-bits {bits} --json")).succeeds();
        assert_eq!(object.object("explain")["results"][0]["bits"], code, "{bits}");
    }
}

#[test]
fn names_of_one_class_agree() {
    let folder = Folder::new();
    for pair in ["--from f16 --to f8e4m3fn", "--from f8e5m2 --to f8e8m0", "--from f16 --to i8"] {
        let object = folder.run(&format!("differ {pair} --json")).succeeds().object("differ");
        let found = &object["pairs"][0];
        let words = |of: &Value| -> Vec<String> {
            of["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().into()).collect()
        };
        let classes: Vec<Vec<String>> = found["classes"].as_array().unwrap().iter().map(words).collect();
        let different = |a: &str, b: &str| {
            let object = folder.run(&format!("differ {a} {b} {pair} --json")).succeeds().object("differ");
            object["pairs"][0]["different"].as_u64().unwrap()
        };
        for (at, class) in classes.iter().enumerate() {
            assert!(class[1..].iter().all(|other| different(&class[0], other) == 0), "{pair} {class:?}");
            let all = |other: &Vec<String>| class.iter().any(|a| other.iter().any(|b| different(a, b) > 0));
            assert!(classes[..at].iter().all(all), "{pair} {class:?}");
        }
        for open in words(&found["undecided"]) {
            let fits = classes.iter().filter(|class| class.iter().all(|name| different(&open, name) == 0));
            assert!(fits.count() > 1, "{pair} {open}");
        }
    }
}

/// The number of bf16 codes beyond 464 is known (`docs/spec/torch.md`, `docs/spec/ml_dtypes.md`).
#[test]
fn classes_are_told_apart_by_witnesses() {
    let folder = Folder::new();
    let line = "differ --from bf16 --to f8e4m3fn";
    let object = folder.run(&format!("{line} --json")).succeeds().object("differ");
    let found = &object["pairs"][0];
    assert_eq!((&found["different"], &found["every_input"]), (&json!(30_512), &json!(true)));
    assert_eq!(found["witnesses"], json!([{ "bits": "0x4400", "value": "512" }]));
    let result_of = |label: &str| {
        let classes = found["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["labels"].as_array().unwrap().contains(&json!(label)));
        class.unwrap_or_else(|| panic!("no {label} in {classes:?}"))["results"][0].clone()
    };
    for label in ["torch@2.15", "onnx:saturate=1", "ptx"] {
        assert_eq!(result_of(label), json!({ "bits": "0x7e", "value": "448" }), "{label}");
    }
    for label in ["torch@2.11", "onnx:saturate=0", "ml_dtypes"] {
        assert_eq!(result_of(label), json!({ "bits": "0x7f", "value": "NaN" }), "{label}");
    }
    assert_eq!(found["undecided"]["labels"], json!(["stablehlo"]));
    folder.run(&format!("{line} --quiet")).exits(1);
    folder.run("differ --from i8 --to i32").succeeds().says(&["the same results by every name: i8 to i32"]);
    folder.run("differ --from i8 --to i32 --quiet").succeeds();
    folder.run("differ --from f32 --to i32").succeeds().says(&["refused", "2147483647", "open"]);
}
