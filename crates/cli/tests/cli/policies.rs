//! `--spec` and the options of each specification (`docs/interfaces.md §2`), by their effect on single values.

use crate::run::Folder;
use truecast_testkit::npy::{npy, npy_parts};

const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
/// 1 + 2^-11, halfway between two values of f16.
const TIE: u32 = 0x3f80_1000;

fn bits(value: f32) -> u32 {
    value.to_bits()
}

fn array(value: u32) -> Folder {
    Folder::with("a.npy", &npy("<f4", 1, &value.to_le_bytes()))
}

/// Rows: options, f32 bits, resulting code. The tests of `truecast-core` have the values of every specification.
#[track_caller]
fn check(rows: &[(&str, u32, u64)]) {
    for &(options, value, expected) in rows {
        let folder = array(value);
        folder.run(&format!("convert a.npy b.npy {options}")).succeeds();
        let file = folder.read("b.npy");
        let mut code = [0; 8];
        let (_, data) = npy_parts(&file);
        code[..data.len()].copy_from_slice(data);
        assert_eq!(u64::from_le_bytes(code), expected, "{options} of {value:#x}");
    }
}

#[test]
fn onnx() {
    check(&[
        ("--to f8e4m3fn", bits(465.0), 0x7e),
        ("--to f8e4m3fn --spec onnx@19", bits(465.0), 0x7e),
        ("--to f8e4m3fn --saturate true", bits(465.0), 0x7e),
        ("--to f8e4m3fn --saturate false", bits(465.0), 0x7f),
        ("--to f8e4m3fn", NAN, 0x7f),
        ("--to f8e5m2", INF, 0x7b),
        ("--to f8e5m2 --saturate false", INF, 0x7c),
        ("--to f8e8m0 --round-mode up", bits(1.25), 0x80),
        ("--to f8e8m0 --round-mode down", bits(1.75), 0x7f),
        ("--to f8e8m0 --round-mode nearest", bits(1.25), 0x7f),
        ("--to f8e8m0 --round-mode nearest --saturate false", bits(f32::MAX), 0xff),
        ("--to f8e8m0 --saturate false", 0, 0xff),
        ("--to f4e2m1", bits(2.5), 0x4),
        ("--to f16 --spec onnx@1", bits(70000.0), 0x7c00),
        ("--to i8", bits(300.0), 0x2c),
    ]);
}

#[test]
fn nan_rules_with_every_specification() {
    for spec in ["onnx", "ieee"] {
        let folder = array(0x7fc0_2000);
        for (rule, expected) in [("", [0x01, 0x7e]), ("--nan keep", [0x01, 0x7e]), ("--nan canonical", [0x00, 0x7e])] {
            folder.run(&format!("convert a.npy b.npy --to f16 --spec {spec} {rule} --force")).succeeds();
            assert_eq!(npy_parts(&folder.read("b.npy")).1, expected, "{spec} {rule}");
        }
        let line = format!("convert a.npy c.npy --to f16 --spec {spec} --nan error");
        folder.refused(&line, "refused-value", &["a.npy", "\"data\"", "element 0", "NaN"]);
        assert_eq!(folder.names(), ["a.npy", "b.npy"]);
    }
}

#[test]
fn ieee_roundings_to_floats() {
    for (name, plus, minus) in [
        ("nearest-even", 0x3c00, 0xbc00),
        ("nearest-away", 0x3c01, 0xbc01),
        ("nearest-up", 0x3c01, 0xbc00),
        ("toward-zero", 0x3c00, 0xbc00),
        ("away", 0x3c01, 0xbc01),
        ("up", 0x3c01, 0xbc00),
        ("down", 0x3c00, 0xbc01),
        ("odd", 0x3c01, 0xbc01),
        ("nearest_even", 0x3c00, 0xbc00),
        ("nearest_away", 0x3c01, 0xbc01),
        ("zero", 0x3c00, 0xbc00),
        ("positive_inf", 0x3c01, 0xbc00),
        ("negative_inf", 0x3c00, 0xbc01),
    ] {
        let options = format!("--to f16 --spec ieee --rounding {name}");
        check(&[(&options, TIE, plus), (&options, TIE | 1 << 31, minus)]);
    }
}

