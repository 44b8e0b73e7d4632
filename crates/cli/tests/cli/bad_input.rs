//! Malformed and missing sources: exit code, one line that names the file, no destination, no panic.

use crate::run::Folder;
use serde_json::Value;
use truecast_testkit::npy::{npy, npy_text};
use truecast_testkit::safetensors::{container, f32s, safetensors};

const GOOD: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

/// `crates/io` tests every rule of every container.
#[test]
fn malformed_files() {
    let deep = format!(r#"{{"a":{}"#, "[".repeat(100_000));
    let object = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
    for (name, bytes) in [
        ("a.safetensors", vec![]),
        ("a.safetensors", container(b"{\"\xff\":1}", b"")),
        ("a.safetensors", container(deep, b"")),
        ("a.safetensors", container(&GOOD[..30], b"")),
        ("a.npy", vec![]),
        ("a.npy", npy("<f4", 3, &[0; 8])),
        ("a.npy", npy_text(object, &[0; 8])),
        ("a.npy", npy_text(&"(".repeat(20_000), &[])),
        ("a.npy", npy_text(&object.replace("|O", "\n\u{1b}[2J"), &[0; 4])),
        ("a.npy", vec![0x93, 0x4e, 1, 2]),
        ("a.npz", vec![]),
        ("a.npz", b"PK\x03\x04 and then nothing".to_vec()),
        ("a.npz", [&b"PK\x05\x06\0\0\0\0"[..], &[0xff; 12], &[0, 0]].concat()),
    ] {
        let folder = Folder::with(name, &bytes);
        for line in [format!("convert {name} out{name} --to f16 --report r.json"), format!("inspect {name}")] {
            let ran = folder.run(&line).fails(3, &[name]);
            assert!(!ran.err.contains("is text"), "{}", ran.err);
            assert_eq!(folder.names(), [name]);
        }
    }
}

#[test]
fn sources_that_are_not_there_or_not_files() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("dir.safetensors")).unwrap();
    std::os::unix::fs::symlink("nowhere.npy", folder.path("dangling.npy")).unwrap();
    std::os::unix::fs::symlink("loop.npy", folder.path("loop.npy")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path("zero.npy")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe.npy")).status().unwrap();
    assert!(made.success());
    folder.write("b.txt", b"text");
    let before = folder.names();
    for (source, code) in [
        ("missing.safetensors", "not-found"),
        ("missing/a.npy", "not-found"),
        ("dangling.npy", "not-found"),
        ("loop.npy", "io-error"),
        ("dir.safetensors", "unsuitable-source"), // a folder without weights
        ("pipe.npy", "not-regular-file"),
        ("zero.npy", "not-regular-file"),
        ("a.txt", "not-found"),
        ("model", "not-found"),
        (".npy", "not-found"),
        ("b.txt", "unknown-file-kind"),
    ] {
        for line in [
            format!("convert {source} out.safetensors --to f16"),
            format!("inspect {source}"),
            format!("verify {source} out.safetensors --to f16"),
            format!("compare {source} {source}"),
        ] {
            folder.refused(&line, code, &[source]);
            assert_eq!(folder.names(), before, "{line}");
        }
    }
}

/// The test does nothing for root, who may read every file.
#[test]
fn unreadable_source() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with("a.npy", &npy("<f4", 1, &[0; 4]));
    std::fs::set_permissions(folder.path("a.npy"), PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::File::open(folder.path("a.npy")).is_err() {
        folder.refused("convert a.npy b.npy --to f16", "permission-denied", &["a.npy"]);
        assert_eq!(folder.names(), ["a.npy"]);
    }
}

/// Name with BEL, a bidirectional override, C1 and C0 controls, a line separator and a line feed.
const HOSTILE: &str = "a\\u0007\\u202e\\u009b2J\\u2028\\u001b[2J\\nb";

