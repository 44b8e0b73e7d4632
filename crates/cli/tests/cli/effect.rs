//! A setting that cannot change a result of the run is an error (`docs/interfaces.md §2`): what it is about, and what was
//! probably meant. Nothing is written.

use crate::files::{f32s, npy, safetensors};
use crate::run::Folder;

fn folder() -> Folder {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[525.0, -1.5])));
    folder.write("ints.npy", &npy("<i4", 1, &[1, 0, 0, 0]));
    folder.write("f16.npy", &npy("<f2", 2, &[0x1a, 0x60, 0x00, 0xbe]));
    folder
}

/// (options after `convert a.npy b.npy`, what the error says)
const WITHOUT_EFFECT: [(&str, &[&str]); 10] = [
    (
        "--to i8 --spec ieee --overflow saturate",
        &["--overflow has no effect on f32 to i8", "integers overflow by --int-overflow"],
    ),
    ("--to i8 --spec ieee --inf error", &["--inf has no effect on f32 to i8", "--int-overflow"]),
    ("--to f16 --saturate false", &["--saturate has no effect on f32 to f16", "--spec ieee --overflow saturate"]),
    ("--to i8 --saturate true", &["--saturate has no effect on f32 to i8", "--spec ieee --int-overflow saturate"]),
    ("--to f16 --round-mode down", &["--round-mode has no effect on f32 to f16", "f8e8m0", "--spec ieee --rounding"]),
    ("--to f8e4m3fn --round-mode down", &["--round-mode has no effect on f32 to f8e4m3fn"]),
    ("--to f32 --spec ieee --int-overflow saturate", &["--int-overflow has no effect on f32 to f32", "integer"]),
    ("--to f16 --spec ieee --int-overflow wrap", &["floating-point values overflow by --overflow"]),
    ("--to f16 --spec ieee --nan-to-int zero", &["--nan-to-int has no effect", "treated by --nan"]),
    ("--to f16 --spec tile --saturating", &["--saturating has no effect on f32 to f16"]),
];

#[test]
fn convert_refuses_what_has_no_effect() {
    let folder = folder();
    for (options, said) in WITHOUT_EFFECT {
        for command in ["convert a.npy b.npy", "convert a.npy b.npy --dry-run", "verify a.npy f16.npy"] {
            folder.run(&format!("{command} {options}")).fails(2, said);
        }
    }
    for (line, said) in [
        ("convert ints.npy b.npy --to f16 --nan canonical", "i32 has no NaN"),
        ("convert ints.npy b.npy --to f64 --spec ieee --rounding up", "every value of i32 is a value of f64"),
        ("convert ints.npy b.npy --to i8 --spec ieee --nan-to-int saturate", "i32 has no NaN"),
        (
            "convert a.npy b.npy --to i8 --spec ieee --nan error --nan-to-int saturate",
            "another option decides before it",
        ),
        (
            "convert a.npy b.npy --to f16 --spec tile --tile-option preserve_inf",
            "--tile-option preserve_inf has no effect",
        ),
    ] {
        folder.run(line).fails(2, &[said]);
    }
    assert_eq!(folder.names(), ["a.npy", "f16.npy", "ints.npy"]);
}

#[test]
fn every_command_that_takes_settings_refuses_alike() {
    let folder = folder();
    folder.write("i8.npy", &npy("|i1", 2, &[0x0d, 0xff]));
    for line in [
        "vectors cast --from f32 --to i8",
        "check cast --from f32 --to i8 --input a.npy --actual i8.npy",
        "bench --pairs f32:i8 --sizes l2 --best-of 1",
    ] {
        let ran = folder.run(&format!("{line} --spec ieee --overflow saturate"));
        ran.fails(2, &["--overflow has no effect on f32 to i8", "--int-overflow"]);
    }
    // For one of several pairs it matters.
    folder.run("bench --pairs f32:i8,f32:f16 --sizes l2 --best-of 1 --spec ieee --overflow saturate").succeeds();
    let line = "check cast --from f32 --to i8 --input a.npy --actual i8.npy";
    folder.run(&format!("{line} --exact-nan")).fails(2, &["--exact-nan has no effect on f32 to i8"]);
    let ran = folder.run(&format!("{line} --spec tosa@1.0 --exact-nan"));
    ran.fails(2, &["--exact-nan has no effect on f32 to i8"]);
}

#[test]
fn what_says_the_default_is_no_error() {
    let folder = folder();
    for options in [
        "--to f8e4m3fn --saturate true",
        "--to f8e8m0 --round-mode up",
        "--to f16 --nan keep",
        "--to f16 --spec ieee --rounding nearest-even --overflow nonfinite --inf nonfinite --subnormals keep",
        "--to i8 --spec ieee --rounding toward-zero --int-overflow wrap --nan-to-int zero",
    ] {
        folder.run(&format!("convert a.npy b.npy --force {options}")).succeeds();
    }
}

