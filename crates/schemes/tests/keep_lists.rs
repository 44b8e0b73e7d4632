//! Unquantized modules of many models, compared with published lists (`docs/spec/checkpoints.md §11.3`):
//! llm-compressor's examples, ModelOpt's defaults, convert_to_quant's filters.

use serde_json::json;
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Family, Model};

/// Tensors with these names and `.weight`: matrices `[64, 64]`, or vectors for names that end in `!`.
fn tensors<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Tensor> {
    let of = |name: &str| {
        let shape: &[u64] = if name.ends_with('!') { &[64] } else { &[64, 64] };
        let name = format!("{}.weight", name.trim_end_matches('!')).into();
        Tensor { name, dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into() }
    };
    names.map(of).collect()
}

/// The files have a norm in each block.
#[test]
fn published_lists_are_kept() {
    let lists = include_str!("keep_lists.txt").lines().filter(|line| !line.starts_with('#'));
    for list in lists {
        let [family, kept, quantized] = list.splitn(3, " | ").collect::<Vec<_>>().try_into().unwrap();
        let [kept, quantized] = [kept, quantized].map(|names| names.split(' ').collect::<Vec<_>>());
        let config = json!({"model_type": family});
        let blocks = quantized.iter().map(|name| {
            let dot = name.match_indices('.').find(|(at, _)| name[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
            let end = dot.and_then(|(at, _)| name[at + 1..].find('.').map(|end| at + 1 + end)).unwrap();
            format!("{}.norm!", &name[..end])
        });
        let blocks: Vec<String> = blocks.collect();
        let names = kept.iter().chain(&quantized).copied().chain(blocks.iter().map(String::as_str));
        let tensors = tensors(names);
        let model = Model::new(&tensors, Some(&config));
        let quantizes = |name: &str| {
            let tensor = tensors.iter().find(|tensor| *tensor.name == format!("{name}.weight")).unwrap();
            let layer = model.layer(tensor);
            (model.is_quantized(tensor, layer, Family::CtMxfp4), layer)
        };
        for name in kept {
            let (is_quantized, layer) = quantizes(name);
            assert!(!is_quantized, "{family}: {name} is quantized as {layer:?}");
        }
        for name in quantized {
            let (is_quantized, layer) = quantizes(name);
            assert!(is_quantized, "{family}: {name} is kept as {layer:?}");
        }
    }
}

/// Without a table of tokens, a small list of blocks next to the main list is kept.
#[test]
fn small_lists_are_beside_the_main_stack() {
    let many: Vec<String> = (0..30).map(|n| format!("layers.{n}.attention.qkv")).collect();
    let names = ["context_refiner.0.attention.qkv", "context_refiner.1.attention.qkv"];
    let tensors = tensors(names.into_iter().chain(many.iter().map(String::as_str)));
    let model = Model::new(&tensors, None);
    let is_kept = |at: usize| !model.is_quantized(&tensors[at], model.layer(&tensors[at]), Family::ComfyNvfp4);
    assert_eq!([is_kept(0), is_kept(1), is_kept(2), is_kept(31)], [true, true, false, false]);
}

/// A matrix in f32 among 16-bit matrices has this precision on purpose.
#[test]
fn matrices_in_f32_beside_others_are_kept() {
    let mut tensors = tensors(["model.layers.0.a", "model.layers.0.b", "model.layers.0.c"].into_iter());
    let is_quantized = |tensors: &[Tensor]| {
        let model = Model::new(tensors, None);
        model.is_quantized(&tensors[2], model.layer(&tensors[2]), Family::Fp8Block)
    };
    assert!(is_quantized(&tensors));
    tensors[2].dtype = DType::F32;
    assert!(!is_quantized(&tensors));
    tensors.iter_mut().for_each(|tensor| tensor.dtype = DType::F32);
    assert!(is_quantized(&tensors));
}

/// A model whose blocks are all in towers has no main stack, so nothing is quantized.
#[test]
fn heads_beside_towers_alone_are_kept() {
    let names = ["backbone.vision_tower.layers.0.mlp.lin1", "head.structure_attention_cell.input_to_hidden"];
    let is_quantized = |names: &[&str]| {
        let tensors = tensors(names.iter().copied());
        let model = Model::new(&tensors, None);
        tensors.iter().any(|tensor| model.is_quantized(tensor, model.layer(tensor), Family::Fp8Block))
    };
    assert!(!is_quantized(&names) && is_quantized(&names[1..]));
}
