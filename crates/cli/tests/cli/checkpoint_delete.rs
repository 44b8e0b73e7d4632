//! `--delete-source`: files of a checkpoint go as soon as all that is made of them is written and right.

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::safetensors::{f32s, safetensors};

const NAMES: [&str; 3] = ["1.safetensors", "2.safetensors", "3.safetensors"];

/// The first file has scales of the third, the second codes with a scale of their own, the third codes and a value that may
/// be NaN.
fn checkpoint(last: f32) -> Folder {
    let folder = Folder::new();
    let codes = |seed: u8| (0..64u8).map(|i| i.wrapping_mul(3).wrapping_add(seed) & 0x77).collect::<Vec<u8>>();
    let files = [
        safetensors(&[("c.weight_scale_inv", "F32", &[1, 1], f32s(&[0.5]))], &[]),
        safetensors(
            &[
                ("b.weight", "F8_E4M3", &[8, 8], codes(1)),
                ("b.weight_scale_inv", "F32", &[1, 1], f32s(&[0.3])),
                ("b.bias", "F32", &[1], f32s(&[1.5])),
            ],
            &[],
        ),
        safetensors(&[("c.weight", "F8_E4M3", &[8, 8], codes(2)), ("c.bias", "F32", &[2], f32s(&[1.0, last]))], &[]),
    ];
    let files: Vec<_> = NAMES.into_iter().zip(files).collect();
    folder.write_shards("model", &json!({}), &files);
    let config = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": [8, 8] } });
    folder.write("model/config.json", config.to_string().as_bytes());
    folder.write("model/tokenizer.json", b"{}");
    folder
}

fn left(folder: &Folder) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| folder.path(&format!("model/{name}")).exists()).collect()
}

#[test]
fn files_go_when_their_results_are_right() {
    let folder = checkpoint(2.0);
    folder.run("convert model expected --to bf16 --quiet").exits(0);
    let expected = tree(&folder, "expected");
    let dry = folder.run("convert model out --to bf16 --delete-source --dry-run").exits(0);
    assert_eq!((left(&folder).len(), dry.out.contains("3 files of the source deleted")), (3, false));
    assert!(dry.out.starts_with("would be deleted: 3 files of model, "), "{}", dry.out);
    let dry = folder.run("convert model out --to bf16 --delete-source --dry-run --json").exits(0).object("convert");
    let files: Vec<Value> =
        NAMES.map(|name| json!({ "name": name, "bytes": folder.read(&format!("model/{name}")).len() })).into();
    assert_eq!(dry["to_be_deleted"], json!(files));
    let report = folder.run("convert model out --to bf16 --delete-source --json").exits(0).object("convert");
    assert_eq!(tree(&folder, "out"), expected);
    let mut deleted: Vec<&Value> = report["deleted"].as_array().unwrap().iter().collect();
    deleted.sort_by_key(|name| name.as_str().unwrap().to_string());
    assert_eq!(deleted, NAMES.map(|name| json!(name)).iter().collect::<Vec<_>>());
    // Everything else stays.
    let rest: Vec<String> = tree(&folder, "model").into_keys().collect();
    assert_eq!(rest, ["config.json", "model.safetensors.index.json", "tokenizer.json"]);
    folder.run("verify model out").fails(3, &["1.safetensors", "is missing"]);
}

/// What is needed by an unfinished file stays, and a run goes on without those that went.
#[test]
fn a_run_that_failed_goes_on() {
    let folder = checkpoint(2.0);
    folder.run("convert model expected --to bf16 --nan error --quiet").exits(0);
    let expected = tree(&folder, "expected");
    let folder = checkpoint(f32::NAN);
    let convert = "convert model out --to bf16 --nan error --quiet --delete-source";
    folder.run(convert).fails(3, &["c.bias", "--resume --delete-source continues"]);
    assert_eq!(left(&folder), ["1.safetensors", "3.safetensors"]);
    folder.run(&format!("{convert} --resume")).exits(3);
    // Without the option nothing knows what there was.
    folder.run("convert model out --to bf16 --nan error --quiet --resume").fails(3, &["2.safetensors", "is missing"]);
    // Another run does not take the files that are gone for finished.
    folder.run(&format!("{convert} --force")).fails(2, &["2.safetensors", "was deleted"]);
    let mended = checkpoint(2.0);
    folder.write("model/3.safetensors", &mended.read("model/3.safetensors"));
    folder.run(&format!("{convert} --resume")).exits(0);
    assert_eq!(tree(&folder, "out"), expected);
    assert!(left(&folder).is_empty());
}