/// Every policy with the value that is its default, to every kind of destination, from a source for which it matters and
/// one for which it does not: accepted where `docs/interfaces.md §2` gives it a meaning, and else an error.
#[test]
fn a_default_is_no_error_where_it_has_a_meaning() {
    let folder = folder();
    folder.write("f4.npy", &npy("|V1", 2, &[1, 2]));
    let floats = ["f8e4m3fn", "f8e8m0", "f16"];
    let small = ["f8e4m3fn", "f8e8m0"];
    for (spec, option, means_something) in [
        ("onnx", "--saturate true", &small[..]),
        ("onnx", "--round-mode up", &["f8e8m0"]),
        ("onnx", "--string-style reference", &["string"]),
        ("ieee", "--rounding nearest-even", &floats),
        ("ieee", "--rounding toward-zero", &["i8"]),
        ("ieee", "--overflow nonfinite", &floats),
        ("ieee", "--int-overflow wrap", &["i8"]),
        ("ieee", "--nan-to-int zero", &["i8"]),
        ("tosa", "--profile strict", &["f8e4m3fn", "f16"]),
    ] {
        for to in floats.iter().chain(&["i8", "bool", "string"]) {
            if spec == "tosa" && ["f8e8m0", "bool", "string"].contains(to) {
                continue; // it has no such type
            }
            for source in ["a.npy", "ints.npy", "f4.npy --from f4e2m1"] {
                if spec == "tosa" && (source.starts_with("f4") || source == "ints.npy" && to.starts_with("f8")) {
                    continue;
                }
                let (file, from) = source.split_once(' ').unwrap_or((source, ""));
                let ran =
                    folder.run(&format!("convert {file} b.npy {from} --dry-run --to {to} --spec {spec} {option}"));
                // To the other kind of type this rounding is another than the default, and may matter.
                let is_other = option.starts_with("--rounding") && !["bool", "string"].contains(to);
                match means_something.contains(to) {
                    true => drop(ran.succeeds()),
                    false if is_other => {}
                    false => drop(ran.fails(2, &["has no effect"])),
                }
            }
        }
    }
}

/// One tensor that is converted is enough, and one that is kept is not.
#[test]
fn with_rules_it_must_matter_for_one_tensor() {
    let tensors = [("w", "F32", &[2u64][..], f32s(&[1.0, 525.0])), ("ids", "I64", &[1], vec![5, 0, 0, 0, 0, 0, 0, 0])];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let line = "convert a.safetensors b.safetensors --spec ieee --force";
    folder.run(&format!("{line} --to f16 --int-overflow saturate")).fails(2, &["f32 to f16"]);
    folder.run(&format!("{line} --to f16 --rule ids=i8 --int-overflow saturate")).succeeds();
    folder.run(&format!("{line} --to f16 --rule ids=i8 --keep w --overflow saturate")).fails(2, &["i64 to i8"]);
    folder.run(&format!("{line} --to f16 --keep w --overflow saturate")).fails(2, &["no tensor is converted"]);
}

/// Where one specification exists it is the default, and where a file states a type it is the source.
#[test]
fn what_the_file_says_need_not_be_typed() {
    let folder = folder();
    folder.run("check cast --to f16 --input a.npy --actual f16.npy").succeeds();
    folder.run("check cast --to f16 --input a.npy --actual f16.npy --spec tosa").succeeds();
    folder.run("check cast --from bf16 --to f16 --input a.npy --actual f16.npy").fails(3, &["a.npy", "f32", "bf16"]);
    folder.write("v.npy", &npy("<V1", 2, &[0x38, 0x38]));
    folder.run("check cast --to f16 --input v.npy --actual f16.npy").fails(2, &["v.npy", "--from"]);

    folder.write("m.mlir", b"cuda_tile.module @m { entry @e() { return } }");
    folder.write("m.xml", b"<net name=\"n\" version=\"11\"><layers></layers><edges></edges></net>");
    for model in ["m.mlir", "m.xml"] {
        let without = folder.run(&format!("check {model}"));
        let spec = if model.ends_with("xml") { "openvino" } else { "tile" };
        let with = folder.run(&format!("check {model} --spec {spec}"));
        assert_eq!((without.code, without.out, without.err), (with.code, with.out, with.err), "{model}");
    }
    folder.run("check m.mlir --spec onnx").fails(2, &["checked by the rules of tile", "--spec tile"]);
    let options = "--from i32 --to i8 --multiplier 1073741824 --shift 30 --scale32";
    let ran = folder.run(&format!("vectors rescale {options}")).succeeds();
    assert!(ran.out.starts_with("# truecast vectors: rescale i32 i8, tosa@1.0 "), "{}", ran.out);
    folder.run(&format!("vectors rescale {options} --spec onnx")).fails(2, &["TOSA"]);
}