#[test]
fn ieee() {
    check(&[
        ("--spec ieee --to i8", bits(2.5), 2),
        ("--spec ieee --to i8 --rounding nearest-even", bits(3.5), 4),
        ("--spec ieee --to i8 --rounding up", bits(2.1), 3),
        ("--spec ieee --to f8e4m3fn", bits(465.0), 0x7f),
        ("--spec ieee --to f8e4m3fn --overflow nonfinite", bits(465.0), 0x7f),
        ("--spec ieee --to f8e4m3fn --overflow saturate", bits(465.0), 0x7e),
        ("--spec ieee --to f16 --overflow saturate", bits(70000.0), 0x7bff),
        ("--spec ieee --to f16 --overflow saturate --inf nonfinite", INF, 0x7c00),
        ("--spec ieee --to f16 --inf saturate", INF, 0x7bff),
        ("--spec ieee --to f16 --inf saturate", bits(70000.0), 0x7c00),
        ("--spec ieee --to i8 --int-overflow wrap", bits(300.0), 0x2c),
        ("--spec ieee --to i8 --int-overflow saturate", bits(-300.0), 0x80),
        ("--spec ieee --to i8 --nan-to-int zero", NAN, 0),
        ("--spec ieee --to f16", bits(1e-7), 0x0002),
        ("--spec ieee --to f16 --subnormals keep", bits(1e-7), 0x0002),
        ("--spec ieee --to f16 --subnormals flush", bits(-1e-7), 0x8000),
        ("--spec ieee --to f8e3m4", bits(1.0), 0x30),
        ("--spec ieee --to nf4", bits(1.0), 0xf),
    ]);
}

#[test]
fn error_policies_name_the_element_and_leave_nothing() {
    let values = [1.0f32, 2.0, 465.0, f32::NAN, f32::INFINITY];
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let folder = Folder::with("a.npy", &npy("<f4", values.len(), &data));
    for (options, index) in [
        ("--to f8e4m3fn --overflow error", 2),
        ("--to f16 --overflow error", 4),
        ("--to f16 --inf error", 4),
        ("--to f8e4m3fn --inf error", 4),
        ("--to i8 --int-overflow error", 2),
        ("--to i16 --nan-to-int error", 3),
        ("--to i16 --int-overflow error", 4),
        ("--to f16 --nan error", 3),
    ] {
        let line = format!("convert a.npy b.npy --spec ieee --report r.json {options}");
        folder.refused(&line, "refused-value", &["a.npy", "\"data\"", &format!("element {index}")]);
        assert_eq!(folder.names(), ["a.npy"], "{options}");
    }
}

#[test]
fn specifications_and_versions() {
    let folder = array(bits(1.0));
    for (options, code, needles) in [
        ("--spec ONNX@", "unknown-spec", &["onnx", "ieee"][..]),
        ("--spec onnx@29", "unknown-version", &["29", "28"]),
        ("--spec onnx@x", "unknown-version", &["x"]),
        ("--spec ieee@754", "unknown-version", &["754"]),
        ("--spec ieee --rounding sideways", "invalid-attribute", &["sideways", "nearest-even"]),
        ("--round-mode sideways", "invalid-attribute", &["sideways", "nearest"]),
        ("--spec onnx@18 --saturate true", "invalid-attribute", &["saturate", "19"]),
        ("--spec onnx@23 --round-mode up", "invalid-attribute", &["round_mode", "24"]),
    ] {
        folder.refused(&format!("convert a.npy b.npy --to f16 {options}"), code, needles);
    }
    for (to, opset) in [("bf16", 12), ("i4", 20), ("f6e3m2", 27)] {
        let line = format!("convert a.npy b.npy --to {to} --spec onnx@{opset}");
        folder.refused(&line, "unsupported-type", &["a.npy", to, &opset.to_string(), "--spec ieee"]);
        folder.run(&format!("convert a.npy ok-{to}.npy --to {to} --spec onnx@{}", opset + 1)).succeeds();
    }
    folder.refused("convert a.npy b.npy --to f8e3m4", "unsupported-type", &["a.npy", "f8e3m4", "--spec ieee"]);
    assert!(!folder.path("b.npy").exists());
}