#[test]
fn names_from_a_file_cannot_move_the_cursor() {
    let header = format!(r#"{{"{HOSTILE}":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}"#);
    let folder = Folder::with("a.safetensors", &container(header, &f32s(&[1.0, 1e30])));
    let name: Value = serde_json::from_str(&format!("\"{HOSTILE}\"")).unwrap();
    for (line, code) in [
        ("inspect a.safetensors", 0),
        ("convert a.safetensors b.safetensors --to f16 --report r.json --force", 0),
        ("compare a.safetensors b.safetensors", 0),
        ("verify a.safetensors b.safetensors --to bf16", 1),
        ("convert a.safetensors c.safetensors --to f16 --spec ieee --overflow error", 3),
    ] {
        let is_seen = |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{2028}'..='\u{202e}'));
        let (text, json) = (folder.run(line).exits(code), folder.run(&format!("{line} --json")).exits(code));
        for said in [&text.out, &text.err, &json.out, &json.err] {
            assert!(said.chars().all(is_seen), "{line}: {said:?}");
        }
        assert!(code > 0 || serde_json::from_str::<Value>(&json.out).unwrap()["tensors"][0]["name"] == name, "{line}");
    }
    assert_eq!(folder.json("r.json")["tensors"][0]["name"], name);
}

#[test]
fn a_damaged_tensor_ends_the_work_of_every_thread() {
    use truecast_testkit::proto::{int, packed, tensor};
    // The fifth code has seven bits; the type has six.
    let entries = packed(5, &[0x31, 0x2f, 0x2b, 5, 0x49]);
    let folder = Folder::with("a.pb", &[tensor("w", 28, &[6]), entries.clone(), entries].concat());
    let line = "convert a.pb b.safetensors --to f8e4m3fnuz --spec ieee --threads 5";
    folder.run_within(60, line).fails(3, &["a.pb", "\"w\""]);
    assert_eq!(folder.names(), ["a.pb"]);
    // Far more than a chunk, so that other threads wait when the error is found.
    let many: Vec<i64> = (0..300_000).map(|i| if i == 200_000 { 64 } else { i % 64 }).collect();
    let message = [int(1, 300_000), int(2, 28), packed(5, &many)].concat();
    folder.write("a.pb", &message);
    folder.run_within(60, &line.replace("--to", "--max-memory 8MiB --to")).fails(3, &["entry 200000"]);
    assert_eq!(folder.names(), ["a.pb"]);
}

#[test]
fn what_stands_in_the_place_of_a_file() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 132\n";
    let page = "\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n";
    let text = "the weights are on the other disk: é\n".repeat(40);
    for kind in ["safetensors", "gguf", "npy", "npz", "pb", "onnx"] {
        for (content, said) in [
            (pointer, &["is a Git LFS pointer, not the file itself", "`git lfs pull`"][..]),
            (page, &["is an HTML page, not the file itself"]),
            (&text, &["is text, not a file of this kind"]),
        ] {
            let name = format!("a.{kind}");
            let folder = Folder::with(&name, content.as_bytes());
            folder.refused(&format!("inspect {name}"), "wrong-file-kind", said).lacks(&["damaged"]);
        }
    }
    Folder::with("pytorch_model.bin", pointer.as_bytes()).refused(
        "inspect pytorch_model.bin",
        "unknown-file-kind",
        &["Git LFS"],
    );
}

#[test]
fn extensions_of_other_formats() {
    let gguf = [&b"GGUF\x03\0\0\0"[..], &[0; 16]].concat();
    for (kind, bytes) in [("safetensors", container(GOOD, &[0; 8])), ("npy", npy("<f4", 2, &[0; 8])), ("gguf", gguf)] {
        for other in ["safetensors", "gguf", "npy", "npz", "pb", "onnx"].into_iter().filter(|other| *other != kind) {
            let (name, said) = (format!("a.{other}"), format!("this is a .{kind} file; rename it to a.{kind}"));
            Folder::with(&name, &bytes).refused(&format!("inspect {name}"), "wrong-file-kind", &[said]);
        }
    }
}

#[test]
fn a_folder_without_weights() {
    let folder = Folder::with("m/config.json", b"{}");
    for dst in ["o", "o.gguf"] {
        let line = format!("convert m {dst} --to f16");
        folder.refused(&line, "unsuitable-source", &["no .safetensors file", "download the weights"]);
    }
}

#[test]
fn surplus_is_not_truncation() {
    for (name, file) in [("a.safetensors", container(GOOD, &[0; 8])), ("a.npy", npy("<f4", 2, &[0; 8]))] {
        Folder::with(name, &[&file[..], &[0, 0]].concat()).refused(
            &format!("inspect {name}"),
            "malformed-file",
            &[name],
        );
        Folder::with(name, &file[..file.len() - 1]).refused(&format!("inspect {name}"), "truncated-file", &[name]);
    }
}

/// MLX's names of weights and scales, without the biases that its scheme has.
#[test]
fn codes_without_their_biases_are_refused() {
    let tensors =
        [("a.weight", "U32", &[2u64, 4][..], vec![0x11; 32]), ("a.scales", "F16", &[2, 1], vec![0, 0x3c, 0, 0x3c])];
    let folder = Folder::new();
    folder.write("m/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("m/config.json", br#"{"quantization": {"group_size": 32, "bits": 4}}"#);
    folder.run("convert m out --to bf16").fails(3, &["a"]);
    assert_eq!(folder.names(), ["m"]);
}
