//! `rescale`, `check` and `run` of TOSA (`docs/interfaces.md §3`). What results are is `docs/spec/tosa.md`'s.

use crate::files::{f32s, npy, npy_parts};
use crate::flatbuffer::{Graph, Operator, Tensor};
use crate::run::Folder;

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// §4.8: 10^9 and -10^9 saturate.
#[test]
fn rescale_an_array() {
    let folder = Folder::with("x.npy", &npy("<i4", 4, &i32s(&[3, -3, 1_000_000_000, -1_000_000_000])));
    let line = "rescale x.npy y.npy --to i8 --multiplier 1073741824 --shift 31 --scale32";
    let object = folder.run(&format!("{line} --json")).succeeds().object("rescale");
    assert_eq!((object["elements"].clone(), object["saturated"].clone()), (4.into(), 2.into()));
    assert_eq!(npy_parts(&folder.read("y.npy")).1, [2, 0xff, 127, 0x80]);
    folder.run(line).fails(2, &["y.npy", "--force"]);
    // Unsigned by type, with a zero point; per channel from a file.
    folder.write("b.npy", &npy("|i1", 3, &[0x80, 0, 127]));
    folder.run("rescale b.npy u.npy --to u8 --output-zp 128 --multiplier 1073741824 --shift 30 --scale32").succeeds();
    assert_eq!(npy_parts(&folder.read("u.npy")).1, [0, 128, 255]);
    folder.write("m.npy", &npy("<i4", 3, &i32s(&[1 << 30, 1 << 29, 1 << 28])));
    folder.write("t.npy", &npy("|i1", 3, &[20, 20, 20]));
    folder.run("rescale t.npy c.npy --to i8 --multiplier m.npy --shift 30,30,30 --scale32 --per-channel").succeeds();
    assert_eq!(npy_parts(&folder.read("c.npy")).1, [20, 10, 5]);
}

#[test]
fn rescales_that_are_refused() {
    let folder = Folder::with("x.npy", &npy("|i1", 2, &[4, 4]));
    let fails = |options: &str, code, words: &[&str]| {
        folder.run(&format!("rescale x.npy y.npy {options}")).fails(code, words);
        assert_eq!(folder.names(), ["x.npy"]);
    };
    let scale = "--multiplier 1073741824 --shift 30";
    fails(&format!("--to i8 {scale} --scale32 --input-unsigned --output-unsigned"), 3, &["E1"]);
    fails(&format!("--to i32 {scale} --scale32 --output-unsigned"), 3, &["E3"]);
    fails("--to i8 --multiplier 1 --shift 30 --rounding double", 3, &["E9"]);
    fails(&format!("--to i16 {scale} --scale32 --output-zp 1"), 3, &["E12"]);
    fails("--to i8 --multiplier 1,2,3 --shift 30 --scale32 --per-channel", 3, &["E15"]);
    fails(&format!("--to f32 {scale} --scale32"), 3, &["E18"]);
    fails("--to i8 --multiplier 1073741824 --shift 63 --scale32", 3, &["unpredictable", "R2", "element 0"]);
    fails("--to i8 --multiplier -1 --shift 30 --scale32", 3, &["unpredictable", "R1"]);
    fails("--to i8 --multiplier 4 --shift 2 --scale32", 3, &["unpredictable", "R3"]);
    fails("--to i8 --multiplier 1073741824 --shift 30", 2, &["multiplier", "i16"]);
    fails("--to i8 --shift 30", 2, &["--multiplier"]);
    fails(&format!("--to i8 {scale} --scale32 --rounding up"), 2, &["single, double, inexact"]);
    fails(&format!("--to i8 {scale} --scale32 --spec onnx"), 2, &["TOSA"]);
}

/// What is read is never written, by whatever name, and the result is what its name says.
#[test]
fn a_rescale_keeps_what_it_reads() {
    let folder = Folder::with("x.npy", &npy("|i1", 2, &[4, 4]));
    folder.write("m.npy", &npy("<i4", 1, &i32s(&[1 << 30])));
    let (x, m) = (folder.read("x.npy"), folder.read("m.npy"));
    for (line, words) in [
        ("rescale x.npy x.npy --multiplier 1073741824", ["x.npy", "same file"]),
        ("rescale x.npy ./x.npy --multiplier 1073741824", ["x.npy", "same file"]),
        ("rescale x.npy m.npy --multiplier m.npy", ["m.npy", "destination"]),
        ("rescale x.npy y.safetensors --multiplier 1073741824", ["y.safetensors", ".npy"]),
    ] {
        folder.run(&format!("{line} --to i8 --shift 30 --scale32 --force")).fails(2, &words);
        assert_eq!(folder.names(), ["m.npy", "x.npy"]);
        assert_eq!((folder.read("x.npy"), folder.read("m.npy")), (x.clone(), m.clone()));
    }
}

/// §3.1: an attribute of the 1.1 draft, of integers only.
#[test]
fn check_a_cast_of_unsigned_integers() {
    let folder = Folder::with("x.npy", &npy("<i2", 3, &[0xff, 0xff, 1, 0, 2, 0]));
    folder.write("unsigned.npy", &npy("<f4", 3, &f32s(&[65535.0, 1.0, 2.0])));
    folder.write("signed.npy", &npy("<f4", 3, &f32s(&[-1.0, 1.0, 2.0])));
    let line = |version: &str, actual: &str, flag: &str| {
        format!("check cast --spec tosa@{version} --from i16 --to f32 --input x.npy --actual {actual}.npy {flag}")
    };
    folder.run(&line("1.1", "unsigned", "--input-unsigned")).succeeds();
    assert_eq!(folder.run(&line("1.1", "signed", "--input-unsigned")).code, Some(1));
    folder.run(&line("1.1", "signed", "")).succeeds();
    folder.run(&line("1.0", "signed", "--input-unsigned")).fails(2, &["input_unsigned", "1.1"]);
}

