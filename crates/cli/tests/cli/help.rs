//! Help, manual and errors of the command line. Runs the examples.

use crate::run::{Folder, Ran, commands};
use std::path::Path;
use std::process::Command;
use truecast::request::SPECS;
use truecast::setting::Setting;
use truecast_testkit::npy::npy;
use truecast_testkit::proto::{attribute, bytes, graph, int, model, node, value};
use truecast_testkit::safetensors::{f32s, safetensors};

fn folder() -> Folder {
    let a = f32s(&[1.0, 465.0, -2.0, 0.0]);
    let tensors = [("w", "F32", &[4u64][..], a.clone()), ("model.norm.weight", "F32", &[1], f32s(&[1.5]))];
    let folder = Folder::with("model.safetensors", &safetensors(&tensors, &[]));
    let wide = a.repeat(16);
    let matrices = [("up.weight", "F32", &[2u64, 32][..], wide.clone()), ("lm_head.weight", "F32", &[2, 32], wide)];
    folder.write("model/model.safetensors", &safetensors(&[&tensors[..], &matrices[..]].concat(), &[]));
    folder.write("a.npy", &npy("<f4", 4, &a));
    folder.write("theirs.npy", &npy("<f2", 4, &[0x00, 0x3c, 0x44, 0x5f, 0x00, 0xc0, 0, 0]));
    folder.write("report.json", b"{\"truecast\": \"0\", \"command\": \"convert\"}");
    folder.write("scalar.npy", &npy("<f4", None, &1.5f32.to_le_bytes()));
    folder.write("acc.npy", &npy("<i4", 2, &[64, 0, 0, 0, 0, 1, 0, 0]));
    let to = attribute("to", 2, int(3, 10));
    let values = [bytes(11, value("x", 1, &[4])), bytes(12, value("y", 10, &[4]))].concat();
    folder.write("model.onnx", &model(10, 21, &graph(&[node("Cast", &["x"], &["y"], &[to])], &[], values)));
    let ftof = "%r = ftof %a : tile<f32> -> tile<f16>";
    folder.write("kernel.mlir", format!("entry @k(%a: tile<f32>) {{\n  {ftof}\n  return\n}}").as_bytes());
    folder
}

/// Runs a line in a shell that finds the tested command first.
fn shell(folder: &Folder, line: &str) -> Ran {
    let built = std::path::Path::new(crate::run::binary()).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash").args(["-c", line]).current_dir(folder.path("")).env("PATH", path).output();
    Ran::new(line.into(), output.unwrap())
}

/// Pages of a command.
struct Pages {
    command: String,
    short: String,
    long: String,
}

fn pages() -> Vec<Pages> {
    let said = |line: String| Folder::new().run(&line).succeeds().out;
    let of = |command: String| Pages {
        short: said(format!("{command} -h")),
        long: said(format!("{command} --help")),
        command,
    };
    commands().into_iter().map(of).collect()
}

/// The text as one line.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_example_runs() {
    let folder = folder();
    let mut ran = 0;
    // `explore` runs until its page is closed; its own tests run it.
    for Pages { command, long, .. } in pages().iter().filter(|pages| pages.command != "explore") {
        let (_, examples) = long.split_once("Examples:\n").unwrap_or_else(|| panic!("{command} has none"));
        let examples = examples.split("\n\n").next().unwrap();
        let lines: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains("truecast ")), "{command}: {lines:?}");
        for line in lines {
            shell(&folder, line).exits(0);
            ran += 1;
        }
    }
    assert!(ran >= 28);
}

