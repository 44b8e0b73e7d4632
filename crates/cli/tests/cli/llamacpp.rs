//! Names and order of elements of llama.cpp, from a file of the same model and back (`docs/spec/checkpoints.md §9.12`).

use crate::run::Folder;
use serde_json::json;
use truecast_testkit::gguf::{Written, gguf, key, text};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

/// Values without a pattern, another list for each seed.
fn values(seed: u64, len: usize) -> Vec<f32> {
    let mixed = |x: u64| (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = |i: u64| mixed(mixed((seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 40;
    (0..len as u64).map(|i| hash(i) as f32 / (1 << 23) as f32 - 1.0).collect()
}

fn transposed(matrix: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols * rows).map(|i| matrix[i % rows * cols + i / rows]).collect()
}

/// Rows of each head: the halves become neighbors.
fn permuted(matrix: &[f32], heads: usize, cols: usize) -> Vec<f32> {
    let head = matrix.len() / heads / cols;
    let row = |r: usize| r / head * head + r % head % 2 * (head / 2) + r % head / 2;
    (0..matrix.len()).map(|i| matrix[row(i / cols) * cols + i % cols]).collect()
}

const HEADS: usize = 2;

struct Layer {
    q: Vec<f32>,
    down: Vec<f32>,
    norm: Vec<f32>,
    experts: Vec<Vec<f32>>,
}

fn layers() -> Vec<Layer> {
    let layer = |n: u64| Layer {
        q: values(10 * n + 1, 16 * 12),
        down: values(10 * n + 2, 10 * 12),
        norm: values(10 * n + 3, 12),
        experts: (0..3).map(|e| values(1000 + 10 * n + e, 5 * 12)).collect(),
    };
    (0..2).map(layer).collect()
}

fn source(layers: &[Layer], down: (&str, &[u64])) -> Vec<u8> {
    let mut tensors = vec![("emb.weight".to_string(), vec![20, 12], values(7, 240))];
    for (n, layer) in layers.iter().enumerate() {
        tensors.push((format!("h.{n}.q.weight"), vec![16, 12], layer.q.clone()));
        tensors.push((format!("h.{n}.{}.weight", down.0), down.1.to_vec(), layer.down.clone()));
        tensors.push((format!("h.{n}.ln.weight"), vec![12], layer.norm.clone()));
        for (e, expert) in layer.experts.iter().enumerate() {
            tensors.push((format!("h.{n}.moe.{e}.weight"), vec![5, 12], expert.clone()));
        }
    }
    let tensors: Vec<_> =
        tensors.iter().map(|(name, shape, data)| (name.as_str(), "F32", &shape[..], f32s(data))).collect();
    safetensors(&tensors, &[])
}

/// The model as a program with other names stores it.
fn reference(layers: &[Layer]) -> Vec<u8> {
    let mut tensors = vec![("token_embd.weight".to_string(), vec![12, 20], f32s(&values(7, 240)))];
    tensors.push(("rope_freqs.weight".into(), vec![4], f32s(&[1.0, 2.0, 3.0, 4.0])));
    for (n, layer) in layers.iter().enumerate() {
        let norm: Vec<f32> = layer.norm.iter().map(|x| x + 1.0).collect();
        tensors.push((format!("blk.{n}.attn_q.weight"), vec![12, 16], f32s(&permuted(&layer.q, HEADS, 12))));
        tensors.push((format!("blk.{n}.ffn_down.weight"), vec![10, 12], f32s(&transposed(&layer.down, 10, 12))));
        tensors.push((format!("blk.{n}.attn_norm.weight"), vec![12], f32s(&norm)));
        tensors.push((format!("blk.{n}.ffn_exps.weight"), vec![12, 5, 3], f32s(&layer.experts.concat())));
    }
    let tensors: Vec<_> =
        tensors.iter().map(|(name, dims, data)| (name.as_str(), &dims[..], 0, data.clone())).collect();
    let heads = (HEADS as u32).to_le_bytes();
    let keys = [
        key("general.architecture", 8, &text("toy")),
        key("toy.attention.head_count", 4, &heads),
        key("general.file_type", 4, &0u32.to_le_bytes()),
        key("toy.words", 9, &[&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &text("a"), &text("b")].concat()),
    ];
    gguf(&keys, &tensors)
}

#[test]
fn tensors_are_found_by_their_values() {
    let layers = layers();
    let folder = Folder::with("model.safetensors", &source(&layers, ("down", &[10, 12])));
    folder.write("like.gguf", &reference(&layers));
    let converted = folder.run("convert model.safetensors out.gguf --like like.gguf").exits(0);
    converted.warns(&[
        "\"toy\" is matched by values", "q.weight\", rows of each head permuted", "down.weight\", transposed",
        "ln.weight\", plus 1", "moe.#.weight",
    ]);

    let (ours, theirs) = (Written::new(&folder.read("out.gguf")), Written::new(&reference(&layers)));
    for name in theirs.names() {
        assert_eq!(ours.tensor(name), theirs.tensor(name), "{name}");
    }
    assert_eq!(ours.names().len(), theirs.names().len());
    assert_eq!(ours.key("toy.words"), theirs.key("toy.words"));
    folder.run("verify model.safetensors out.gguf").succeeds();
    folder.run("convert model.safetensors half.gguf --like like.gguf --to bf16 --quiet").exits(0);
    let half = Written::new(&folder.read("half.gguf"));
    assert_eq!((half.tensor("blk.0.attn_q.weight").0, half.tensor("blk.0.attn_norm.weight").0), (30, 0));
}

#[test]
fn what_is_not_the_same_model() {
    let layers = layers();
    let folder = Folder::with("model.safetensors", &source(&layers, ("down", &[10, 12])));
    folder.write("like.gguf", &reference(&layers));
    let convert = "convert other.safetensors out.gguf --like like.gguf";
    // Other values.
    let mut others = self::layers();
    others[0].q = values(99, 16 * 12);
    folder.write("other.safetensors", &source(&others, ("down", &[10, 12])));
    folder.refused(convert, "unsuitable-source", &["not the model of like.gguf", "h.0.q.weight"]);
    // A tensor that the file does not have.
    let mut twice = self::layers();
    twice.iter_mut().for_each(|layer| layer.down = layer.q[..120].to_vec());
    folder.write("other.safetensors", &source(&twice, ("q2", &[10, 12])));
    folder.refused(convert, "unsuitable-source", &["h.0.q2.weight"]);
    // A layer less.
    folder.write("other.safetensors", &source(&layers[..1], ("down", &[10, 12])));
    folder.refused(convert, "unsuitable-source", &["not the model of like.gguf"]);
    // Files that cannot serve as a reference.
    folder.write("none.gguf", &gguf(&[], &[("a.weight", &[4], 0, vec![0; 16])]));
    let refused = ["none.gguf", "do not name an architecture"];
    folder.refused("convert model.safetensors out.gguf --like none.gguf", "unsuitable-source", &refused);
    folder.refused(
        "convert model.safetensors out.gguf --like model.safetensors",
        "unsuitable-source",
        &["names and keys"],
    );
    let cut = folder.read("like.gguf");
    folder.write("cut.gguf", &cut[..cut.len() - 50]);
    folder.run("convert model.safetensors out.gguf --like cut.gguf").exits(3);
    folder.run("convert model.safetensors out.gguf --like like.gguf --keep-names").exits(2);
    assert!(!folder.path("out.gguf").exists());
}

/// Columns of the matrices: a block of Q8_0.
const WIDTH: usize = 32;

/// A configuration of the model type.
fn config(model_type: &str, heads: u64) -> Vec<u8> {
    let config = json!({
        "model_type": model_type, "num_attention_heads": heads, "num_key_value_heads": 1, "head_dim": 8,
        "hidden_size": WIDTH, "num_hidden_layers": 1, "intermediate_size": 5, "vocab_size": 20
    });
    config.to_string().into_bytes()
}

/// A folder of llama, and a file with its names.
fn llama() -> (Vec<u8>, Vec<u8>) {
    let (q, k, up, norm) = (values(1, 16 * WIDTH), values(2, 8 * WIDTH), values(3, 5 * WIDTH), values(4, WIDTH));
    let width = WIDTH as u64;
    let embed = values(5, 20 * WIDTH);
    let part = |name: &str| format!("model.layers.0.{name}.weight");
    let names = ["self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "input_layernorm"].map(part);
    let weights = safetensors(
        &[
            ("model.embed_tokens.weight", "F32", &[20, width], f32s(&embed)),
            (&names[3], "F32", &[width], f32s(&norm)),
            (&names[2], "F32", &[5, width], f32s(&up)),
            (&names[1], "F32", &[8, width], f32s(&k)),
            (&names[0], "F32", &[16, width], f32s(&q)),
            ("model.norm.weight", "F32", &[width], f32s(&norm)),
        ],
        &[("format", "pt")],
    );
    let keys = [
        key("general.architecture", 8, &text("llama")),
        key("llama.attention.head_count", 4, &2u32.to_le_bytes()),
        key("llama.attention.head_count_kv", 4, &1u32.to_le_bytes()),
    ];
    let file = gguf(
        &keys,
        &[
            ("token_embd.weight", &[width, 20], 0, f32s(&embed)),
            ("blk.0.attn_norm.weight", &[width], 0, f32s(&norm)),
            ("blk.0.ffn_up.weight", &[width, 5], 0, f32s(&up)),
            ("blk.0.attn_k.weight", &[width, 8], 0, f32s(&permuted(&k, 1, WIDTH))),
            ("blk.0.attn_q.weight", &[width, 16], 0, f32s(&permuted(&q, 2, WIDTH))),
            ("output_norm.weight", &[width], 0, f32s(&norm)),
        ],
    );
    (weights, file)
}

#[test]
fn a_file_becomes_the_folder_that_it_was() {
    let (weights, file) = llama();
    let folder = Folder::with("hf/model.safetensors", &weights);
    folder.write("hf/config.json", &config("llama", 2));
    folder.write("hf/tokenizer.json", b"{}");
    folder.write("model.gguf", &file);
    folder.run("convert model.gguf back --like hf --quiet").exits(0);
    let (ours, theirs) = (Parsed::new(&folder.read("back/model.safetensors")), Parsed::new(&weights));
    assert!(ours.tensors() == theirs.tensors() && ours.metadata() == theirs.metadata());
    assert_eq!(folder.read("back/tokenizer.json"), b"{}");
    folder.run("verify model.gguf back").succeeds();
    // A folder names the file in it.
    folder.write("held/model.gguf", &file);
    folder.run("convert held from-held --like hf --quiet").exits(0).lacks(&["warning"]);
    assert!(folder.read("from-held/model.safetensors") == folder.read("back/model.safetensors"));
    folder.run("verify held from-held").succeeds();
    // Only the configuration: names follow from the table.
    folder.write("bare/config.json", &config("llama", 2));
    folder.run("convert model.gguf named --like bare/config.json --to bf16 --quiet").exits(0);
    let named = Parsed::new(&folder.read("named/model.safetensors"));
    assert_eq!(named.dtype("model.layers.0.self_attn.q_proj.weight"), "BF16");
    folder.run("compare hf named").exits(0);
    // And from the folder to the file, with the keys of the file.
    folder.run("convert hf again.gguf --like model.gguf --quiet").exits(0);
    let (ours, theirs) = (Written::new(&folder.read("again.gguf")), Written::new(&file));
    for name in theirs.names() {
        assert_eq!(ours.tensor(name), theirs.tensor(name), "{name}");
    }
}

#[test]
fn quantized_tensors_are_dequantized_under_other_names() {
    let (weights, file) = llama();
    let folder = Folder::with("hf/model.safetensors", &weights);
    folder.write("hf/config.json", &config("llama", 2));
    folder.write("model.gguf", &file);
    folder.run("quantize hf small fp8-channel --quiet").exits(0);
    folder.run("dequantize small out.gguf --like model.gguf").exits(0).says(&["3 tensors dequantized, 3 kept"]);
    let out = Written::new(&folder.read("out.gguf"));
    let types = ["blk.0.attn_q.weight", "token_embd.weight", "output_norm.weight"].map(|name| out.tensor(name).0);
    assert_eq!(types, [30, 0, 0]);
    folder.run("verify small out.gguf").succeeds();

    folder.run("quantize model.gguf q.gguf q8_0 --quiet").exits(0);
    folder.run("dequantize q.gguf back --like hf").exits(0).says(&["4 tensors dequantized, 2 kept"]);
    folder.run("verify q.gguf back").succeeds();
    folder.refused("convert q.gguf narrow --like hf --to f8e4m3fn", "scales-lost", &["gguf:Q8_0"]);
    // The line to type has the option that the folder needs.
    let line = "convert model.gguf none --to bf16 --like hf";
    folder.refused(
        "dequantize model.gguf none --like hf",
        "unmatched-pattern",
        &["convert model.gguf none --like hf --to"],
    );
    folder.run(line).exits(0);
    let why = ["relayout", "new codes"];
    folder.refused("quantize small x.gguf q8_0 --like model.gguf --relayout exact", "inapplicable-option", &why);
}

#[test]
fn rules_take_names_of_the_source_too() {
    let (weights, file) = llama();
    let folder = Folder::with("hf/model.safetensors", &weights);
    folder.write("hf/config.json", &config("llama", 2));
    folder.write("model.gguf", &file);
    let types = |rules: &str| {
        folder.run(&format!("convert hf out.gguf --like model.gguf --to f16 --force --quiet {rules}")).exits(0);
        folder.run("verify hf out.gguf").succeeds();
        let out = Written::new(&folder.read("out.gguf"));
        ["blk.0.attn_q.weight", "blk.0.ffn_up.weight", "token_embd.weight"].map(|name| out.tensor(name).0)
    };
    assert_eq!(types("--rule model.layers.0.self_attn.q_proj=bf16 --keep *embed_tokens*"), [30, 1, 0]);
    assert_eq!(types("--rule blk.0.attn_q.weight=f32 --rule model.layers.*=bf16"), [0, 30, 1]);
    // And back.
    folder.run("convert model.gguf back --like hf --to f16 --keep blk.0.ffn_up.weight --quiet").exits(0);
    let back = Parsed::new(&folder.read("back/model.safetensors"));
    assert_eq!(back.dtype("model.layers.0.mlp.up_proj.weight"), "F32");

    let layers = layers();
    folder.write("toy.safetensors", &source(&layers, ("down", &[10, 12])));
    folder.write("toy.gguf", &reference(&layers));
    let convert = "convert toy.safetensors toy-out.gguf --like toy.gguf --to bf16";
    let part = ["h.0.moe.1.weight", "a part of", "blk.0.ffn_exps.weight"];
    folder.refused(&format!("{convert} --keep h.0.moe.1.weight"), "unmatched-pattern", &part);
    folder.refused(&format!("{convert} --keep h.0.none"), "unmatched-pattern", &["h.0.none", "matches no tensor"]);
    folder.run(&format!("{convert} --keep h.0.moe.*")).exits(0).says(&["blk.0.ffn_exps.weight   f32 kept (--keep)"]);
}

#[test]
fn what_has_no_way_back() {
    let (weights, file) = llama();
    let folder = Folder::with("hf/model.safetensors", &weights);
    folder.write("hf/config.json", &config("qwen2", 2));
    folder.write("model.gguf", &file);
    folder.refused("convert model.gguf back --like hf", "unsuitable-source", &["architecture", "qwen2", "llama"]);
    folder.write("hf/config.json", &config("gpt2", 2));
    folder.refused("convert model.gguf back --like hf", "unsuitable-source", &["model_type", "gpt2"]);
    folder.write("hf/config.json", &config("llama", 3));
    folder.refused("convert model.gguf back --like hf", "unsuitable-source", &["attn_", "does not fit"]);
    // A tensor of the file that the folder does not have.
    folder.write("hf/config.json", &config("llama", 2));
    let less = safetensors(&[("model.norm.weight", "F32", &[WIDTH as u64], f32s(&values(4, WIDTH)))], &[]);
    folder.write("hf/model.safetensors", &less);
    folder.refused("convert model.gguf back --like hf", "unsuitable-source", &["has no place in the folder"]);
    folder.refused("convert hf out.gguf --like model.gguf", "unsuitable-source", &["token_embd.weight"]);
    folder.refused("convert model.gguf back --like none", "unsuitable-source", &["none"]);
    folder.refused("convert model.gguf back --like model.gguf", "unsuitable-source", &["names and keys"]);
    // A folder of a type that is not known needs a file, or its own names.
    folder.write("hf/config.json", &config("gpt2", 2));
    folder.refused("convert hf out.gguf", "unsuitable-source", &["gpt2", "--like MODEL.gguf", "--keep-names"]);
    folder.run("convert hf out.gguf --keep-names").exits(0).warns(&["tensors keep their names"]);
}
