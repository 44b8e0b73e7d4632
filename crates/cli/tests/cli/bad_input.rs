//! Malformed and missing sources: exit code, one line that names the file, no destination, no panic.

use crate::run::Folder;
use truecast_testkit::npy::{npy, npy_text};
use truecast_testkit::safetensors::{container, safetensors};

const GOOD: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

#[track_caller]
fn refused(name: &str, bytes: &[u8], what: &str) {
    let folder = Folder::with(name, bytes);
    let before = folder.names();
    let line = format!("convert {name} out.{} --to f16 --report r.json", name.rsplit('.').next().unwrap());
    for line in [line, format!("inspect {name}")] {
        let ran = folder.run(&line);
        assert_eq!(ran.code, Some(3), "{what}: {}", ran.err);
        ran.fails(3, &[name]);
        assert_eq!(folder.names(), before, "{what}");
    }
}

/// One header per way in which parsing fails. `docs/spec/checkpoints.md §1.6` has the rules.
#[test]
fn malformed_safetensors_headers() {
    for (rule, bytes) in [
        ("V1", vec![]),
        ("V1", vec![0; 7]),
        ("V4", container(b"{\"\xff\":1}", b"")),
        ("V4", container(r#"{"\ud800":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#, &[0; 4])),
        ("V20", container(format!(r#"{{"a":{}"#, "[".repeat(100_000)), b"")),
        ("V20", container(format!(r#"{{"a":{}"#, r#"{"a":"#.repeat(100_000)), b"")),
        ("truncated", container(&GOOD[..30], b"")),
    ] {
        refused("bad.safetensors", &bytes, rule);
    }
    let rank = format!(r#"{{"a":{{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}}}}"#, ["1"; 64].join(","));
    let folder = Folder::with("a.safetensors", &container(rank, &[0; 4]));
    folder.run("convert a.safetensors b.safetensors --to f16").succeeds();
}

#[test]
fn lying_npy_headers() {
    let header = |descr: &str, order: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
    };
    for (what, bytes) in [
        ("empty", vec![]),
        ("too short", npy("<f4", 3, &[0; 8])),
        ("fortran", npy_text(&header("'<f4'", "True", "(2, 2)"), &[0; 12])),
        ("object", npy_text(&header("'|O'", "False", "(1,)"), &[0; 8])),
        ("deep", npy_text(&"(".repeat(20_000), &[])),
        ("control characters", npy_text(&header("'\n\u{1b}[2J'", "False", "(1,)"), &[0; 4])),
    ] {
        refused("bad.npy", &bytes, what);
    }
}

#[test]
fn damaged_archives() {
    for (what, bytes) in [
        ("empty", &b""[..]),
        ("no directory", b"PK\x03\x04 and then nothing"),
        ("directory past the end", b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),
        ("an array", &npy("<f4", 1, &[0; 4])),
    ] {
        refused("bad.npz", bytes, what);
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

#[test]
fn names_from_a_file_cannot_move_the_cursor() {
    let header = "{\"\\u001b[2Jx\\ny\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    let folder = Folder::with("a.safetensors", &container(header, &[0, 0, 0x80, 0x7f]));
    let printed = |line: &str, code: i32| {
        let ran = folder.run(line).exits(code);
        for text in [&ran.out, &ran.err] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{line}: {text:?}");
        }
        ran
    };
    printed("inspect a.safetensors", 0);
    printed("convert a.safetensors b.safetensors --to f16", 0);
    printed("compare a.safetensors b.safetensors", 0);
    printed("verify a.safetensors b.safetensors --to bf16", 1);
    printed("convert a.safetensors c.safetensors --to f16 --spec ieee --inf error", 3);
    let shown = folder.run("inspect a.safetensors --json").succeeds().object("inspect");
    assert_eq!(shown["tensors"][0]["name"], "\u{1b}[2Jx\ny");
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
    refused("a.npy", &[0x93, 0x4e, 1, 2], "bytes");
    assert!(!Folder::with("a.npy", &[0x93, 0x4e, 1, 2]).run("inspect a.npy").err.contains("is text"));
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
    // The length of the header, cut.
    Folder::with("a.safetensors", &container(GOOD, &[0; 8])[..20])
        .refused("inspect a.safetensors", "truncated-file", &["a.safetensors"])
        .lacks(&["extension"]);
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
        for (file, code) in
            [([&file[..], &[0, 0]].concat(), "malformed-file"), (file[..file.len() - 1].to_vec(), "truncated-file")]
        {
            Folder::with(name, &file).refused(&format!("inspect {name}"), code, &[name]);
        }
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