#[test]
fn pages_are_short_and_in_order() {
    let folder = Folder::new();
    let overview = folder.run("--help").succeeds().out;
    assert!(["help", "-h"].iter().all(|line| folder.run(line).succeeds().out == overview), "{overview}");
    let error = folder.refused("--threads 2 formats", "inapplicable-option", &["--threads"]).text;
    let owners: Vec<&str> = error.split(';').next().unwrap().split(|c: char| !c.is_ascii_lowercase()).collect();
    let options = |page: &str| page.lines().filter(|line| line.trim_start().starts_with('-')).count();
    for Pages { command, short, long } in &pages() {
        assert!(short.lines().count() <= 45 && options(short) <= 15, "{command}: {short}");
        assert!(short.contains(&format!("truecast {command} --help")) && short.contains("Examples:"), "{short}");
        assert!(long.lines().count() <= 90 && options(long) >= options(short), "{command}: {long}");
        assert!(short.lines().chain(long.lines()).all(|line| line.len() <= 90), "{command}");
        assert!(long.contains("Usage: truecast") && !long.contains("?:"), "{long}");
        assert_eq!(folder.run(&format!("help {command}")).succeeds().out, *long);
        assert_eq!(long.contains("--json"), !["completions", "explore", "man"].contains(&&**command), "{long}");
        assert_eq!(long.contains("--threads"), owners.contains(&&**command), "{command}: {error}");
        // The placeholder of a value says more than the name of its option.
        for line in long.lines().filter_map(|line| line.trim().strip_prefix("--")) {
            let Some((option, value)) = line.split_once(' ') else { continue };
            let placeholder = value.split(' ').next().unwrap().trim_matches(['<', '>']);
            let is_long = option.contains('-') && placeholder == option.to_uppercase().replace('-', "_");
            assert!(!is_long, "{command}: --{line}");
        }
        let last = long.lines().rfind(|line| line.starts_with("  -")).unwrap();
        assert!(last.contains("--help"), "{command}: {last}");
    }
}

