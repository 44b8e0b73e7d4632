//! Choices of a TOSA implementation: `--profile` of `convert`, `verify`, `vectors`, `run` and `check`
//! (`docs/spec/tosa.md §2.3`, §3.9, §6).

use crate::run::Folder;
use crate::tosa::{SINGLE, graph_of_rescale};
use serde_json::json;
use truecast_testkit::flatbuffer::{Graph, Operator, Tensor};
use truecast_testkit::json::has;
use truecast_testkit::npy::{npy, npy_parts};
use truecast_testkit::safetensors::{f32s, i32s};

/// 2^-15 (subnormal in fp16), just below 2 * (1 + 2^-9), 65535, and 65536 (out of range).
const VALUES: [u32; 4] = [0x3800_0000, 0x4000_3fff, 0x477f_ff00, 0x4780_0000];

fn values() -> Folder {
    Folder::with("x.npy", &npy("<f4", 4, &VALUES.map(u32::to_le_bytes).concat()))
}

#[test]
fn convert_as_it_may_be_chosen() {
    let folder = values();
    let f16 = |profile: &str| {
        let line = format!("convert x.npy y.npy --to f16 --spec tosa {profile} --force --json");
        let object = folder.run(&line).succeeds().object("convert");
        let file = folder.read("y.npy");
        let codes = npy_parts(&file).1;
        (codes.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect::<Vec<_>>(), object)
    };
    for (profile, expected) in [
        ("", [0x0200, 0x4002, 0x7c00, 0x7c00]),
        ("--profile flush-bf16", [0x0200, 0x4002, 0x7c00, 0x7c00]),
        ("--profile flush+toward-zero", [0x0000, 0x4001, 0x7bff, 0x7c00]),
    ] {
        assert_eq!(f16(profile).0, expected, "{profile}");
        folder.run(&format!("verify x.npy y.npy --to f16 --spec tosa {profile}")).succeeds();
    }
    folder.run("verify x.npy y.npy --to f16 --spec tosa").exits(1);
    let (_, object) = f16("--profile toward-zero+flush");
    assert_eq!(object["options"]["attributes"]["profile"], "flush+toward-zero", "{object:#?}");
    let line = "convert x.npy z.npy --to f16 --spec";
    folder.refused(&format!("{line} tosa --profile spec-1.0"), "invalid-attribute", &["spec-1.0", "flush-f16", "§3.9"]);
    folder.refused(&format!("{line} tosa --profile flush,toward-zero"), "invalid-attribute", &["flush,toward-zero"]);
    folder.refused(
        "check cast --spec tosa --profile flush --from f32 --to f16 --input x.npy --actual y.npy",
        "invalid-attribute",
        &["flush", "spec-1.0"],
    );
}

/// The vectors pass `check` by the text, but not `strict`.
#[test]
fn vectors_of_a_choice_are_permitted() {
    let folder = Folder::new();
    let line = "cast --spec tosa --from f32 --to f16 --profile";
    folder.run(&format!("vectors {line} flush+toward-zero --format npy -o v")).succeeds();
    let files = "--input v.input.npy --actual v.output.npy";
    folder.run(&format!("check {line} spec-1.0 {files}")).succeeds();
    folder.run(&format!("check {line} strict {files}")).exits(1);
}

#[test]
fn run_as_it_may_be_chosen() {
    let graph = Graph {
        version: 1,
        tensors: &[Tensor("x", &[4], 7, &[]), Tensor("y", &[4], 8, &[])],
        operators: &[Operator(65, &["x"], &["y"], None)],
        inputs: &["x"],
        outputs: &["y"],
    };
    let folder = values();
    folder.write("g.tosa", &graph.file());
    let run = |profile: &str| {
        folder.run(&format!("run g.tosa --input x=x.npy --output-dir out --force {profile}")).succeeds();
        npy_parts(&folder.read("out/y.npy")).1.to_vec()
    };
    assert_eq!(run("")[..4], [0x00, 0x02, 0x02, 0x40]);
    assert_eq!(run("--profile flush+toward-zero"), [0, 0, 0x01, 0x40, 0xff, 0x7b, 0x00, 0x7c]);
    folder.refused("run g.tosa --input x=x.npy --output-dir out --profile hw", "invalid-attribute", &["hw", "flush"]);
}

/// An error of a later operator comes first; results that depend on elements come later.
#[test]
fn an_error_is_found_before_anything_is_evaluated() {
    let graph = |unsigned: bool| {
        let tensors = ["x", "y", "z"].map(|name| Tensor(name, &[1], 5, &[]));
        let operators = [
            Operator(66, &["x", "m", "s", "iz", "iz"], &["y"], SINGLE),
            Operator(66, &["y", "m", "s", "iz", "iz"], &["z"], Some(([true, false, unsigned, false], 1))),
        ];
        graph_of_rescale(&[30], &tensors, &operators, &["x"], &["z"])
    };
    let folder = Folder::with("x.npy", &npy("<i4", 1, &i32s(&[i32::MAX])));
    for (unsigned, status, words) in [(false, "unpredictable", "R3"), (true, "error", "E2")] {
        folder.write("g.tosa", &graph(unsigned));
        let ran = folder.run("run g.tosa --input x=x.npy --output-dir out --json");
        assert_eq!((ran.code, &ran.object("run")["status"]), (Some(3), &json!(status)), "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

/// If one subnormal is flushed and another is kept, each element is permitted, but the tensor is not.
#[test]
fn mixed_flushing_is_said() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &f32s(&[2f32.powi(-15), 2f32.powi(-16)])));
    folder.write("y.npy", &npy("<f2", 2, &[0x00, 0x00, 0x00, 0x01]));
    for (profile, code) in
        [("spec-1.0", 1), ("spec-seed-2025-03", 1), ("spec-1.1-draft", 1), ("arm-verifier-2026.8", 0)]
    {
        let line =
            format!("check cast --spec tosa --profile {profile} --from f32 --to f16 --input x.npy --actual y.npy");
        let object = folder.run(&format!("{line} --json")).exits(code).object("check");
        let reasons: &[&str] = if code == 1 { &["mixed_flush"] } else { &[] };
        has(&object, &json!({ "wrong": 0, "mixed_flush": 1, "passes": code == 0, "fails_by": reasons }));
        let text = folder.run(&line).out;
        assert_eq!(text.contains("NOT PERMITTED by"), code == 1, "{text}");
        assert_eq!(text.contains("2 elements, 0 wrong, subnormals treated inconsistently"), code == 1, "{text}");
    }
}