/// Output has one of two notations (`docs/spec/onnx.md §6.2`); input may have either.
#[test]
fn notation_of_text() {
    let values = [1e-5f32, 1e20, 0.5, f32::NAN];
    let folder =
        Folder::with("a.npy", &npy("<f4", 4, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()));
    let texts = |name: &str| {
        let file = folder.read(name);
        let (descr, data) = npy_parts(&file);
        let width = descr.trim_start_matches("<U").parse::<usize>().unwrap();
        let cell = |cell: &[u8]| cell.chunks(4).filter(|c| c[0] != 0).map(|c| c[0] as char).collect::<String>();
        data.chunks(4 * width).map(cell).collect::<Vec<_>>()
    };
    let reference = ["1e-05", "1e+20", "0.5", "nan"];
    let plain = ["0.00001", "100000000000000000000.0", "0.5", "nan"];
    for (options, expected) in [
        ("", reference),
        ("--string-style reference", reference),
        ("--string-style plain", plain),
        ("--string-style plain --spec ieee", plain),
    ] {
        folder.run(&format!("convert a.npy b.npy --to string {options} --force")).succeeds();
        assert_eq!(texts("b.npy"), expected, "{options}");
        folder.run(&format!("verify a.npy b.npy --to string {options}")).succeeds();
        folder.run("convert b.npy c.npy --to f32 --force").succeeds();
        assert_eq!(npy_parts(&folder.read("c.npy")).1, npy_parts(&folder.read("a.npy")).1);
    }
    folder.run("verify a.npy b.npy --to string").exits(1);
    let check = "check cast --from f32 --to string --input a.npy --actual";
    folder.run(&format!("{check} b.npy")).succeeds();
    folder.write("wrong.npy", &npy("<U1", 4, &[0x31, 0, 0, 0].repeat(4)));
    let ran = folder.run(&format!("{check} wrong.npy --string-style plain --json")).exits(1);
    assert!(ran.object("check")["violations"][0]["permitted"][0].as_str().unwrap().contains("0.00001"));
    let explained = folder.run("explain 1e20 --to string --string-style plain --json").succeeds().object("explain");
    assert_eq!(explained["results"][0]["value"], "100000000000000000000.0");
    folder.refused("run m.mlir --output-dir out --string-style plain", "inapplicable-option", &[".onnx"]);
}

#[test]
fn other_names_of_roundings_and_specifications_are_understood() {
    let folder = Folder::new();
    for (spec, other, known) in [
        ("ieee", "RNE", "nearest-even"),
        ("ieee", "rz", "toward-zero"),
        ("ptx", "rn", "nearest-even"),
        ("tile", "rtne", "nearest_even"),
        ("tile", "rtz", "zero"),
    ] {
        let line = |rounding| format!("explain 0.1 --to f16 --spec {spec} --rounding {rounding} --json");
        assert_eq!(folder.run(&line(other)).exits(0).out, folder.run(&line(known)).exits(0).out, "{spec} {other}");
    }
    for (other, known) in [("cuda", "ptx"), ("NVIDIA", "ptx"), ("pytorch@2.11", "torch@2.11")] {
        let line = |spec| format!("explain 0.1 --to f16 --spec {spec} --json");
        assert_eq!(folder.run(&line(other)).exits(0).out, folder.run(&line(known)).exits(0).out, "{other}");
    }
}

/// A specification without a choice of roundings takes the name of its rounding.
#[test]
fn the_only_rounding_may_be_named() {
    let folder = array(bits(2.5));
    for (conversion, rounding) in [
        ("--to f16 --spec onnx", "rne"),
        ("--to i8 --spec onnx", "toward-zero"),
        ("--to f8e4m3fn --spec torch", "nearest-even"),
        ("--to i8 --spec tosa", "RN"),
    ] {
        let results = |line: &str| folder.run(line).succeeds().object("explain")["results"].clone();
        let line = format!("explain 2.5 {conversion} --json");
        assert_eq!(results(&format!("{line} --rounding {rounding}")), results(&line), "{conversion} {rounding}");
    }
    folder.run("convert a.npy b.npy --to bf16 --rounding rne").succeeds();
    folder.run("verify a.npy b.npy --to bf16").succeeds();
}
