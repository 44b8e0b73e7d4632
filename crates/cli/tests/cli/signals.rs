//! Interrupted conversions: the destination is old or new, never half (`docs/interfaces.md §5`).

use crate::files::{npy, npy_parts};
use crate::run::{Folder, Ran};
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Elements: enough for many chunks of the smallest memory.
const LEN: usize = 12 << 20;

/// An array of zeros that takes no disk space.
fn sparse() -> Folder {
    let header = npy("<f4", LEN, &[]);
    let folder = Folder::with("a.npy", &header);
    let file = OpenOptions::new().write(true).open(folder.path("a.npy")).unwrap();
    file.set_len((header.len() + 4 * LEN) as u64).unwrap();
    folder
}

/// Starts a conversion, sends `signal` once the temporary file is there and `delay` has passed, and waits for the end.
fn interrupted(folder: &Folder, signal: &str, options: &str, delay: Duration) -> Ran {
    let before = folder.names().len();
    let line = format!("convert a.npy b.npy --to f16 --max-memory 3MiB --threads 1 {options}");
    let mut command = folder.command();
    command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while folder.names().len() == before && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(delay);
    // It may have come to its end already.
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
                // The report has digests of what was written, so that it comes last.
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

#[test]
fn an_old_destination_survives() {
    let folder = sparse();
    folder.write("b.npy", b"old");
    let ran = interrupted(&folder, "-INT", "--force", Duration::from_millis(1));
    match ran.code {
        Some(0) => is_complete(&folder),
        _ => assert_eq!(ran.fails(4, &["interrupted"]).code.map(|_| folder.read("b.npy")), Some(b"old".to_vec())),
    }
    assert_eq!(folder.names(), ["a.npy", "b.npy"]);
}

#[test]
fn a_kill_leaves_no_half_destination() {
    let folder = sparse();
    for delay in [0, 3, 10, 30] {
        let ran = interrupted(&folder, "-KILL", "", Duration::from_millis(delay));
        let finished = folder.path("b.npy").exists();
        assert!(ran.code.is_none() || finished, "{:?} {}", ran.code, ran.err);
        if finished {
            is_complete(&folder);
        }
        for name in folder.names().into_iter().filter(|n| n != "a.npy") {
            std::fs::remove_file(folder.path(&name)).unwrap();
        }
    }
}