/// A result that was changed is converted again, or nothing is deleted.
#[test]
fn what_is_not_right_keeps_its_source() {
    let folder = checkpoint(f32::NAN);
    let convert = "convert model out --to bf16 --nan error --quiet";
    folder.run(convert).exits(3);
    let mut bytes = folder.read("out/2.safetensors");
    *bytes.last_mut().unwrap() ^= 1;
    folder.write("out/2.safetensors", &bytes);
    folder.write("model/3.safetensors", &checkpoint(2.0).read("model/3.safetensors"));
    folder.run(&format!("{convert} --resume --delete-source")).exits(0);
    let whole = checkpoint(2.0);
    whole.run("convert model out --to bf16 --nan error --quiet").exits(0);
    assert_eq!(tree(&folder, "out"), tree(&whole, "out"));
    // Gone, and changed since: it cannot be made again.
    let folder = checkpoint(f32::NAN);
    folder.run(&format!("{convert} --delete-source")).exits(3);
    let mut bytes = folder.read("out/2.safetensors");
    *bytes.last_mut().unwrap() ^= 1;
    folder.write("out/2.safetensors", &bytes);
    folder.run(&format!("{convert} --resume --delete-source")).fails(2, &["2.safetensors", "was deleted"]);
    assert_eq!(left(&folder), ["1.safetensors", "3.safetensors"]);
}

#[test]
fn where_it_is_not_safe_nothing_goes() {
    let folder = checkpoint(2.0);
    for option in ["part 1/2", "merge", "fail-on inexact"] {
        folder.run(&format!("convert model out --to bf16 --delete-source --{option}")).fails(2, &["--delete-source"]);
    }
    std::fs::rename(folder.path("model/2.safetensors"), folder.path("2.safetensors")).unwrap();
    std::os::unix::fs::symlink("../2.safetensors", folder.path("model/2.safetensors")).unwrap();
    folder.run("convert model out --to bf16 --delete-source --follow-links").fails(2, &["2.safetensors", "is a link"]);
    assert_eq!((left(&folder).len(), folder.path("out").exists()), (3, false));
    folder.write("a.safetensors", &folder.read("2.safetensors"));
    folder
        .run("convert a.safetensors b.safetensors --to bf16 --delete-source")
        .fails(2, &["belongs to checkpoint folders"]);
    // One file, which no index names, goes at the end.
    folder.write("one/model.safetensors", &safetensors(&[("a", "F32", &[1], f32s(&[1.0]))], &[]));
    folder.run("convert one two --to bf16 --delete-source").exits(0).says(&["1 file of the source deleted"]);
    assert!(!folder.path("one/model.safetensors").exists() && folder.path("two/model.safetensors").exists());
}

