//! Interrupted conversions: the destination has the old or the new contents, never a part (`docs/interfaces.md §5`).

use crate::run::{Folder, Ran};
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use truecast_testkit::npy::{npy, npy_parts};
use truecast_testkit::safetensors::{f32s, safetensors};

/// Number of elements: many chunks at the smallest memory limit.
const LEN: usize = 12 << 20;

/// Sparse file of zeros, which takes no disk space.
fn sparse() -> Folder {
    let header = npy("<f4", LEN, &[]);
    let folder = Folder::with("a.npy", &header);
    let file = OpenOptions::new().write(true).open(folder.path("a.npy")).unwrap();
    file.set_len((header.len() + 4 * LEN) as u64).unwrap();
    folder
}

/// True if the process has an open file that is unnamed or has a hidden name.
fn has_begun(id: u32) -> bool {
    let handles = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().filter_map(Result::ok);
    let targets = handles.filter_map(|handle| std::fs::read_link(handle.path()).ok());
    // An emulator has memory files of its own.
    let is_unnamed = |target: &str| target.ends_with(" (deleted)") && !target.starts_with("/memfd:");
    let is_begun = |target: &str| is_unnamed(target) || target.ends_with(".truecast-tmp");
    targets.into_iter().any(|target| is_begun(&target.to_string_lossy()))
}

/// Starts a conversion, waits for the first output file and `delay`, sends `signal`, and waits for the end of the
/// process.
fn interrupted(folder: &Folder, signal: &str, options: &str, delay: Duration) -> Ran {
    let line = format!("convert a.npy b.npy --to f16 --max-memory 3MiB --threads 1 {options}");
    let mut command = folder.command();
    command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while !has_begun(child.id()) && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(delay);
    let id = child.id().to_string();
    Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status().unwrap();
    Ran::new(format!("{signal} {line}"), child.wait_with_output().unwrap())
}

#[track_caller]
fn is_complete(folder: &Folder) {
    assert_eq!(npy_parts(&folder.read("b.npy")).1.len(), 2 * LEN);
}

#[test]
fn a_request_to_stop_leaves_nothing_behind() {
    let folder = sparse();
    for signal in ["-INT", "-TERM", "-HUP"] {
        for delay in [0, 5, 20] {
            let ran = interrupted(&folder, signal, "--report r.json", Duration::from_millis(delay));
            if ran.code == Some(0) {
                is_complete(&folder);
                assert_eq!(folder.names(), ["a.npy", "b.npy", "r.json"]);
                std::fs::remove_file(folder.path("b.npy")).unwrap();
                std::fs::remove_file(folder.path("r.json")).unwrap();
            } else if ran.err.contains("the result is complete") {
                // The report is written last, because it has digests of the output.
                ran.fails(4, &["interrupted before the report was written"]);
                is_complete(&folder);
                assert_eq!(folder.names(), ["a.npy", "b.npy"], "{signal}");
                std::fs::remove_file(folder.path("b.npy")).unwrap();
            } else {
                ran.fails(4, &["interrupted"]);
                assert_eq!(folder.names(), ["a.npy"], "{signal}");
            }
        }
    }
}

/// A signal is ignored, for example, under `nohup`.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = sparse();
    let line = "convert a.npy b.npy --to f16 --max-memory 3MiB --threads 1";
    let script = format!("trap '' HUP; exec {} {line}", crate::run::binary());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while !has_begun(child.id()) {
        std::thread::sleep(Duration::from_micros(200));
    }
    Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    Ran::new(script, child.wait_with_output().unwrap()).succeeds();
    is_complete(&folder);
}

#[test]
fn leftovers_are_named_and_removed() {
    let folder = Folder::with("a.npy", &npy("<f4", 1, &[0; 4]));
    for name in [".b.npy.Ab12Cd.truecast-tmp", ".c.npy.Ab12Cd.truecast-tmp"] {
        folder.write(name, &[0; 2048]);
    }
    let ran = folder.run("convert a.npy b.npy --to f16").exits(0);
    assert!(ran.err.contains(" .b.npy.Ab12Cd.truecast-tmp: 2.00 KiB left by a killed run; --force"), "{}", ran.err);
    assert_eq!((ran.err.lines().count(), folder.names().len()), (1, 4));
    let ran = folder.run("convert a.npy b.npy --to f16 --force --json").exits(0);
    let warnings = ran.object("convert")["warnings"].as_array().unwrap().clone();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().ends_with("removed"), "{warnings:?}");
    assert_eq!(folder.names(), [".c.npy.Ab12Cd.truecast-tmp", "a.npy", "b.npy"]);
}

const SHARDS: usize = 10;

/// Shards of 1 MiB. The folder has no index.
fn checkpoint() -> Folder {
    let folder = Folder::new();
    let values: Vec<f32> = (0..1 << 18).map(|i| (i as f32).sin() * 3.0).collect();
    for shard in 0..SHARDS {
        let name = format!("{shard}.weight");
        let tensor = (name.as_str(), "F32", &[512u64, 512][..], f32s(&values));
        folder.write(&format!("model/part-{shard}.safetensors"), &safetensors(&[tensor], &[]));
    }
    folder.write("model/config.json", b"{\"torch_dtype\": \"float32\"}");
    folder
}

#[test]
fn an_interruption_says_what_stays() {
    let folder = checkpoint();
    let line = "convert model out --to f8e4m3fn --quiet --threads 1 --max-memory 3MiB";
    let begin = Instant::now();
    folder.run(line).succeeds();
    let duration = begin.elapsed();
    for round in 0..30 {
        std::fs::remove_dir_all(folder.path("out")).ok();
        let mut command = folder.command();
        command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(duration.mul_f64(f64::from(round) / 30.0));
        Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
        let ran = Ran::new(line.into(), child.wait_with_output().unwrap());
        // Without exit code 4, the signal came too early or too late.
        if ran.code != Some(4) {
            continue;
        }
        let is_begun = folder.path("out/truecast-manifest.json").exists();
        let stays = ran.err.contains("finished shards remain; --resume continues from there");
        assert_eq!((stays, ran.err.lines().count()), (is_begun, 1), "{}", ran.err);
        if is_begun && round % 4 == 0 {
            folder.run(&format!("{line} --resume")).succeeds();
        }
    }
}
