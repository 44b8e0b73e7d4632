//! Checkpoints in folders: `docs/spec/checkpoints.md §2`, `docs/interfaces.md §4.2`.

use crate::run::Folder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use truecast_testkit::folder::{FIRST, SECOND, files, index};
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors, without_metadata};

/// All files below a folder with their bytes, hidden files too.
pub fn tree(folder: &Folder, name: &str) -> BTreeMap<String, Vec<u8>> {
    fn walk(at: &Path, below: &str, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => walk(&entry.path(), &format!("{name}/"), all),
                false => drop(all.insert(name, std::fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(&folder.path(name), "", &mut all);
    all
}

fn checkpoint() -> Folder {
    let folder = Folder::new();
    files().into_iter().for_each(|(name, bytes)| folder.write(&format!("model/{name}"), &bytes));
    folder
}

/// The configuration states no type that the weights lack, even if it was requested.
#[test]
fn the_type_of_the_model_is_that_of_its_weights() {
    let folder = checkpoint();
    for (options, dtype) in [
        ("--to bf16", "bfloat16"),
        ("--to bf16 --keep *", "float32"),
        ("--to bf16 --keep a.*", "bfloat16"),
        ("--to f16 --rule *.weight=bf16", "bfloat16"),
        ("--rule *.weight=f16", "float16"),
        ("--to f8e4m3fn", "float32"),
    ] {
        folder.run(&format!("convert model out --force {options}")).exits(0);
        let config: Value = serde_json::from_slice(&std::fs::read(folder.path("out/config.json")).unwrap()).unwrap();
        assert_eq!(config["torch_dtype"], dtype, "{options}");
    }
}

#[test]
fn a_folder_becomes_a_folder_that_loads() {
    let folder = checkpoint();
    let source = tree(&folder, "model");
    let ran = folder.run("convert model out --to bf16").exits(0);
    assert!(ran.err.contains("pytorch_model.bin: not copied") && ran.err.lines().count() == 1, "{}", ran.err);
    for said in [FIRST, SECOND, "config.json: torch_dtype = bfloat16", "2 other files", "4 tensors, "] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert_eq!(tree(&folder, "model"), source, "the source is untouched");
    let out = tree(&folder, "out");
    let expected = [
        "code/run.py", "config.json", FIRST, SECOND, "model.safetensors.index.json", "tokenizer.json",
        "truecast-manifest.json",
    ];
    assert_eq!(out.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(out["tokenizer.json"], source["tokenizer.json"]);
    assert_eq!(out["code/run.py"], source["code/run.py"]);
    let config = String::from_utf8(source["config.json"].clone()).unwrap().replace("float32", "bfloat16");
    assert_eq!(String::from_utf8(out["config.json"].clone()).unwrap(), config);
    // 2 x 600 bf16 and two i32.
    let map = json!({ "a.ids": FIRST, "a.weight": FIRST, "b.empty": SECOND, "b.weight": SECOND });
    let index = json!({ "metadata": { "note": "kept", "total_size": 2408 }, "weight_map": map });
    let index = serde_json::to_string_pretty(&index).unwrap() + "\n";
    assert_eq!(String::from_utf8(out["model.safetensors.index.json"].clone()).unwrap(), index);
    for shard in [FIRST, SECOND] {
        folder.run(&format!("convert model/{shard} alone.safetensors --to bf16 --force")).exits(0);
        let alone = without_metadata(&folder.read("alone.safetensors"), "truecast.options");
        assert_eq!(out[shard], alone, "{shard}");
    }
    let first = Parsed::new(&out[FIRST]);
    assert_eq!((first.dtype("a.weight"), first.dtype("a.ids")), ("BF16", "I32"));
    assert_eq!(first.metadata(), &json!({ "format": "pt", "k": "v" }));
}

#[test]
fn parts_and_resumed_runs_give_the_same_folder() {
    let folder = checkpoint();
    folder.run("convert model out --to bf16 --quiet").succeeds();
    let expected = tree(&folder, "out");
    for (name, options) in [("threads", "--threads 1"), ("memory", "--max-memory 4MiB --threads 2")] {
        folder.run(&format!("convert model {name} --to bf16 --quiet {options}")).succeeds();
        assert_eq!(tree(&folder, name), expected, "{options}");
    }
    folder.run("convert model parts --to bf16 --part 2/2").exits(0).says(&["other parts are not finished"]);
    let half = tree(&folder, "parts");
    assert_eq!(half.keys().collect::<Vec<_>>(), [SECOND, "truecast-manifest.2-of-2.json"]);
    folder.refused("convert model parts --to bf16 --merge --quiet", "not-resumable", &["parts", FIRST, "is missing"]);
    folder.refused("verify model parts", "not-resumable", &["parts", "not finished", "truecast-manifest.2-of-2.json"]);
    folder.refused(
        "convert model parts --to bf16 --part 2/2",
        "destination-exists",
        &["truecast-manifest.2-of-2.json", "--resume"],
    );
    folder.refused("convert model parts --to bf16 --part 1/3", "not-resumable", &["another division"]);
    folder.run("convert model parts --to bf16 --part 1/2 --quiet").succeeds();
    assert_eq!(tree(&folder, "parts"), expected);
    let out = folder.run("convert model parts --to bf16 --resume").exits(0).out;
    let said = "2 shards of an earlier run are correct and kept; nothing was left to convert";
    assert!(out.contains(said) && !out.contains("no tensors") && !out.contains("0 tensors"), "{out}");
    for lost in [FIRST, "config.json", "model.safetensors.index.json", "tokenizer.json"] {
        std::fs::remove_file(folder.path(&format!("parts/{lost}"))).unwrap();
        folder.run("convert model parts --to bf16 --resume --quiet").succeeds();
        assert_eq!(tree(&folder, "parts"), expected, "{lost}");
    }
    let mut bytes = folder.read(&format!("parts/{SECOND}"));
    *bytes.last_mut().unwrap() ^= 1;
    folder.write(&format!("parts/{SECOND}"), &bytes);
    let ran = folder.run("convert model parts --to bf16 --resume --json").exits(0);
    let report = ran.object("convert");
    assert_eq!([&report["shards"][0]["state"], &report["shards"][1]["state"]], ["resumed", "converted"]);
    assert!(report["warnings"].to_string().contains("it is converted again"), "{}", report["warnings"]);
    assert_eq!(tree(&folder, "parts"), expected);
}

#[test]
fn what_was_begun_otherwise_is_not_resumed() {
    let folder = checkpoint();
    folder.run("convert model out --to bf16 --quiet").succeeds();
    let before = tree(&folder, "out");
    folder.refused("convert model out --to f16 --resume", "not-resumable", &["\"bf16\"", "\"f16\""]);
    folder.refused("convert model out --to bf16 --keep a.weight --resume", "not-resumable", &["option rules"]);
    folder.write("out/truecast-manifest.json", b"{\"truecast\": 1}");
    folder.refused("convert model out --to bf16 --resume", "malformed-file", &["truecast-manifest.json"]);
    folder.write("out/truecast-manifest.json", &before["truecast-manifest.json"]);
    let mut shard = folder.read(&format!("model/{FIRST}"));
    let at = shard.windows(6).position(|part| part == b"\"k\":\"v").unwrap();
    shard[at + 5] = b'w';
    folder.write(&format!("model/{FIRST}"), &shard);
    folder.refused("convert model out --to bf16 --resume", "not-resumable", &[FIRST, "header"]);
    assert_eq!(tree(&folder, "out"), before);
    folder.write("out/old.safetensors", b"x");
    folder.refused("convert model out --to f16 --force", "destination-exists", &["old.safetensors", "remove it"]);
    std::fs::remove_file(folder.path("out/old.safetensors")).unwrap();
    folder.run("convert model out --to f16 --force --quiet").succeeds();
    assert_ne!(tree(&folder, "out")[SECOND], before[SECOND]);
    assert!(folder.read("out/config.json").windows(7).any(|part| part == b"float16"));
}

#[test]
fn hostile_folders() {
    let with = |name: &str, shard: &str| {
        index(&[("a.weight", FIRST), ("a.ids", FIRST), ("b.weight", SECOND), ("b.empty", SECOND), (name, shard)])
    };
    let above = ["tensor \"x\"", "../secret.safetensors", "not a plain file name"];
    let lost = ["shard \"model-3.safetensors\" is missing", "\"x\""];
    let cases: [(&str, Vec<u8>, &[&str]); 13] = [
        ("malformed-file", with("x", "../secret.safetensors"), &above),
        ("malformed-file", with("x", "/etc/passwd"), &["/etc/passwd", "not a plain file name"]),
        ("malformed-file", with("x", "code/x.safetensors"), &["not a plain file name"]),
        ("malformed-file", with("x", "c:x.safetensors"), &["not a plain file name"]),
        ("malformed-file", with("x", "model.bin"), &["not a plain file name"]),
        ("missing-file", with("x", "model-3.safetensors"), &lost),
        ("missing-tensor", with("x", FIRST), &["has no tensor \"x\""]),
        ("malformed-file", b"{}".to_vec(), &["no weight_map"]),
        ("malformed-file", br#"{"weight_map": {}}"#.to_vec(), &["weight_map is empty"]),
        ("malformed-file", br#"{"weight_map": {"a": 1}}"#.to_vec(), &["the value of \"a\" is not a string"]),
        ("duplicate-name", br#"{"weight_map": {"a": "x", "a": "y"}}"#.to_vec(), &["key \"a\" occurs twice"]),
        ("malformed-file", "[".repeat(200).into_bytes(), &["recursion limit"]),
        ("malformed-file", b"\xff".to_vec(), &["not UTF-8"]),
    ];
    for (code, index, said) in cases {
        let folder = checkpoint();
        folder.write("secret.safetensors", &safetensors(&[], &[]));
        folder.write("model/model.safetensors.index.json", &index);
        folder.refused("convert model out --to bf16", code, said);
        assert!(!folder.path("out").exists(), "{said:?}");
    }
    let folder = checkpoint();
    let shard = folder.read(&format!("model/{SECOND}"));
    folder.write(&format!("model/{SECOND}"), &shard[..shard.len() - 1]);
    let claimed = format!("claims {} bytes of data, and the file has {}; ", 300 * 2 * 4, 300 * 2 * 4 - 1);
    let said = [SECOND, claimed.as_str(), "truncated or damaged: download or copy it again"];
    folder.refused("convert model out --to bf16", "truncated-file", &said);
    // Without an index, a tensor name may occur only once.
    let folder = checkpoint();
    std::fs::remove_file(folder.path("model/model.safetensors.index.json")).unwrap();
    folder.write("model/z.safetensors", &folder.read(&format!("model/{SECOND}")));
    folder.refused("convert model out --to bf16", "duplicate-name", &["tensor \"b."]);
    // With an index, the index decides, and the copy is named.
    let folder = checkpoint();
    folder.write(
        &format!("model/{SECOND}"),
        &safetensors(&[("b.weight", "F32", &[1], f32s(&[1.0])), ("a.ids", "I8", &[1], vec![7])], &[]),
    );
    folder.write(
        "model/model.safetensors.index.json",
        &index(&[("a.weight", FIRST), ("a.ids", FIRST), ("b.weight", SECOND)]),
    );
    folder.run("convert model out --to bf16").exits(0).warns(&["tensor \"a.ids\": the copy in", "is left out"]);
    assert_eq!(Parsed::new(&folder.read(&format!("out/{SECOND}"))).names(), ["b.weight"]);
    let folder = checkpoint();
    for out in ["model", "model/out", ".", "model/../model/x/y"] {
        folder.refused(&format!("convert model {out} --to bf16 --force"), "same-file", &[] as &[&str]);
    }
    folder.refused("convert model out.safetensors --to bf16", "unsuitable-destination", &["out.safetensors", "folder"]);
    folder.run("convert model out --to bf16 --merge").exits(2);
    folder.refused(
        "convert model out --to bf16 --report model/r.json",
        "unsuitable-destination",
        &["model/r.json", "report"],
    );
    folder.run("convert model model/config.json/x --to bf16").exits(2);
    folder.refused("convert model out --to bf16 --keep nothing*", "unmatched-pattern", &["\"nothing*\""]);
    folder.write("model/model_index.json", b"{\"unet\": [\"diffusers\", \"UNet2DModel\"]}");
    folder.write("model/unet/diffusion_pytorch_model.bin", b"x");
    folder.refused("convert model out --to bf16", "unsuitable-source", &["model/unet", "diffusion_pytorch_model.bin"]);
    assert!(!folder.path("out").exists() && !folder.path("out.safetensors").exists());
}

#[cfg(unix)]
#[test]
fn links_lead_out_only_if_that_is_asked_for() {
    use std::os::unix::fs::symlink;
    let folder = checkpoint();
    folder.write("elsewhere.txt", b"x");
    symlink("../elsewhere.txt", folder.path("model/notes.txt")).unwrap();
    for line in ["convert model out --to bf16 --dry-run", "convert model out --to bf16"] {
        folder.refused(line, "not-regular-file", &["notes.txt"]);
        assert!(!folder.path("out").exists());
    }
    std::fs::rename(folder.path(&format!("model/{FIRST}")), folder.path("elsewhere")).unwrap();
    symlink("../elsewhere", folder.path(&format!("model/{FIRST}"))).unwrap();
    folder.refused("convert model out --to bf16", "not-regular-file", &[FIRST, "symbolic link", "--follow-links"]);
    folder.run("convert model out --to bf16 --follow-links --quiet").succeeds();
    assert_eq!(Parsed::new(&folder.read(&format!("out/{FIRST}"))).dtype("a.weight"), "BF16");
    // The cache of the Hugging Face Hub consists of links.
    std::fs::create_dir_all(folder.path("hub/snapshots/1")).unwrap();
    for (at, name) in [FIRST, SECOND, "model.safetensors.index.json", "config.json"].into_iter().enumerate() {
        folder.write(&format!("hub/blobs/{at}"), &folder.read(&format!("model/{name}")));
        symlink(format!("../../blobs/{at}"), folder.path(&format!("hub/snapshots/1/{name}"))).unwrap();
    }
    folder.run("convert hub/snapshots/1 cached --to bf16 --quiet").succeeds();
    assert_eq!(tree(&folder, "cached")[FIRST], tree(&folder, "out")[FIRST]);
    std::fs::remove_file(folder.path(&format!("model/{SECOND}"))).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path(&format!("model/{SECOND}"))).status().unwrap();
    assert!(made.success());
    folder.run_within(20, "convert model pipes --to bf16 --follow-links").fails(3, &[SECOND, "not a regular file"]);
}

#[test]
fn a_dry_run_says_what_will_be_done() {
    let folder = checkpoint();
    let ran = folder.run("convert model out --to f8e4m3fn --dry-run --sort size").exits(0);
    ran.says(&[FIRST, "a.weight", "f32 -> f8e4m3fn", "dry run: nothing was written", "3 other files"]);
    let report = folder.run("convert model out --to f8e4m3fn --dry-run --json").exits(0).object("convert");
    assert_eq!(
        report["shards"][1],
        json!({
            "name": SECOND, "tensors": 2, "bytes_in": 2400, "bytes_out": 600, "state": "planned"
        })
    );
    has(&report, &json!({ "sidecars": ["code/run.py", "config.json", "tokenizer.json"], "complete": false }));
    assert!(!folder.path("out").exists());
}

#[test]
fn a_report_has_every_tensor_and_the_digests() {
    let folder = checkpoint();
    folder.run("convert model out --to bf16 --report r.json --quiet").succeeds();
    let report = folder.json("r.json");
    assert_eq!(report["tensors"].as_array().unwrap().len(), 4);
    assert_eq!(report["total"]["elements"], json!(1202));
    let manifest = folder.json("out/truecast-manifest.json");
    assert_eq!(manifest["shards"][1]["output"]["xxh3"].as_str().unwrap().len(), 32);
    let outputs = report["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), tree(&folder, "out").len() - 1, "all but the manifest");
    for output in outputs {
        let path = folder.path(output["path"].as_str().unwrap());
        let sum = std::process::Command::new("sha256sum").arg(&path).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert_eq!(output["sha256"], sum.split(' ').next().unwrap(), "{output}");
        assert_eq!(output["bytes"], std::fs::metadata(path).unwrap().len());
    }
    folder.run("verify model out --report r.json").succeeds();
    folder.write("out/tokenizer.json", b"{\"changed\": 1}");
    assert!(folder.run("verify model out --report r.json").exits(1).out.contains("tokenizer.json"));
}

/// Finished shards remain, but the folder cannot be loaded as a checkpoint.
#[test]
fn an_error_in_the_middle_can_be_resumed() {
    let folder = checkpoint();
    let bad = safetensors(&[("b.weight", "F32", &[2], f32s(&[1.0, 1e30])), ("b.empty", "F32", &[0], vec![])], &[]);
    folder.write(&format!("model/{SECOND}"), &bad);
    let line = "convert model out --to f16 --spec ieee --overflow error --quiet";
    folder.refused(line, "refused-value", &["b.weight", "element 1", "--resume"]);
    assert_eq!(tree(&folder, "out").keys().collect::<Vec<_>>(), [FIRST, "truecast-manifest.json"]);
    folder.refused(&format!("{line} --resume"), "refused-value", &["b.weight"]);
    let line = line.replace("out", "other").replace("model ", "bad ");
    folder.write("bad/model.safetensors", &bad);
    folder.refused(&line, "refused-value", &["b.weight"]);
    assert!(!folder.path("other").exists());
}

#[test]
fn folders_are_verified() {
    let folder = checkpoint();
    folder.run("convert model out --to f8e4m3fn --keep b.* --report r.json --quiet").succeeds();
    for options in ["", "--to f8e4m3fn --keep b.*", "--report r.json", "--full"] {
        let ran = folder.run(&format!("verify model out {options}")).succeeds();
        assert!(ran.out.contains("verified: 4 tensors, 1_202 elements recomputed"), "{options}: {}", ran.out);
    }
    folder.run("verify model out --to bf16").exits(1);
    folder.refused("verify model out --report r.json --to bf16", "conflicting-options", &["contradict"]);
    let verdict =
        |folder: &Folder| folder.run("verify model out --json").exits(1).object("verify")["differences"].clone();
    let name = "out/code/run.py";
    let bytes = folder.read(name);
    folder.write(name, &[&bytes[..], b" "].concat());
    let why = "differs from the file of the source";
    assert_eq!(verdict(&folder), json!([{ "kind": "file", "path": name, "why": why }]));
    folder.write(name, &bytes);
    // JSON that the conversion writes is compared as a value.
    let name = "out/model.safetensors.index.json";
    let bytes = folder.read(name);
    let whole: Value = serde_json::from_slice(&bytes).unwrap();
    folder.write(name, format!("{whole:#}\n\n").as_bytes());
    folder.run("verify model out").succeeds();
    for (key, value, said) in [
        ("note", json!("other"), "metadata.note: \"other\", not \"kept\""),
        ("a", json!([1]), "metadata.a: [1], not expected"),
    ] {
        let mut other = whole.clone();
        other["metadata"][key] = value;
        folder.write(name, other.to_string().as_bytes());
        let why = format!("differs from what the conversion writes: {said}");
        assert_eq!(verdict(&folder), json!([{ "kind": "file", "path": name, "why": why }]));
    }
    folder.write(name, &bytes);
    let name = format!("out/{FIRST}");
    let mut bytes = folder.read(&name);
    *bytes.last_mut().unwrap() ^= 1;
    folder.write(&name, &bytes);
    let differences = verdict(&folder);
    let kinds: Vec<&str> = differences.as_array().unwrap().iter().map(|d| d["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["elements", "digest"], "{differences}");
    let name = format!("out/{SECOND}");
    folder.write(&name, &safetensors(&[("b.weight", "F32", &[1], f32s(&[1.0])), ("c", "I8", &[1], vec![1])], &[]));
    folder.write(
        "out/model.safetensors.index.json",
        &index(&[("b.weight", SECOND), ("a.ids", FIRST), ("a.weight", FIRST)]),
    );
    let kinds: Vec<String> = verdict(&folder).as_array().unwrap().iter().map(|d| d["kind"].to_string()).collect();
    for kind in ["\"missing\"", "\"extra\"", "\"header\"", "\"file\""] {
        assert!(kinds.iter().any(|found| found == kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn another_source_is_told_first() {
    let folder = checkpoint();
    folder.run("convert model out --to bf16 --quiet").succeeds();
    let values: Vec<f32> = (0..600).map(|i| i as f32).collect();
    let tensors = [("b.weight", "F32", &[300, 2][..], f32s(&values)), ("b.empty", "F32", &[0, 4], vec![])];
    folder.write(&format!("model/{SECOND}"), &safetensors(&tensors, &[("other", "header")]));
    let out = folder.run("verify model out").exits(1).out;
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("\"out\": was made from another source than model"), "{out}");
    assert!(out.contains("wrong elements"), "{out}");
}

#[test]
fn any_difference_fails_on_request() {
    let tensors = [("w", "F32", &[2u64][..], f32s(&[1.0, 2.0]))];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    for (name, tensors) in [
        ("value", vec![("w", "F32", &[2u64][..], f32s(&[1.0, 2.5]))]),
        ("shape", vec![("w", "F32", &[1, 2][..], f32s(&[1.0, 2.0]))]),
        ("more", vec![tensors[0].clone(), ("v", "F32", &[1][..], f32s(&[1.0]))]),
    ] {
        folder.write(&format!("{name}.safetensors"), &safetensors(&tensors, &[]));
        for options in ["", " --quiet", " --json"] {
            let of = |a: &str, b: &str| format!("compare {a}.safetensors {b}.safetensors{options}");
            folder.run(&of("a", name)).exits(i32::from(options == " --quiet"));
            folder.run(&(of("a", name) + " --fail-on different")).exits(1);
            folder.run(&(of(name, "a") + " --fail-on different")).exits(1);
            folder.run(&(of("a", "a") + " --fail-on different")).exits(0);
        }
    }
}

#[test]
fn folders_are_compared_and_inspected() {
    let folder = checkpoint();
    folder.run("convert model out --to f8e4m3fn --quiet").succeeds();
    let compared = folder.run("compare model out --json").exits(0).object("compare");
    let converted = folder.run("convert model again --to f8e4m3fn --json").exits(0).object("convert");
    for figure in ["inexact", "max_abs_error", "sqnr_db", "flushed_to_zero"] {
        assert_eq!(compared["total"]["converted"][figure], converted["total"]["converted"][figure], "{figure}");
    }
    let ran = folder.run("compare model model").exits(0);
    assert!(ran.out.ends_with("equal as numbers\n"), "{}", ran.out);
    folder.run(&format!("compare model model/{FIRST}")).exits(0).says(&["only in the first: \"b.weight\""]);
    folder.run("inspect model --sort size").exits(0).says(&[FIRST, "4 tensors in 2 files, 4.70 KiB of data"]);
    let seen = folder.run("inspect model --json --stats --filter b.weight").exits(0).object("inspect");
    assert_eq!((&seen["kind"], &seen["tensors"][0]["file"]), (&json!("folder"), &json!(SECOND)));
    assert_eq!(seen["tensors"][0]["stats"]["min"], json!(-100.0));
    folder.refused("inspect model --lenient", "inapplicable-option", &["--lenient belongs to"]);
    folder.refused("convert model/config.json out2 --to bf16 --resume", "inapplicable-option", &["--resume"]);
}