/// What says how tensors are quantized may be data: it is kept of a file that goes.
#[test]
fn a_run_goes_on_without_what_described_its_source() {
    for scheme in
        ["ct:pack-quantized", "modelopt:W4A16_NVFP4", "comfy:nvfp4", "comfy:float8_e4m3fn", "ct:nvfp4-pack-quantized"]
    {
        let quantized = |bias: f32| {
            let folder = Folder::new();
            let values = f32s(&(0..128 * 128).map(|i| (i % 37) as f32 * 0.01 - 0.18).collect::<Vec<_>>());
            let weight = |name: &'static str| (name, "F32", &[128u64, 128][..], values.clone());
            let second = [weight("b.weight"), ("b.bias", "F32", &[1], f32s(&[bias]))];
            let (first, second) = (safetensors(&[weight("a.weight")], &[]), safetensors(&second, &[]));
            folder.write_shards("dense", &json!({}), &[(NAMES[0], first), (NAMES[1], second)]);
            folder.write("dense/config.json", b"{}");
            folder.run(&format!("convert dense model --scheme {scheme} --quiet")).exits(0);
            folder
        };
        let whole = quantized(2.0);
        whole.run("convert model out --to bf16 --nan error --quiet").exits(0);
        let folder = quantized(f32::NAN);
        let convert = "convert model out --to bf16 --nan error --quiet --delete-source";
        folder.run(convert).fails(3, &["b.bias"]);
        assert_eq!(left(&folder), [NAMES[1]], "{scheme}");
        folder.write("model/2.safetensors", &whole.read("model/2.safetensors"));
        folder.run(&format!("{convert} --resume")).exits(0);
        assert_eq!(tree(&folder, "out"), tree(&whole, "out"), "{scheme}");
        assert!(left(&folder).is_empty(), "{scheme}");
    }
}

/// The same line again says that it is done, also after a kill among the last files.
#[test]
fn what_is_finished_is_known_again() {
    let convert = "convert model out --to bf16 --delete-source --resume";
    let folder = checkpoint(2.0);
    let first = folder.run("convert model out --to bf16 --delete-source --quiet --report first.json").exits(0);
    assert!(first.out.is_empty());
    let first = folder.json("first.json");
    let expected = tree(&folder, "out");
    let again = folder.run(&format!("{convert} --report again.json --quiet")).exits(0);
    assert!(again.out.is_empty());
    // The same files, and what they are, as the first run told.
    let files = |report: &serde_json::Value| {
        let mut all: Vec<String> = report["outputs"].as_array().unwrap().iter().map(ToString::to_string).collect();
        all.sort();
        all
    };
    assert_eq!(files(&folder.json("again.json")), files(&first));
    assert!(files(&first).iter().any(|file| file.contains("config.json")));
    folder.run(convert).exits(0).says(&["nothing is left to do"]);
    assert!(folder.run(&format!("{convert} --quiet")).exits(0).out.is_empty());
    let report = folder.run(&format!("{convert} --json")).exits(0).object("convert");
    assert_eq!((&report["complete"], &report["deleted"]), (&json!(true), &json!([])));
    // Links change no byte; other options would.
    folder.run(&format!("{convert} --follow-links")).exits(0);
    folder.run("convert model out --to f16 --delete-source --resume").fails(2, &["option to was"]);
    assert_eq!(tree(&folder, "out"), expected);
    // Killed when headers were not all removed: that is made up for.
    folder.write("out/.truecast-sources/1.safetensors", b"x");
    folder.run(convert).exits(0);
    assert!(!folder.path("out/.truecast-sources").exists());
    let mut bytes = folder.read("out/2.safetensors");
    *bytes.last_mut().unwrap() ^= 1;
    folder.write("out/2.safetensors", &bytes);
    folder.run(convert).fails(4, &["2.safetensors", "its source was deleted"]);
}

/// Killed among the deletions of a folder without an index, which all come at the end.
#[test]
fn a_kill_among_the_last_deletions() {
    let folder = Folder::new();
    folder.write("model/config.json", b"{}");
    for (name, tensor) in [("1.safetensors", "a"), ("2.safetensors", "b")] {
        folder.write(&format!("model/{name}"), &safetensors(&[(tensor, "F32", &[1], f32s(&[1.0]))], &[]));
    }
    let first = folder.read("model/1.safetensors");
    folder.run("convert model out --to bf16 --quiet").exits(0);
    let expected = tree(&folder, "out");
    // As after the first deletion.
    folder.write("out/.truecast-sources/1.safetensors", &first[..first.len() - 4]);
    std::fs::remove_file(folder.path("model/1.safetensors")).unwrap();
    folder.run("convert model out --to bf16 --delete-source --resume --quiet").exits(0);
    assert_eq!(tree(&folder, "out"), expected);
    assert!(!folder.path("model/2.safetensors").exists() && !folder.path("out/.truecast-sources").exists());
}
