//! Closed or full standard output, and full disks (`docs/interfaces.md §5`).

use crate::run::{Folder, Ran};
use std::fs::OpenOptions;
use std::process::Stdio;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{f32s, one_tensor};

fn into_closed_pipe(folder: &Folder, line: &str) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = folder.command().args(line.split(' ')).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    Ran::new(line.into(), child.wait_with_output().unwrap())
}

fn into_full_disk(folder: &Folder, line: &str) -> Ran {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = folder.command().args(line.split(' ')).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    Ran::new(line.into(), child.wait_with_output().unwrap())
}

const PRINTING: [&str; 9] = [
    "formats", "formats f8e4m3fn", "formats --json", "explain 465 --to f8e4m3fn", "inspect a.safetensors",
    "completions bash", "man", "--help", "--version",
];

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    for line in PRINTING {
        into_closed_pipe(&folder, line).succeeds();
    }
    into_closed_pipe(&folder, "convert a.safetensors b.safetensors --to f16").succeeds();
    assert!(folder.path("b.safetensors").exists());
}

/// A shell pipe such as `truecast verify .. | head`, with `pipefail`.
#[test]
fn a_closed_pipe_does_not_hide_a_difference() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0, 1e9]));
    folder.write("c.safetensors", &one_tensor(&[1.5, 1e9]));
    into_closed_pipe(&folder, "verify a.safetensors c.safetensors --to f32").exits(1);
    into_closed_pipe(&folder, "compare a.safetensors c.safetensors --fail-on inexact").exits(1);
    into_closed_pipe(&folder, "convert a.safetensors b.safetensors --to f16 --fail-on inf").exits(1);
}

#[test]
fn a_full_disk_on_standard_output() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    for line in PRINTING {
        into_full_disk(&folder, line).fails(4, &["standard output"]);
    }
    into_full_disk(&folder, "convert a.safetensors b.safetensors --to f16").fails(4, &["standard output"]);
    assert!(folder.path("b.safetensors").exists());
}

#[test]
fn a_closed_standard_error() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = folder.command().args(["inspect", "no.npy"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(4));
}

fn large() -> Folder {
    let folder = Folder::with("a.npy", &npy("<f4", 1 << 20, &f32s(&vec![1.0; 1 << 20])));
    folder.write("old.npy", b"old");
    folder
}

/// `ulimit -f` makes writing fail and sends SIGXFSZ, which would end the process.
#[test]
fn a_limit_on_the_size_of_files() {
    let folder = large();
    for (line, name) in [
        ("convert a.npy b.npy --to f64", "b.npy"),
        ("convert a.npy old.npy --to f64 --force", "old.npy"),
        ("convert a.npy b.npz --to f64", "b.npz"),
        ("convert a.npy b.safetensors --to f64 --report r.json", "b.safetensors"),
    ] {
        folder.run_after("ulimit -f 2000", line).fails(4, &[name]);
        assert_eq!((folder.names(), folder.read("old.npy")), (vec!["a.npy".into(), "old.npy".into()], b"old".to_vec()));
    }
}

#[test]
fn a_limit_on_the_size_of_standard_output() {
    Folder::new().run_after("ulimit -f 0", "formats >out").fails(4, &["standard output"]);
}
