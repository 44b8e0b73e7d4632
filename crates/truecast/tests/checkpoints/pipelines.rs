//! Pipelines of diffusers: several models in one folder (`docs/spec/checkpoints.md §2.7`).

use crate::work::Work;
use serde_json::{Value, json};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

const BLOCK: [&str; 3] = ["transformer_blocks.0.attn.to_q", "transformer_blocks.0.norm1.linear", "x_embedder"];
const TEXT: [&str; 2] = ["text_model.encoder.layers.0.mlp.fc1", "text_model.embeddings.token_embedding"];

/// Matrices `[16, 32]` with these names and `.weight`, and a norm of the first one's block.
fn weights(names: &[&str]) -> Vec<u8> {
    let block =
        names[0].split_inclusive('.').take_while(|part| *part != "attn." && *part != "mlp.").collect::<String>();
    let names: Vec<String> = names.iter().map(|name| format!("{name}.weight")).collect();
    let norm = format!("{block}norm.weight");
    let values: Vec<f32> = (0..16 * 32).map(|i| (i * 37 % 101) as f32 / 64.0 - 0.7).collect();
    let matrix = |name| (name, "F32", &[16u64, 32][..], f32s(&values));
    let mut tensors: Vec<_> = names.iter().map(|name| matrix(name.as_str())).collect();
    tensors.push((norm.as_str(), "F32", &[32], f32s(&values[..32])));
    safetensors(&tensors, &[("format", "pt")])
}

fn pipeline() -> Work {
    let work = Work::new();
    let json = |path: &str, value: Value| work.write(path, value.to_string().as_bytes());
    json(
        "model/model_index.json",
        json!({
            "_class_name": "P", "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"],
            "text_encoder": ["transformers", "CLIPTextModel"], "scheduler": ["diffusers", "S"],
            "image_encoder": ["transformers", "CLIPVisionModel"], "safety_checker": [null, null]
        }),
    );
    json("model/transformer/config.json", json!({ "_class_name": "FluxTransformer2DModel" }));
    json("model/text_encoder/config.json", json!({ "model_type": "clip_text_model", "vocab_size": 16 }));
    json("model/vae/config.json", json!({ "_class_name": "AutoencoderKL" }));
    json("model/scheduler/scheduler_config.json", json!({ "s": 1 }));
    work.write("model/tokenizer/merges.txt", b"a b");
    work.write("model/transformer/diffusion_pytorch_model.safetensors", &weights(&BLOCK));
    work.write("model/text_encoder/model.safetensors", &weights(&TEXT));
    work.write("model/vae/diffusion_pytorch_model.safetensors", &weights(&["decoder.layers.0.mlp.fc1"]));
    work.write("model/image_encoder/model.safetensors", &weights(&["layers.0.mlp.fc1"]));
    work
}

/// Types of the matrices, in the order of `names`.
fn types(work: &Work, file: &str, names: &[&str]) -> Vec<String> {
    let file = Parsed::new(&work.read(file));
    names.iter().map(|name| file.dtype(&format!("{name}.weight")).to_owned()).collect()
}

#[test]
fn a_scheme_quantizes_the_models_of_a_pipeline() {
    let work = pipeline();
    let report = work.convert("model", "out", "scheme=fp8-tensor");
    let [transformer, text] = ["transformer/diffusion_pytorch_model.safetensors", "text_encoder/model.safetensors"];
    assert_eq!(types(&work, &format!("out/{transformer}"), &BLOCK), ["F8_E4M3", "F32", "F32"]);
    assert_eq!(types(&work, &format!("out/{text}"), &TEXT), ["F8_E4M3", "F32"]);
    // Other models keep their tensors, and their configurations state no scheme.
    for (file, name) in [("vae/diffusion_pytorch_model", "decoder."), ("image_encoder/model", "")] {
        assert_eq!(types(&work, &format!("out/{file}.safetensors"), &[&format!("{name}layers.0.mlp.fc1")]), ["F32"]);
    }
    for file in ["vae/config.json", "model_index.json", "scheduler/scheduler_config.json", "tokenizer/merges.txt"] {
        assert_eq!(work.read(&format!("out/{file}")), work.read(&format!("model/{file}")), "{file}");
    }
    for of in ["transformer", "text_encoder"] {
        assert_eq!(work.json(&format!("out/{of}/config.json"))["quantization_config"]["quant_method"], "fp8", "{of}");
    }
    let changes = &report.folder.as_ref().unwrap().changes;
    assert!(changes.contains(&"not quantized: image_encoder, vae".to_string()), "{changes:?}");
    assert!(report.warnings.iter().any(|said| said.contains("transformer") && said.contains("diffusers")));
    assert_eq!(report.total.all.tensors, 11);
    work.verify("model", "out", "");
    work.verify("model/transformer", "out/transformer", "");
    let part = format!("out/{transformer}");
    work.flipped(&part, work.read(&part).len() - 1, 1, "transformer/", || work.checked("model", "out", ""));
}

#[test]
fn a_pipeline_is_resumed_and_replaced() {
    let work = pipeline();
    let report = work.convert("model", "out", "scheme=fp8-tensor");
    let whole = report.outputs.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    // A run that ended before the last component.
    work.remove(&["out/vae", "out/scheduler", "out/tokenizer"]);
    for file in ["truecast-manifest.json", "model_index.json"] {
        std::fs::remove_file(work.path(&format!("out/{file}"))).unwrap();
    }
    let resumed = work.convert("model", "out", "scheme=fp8-tensor resume");
    assert!(resumed.outputs.iter().map(|path| std::fs::read(path).unwrap()).eq(whole));
    let refused = work.error("model", "out", "scheme=fp8-channel resume");
    assert_eq!(refused.error_code().name(), "not-resumable");
    work.convert("model", "out", "scheme=fp8-channel replace");
    work.verify("model", "out", "");
}

#[test]
fn pipelines_are_compared_by_components() {
    let work = pipeline();
    work.convert("model", "out", "scheme=fp8-tensor");
    work.remove(&["out/image_encoder"]);
    let compared = work.compared("model", "out");
    assert_eq!(compared.rows.len(), 9);
    let row = compared.rows.iter().find(|row| row.schemes.1.is_some()).unwrap();
    assert!(row.name.starts_with("text_encoder/text_model"), "{}", row.name);
    assert_eq!(compared.only_first, ["image_encoder/layers.0.mlp.fc1.weight", "image_encoder/layers.0.norm.weight"]);
    assert!(compared.only_second.is_empty() && compared.incomparable.is_empty() && !compared.equal());
    assert!(work.compared("out", "out").equal());
}

#[test]
fn what_a_pipeline_cannot_do_is_refused() {
    let work = pipeline();
    let named = ["image_encoder", "text_encoder", "transformer", "vae", "by itself"];
    for words in ["scheme=fp8-tensor part=1/2", "to=bf16 merge", "from_scheme=fp8-block to=bf16"] {
        work.refused("model", "new", words, "unsuitable-source", &named);
    }
    // No model of the pipeline has a tensor that the scheme quantizes.
    work.refused("model", "new", "scheme=fp8-tensor keep=*", "inapplicable-option", &["quantizes no tensor"]);
    work.write("model/model_index.json", br#"{"vae": ["diffusers", "AutoencoderKL"]}"#);
    work.refused("model", "new", "scheme=fp8-tensor", "unsuitable-source", &named);
}
