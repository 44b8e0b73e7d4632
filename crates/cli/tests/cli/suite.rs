//! `vectors suite`: the folder of `docs/interfaces.md §4.1`, and its two readers.

use crate::run::Folder;
use half::f16;
use serde_json::json;
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// Splits a line of a vector file: input, and the other words.
fn lines(text: &str) -> Vec<(u64, Vec<&str>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            (u64::from_str_radix(words.next().unwrap(), 16).unwrap(), words.collect())
        })
        .collect()
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

#[test]
fn results_are_those_of_the_language() {
    let folder = Folder::new();
    folder.run("vectors suite s --only rust --from f16 --to i8").succeeds();
    let vectors = text(&folder, "s/rust/default/f16-i8.txt");
    let heading = "# truecast vectors suite, format 1\n# rule rust\n# from f16, 16 bits\n# to i8, 8 bits\n";
    assert!(vectors.starts_with(heading), "{vectors}");
    let lines = lines(&vectors);
    assert!((100..=150).contains(&lines.len()) && lines.is_sorted());
    for (input, words) in &lines {
        let right = f16::from_bits(*input as u16).to_f32() as i8;
        assert_eq!(words, &[format!("{right:02x}")], "{input:04x}");
    }
    for x in [0.0, -0.0, 127.0, 127.9375, 128.0, -128.0, -128.5, 129.0, 65504.0, f32::INFINITY, f32::NAN, 0.5, 1.5] {
        let code = u64::from(f16::from_f32(x).to_bits());
        assert!(lines.iter().any(|(input, _)| *input == code), "{x}");
    }
    let list = folder.json("s/suite.json");
    assert_eq!((&list["format"], &list["lines"]), (&json!(1), &json!(150)));
    let entry = &list["files"][0];
    assert_eq!((&entry["rule"], &entry["attributes"], &entry["default"]), (&json!("rust"), &json!(""), &json!(true)));
    assert_eq!((&entry["file"], &entry["vectors"]), (&json!("rust/default/f16-i8.txt"), &json!(lines.len())));
    for name in ["README.md", "readers/check.c", "readers/check.py"] {
        assert!(!folder.read(&format!("s/{name}")).is_empty());
    }
}

#[test]
fn alternatives_and_open_results() {
    let folder = Folder::new();
    let object =
        folder.run("vectors suite s --only onnx@28 --from f32 --to f8e4m3fn --json").succeeds().object("vectors");
    assert_eq!(
        (&object["conversions"], &object["rules"], &object["files"]),
        (&json!(2), &json!(["onnx@28"]), &json!(7))
    );
    let at = |saturate: u8| text(&folder, &format!("s/onnx@28/saturate={saturate}/f32-f8e4m3fn.txt"));
    assert!(at(0).contains("# nan 7f 7f 7f\n"));
    assert!(at(1).contains("\n43e80001 7e\n") && at(0).contains("\n43e80001 7f\n")); // just above 464

    folder.run("vectors suite open --only onnx@28 --from f16 --to i4 --lines 2000").succeeds();
    let suite = text(&folder, "open/onnx@28/default/f16-i4.txt");
    let known = folder.run("vectors cast --from f16 --to i4 --spec onnx@28 --level exhaustive").succeeds().out;
    let known = lines(&known);
    assert!(suite.contains(" o\n"));
    for (input, words) in lines(&suite) {
        let right: Vec<&str> =
            known[input as usize].1.iter().map(|word| if *word == "undefined" { "o" } else { *word }).collect();
        assert_eq!(words, right, "{input:04x}");
    }
}

/// SHA-256 of the results of `vectors --level exhaustive`, with all NaNs replaced by one.
#[test]
fn digests_are_of_every_result() {
    let folder = Folder::new();
    for (spec, from, to, nan) in [("rust", "f16", "i8", None), ("onnx@28", "bf16", "f16", Some(0x7e00u64))] {
        let line = format!("vectors cast --spec {spec} --from {from} --to {to} --level exhaustive");
        let ran = folder.run(&line).succeeds();
        let name = format!("{spec}/default/{from}-{to}");
        folder.run(&format!("vectors suite s --only {spec} --from {from} --to {to} --files --force")).succeeds();
        let mut bytes = Vec::new();
        for (_, words) in lines(&ran.out) {
            let code = u64::from_str_radix(words[0], 16).unwrap();
            let code = nan.filter(|_| code & 0x7fff > 0x7c00).unwrap_or(code);
            bytes.extend(&code.to_le_bytes()[..words[0].len() / 2]);
        }
        folder.write("results", &bytes);
        let (_, sha256) = truecast::digest::sha256(&folder.path("results"), &AtomicBool::new(false)).unwrap();
        let digest = &folder.json("s/digests.json")["digests"][0];
        assert_eq!((&digest["sha256"], &digest["inputs"]), (&json!(sha256), &json!(65536)), "{name}");
        assert_eq!(digest["results"], json!(format!("{name}.bin")));
        assert!(folder.read(&format!("s/{name}.bin")) == bytes, "{name}");
    }
    // Trapping inputs are refused. Sources above 16 bits have digests only on request.
    folder.run("vectors suite refused --only wasm --from f32 --to i32").succeeds();
    assert!(text(&folder, "refused/wasm/default/f32-i32.txt").contains("\n7f800000 -\n"));
    assert_eq!(folder.json("refused/digests.json")["digests"], json!([]));
}

