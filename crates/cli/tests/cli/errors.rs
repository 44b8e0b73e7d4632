//! Structure of errors and JSON (`docs/interfaces.md §5, §6`), for every command.

use crate::run::{Folder, commands, exit_code};
use serde_json::Value;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{one_tensor, safetensors};

fn folder() -> Folder {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1000.0]));
    folder.write("bad.npy", b"no");
    folder.write("a.txt", b"text");
    folder
}

/// The table of `docs/interfaces.md §5` lists every code in order, with its exit code.
#[test]
fn codes_are_documented() {
    let page = include_str!("../../../../docs/interfaces.md");
    let (_, table) = page.split_once("| code | exit | means |\n|---|---|---|\n").unwrap();
    let row = |line: &str| -> (String, i32) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        (cells.next().unwrap().replace('`', ""), cells.next().unwrap().parse().unwrap())
    };
    let documented: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).map(row).collect();
    let known = truecast::ErrorCode::ALL.iter().map(|code| code.name());
    let known: Vec<_> = ["fail-on"].into_iter().chain(known).map(|name| (name.to_string(), exit_code(name))).collect();
    assert_eq!(documented, known);
}

#[test]
fn an_error_is_one_line_or_object() {
    let folder = folder();
    for row in include_str!("wrong.txt").lines() {
        let (code, line) = row.split_once(' ').map(|(code, line)| (code.parse().unwrap(), line)).unwrap();
        folder.run(line).fails(code, &["truecast: "]);
        for line in [format!("--json {line}"), format!("{line} --json")] {
            let ran = folder.run(&line).exits(code);
            assert_eq!(ran.out, "", "{line}");
            let object: Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{line}: {e}: {}", ran.err));
            assert_eq!(object["truecast"], env!("CARGO_PKG_VERSION"), "{line}");
            assert_eq!(object["exit_code"], code, "{line}");
            assert_eq!(exit_code(object["code"].as_str().unwrap()), code, "{line}");
            assert!(!object["error"].as_str().unwrap().is_empty(), "{line}");
        }
    }
}

#[test]
fn an_error_is_one_line_whatever_the_path() {
    let name = "new\nline\u{1b}[2J";
    let (source, other) = (format!("{name}.safetensors"), format!("{name}.b.safetensors"));
    let folder = Folder::with(&source, &one_tensor(&[1000.0]));
    folder.write(&other, &one_tensor(&[1.0]));
    for (args, code) in [
        (vec!["convert", &source, &format!("{name}.xyz"), "--to", "f16"], 2),
        (vec!["convert", &source, &source, "--to", "f16"], 2),
        (vec!["convert", &source, &other, "--to", "f16"], 2),
        (vec!["convert", &source, "b.safetensors", "--to", "f16", "--rule", "no=f16"], 2),
        (vec!["convert", &source, "b.safetensors", "--to", "f16", "--rule", "n\no=f16"], 2),
        (vec!["convert", &source, "b.safetensors", "--from", "f8e4m3fn", "--to", "f16"], 2),
        (vec!["convert", &source, "b.npy", "--to", "nf4"], 3),
        (vec!["convert", &source, "b.npy", "--to", "i8", "--spec", "ieee", "--int-overflow", "error"], 3),
        (vec!["inspect", "missing\n.npy"], 4),
        (vec!["explain", "1\n2", "--to", "f16"], 2),
    ] {
        folder.run_args(args).fails(code, &[] as &[&str]);
    }
    let result = format!("{name}.c.safetensors");
    let ran = folder.run_args(["convert", &source, &result, "--to", "f16"]).succeeds();
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
}

#[test]
fn one_object_on_everything_that_prints() {
    let folder = folder();
    folder.write("b.safetensors", &one_tensor(&[1000.0]));
    folder.write("i.npy", &npy("<i4", 1, &[1, 0, 0, 0]));
    folder.write("m.mlir", b"entry @k() {\n  return\n}\n");
    folder.write("m/model.safetensors", &safetensors(&[("a.weight", "F32", &[1, 2], vec![0; 8])], &[]));
    folder.write("r.json", b"{\"truecast\": \"0\", \"command\": \"compare\"}");
    let lines: Vec<_> = include_str!("objects.txt").lines().map(|row| row.split_once(": ").unwrap()).collect();
    for (command, line) in &lines {
        folder.run(&format!("{line} --json")).exits(0).object(command);
    }
    for command in commands().iter().filter(|command| !["completions", "explore", "man"].contains(&&***command)) {
        assert!(lines.iter().any(|line| line.0 == *command || line.1.starts_with(&format!("{command} "))), "{command}");
    }
    folder.run("--json formats").succeeds().object("formats");
}

/// Under a memory limit, the stacks of many threads do not fit.
#[test]
fn threads_that_cannot_be_had() {
    let folder = Folder::with("a.npy", &npy("<f4", 1, &[0; 4]));
    let ran = folder.run_after("ulimit -v 400000", "convert a.npy b.npy --to f16 --threads 1000").lacks(&["panicked"]);
    assert!(matches!(ran.code, Some(0 | 2 | 4)), "{:?} {}", ran.code, ran.err);
}

/// Sizes in files and options that exceed the machine's memory are an error of the system, never an abort.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_cannot_be_had() {
    let folder = Folder::with("a.npy", &npy("<f4", 1, &[0; 4]));
    let safetensors = |name: &str, header: &str, data: u64| {
        let text = header.to_string() + &" ".repeat(header.len().next_multiple_of(8) - header.len());
        std::fs::write(folder.path(name), [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(folder.path(name)).unwrap();
        file.set_len(8 + text.len() as u64 + data).unwrap();
    };
    let note = "y".repeat(60 << 20);
    let header =
        format!(r#"{{"__metadata__":{{"x":"{note}"}},"a":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#);
    safetensors("head.safetensors", &header, 4);
    let header = r#"{"a.weight":{"dtype":"F32","shape":[8192,8192],"data_offsets":[0,268435456]}}"#;
    safetensors("wide.safetensors", header, 268435456);
    for line in [
        "inspect head.safetensors",
        "convert wide.safetensors q.safetensors --scheme comfy:float8_e4m3fn --scale-search mse --max-memory 4GiB",
    ] {
        let line = format!("{line} --quiet --color never");
        folder.run_after("ulimit -v 250000", &line).exits(4).warns(&["no memory for ", " bytes"]);
    }
}
