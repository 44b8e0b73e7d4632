//! Files with very many tensors or nodes: memory per tensor or node (`docs/interfaces.md §4.2`).

use crate::run::Folder;
use std::process::Stdio;
use std::time::Duration;
use truecast_testkit::{gguf, proto, safetensors};

/// Largest memory per tensor or node, in bytes, besides the header.
const MOST: usize = 680;
const MOST_OF_BLOCKS: usize = 1000;
const MOST_OF_NODES: usize = 700;
const TENSORS: usize = 100_000;
const BLOCK_TENSORS: usize = 1 << 16;
const NODES: usize = 40_000;

fn names(tensors: usize) -> Vec<String> {
    (0..tensors).map(|i| format!("t{i}")).collect()
}

fn safetensors(tensors: usize) -> Vec<u8> {
    let names = names(tensors);
    let all: Vec<safetensors::Tensor<'_>> = names.iter().map(|name| (&name[..], "F32", &[0][..], vec![])).collect();
    safetensors::safetensors(&all, &[])
}

/// Tensors without elements, all at one offset.
fn gguf(tensors: usize) -> Vec<u8> {
    let names = names(tensors);
    let all: Vec<gguf::Tensor<'_>> = names.iter().map(|name| (&name[..], &[0][..], 0, vec![])).collect();
    gguf::gguf(&[], &all)
}

fn onnx(nodes: usize) -> Vec<u8> {
    let node = |i: usize| proto::node("Identity", &[&format!("x{i}")], &[&format!("x{}", i + 1)], &[]);
    let ends =
        [proto::bytes(11, proto::value("x0", 1, &[])), proto::bytes(12, proto::value(&format!("x{nodes}"), 1, &[]))];
    proto::model(8, 13, &proto::graph(&(0..nodes).map(node).collect::<Vec<_>>(), &[], ends.concat()))
}

/// Peak memory of a command, which the system reports while the command runs.
#[track_caller]
fn peak(folder: &Folder, line: &str) -> usize {
    let mut command = folder.command();
    command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let now = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB")?.trim().parse().ok());
        peak = peak.max(now.unwrap_or(0) << 10);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(status.success(), "{line}");
    peak
}

#[track_caller]
fn check(extension: &str, file: fn(usize) -> Vec<u8>, many: usize, most: usize, lines: &[&str]) {
    let folder = Folder::new();
    let sizes = [("one", 1), ("many", many)].map(|(name, n)| {
        let file = file(n);
        folder.write(&format!("{name}.{extension}"), &file);
        file.len()
    });
    for line in lines {
        // A short run may end before its peak is seen.
        let one = (0..25).map(|_| peak(&folder, &line.replace("FILE", "one"))).max().unwrap();
        let peak = peak(&folder, &line.replace("FILE", "many"));
        let of_each = peak.saturating_sub(one + sizes[1] - sizes[0]) / many;
        assert!(of_each <= most, "{line}: {of_each} bytes for each");
    }
}

#[test]
fn safetensors_of_many_tensors() {
    let lines = [
        "inspect FILE.safetensors",
        "inspect FILE.safetensors --stats",
        "convert FILE.safetensors FILE-bf16.safetensors --to bf16 --quiet --force",
        "convert FILE.safetensors FILE-f16.safetensors --to f16 --json --force --report FILE.json",
        "verify FILE.safetensors FILE-bf16.safetensors --to bf16",
        "compare FILE.safetensors FILE-bf16.safetensors",
        "compare FILE.safetensors FILE-bf16.safetensors --json",
    ];
    check("safetensors", safetensors, TENSORS, MOST, &lines);
}

#[test]
fn gguf_of_many_tensors() {
    check("gguf", gguf, BLOCK_TENSORS, MOST, &["inspect FILE.gguf"]);
    let lines = [
        "convert FILE.gguf FILE.safetensors --to bf16 --quiet --force",
        "verify FILE.gguf FILE.safetensors --to bf16",
        "compare FILE.gguf FILE.safetensors",
    ];
    check("gguf", gguf, BLOCK_TENSORS, MOST_OF_BLOCKS, &lines);
}

#[test]
fn more_than_the_limit() {
    let folder = Folder::new();
    folder.write("a.gguf", &gguf(BLOCK_TENSORS + 1));
    folder.refused("inspect a.gguf", "limit-exceeded", &["65537 entries", "65536"]);
    folder.write("a.onnx", &onnx(600_000));
    folder.refused("inspect a.onnx", "limit-exceeded", &["96"]);
}

#[test]
fn models_of_many_nodes() {
    check("onnx", onnx, NODES, MOST_OF_NODES, &["inspect FILE.onnx", "check FILE.onnx"]);
}
