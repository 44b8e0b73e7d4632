//! Layers of image and video models, compared with the lists of other converters. `testdata/image_models/README.md`
//! says where names and lists are from.

use std::path::{Path, PathBuf};
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Family, Model};

struct Listed {
    tensors: Vec<Tensor>,
    /// Parts of the names of layers that stay. `^` marks the beginning of a name.
    kept: Vec<String>,
}

impl Listed {
    fn read(path: &Path) -> Listed {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut tensors, mut kept) = (Vec::new(), Vec::new());
        for line in text.lines() {
            if let Some(note) = line.strip_prefix("# ") {
                let words = note.strip_prefix("excluded: ").or_else(|| note.strip_prefix("also kept: "));
                kept.extend(words.into_iter().flat_map(|words| words.split(' ').map(str::to_owned)));
                continue;
            }
            let (names, shape) = line.strip_suffix(']').and_then(|line| line.split_once(" [")).unwrap();
            let shape: Vec<u64> = shape.split(", ").map(|size| size.parse().unwrap()).collect();
            tensors.extend(names_of(names).iter().map(|name| Tensor {
                name: name.as_str().into(),
                dtype: DType::Bf16,
                layout: Layout::Packed,
                shape: shape.as_slice().into(),
            }));
        }
        assert!(!kept.is_empty(), "{}: no list", path.display());
        Listed { tensors, kept }
    }

    /// The lists are about the weights of linear layers.
    fn is_quantized(&self, tensor: &Tensor) -> bool {
        let is_named = |part: &String| match part.strip_prefix('^') {
            Some(begin) => tensor.name.starts_with(begin),
            None => tensor.name.contains(part),
        };
        tensor.shape.len() == 2 && tensor.name.ends_with(".weight") && !self.kept.iter().any(is_named)
    }
}

/// Expands a pattern such as `blocks.{0..2}.a` or `blocks.{0,2}.a` to names.
fn names_of(pattern: &str) -> Vec<String> {
    let Some((front, (inner, rest))) =
        pattern.split_once('{').map(|(front, rest)| (front, rest.split_once('}').unwrap()))
    else {
        return vec![pattern.to_owned()];
    };
    let number = |text: &str| text.parse::<u32>().unwrap();
    let numbers: Vec<u32> = match inner.split_once("..") {
        Some((first, last)) => (number(first)..=number(last)).collect(),
        None => inner.split(',').map(number).collect(),
    };
    numbers.iter().flat_map(|number| names_of(&format!("{front}{number}{rest}"))).collect()
}

fn lists(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/image_models").join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut lists: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    lists.sort();
    lists
}

/// Every layer of every model stays or is quantized as the lists of other converters say.
#[test]
fn layers_stay_as_other_converters_keep_them() {
    let paths = [lists(""), lists("held_out")].concat();
    assert_eq!(paths.len(), 26);
    let mut wrong = Vec::new();
    for path in paths {
        let listed = Listed::read(&path);
        let model = Model::new(&listed.tensors, None);
        assert!(model.is_diffusion(), "{}", path.display());
        for tensor in &listed.tensors {
            let (layer, expected) = (model.layer(tensor), listed.is_quantized(tensor));
            if model.is_quantized(tensor, layer, Family::ComfyNvfp4) != expected {
                wrong.push(format!("{}: {} is {layer:?}", path.file_stem().unwrap().display(), tensor.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} layers:\n{}", wrong.len(), wrong.join("\n"));
}

/// In a file of a whole pipeline, the text encoders and the autoencoder stay, and their table of tokens changes nothing.
#[test]
fn a_file_of_all_models_of_a_pipeline() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/image_models");
    let listed = Listed::read(&folder.join("flux_dev.txt"));
    let beside = [
        "text_encoders.t5xxl.transformer.shared",
        "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q",
        "text_encoders.clip_l.transformer.text_model.embeddings.token_embedding",
        "conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1",
        "vae.decoder.mid.attn_1.q",
        "first_stage_model.decoder.mid.attn_1.q",
    ];
    let inside =
        |tensor: &Tensor| Tensor { name: format!("model.diffusion_model.{}", tensor.name).into(), ..tensor.clone() };
    let other = |name: &str| Tensor { name: format!("{name}.weight").into(), ..listed.tensors[0].clone() };
    let tensors: Vec<Tensor> = listed.tensors.iter().map(inside).chain(beside.map(other)).collect();
    let model = Model::new(&tensors, None);
    assert!(model.is_diffusion());
    let expected = listed.tensors.iter().map(|tensor| listed.is_quantized(tensor)).chain(beside.map(|_| false));
    for (tensor, expected) in tensors.iter().zip(expected) {
        let layer = model.layer(tensor);
        assert_eq!(model.is_quantized(tensor, layer, Family::ComfyFp8E4M3), expected, "{}: {layer:?}", tensor.name);
    }
}