/// §6.6: NaN for 448, Inf for 65504, a zero of the wrong sign: Arm's verifier accepts them, the text does not.
#[test]
fn check_cast_by_profile() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[448.0, 1.0, -0.0])));
    folder.write("y.npy", &npy("<V1", 3, &[0x7f, 0x38, 0x00]));
    let line = "check cast --spec tosa@1.0 --from f32 --to f8e4m3fn --input x.npy --actual y.npy";
    let ran = folder.run(&format!("{line} --json"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let object = ran.object("check");
    assert_eq!((&object["profile"], &object["wrong"]), (&"spec-1.0".into(), &2.into()));
    assert_eq!(object["violations"][0]["verdict"], "allowed-by-verifier-only");
    assert_eq!(object["violations"][0]["permitted"], serde_json::json!(["0x7d", "0x7e"]));
    // The fields of every specification (`docs/interfaces.md §6`).
    for (field, expected) in [("spec", "tosa@1.0"), ("from", "f32"), ("to", "f8e4m3fn")] {
        assert_eq!(object[field], expected);
    }
    assert_eq!((&object["elements"], &object["undefined"]), (&3.into(), &0.into()));
    assert_eq!(object["lints"]["zero-sign"], 1);
    folder.run(&format!("{line} --profile arm-verifier-2026.8")).succeeds();
    assert_eq!(folder.run(&format!("{line} --profile strict")).code, Some(1));
    folder.run(&format!("{line} --profile seed")).fails(2, &["spec-seed-2025-03"]);
    folder
        .run("check cast --spec tosa@1.0 --from f16 --to bf16 --input x.npy --actual y.npy")
        .fails(3, &["f16", "bf16"]);
}

#[test]
fn check_rescale_by_profile() {
    let folder = Folder::with("x.npy", &npy("<i4", 2, &i32s(&[1 << 24, 5])));
    folder.write("y.npy", &npy("<i4", 2, &i32s(&[(1 << 24) + 4, 5])));
    let line = "check rescale --to i32 --multiplier 1073741824 --shift 30 --scale32 --rounding inexact --input x.npy \
                --actual y.npy --spec tosa";
    folder.run(line).succeeds();
    let ran = folder.run(&format!("{line} --profile spec-seed-2025-03 --json"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.object("check")["violations"][0]["index"], 0);
    // An unpredictable graph permits everything, an illegal one nothing.
    let unpredictable = line.replace("--shift 30", "--shift 63");
    assert!(folder.run(&unpredictable).succeeds().out.contains("R2"));
    let illegal = format!("{line} --output-zp 7");
    let ran = folder.run(&illegal);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("E12"), "{}", ran.out);
}

/// A RESCALE of constants after an IDENTITY, and its results: valid, error, unpredictable (`docs/interfaces.md §6`).
#[test]
fn run_a_graph() {
    let graph = |shift: &'static [u8], mode| {
        let (one, zero) = ([0, 0, 0, 64], [0; 4]);
        Graph {
            version: 1,
            tensors: &[
                Tensor("x", &[2], 5, &[]),
                Tensor("i", &[2], 5, &[]),
                Tensor("m", &[1], 5, &one),
                Tensor("s", &[1], 3, shift),
                Tensor("iz", &[1], 5, &zero),
                Tensor("oz", &[1], 3, &[0]),
                Tensor("y", &[2], 3, &[]),
            ],
            operators: &[
                Operator(68, &["x"], &["i"], None),
                Operator(67, &[], &["m"], None),
                Operator(67, &[], &["s"], None),
                Operator(67, &[], &["iz"], None),
                Operator(67, &[], &["oz"], None),
                Operator(66, &["i", "m", "s", "iz", "oz"], &["y"], Some(([true, false, false, false], mode))),
            ],
            inputs: &["x"],
            outputs: &["y"],
        }
        .file()
    };
    let folder = Folder::with("x.npy", &npy("<i4", 2, &i32s(&[3, -3])));
    let line = "run g.tosa --input x=x.npy --output-dir out --json";
    folder.write("g.tosa", &graph(&[31], 1));
    assert_eq!(folder.run(line).succeeds().object("run")["status"], "valid");
    assert_eq!(npy_parts(&folder.read("out/y.npy")).1, [2, 0xff]);
    for (shift, mode, status, words) in [(&[63][..], 1, "unpredictable", "R2"), (&[31][..], 0, "error", "E18")] {
        folder.write("g.tosa", &graph(shift, mode));
        let ran = folder.run(line);
        assert_eq!(ran.code, Some(3), "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
        assert_eq!(ran.object("run")["status"], status);
    }
    folder.write("g.tosa", b"\x08\0\0\0TOSA\xff\xff\xff\xff");
    folder.run(line).fails(3, &["damaged"]);
    folder.run("run g.tosa --output-dir out").fails(3, &["damaged"]);
}
