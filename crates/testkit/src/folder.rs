//! Checkpoints with several files.

use crate::safetensors::{f32s, index_of, safetensors};
use serde_json::json;

/// File name of the first shard.
pub const FIRST: &str = "model-00001-of-00002.safetensors";
/// File name of the second shard.
pub const SECOND: &str = "model-00002-of-00002.safetensors";

/// Makes an index from pairs of a tensor and its shard.
pub fn index(entries: &[(&str, &str)]) -> Vec<u8> {
    crate::safetensors::index(&json!({ "note": "kept" }), entries.iter().copied())
}

/// Two shards with an index, a configuration, a tokenizer, code in a subfolder, and files that conversions do not copy.
pub fn files() -> Vec<(&'static str, Vec<u8>)> {
    let values: Vec<f32> = (0..600).map(|i| i as f32 * 0.37 - 100.0).collect();
    let first =
        [("a.weight", "F32", &[20u64, 30][..], f32s(&values)), ("a.ids", "I32", &[2], vec![1, 0, 0, 0, 2, 0, 0, 0])];
    let second = [("b.weight", "F32", &[300, 2][..], f32s(&values)), ("b.empty", "F32", &[0, 4], vec![])];
    let map = [("a.weight", FIRST), ("a.ids", FIRST), ("b.weight", SECOND), ("b.empty", SECOND)];
    let config = "{\n  \"eps\": 1e-05,\n  \"torch_dtype\": \"float32\",\n  \"text_config\": {\"dtype\": \"float32\", \"n\": 1}\n}\n";
    vec![
        (FIRST, safetensors(&first, &[("format", "pt"), ("k", "v")])),
        (SECOND, safetensors(&second, &[])),
        ("model.safetensors.index.json", index(&map)),
        ("config.json", config.into()),
        ("tokenizer.json", b"{\"t\": 1}".to_vec()),
        ("code/run.py", b"print(1)\n".to_vec()),
        (".hidden", b"x".to_vec()),
        ("code/.git/HEAD", b"x".to_vec()),
        ("code/pytorch_model.bin", b"x".to_vec()),
    ]
}

/// Number of rows that matrices of [`linear_model`] have.
pub const ROWS: usize = 130;
/// Number of columns that matrices of [`linear_model`] have.
pub const COLS: usize = 40;

/// Elements of the matrices in [`linear_model`]. The first two rows are a hundred times larger.
pub fn weights() -> Vec<f32> {
    (0..ROWS * COLS).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.0137 * if i < 2 * COLS { 100.0 } else { 1.0 }).collect()
}

/// Two shards with an index, a configuration and a tokenizer. The tensors: linear layers, a norm, an embedding,
/// integers.
pub fn linear_model() -> Vec<(&'static str, Vec<u8>)> {
    let (shape, weights) = ([ROWS as u64, COLS as u64], weights());
    let few = f32s(&weights[..64]);
    let first = [
        ("model.embed_tokens.weight", "F32", &[8u64, 8][..], few.clone()),
        ("model.layers.0.self_attn.q_proj.weight", "F32", &shape, f32s(&weights)),
        ("model.layers.0.input_layernorm.weight", "F32", &[64], few),
    ];
    let second = [
        ("model.layers.0.self_attn.k_proj.weight", "F32", &shape[..], f32s(&weights)),
        ("model.layers.0.ids", "I32", &[2, 1], vec![1, 0, 0, 0, 2, 0, 0, 0]),
    ];
    let shards = [(FIRST, safetensors(&first, &[("format", "pt")])), (SECOND, safetensors(&second, &[]))];
    let index = index_of(&json!({ "total_parameters": 9 }), &shards);
    let config = b"{\n  \"model_type\": \"x\",\n  \"torch_dtype\": \"float32\"\n}\n";
    let others =
        [("model.safetensors.index.json", index), ("config.json", config.to_vec()), ("tokenizer.json", b"{}".to_vec())];
    shards.into_iter().chain(others).collect()
}