#[test]
fn readers_find_a_wrong_line() {
    let folder = Folder::new();
    folder.run("vectors suite s --only onnx@28 --from f32 --to f16").succeeds();
    let vectors = "s/onnx@28/default/f32-f16.txt";
    let right = text(&folder, vectors);
    folder.write("right", right.as_bytes());
    // Any NaN is accepted; 65504 for 65520 is not.
    let other = right.replace("\n7fc00000 7e00\n", "\n7fc00000 fe01\n");
    assert!(other != right && other.contains("\n477ff000 7c00\n"));
    folder.write("other", other.as_bytes());
    folder.write("wrong", other.replace("\n477ff000 7c00\n", "\n477ff000 7bff\n").as_bytes());
    folder.write("short", right.lines().take(20).collect::<Vec<_>>().join("\n").as_bytes());
    let available = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    let mut readers: Vec<Vec<String>> = Vec::new();
    if available("cc") {
        let strict = ["-std=c99", "-pedantic", "-Wall", "-Werror", "-o", "check", "s/readers/check.c"];
        assert!(Command::new("cc").args(strict).current_dir(folder.path("")).status().unwrap().success());
        readers.push(vec![folder.path("check").display().to_string()]);
    }
    if available("python3") {
        readers.push(vec!["python3".into(), "s/readers/check.py".into()]);
    }
    for reader in readers {
        let check = |results: &str| {
            let mut command = Command::new(&reader[0]);
            let output =
                command.args(&reader[1..]).args([vectors, results]).current_dir(folder.path("")).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        for good in ["right", "other"] {
            let (code, out) = check(good);
            assert!(code == Some(0) && out.ends_with(" lines, 0 wrong\n"), "{reader:?} {good}: {out}");
        }
        let (code, out) = check("wrong");
        assert!(code == Some(1) && out.contains(": 477ff000 gives 7c00, not 7bff\n"), "{reader:?}: {out}");
        assert!(out.lines().count() == 2 && out.ends_with(" 1 wrong\n"), "{reader:?}: {out}");
        let (code, out) = check("short");
        assert!(code == Some(1) && out.contains("not no result\n"), "{reader:?}: {out}");
        assert_eq!(check("missing").0, Some(2), "{reader:?}");
    }
}

#[test]
fn a_suite_is_written_whole_or_not_at_all() {
    let folder = Folder::new();
    folder.run("vectors suite deep/s --only rust --from f16 --to i8").succeeds();
    folder.refused("vectors suite deep/s --only rust --from f16 --to u8", "destination-exists", &["deep/s", "--force"]);
    folder.write("deep/s/rust/mine.txt", b"mine");
    folder.run("vectors suite deep/s --only rust --from f16 --to u8 --force").succeeds();
    assert!(
        !folder.path("deep/s/rust/default/f16-i8.txt").exists()
            && folder.path("deep/s/rust/default/f16-u8.txt").exists()
    );
    assert_eq!(folder.read("deep/s/rust/mine.txt"), b"mine");
    folder.write("other/README.md", b"mine");
    folder.refused("vectors suite other --only rust --from f16 --to u8 --force", "destination-exists", &["other"]);
    assert_eq!(folder.read("other/README.md"), b"mine");
    let said = ["a suite has each setting of values out of range and no others; `truecast vectors cast` takes them"];
    folder.refused("vectors suite t --only arm:scale-exponent=-3", "invalid-value", &said);
    assert_eq!(folder.names(), ["deep", "other"], "nothing is left");
}

/// Arm converts f16 to f8e5m2; RISC-V and WebAssembly do not.
#[test]
fn names_without_a_pair_are_said() {
    let folder = Folder::new();
    let line = "--only riscv --only arm --only wasm --from f16 --to f8e5m2";
    let ran = folder.run(&format!("vectors suite s {line}")).exits(0);
    for name in ["riscv", "wasm"] {
        assert!(ran.err.contains(&format!("warning: {name}: no pair of these types\n")), "{}", ran.err);
    }
    assert!(!ran.err.contains("arm"), "{}", ran.err);
    let object = folder.run(&format!("vectors suite t {line} --json")).succeeds().object("vectors");
    assert_eq!((&object["rules"], &object["without_pairs"]), (&json!(["arm"]), &json!(["riscv", "wasm"])));
    let line = "vectors suite u --only riscv --only wasm --from f16 --to f8e5m2";
    folder.refused(line, "invalid-value", &["f16", "f8e5m2"]);
    let line = "vectors suite v --only amd --only torch --from f32 --to f8e4m3fnuz --json";
    assert_eq!(folder.run(line).succeeds().object("vectors")["without_pairs"], json!([]));
}
