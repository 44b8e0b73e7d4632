//! GGUF files: names of blocks, and errors (`docs/spec/checkpoints.md §9`).

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::gguf::{Written, gguf, key, text};
use truecast_testkit::gguf_model::model;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

#[test]
fn what_cannot_be_converted() {
    // Q4_0_4_4, which was taken out of the format, and a type that does not exist yet.
    let folder = Folder::with("a.gguf", &gguf(&[], &[("a.weight", &[256], 31, vec![0; 144])]));
    folder.refused("convert a.gguf b.safetensors --to bf16", "unsupported-type", &["a.gguf", "a.weight", "31"]);
    folder.write("a.gguf", &gguf(&[], &[("a.weight", &[256], 43, vec![0; 144])]));
    folder.refused("show a.gguf a.weight", "unsupported-type", &["a.gguf", "a.weight", "block type 43"]);
    folder.write("a.gguf", b"GGUF\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    folder.refused("inspect a.gguf", "unsupported-file", &["a.gguf", "big-endian"]);
    folder.write("a.gguf", &gguf(&[], &[("a.weight", &[32], 39, [&[0xff][..], &[0; 16]].concat())]));
    folder.refused("convert a.gguf b.safetensors --to bf16 --quiet", "invalid-code", &["a.gguf", "a.weight", "0xff"]);
    let (file, _) = model();
    folder.write("a.gguf", &file);
    folder.refused("convert a.gguf b.npz --to bf16", "unsuitable-destination", &["b.npz", ".safetensors"]);
    folder.refused("convert a.gguf b.safetensors --to bf16 --keep q8.weight", "scales-lost", &["q8.weight"]);
    folder.refused(
        "convert a.gguf b.safetensors --to bf16 --from-scheme awq",
        "inapplicable-option",
        &["--from-scheme"],
    );
    assert!(!folder.path("b.safetensors").exists());
    folder.run("convert a.gguf b.safetensors --rule *.weight=f16 --dry-run").exits(0);
    folder.refused(
        "convert a.gguf b.safetensors --to f8e4m3fn --keep norm.weight --keep half.bias",
        "scales-lost",
        &["--scheme NAME"],
    );
    folder.run("convert a.gguf b.safetensors --keep norm.weight --keep half.bias --rule *=f8e4m3fn").exits(0);
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(["q8.weight", "norm.weight", "half.bias"].map(|name| result.dtype(name)), ["F8_E4M3", "F32", "BF16"]);
    folder.run("verify a.gguf b.safetensors --keep norm.weight --keep half.bias --rule *=f8e4m3fn").succeeds();
    let dense = safetensors(&[("q8.weight", "F32", &[3, 64], vec![0; 768])], &[]);
    folder.write("zero.safetensors", &dense);
    folder.run("compare a.gguf zero.safetensors --fail-on inexact").exits(1);
}

fn weights() -> Vec<f32> {
    (0..6 * 96).map(|i| ((i * 7919) % 1009 - 504) as f32 / 300.0 * if i % 5 == 0 { 4.0 } else { 0.25 }).collect()
}

#[test]
fn blocks_are_named() {
    let folder =
        Folder::with("m/model.safetensors", &safetensors(&[("x.weight", "F32", &[6, 96], f32s(&weights()))], &[]));
    folder.write("m/config.json", br#"{"model_type": "qwen3"}"#);
    folder.run("convert m q.gguf --scheme gguf:q8_0 --keep-names --report r.json").exits(0).says(&["f32 -> Q8_0"]);
    folder.run("verify m q.gguf --scheme gguf:q8_0 --keep-names").succeeds();
    folder.run("verify m q.gguf --report r.json --sample 1%").succeeds();
    let kept = folder.run("convert q.gguf again.gguf --scheme gguf:q8_0").exits(0).says(&["Q8_0 kept", "576 elements"]);
    assert!(!kept.out.contains("left out"), "{}", kept.out);
    let planned = folder.run("convert q.gguf d.gguf --scheme gguf:q8_0 --dry-run --json").exits(0).object("convert");
    assert_eq!((&planned["total"]["elements"], &planned["tensors"][0]["shape"]), (&json!(576), &json!([6, 96])));
    folder.run("convert q.gguf t.safetensors --to bf16").exits(0).says(&["Q8_0 -> bf16"]);
    folder.run("compare m q.gguf").exits(0).says(&["f32 | Q8_0"]);
}

#[test]
fn what_no_file_of_blocks_holds() {
    let folder = Folder::new();
    let (a, codes) = (f32s(&weights()), vec![1u8; 4]);
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F32", &[6, 96], a.clone())], &[]));
    folder.write("u8.safetensors", &safetensors(&[("a.weight", "U8", &[4], codes)], &[]));
    folder.write("odd.safetensors", &safetensors(&[("a.weight", "F32", &[8, 72], a.clone())], &[]));
    folder.write("nine.safetensors", &safetensors(&[("a", "F32", &[1, 1, 1, 1, 1, 1, 1, 6, 96], a)], &[]));
    folder.refused("convert u8.safetensors b.gguf --to bf16", "unstorable-type", &["a.weight", "u8", ".gguf"]);
    folder.refused("convert odd.safetensors b.gguf --scheme gguf:q8_0", "inapplicable-option", &["a.weight", "72"]);
    folder.refused("convert nine.safetensors b.gguf --to bf16", "limit-exceeded", &["9 dimensions"]);
    folder.refused("convert a.safetensors b.gguf --scheme fp8-block", "unsuitable-destination", &["gguf:Q8_0"]);
    folder.refused("convert a.safetensors b.safetensors --scheme gguf:q8_0", "unsuitable-destination", &["gguf:Q8_0"]);
    let refused =
        folder.refused("convert a.safetensors b.gguf --scheme gguf:iq2_xs", "unwritable-scheme", &["gguf:IQ2_XS"]);
    folder.refused("quantize a.safetensors b.gguf q4_k_m", "unsuitable-source", &["llama.cpp's names", "gguf:Q4_K"]);
    assert!(refused.text.starts_with("gguf:IQ2_XS"), "no file is to blame: {}", refused.text);
    for (scheme, option, value) in [("gguf:q8_0", "--scale-search", "mse"), ("gguf:mxfp4", "--mx-scale", "even")] {
        let line = format!("convert a.safetensors b.gguf --scheme {scheme} {option} {value}");
        folder.refused(&line, "inapplicable-option", &[option]);
    }
    folder.run("convert a.safetensors a.gguf --scheme gguf:q8_0 --quiet").exits(0);
    folder.refused("convert a.gguf a.gguf --to bf16 --force", "same-file", &["a.gguf"]);
    folder.refused("convert a.safetensors a.gguf --to bf16", "destination-exists", &["a.gguf", "--force"]);
    std::fs::create_dir(folder.path("m")).unwrap();
    std::fs::copy(folder.path("a.safetensors"), folder.path("m/model.safetensors")).unwrap();
    for option in ["--resume", "--no-sidecars", "--part 1/2", "--merge"] {
        let name = option.split(' ').next().unwrap();
        folder.refused(&format!("convert m b.gguf --to bf16 {option}"), "inapplicable-option", &[name, ".gguf"]);
    }
    assert!(!folder.path("b.gguf").exists() && !folder.path("b.safetensors").exists());
    folder.run("convert m b.gguf --to bf16 --dry-run").exits(0);
    assert!(!folder.path("b.gguf").exists());
}

/// An importance matrix changes codes; `verify` finds it where it is, or names the options of a new place.
#[test]
fn columns_have_an_importance() {
    let source = safetensors(&[("blk.0.ffn_up.weight", "F32", &[6, 96], f32s(&weights()))], &[]);
    let folder = Folder::with("a.safetensors", &source);
    let sums: Vec<f32> = (0..96).map(|column| if column % 3 == 0 { 400.0 } else { 0.5 }).collect();
    let matrix = |sums: &[f32]| {
        let tensors: [(&str, &[u64], u32, Vec<u8>); 2] = [
            ("blk.0.ffn_up.weight.in_sum2", &[sums.len() as u64, 1], 0, f32s(sums)),
            ("blk.0.ffn_up.weight.counts", &[1, 1], 0, f32s(&[2.0])),
        ];
        gguf(&[key("imatrix.chunk_count", 4, &7u32.to_le_bytes())], &tensors)
    };
    folder.write("i.gguf", &matrix(&sums));
    folder.run("quantize a.safetensors plain.gguf gguf:q4_0 --quiet").exits(0);
    folder.run("quantize a.safetensors q.gguf gguf:q4_0 --imatrix i.gguf --quiet").exits(0);
    let codes = |name: &str| Written::new(&folder.read(name)).tensor("blk.0.ffn_up.weight").2.to_vec();
    assert_ne!(codes("plain.gguf"), codes("q.gguf"));
    let chunks = Written::new(&folder.read("q.gguf")).key("quantize.imatrix.chunks_count").map(<[u8]>::to_vec);
    assert_eq!(chunks, Some([4u32, 7].map(u32::to_le_bytes).concat()));
    folder.run("verify a.safetensors q.gguf").succeeds();
    std::fs::rename(folder.path("i.gguf"), folder.path("moved.gguf")).unwrap();
    let lost = folder.run("verify a.safetensors q.gguf").exits(4);
    assert!(lost.err.contains("--scheme gguf:Q4_0 --imatrix FILE"), "{}", lost.err);
    folder.run("verify a.safetensors q.gguf --scheme gguf:Q4_0 --imatrix moved.gguf").succeeds();
    folder.run("verify a.safetensors q.gguf --scheme gguf:Q4_0").exits(1);
    for (sums, code, word) in [(&sums[..32], 2, "96"), (&[f32::NAN; 96], 3, "not a mean")] {
        folder.write("wrong.gguf", &matrix(sums));
        let refused = folder.run("quantize a.safetensors b.gguf gguf:q4_0 --imatrix wrong.gguf").exits(code);
        assert!(refused.err.contains(word), "{}", refused.err);
    }
}

#[test]
fn a_model_has_the_name_of_its_repository() {
    let weights = safetensors(&[("x.weight", "F32", &[6, 96], f32s(&weights()))], &[]);
    let folder = Folder::with("models--me--tiny/snapshots/abc/model.safetensors", &weights);
    folder.write("own/model.safetensors", &weights);
    for (source, name) in [("models--me--tiny/snapshots/abc", "tiny"), ("own", "own"), ("own/.", "own")] {
        folder.run(&format!("convert {source} out.gguf --to f16 --force --quiet")).exits(0);
        let name = [&8u32.to_le_bytes()[..], &text(name)].concat();
        assert_eq!(Written::new(&folder.read("out.gguf")).key("general.name"), Some(&name[..]), "{source}");
    }
}

/// The first tensor is the table of tokens, by which a model has llama.cpp's names.
#[test]
fn mixtures_have_types_by_names() {
    let values: Vec<f32> = (0..4 * 512).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect();
    let names = [("token_embd.weight", 512), ("blk.0.attn_v.weight", 512), ("blk.0.attn_q.weight", 512)];
    let odd = [("blk.0.ffn_up.weight", 96), ("blk.0.ffn_gate.weight", 40)];
    let tensors: Vec<_> = names.into_iter().chain(odd).map(|(name, cols)| (name, [4u64, cols])).collect();
    let mut tensors: Vec<_> = tensors
        .iter()
        .map(|(name, shape)| (*name, "F32", &shape[..], f32s(&values[..4 * shape[1] as usize])))
        .collect();
    tensors.push(("blk.0.attn_norm.weight", "F32", &[4], f32s(&values[..4])));
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let blocks = |line: &str, file_type: u64| {
        folder.run(&format!("quantize a.safetensors b.gguf {line} --quiet --force")).exits(0);
        folder.run("verify a.safetensors b.gguf --full").succeeds();
        let seen = folder.run("inspect b.gguf --json").succeeds().object("inspect");
        assert_eq!(seen["metadata"]["general.file_type"], json!(file_type), "{seen}");
        let written = Written::new(&folder.read("b.gguf"));
        tensors.iter().map(|(name, ..)| written.tensor(name).0).collect::<Vec<u32>>()
    };
    // In the order above: F32 0, F16 1, Q4_0 2, Q5_0 6, Q5_1 7, Q8_0 8, Q4_K 12, Q5_K 13, Q6_K 14.
    assert_eq!(blocks("q4_k_m", 15), [14, 14, 12, 6, 1, 0]);
    assert_eq!(blocks("Q4_K", 15), [14, 14, 12, 6, 1, 0]);
    assert_eq!(blocks("gguf:q5_k_s", 16), [14, 13, 13, 7, 1, 0]);
    assert_eq!(blocks("q6_k --keep *attn_q*", 18), [14, 14, 0, 8, 1, 0]);
    assert_eq!(blocks("q4_0", 2), [14, 2, 2, 2, 0, 0]);
    // Norms stay f32, unless a rule names them.
    let norm = |line: &str| {
        let said = folder.run(&format!("convert b.gguf d.gguf --to bf16 --force {line}")).exits(0).err;
        (Written::new(&folder.read("d.gguf")).tensor("blk.0.attn_norm.weight").0, said.contains("llama.cpp aborts"))
    };
    assert_eq!([norm(""), norm("--rule blk.0.*=f16")], [(0, false), (1, true)]);
    // The finer type explains the error.
    folder.run("quantize b.gguf e.gguf q8_0 --quiet").exits(0);
    folder.run("compare b.gguf e.gguf").exits(0).says(&["for gguf:Q8_0"]).lacks(&["for gguf:Q4_0"]);
    let said = folder.run("quantize a.safetensors c.gguf q4_k_m").exits(0);
    assert!(said.err.contains("is not quantized: no blocks fit its rows"), "{}", said.err);
}

/// The key `truecast.options` is the last key of a result.
#[test]
fn results_record_their_options() {
    let values: Vec<f32> = (0..64 * 64).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect();
    let tensors = [("a.weight", "F32", &[64u64, 64][..], f32s(&values)), ("norm", "F32", &[2], f32s(&[1.5, 1.1]))];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.run("quantize a.safetensors b.gguf q8_0 --quiet").succeeds();
    folder.run("verify a.safetensors b.gguf").succeeds();
    folder.run("verify a.safetensors b.gguf --scheme q8_0").succeeds();
    let object = folder.run("verify a.safetensors b.gguf --scheme q8_0 --keep norm --json").exits(1).object("verify");
    assert_eq!(object["differences"], json!([{ "kind": "metadata", "key": "truecast.options" }]));
    // A result of a result has its own options only.
    folder.run("convert b.gguf c.gguf --to f16 --quiet").succeeds();
    folder.run("verify b.gguf c.gguf").succeeds();
    let keys =
        |file: &str| folder.run(&format!("inspect {file} --json")).succeeds().object("inspect")["metadata"].clone();
    let recorded =
        |file: &str| serde_json::from_str::<Value>(keys(file)["truecast.options"].as_str().unwrap()).unwrap();
    assert_eq!((&recorded("b.gguf")["scheme"], &recorded("c.gguf")["to"]), (&json!("gguf:Q8_0"), &json!("f16")));
    assert_eq!(keys("c.gguf").as_object().unwrap().keys().filter(|key| key.starts_with("truecast")).count(), 1);
    // Another writer records no options.
    let written = Written::new(&folder.read("b.gguf"));
    let others = written.keys.iter().filter(|(name, _)| name != "truecast.options");
    let others: Vec<_> = others.map(|(name, value)| [&text(name)[..], value].concat()).collect();
    let tensors = written.names().into_iter().map(|name| (name, written.tensor(name)));
    let tensors: Vec<_> = tensors
        .map(|(name, (id, dims, data))| (name, dims.iter().rev().copied().collect::<Vec<_>>(), id, data.to_vec()))
        .collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, dims, id, data)| (*name, &dims[..], *id, data.clone())).collect();
    folder.write("d.gguf", &gguf(&others, &tensors));
    assert_eq!(keys("d.gguf")["truecast.options"], Value::Null);
    folder.run("verify a.safetensors d.gguf --scheme q8_0").succeeds();
    let error = folder.run("verify a.safetensors d.gguf").exits(2).err;
    assert!(
        error.ends_with("it holds gguf:Q8_0: truecast verify a.safetensors d.gguf --scheme gguf:Q8_0\n"),
        "{error}"
    );
    // The record tells another file type, so it is the source's.
    let others = written.keys.iter().map(|(name, value)| match &**name {
        "general.file_type" => key(name, 4, &15u32.to_le_bytes()),
        _ => [&text(name)[..], value].concat(),
    });
    folder.write("e.gguf", &gguf(&others.collect::<Vec<_>>(), &tensors));
    folder.refused("verify a.safetensors e.gguf", "missing-argument", &["e.gguf records none"]);
    let object = folder.run("verify a.safetensors e.gguf --scheme q8_0 --json").exits(1).object("verify");
    assert_eq!(object["differences"], json!([{ "kind": "metadata", "key": "general.file_type" }]));
    folder.write("e.gguf", &gguf(&[key("truecast.options", 8, &text("{}"))], &[("a", &[1], 0, vec![0; 4])]));
    folder.refused("verify a.safetensors e.gguf", "malformed-file", &["truecast.options", "options."]);
}