#[test]
fn help_says_what_must_be_known() {
    let folder = Folder::new();
    let page = |line: &str| folder.run(line).succeeds().out;
    for (line, parts) in [
        (
            "convert --help",
            &["Usage: truecast convert SRC DST --to TYPE", ".safetensors, .gguf, .npy, .npz, .pb, .onnx"][..],
        ),
        ("convert --help", &["such as bf16; see `truecast", "sqnr_db<30", "Exit status:"]),
        ("convert -h", &["--to", "--scheme", "--keep ", "--from-scheme", "--force", "--resume", "--json"]),
        ("convert -h", &["truecast help specs", "truecast schemes"]),
        ("explain --help", &["(default: all)"]),
    ] {
        let page = words(&page(line));
        assert!(parts.iter().all(|part| page.contains(*part)), "{line}: {page}");
    }
    for (line, order) in [
        (
            "convert --help",
            &["Types and tensors:", "Specification:", "Files:", "Resources:", "Printing:", "Examples:"][..],
        ),
        ("check --help", &["--multiplier ", "--shift ", "--scale "]),
    ] {
        let page = page(line);
        let places = order.iter().map(|part| page.find(part).unwrap_or_else(|| panic!("{part}")));
        assert!(places.is_sorted(), "{line}: {page}");
    }
    assert_eq!(page("--version"), format!("truecast {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn manual_pages_are_whole() {
    let folder = Folder::new();
    folder.run("man --all pages").succeeds();
    let mut names: Vec<String> = commands().iter().map(|command| format!("truecast-{command}.1")).collect();
    names.push("truecast.1".into());
    for name in names {
        let page = String::from_utf8(folder.read(&format!("pages/{name}"))).unwrap();
        let command = name.strip_prefix("truecast-").and_then(|n| n.strip_suffix(".1"));
        let line = format!("man {}", command.unwrap_or_default());
        assert_eq!(folder.run(&line).succeeds().out, page, "{name}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "FILES", "\"SEE ALSO\""] {
            let is_there = page.contains(&format!(".SH {section}\n"));
            assert!(is_there || (section == "OPTIONS" && page.contains(".SH PRINTING\n")), "{name}: {section}");
        }
        if command.is_some() {
            assert!(page.contains(".SH EXAMPLES\n"), "{name}");
        }
    }
    assert!(folder.run("man convert").out.contains("\\fBtruecast convert\\fR SRC DST \\-\\-to TYPE"));
    assert!(folder.run("man").out.contains("\\fBtruecast COMMAND\\fR [OPTIONS]"));
    folder.run("man convert --all pages").fails(2, &["--all"]);
    folder.run("man zork").fails(2, &["zork"]);
}

#[test]
fn completion_knows_the_words() {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/shells/check");
    let ran = Command::new("bash").arg(check).env("TRUECAST", crate::run::binary()).output().unwrap();
    Ran::new("tests/shells/check".into(), ran).exits(0).says(&["lines completed"]);
    // Not every machine has these shells.
    let folder = Folder::new();
    let zsh = folder.run("completions zsh").succeeds().lacks(&["'*::src"]).out;
    assert!(zsh.contains("{compadd cast castlike rescale; _files}") && zsh.contains(":(cast castlike rescale suite)"));
    let fish = folder.run("completions fish").succeeds().out;
    for command in ["check", "completions", "vectors", "formats", "schemes", "promote"] {
        let condition = format!("__fish_truecast_using_subcommand {command}\"");
        assert!(fish.lines().any(|line| line.contains(&condition) && line.contains(" -a \"")), "{command}");
    }
    let options = ["max-memory", "fail-on", "round-mode", "saturate"].map(String::from);
    for word in commands().iter().chain(&options) {
        assert!(zsh.contains(word) && fish.contains(word), "{word}");
    }
}

#[test]
fn names_of_other_tools_are_understood() {
    let folder = folder();
    for line in ["cast a.npy o.npy --dtype f16 -q", "convert a.npy o.npy --precision bf16 -f -j 1", "info o.npy"] {
        folder.run(line).succeeds();
    }
    assert!(!folder.run("convert --help").succeeds().out.contains("overwrite"));
}

#[test]
fn files_of_other_kinds() {
    let folder = folder();
    std::fs::create_dir(folder.path("shards")).unwrap();
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.write("model.safetensors.index.json", b"{}");
    folder.write("cut.gguf", b"GGUF\x03\0\0\0");
    folder.write("pickled.bin", b"PK\x03\x04rest");
    folder.write("plain.bin", &[0; 8]);
    folder.write("a.xyz", b"text");
    folder.write("old.pt", b"\x80\x02}q\x00.");
    for (src, said) in [
        ("model.safetensors.index.json", &["describes a checkpoint", "give its folder"][..]),
        ("pickled.bin", &["pickled.bin: this is a pickle", "safetensors.torch", "save_file"]),
        ("old.pt", &["old.pt: this is a pickle", "save_file"]),
        ("plain.bin", &["bytes without a header", "np.fromfile"]),
        ("-", &["-: standard streams"]),
        ("/dev/stdin", &["/dev/stdin: standard streams"]),
        ("a.xyz", &["a.xyz: unknown kind of file; expected .safetensors"]),
    ] {
        folder.refused(&format!("convert {src} out-{src} --to f16"), "unknown-file-kind", said);
        for line in [format!("inspect {src}"), format!("compare {src} a.npy"), format!("verify {src} b.npy --to f16")] {
            folder.refused(&line, "unknown-file-kind", said);
        }
    }
    for line in
        ["inspect missing", "inspect missing.pth", "convert missing.xyz b.npy --to f16", "compare missing a.npy"]
    {
        folder.refused(line, "not-found", &["missing", "No such file"]);
    }
    std::fs::create_dir(folder.path("org")).unwrap();
    for (line, says) in [
        ("inspect Qwen/Qwen3-8B", Some("hf download Qwen/Qwen3-8B --local-dir DIR")),
        ("convert Qwen/Qwen2.5-7B out --to bf16", Some("hf download Qwen/Qwen2.5-7B")),
        ("inspect https://huggingface.co/a-b/c.d/tree/main", Some("hf download a-b/c.d --local-dir DIR")),
        ("inspect https://example.org/x.safetensors", Some("truecast reads local files: download it first")),
        ("inspect some/missing.safetensors", None),
        ("inspect org/missing", None),
        ("inspect ./a/b", None),
        ("inspect a/b/c", None),
    ] {
        let ran = folder.refused(line, "not-found", &["No such file"]);
        match says {
            Some(says) => drop(ran.names(&[says])),
            None => assert!(!ran.text.contains("local files"), "{line}: {}", ran.text),
        }
    }
    folder.refused("inspect emty", "not-found", &["did you mean \"empty\"?"]);
    let other = "org/modle.safetensors";
    std::fs::write(folder.path("org/model.safetensors"), b"").unwrap();
    folder.refused(&format!("convert {other} b --to f16"), "not-found", &["did you mean \"org/model.safetensors\"?"]);
    for line in ["inspect cut.gguf", "convert cut.gguf b.safetensors --to f16", "compare cut.gguf a.npy"] {
        folder.refused(line, "truncated-file", &["8"]);
    }
    folder.refused("rescale cut.gguf b.npy --to i8 --multiplier 1 --shift 2", "unknown-file-kind", &["GGUF"]);
    folder.refused("convert empty out --to f16", "unsuitable-source", &[".safetensors"]);
    folder.refused("convert a.npy shards --to f16", "unsuitable-destination", &["folder", "shards"]);
    folder.refused("convert a.npy b.gguf --to f16", "unsuitable-source", &["a.npy", ".gguf"]);
    folder.refused("convert a.npy - --to f16", "unknown-file-kind", &["-: standard streams"]);
}

#[test]
fn every_specification_has_a_page() {
    let folder = folder();
    for spec in SPECS.iter() {
        let page = folder.run(&format!("help {spec}")).succeeds().out;
        assert!(page.starts_with(spec) && page.contains(&format!("--spec {spec}\n")), "{page}");
        let named = page.split_whitespace().find(|word| word.ends_with(".md")).unwrap();
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(named).is_file(), "{named}");
        let has = |setting: &&Setting| setting.about_for(spec).is_some();
        for setting in Setting::all().filter(has) {
            assert!(page.contains(&format!("--{}", setting.name())), "{spec} {}", setting.name());
            let values = setting.values(spec);
            let is_listed =
                setting.is_switch() || setting.is_integer() || values.iter().all(|value| page.contains(value));
            assert!(is_listed, "{spec} {}", setting.name());
        }
    }
    assert_eq!(folder.run("help cuda").succeeds().out, folder.run("help ptx").succeeds().out);
}

#[test]
fn every_setting_is_on_the_page_of_the_specifications() {
    let folder = Folder::new();
    let page = folder.run("help specs").succeeds().out;
    assert!(page.lines().count() <= 80, "{page}");
    for spec in SPECS.iter().copied() {
        assert!(page.lines().any(|line| line.split([' ', '@']).find(|word| !word.is_empty()) == Some(spec)), "{spec}");
    }
    let all = pages().into_iter().map(|Pages { command, long, .. }| {
        let manual = folder.run(&format!("man {command}")).succeeds().out;
        (command, words(&long), manual, long)
    });
    let all: Vec<_> = all.collect();
    for setting in Setting::all() {
        let option = format!("--{}", setting.name());
        assert!(page.contains(&option), "{option}");
        let in_manual = format!("fB{}", option.replace('-', "\\-"));
        let takers: Vec<_> = all.iter().filter(|(.., manual, _)| manual.contains(&in_manual)).collect();
        assert!(takers.iter().any(|(command, ..)| command == "convert"), "{option}");
        for (command, words, _, help) in takers {
            let is_row = |line: &str| line.split_whitespace().next() == Some(&option);
            let is_own = command == "promote" || command == "rescale";
            assert!(words.contains("truecast help specs") || is_own, "{command} {option}");
            assert!(!help.lines().any(is_row) || is_own, "{command} {option}");
        }
    }
    assert!(page.contains("@1 to @28") && page.contains("2026.4") && page.contains("13.5"));
}

#[test]
fn quantize_is_convert_with_a_scheme() {
    let folder = folder();
    folder.run("convert model a --scheme fp8-block --keep *lm_head*").exits(0);
    let written = folder.read("a/model.safetensors");
    for (i, line) in [
        "quantize model OUT fp8-block --keep *lm_head*",
        "quantize --keep *lm_head* -j 1 model OUT fp8-block --nonfinite=error",
        "--color never quantise model --keep=*lm_head* OUT --quiet fp8-block",
        "quantize model OUT --scheme fp8-block --keep *lm_head*",
    ]
    .into_iter()
    .enumerate()
    {
        let out = format!("out{i}");
        folder.run(&line.replace("OUT", &out)).exits(0);
        assert_eq!(folder.read(&format!("{out}/model.safetensors")), written, "{line}");
    }
    folder.run("verify model out0 --scheme fp8-block --keep *lm_head*").exits(0);
    let help = folder.run("quantize --help").succeeds().says(&["SCHEME", "--scale-search", "--share-global"]).out;
    assert!(!help.contains("--scheme <NAME>"), "{help}");
    let convert = folder.run("convert --help").succeeds().says(&["--scheme <NAME>"]).out;
    assert!(words(&convert).contains("truecast quantize --help") && !convert.contains("--scale-search"), "{convert}");
}

#[test]
fn help_names_the_program() {
    let folder = Folder::new();
    // A link, because a copy could still be open for writing in a process of another test.
    std::os::unix::fs::symlink(crate::run::binary(), folder.path("other-name")).unwrap();
    for line in ["help help", "--help", "convert -h"] {
        let ran = shell(&folder, &format!("./other-name {line}"));
        assert!(ran.out.contains("truecast") && !ran.out.contains("other-name"), "{line}: {}", ran.out);
    }
}
