//! `check` names the convention that wrong results seem to follow.

use crate::run::Folder;
use serde_json::json;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::f32s;

/// f32 to f8e4m3fn by a converter that first rounds to f16, and gives NaN for values out of range.
fn folder() -> Folder {
    // 0.53125 is a tie of f8e4m3fn; f16 has no values close to it. 465 and 1e9 are out of range.
    let input = [1.0f32, 0.531_250_1, 465.0, 2.0, 1e9, 0.531_250_06, -0.531_250_1];
    let folder = Folder::with("x.npy", &npy("<f4", 7, &f32s(&input)));
    folder.write("y.npy", &npy("<V1", 7, &[0x38, 0x30, 0x7f, 0x40, 0x7f, 0x30, 0xb0]));
    folder
}

const LINE: &str = "check cast --from f32 --to f8e4m3fn --input x.npy --actual y.npy";

#[test]
fn check_groups_what_is_wrong() {
    let folder = folder();
    let ran = folder.run(LINE).exits(1).says(&[
        "3 as if rounded through f16 first",
        "2 as if nothing saturates: values out of range become NaN or Inf (saturate=0)",
        "0x3f080001 = 0.531250059604644775390625",
        "0x31 = 0.5625",
        "0x7e = 448",
        "truecast explain 0x43e88000 --to f8e4m3fn --spec onnx@28",
        "ONNX Cast, to nearest even; docs/spec/onnx.md §4.6",
        "ONNX Cast, saturate table; docs/spec/onnx.md §4.6",
    ]);
    let line = ran.out.lines().find_map(|line| line.strip_prefix("truecast ")).unwrap();
    assert!(folder.run(line).succeeds().out.contains("onnx: 0x31 = 0.5625"));

    let object = folder.run(&format!("{LINE} --json")).exits(1).object("check");
    let groups = object["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0]["convention"], "through-f16");
    assert_eq!((&groups[0]["count"], &groups[0]["first"]), (&json!(3), &json!([1, 5, 6])));
    assert_eq!(groups[1]["convention"], "out-of-range-nonfinite");
    assert_eq!((&groups[1]["first"], &groups[1]["explains_all"]), (&json!([2, 4]), &json!(false)));
    assert_eq!((&object["wrong"], &object["compared"]), (&json!(5), &json!(5)));
    let shown = |n: usize| {
        let out = folder.run(&format!("{LINE} --show {n}")).exits(1).out;
        out.lines().filter(|line| line.contains("0x") && !line.starts_with("truecast")).count()
    };
    assert_eq!([0, 1, 2, 3, 10].map(shown), [0, 1, 2, 3, 5]);
}

#[test]
fn one_convention_for_the_whole_file() {
    let folder = folder();
    folder.write("y.npy", &npy("<V1", 7, &[0x38, 0x30, 0x7e, 0x40, 0x7e, 0x30, 0xb0]));
    let object = folder.run(&format!("{LINE} --json")).exits(1).object("check");
    let group = &object["groups"][0];
    assert_eq!((&group["convention"], &group["explains_all"]), (&json!("through-f16"), &json!(true)));
    folder.run(LINE).exits(1).says(&["All 7 results are as if rounded through f16 first; 3 of them are wrong"]);
    folder.write("y.npy", &npy("<V1", 7, &[0x38, 0x31, 0x7e, 0x40, 0x7e, 0x31, 0xb1]));
    let object = folder.run(&format!("{LINE} --json")).succeeds().object("check");
    assert_eq!((&object["groups"], &object["compared"]), (&json!([]), &json!(0)));
}

#[test]
fn reasons_of_what_is_open() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[2.5, 1e9, 2.0])));
    folder.write("y.npy", &npy("|u1", 3, &[2, 0, 2]));
    let line = "check cast --from f32 --to i4 --input x.npy --actual y.npy";
    let text = folder.run(line).succeeds().out;
    assert!(text.contains("1 left open: non-integer to a 4- or 2-bit integer; docs/spec/onnx.md §4.11 U5"), "{text}");
    let object = folder.run(&format!("{line} --json")).succeeds().object("check");
    assert_eq!(object["undefined_reasons"].as_array().unwrap().len(), 2);
    assert_eq!(object["undefined_reasons"][1]["elements"], 1);
}

#[test]
fn groups_of_tosa() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[2.75, -3.75, 4.0])));
    folder.write("y.npy", &npy("|i1", 3, &[2, 0xfd, 4]));
    let line = "check cast --spec tosa --from f32 --to i8 --input x.npy --actual y.npy";
    folder.run(line).exits(1).says(&[
        "All 3 results are as if truncated (rounded toward zero); 2 of them are wrong",
        "0xfd = -3",
        "0xfc = -4",
        "truecast explain 0x40300000 --to i8 --spec tosa@1.0",
    ]);
    // Halves of 3 and of -3 round up to 2 and -1. A shift alone gives 1 and -2.
    let i32s = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    folder.write("x.npy", &npy("<i4", 3, &i32s(&[3, -3, 1000])));
    folder.write("y.npy", &npy("|i1", 3, &[1, 0xfe, 127]));
    let line =
        "check rescale --spec tosa --to i8 --multiplier 1073741824 --shift 31 --scale32 --input x.npy --actual y.npy";
    folder.run(line).exits(1).says(&[
        "All 3 results are as if shifted without rounding (rounded down); 2 of them are wrong",
        "0xfe = -2",
        "0xff = -1",
    ]);
    let object = folder.run(&format!("{line} --json")).exits(1).object("check");
    assert_eq!(object["groups"][0]["convention"], "rounded-down");
    assert_eq!(object["groups"][0]["explains_all"], true);
}

#[test]
fn reasons_of_what_a_conversion_leaves_open() {
    let folder = Folder::with("y.npy", &npy("<f4", 2, &f32s(&[2.5, 1e9])));
    let object = folder.run("convert y.npy o.npy --to i4 --json").succeeds().object("convert");
    let [open] = &object["undefined_reasons"].as_array().unwrap()[..] else { panic!("{object}") };
    let reasons: Vec<&str> = open["reasons"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    assert!(reasons[0].ends_with("docs/spec/onnx.md §4.11 U1") && reasons[1].ends_with("U5"), "{reasons:?}");
    assert_eq!((&open["elements"], reasons.len()), (&json!(2), 2));
    folder.run("convert y.npy o.npy --to i4 --force").succeeds().says(&["2 undefined: ", "docs/spec/onnx.md §4.11 U5"]);
    let object = folder.run("convert y.npy o.npy --to f16 --force --json").succeeds().object("convert");
    assert!(object.get("undefined_reasons").is_none());
}
