//! What is written is what is read: the tensors and the configuration of every scheme that is written are recognised as that
//! scheme, with the same layout (`docs/spec/checkpoints.md §5.6`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_io::folder::Edit;
use truecast_schemes::{
    Change, Checkpoint, Content, Detection, Documents, Family, Options, Outcome, Preset, Scheme, Stored, Target,
    Writing, changes, detect, metadata, target,
};

fn dense(name: &str, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into() }
}

/// The documents after the changes.
fn changed(mut documents: Documents, changes: &[Change]) -> Documents {
    for change in changes {
        let document = |file: &str, documents: &mut Documents| -> Value {
            let place = match file {
                "config.json" => &mut documents.config,
                "hf_quant_config.json" => &mut documents.hf_quant_config,
                _ => &mut documents.params,
            };
            std::mem::take(place).unwrap_or_else(|| json!({}))
        };
        let (file, value) = match change {
            Change::Edit { file, edit: Edit { path, value } } => {
                let mut root = document(file, &mut documents);
                let (last, through) = path.split_last().unwrap();
                let object = through.iter().fold(&mut root, |value, key| &mut value[key.as_str()]);
                let object: &mut Map<String, Value> = object.as_object_mut().unwrap();
                match value {
                    Some(value) => _ = object.insert(last.clone(), value.clone()),
                    None => _ = object.shift_remove(last),
                }
                (*file, Some(root))
            }
            Change::Drop { file } => (*file, None),
            Change::Write { file, value } => (*file, Some(value.clone())),
            _ => unreachable!(),
        };
        match file {
            "config.json" => documents.config = value,
            "hf_quant_config.json" => documents.hf_quant_config = value,
            _ => documents.params = value,
        }
    }
    documents
}

/// Reads what was written.
fn read(target: &Target, documents: &Documents) -> Detection {
    let stored = |output: &truecast_schemes::Output| Stored { tensor: output.tensor.clone(), shard: 0 };
    let tensors: Vec<Stored> = target.tensors.iter().map(stored).collect();
    let metadata = [BTreeMap::new()];
    let checkpoint = Checkpoint { tensors: &tensors, metadata: &metadata, documents };
    let mut bytes = |number: usize| {
        Ok(match &target.tensors[number].content {
            Content::Bytes(bytes) => bytes.clone(),
            // A global scale that any convention may have.
            Content::Part(_) => [0.5f32, 4096.0][usize::from(tensors[number].tensor.name.contains("global"))]
                .to_le_bytes()
                .repeat((tensors[number].tensor.bytes() / 4) as usize),
        })
    };
    detect(checkpoint, &mut bytes, &Options::default()).unwrap()
}

fn check(name: &str, shape: &[u64], scheme: Scheme) {
    let target = target(&dense(name, shape), scheme).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    let stale = json!({"model_type": "x", "quantization_config": {"quant_method": "fp8"}, "expert_dtype": "fp4"});
    let before = Documents { config: Some(stale), hf_quant_config: Some(json!({})), params: None };
    let kept = ["lm_head".to_string()];
    let all = changes(&before, &Outcome { scheme, kept: &kept }).unwrap();
    let documents = changed(before, &all);
    assert_eq!(documents.config.as_ref().unwrap()["model_type"], "x");
    assert!(documents.config.as_ref().unwrap().get("expert_dtype").is_none());
    let found = read(&target, &documents);
    let [group] = &found.groups[..] else { panic!("{scheme}: {:?}", found.groups) };
    assert_eq!((group.name.as_str(), group.layout.planes()), (name, target.layout.planes()), "{scheme}");
    // Padding is not told by the file.
    if group.layout.kept == target.layout.kept {
        assert_eq!((group.shape.as_slice(), group.layout), (shape, target.layout), "{scheme}");
    }
    assert_eq!(found.roles.iter().filter(|role| **role == truecast_schemes::Role::Plain).count(), 0, "{scheme}");
}

#[test]
fn every_scheme_that_is_written_is_read() {
    let mut written = 0;
    for family in Family::all().filter(|family| family.writing() == Writing::Yes && *family != Family::Plain) {
        check("model.layers.0.mlp.up_proj.weight", &[192, 256], Scheme::of(family));
        written += 1;
    }
    assert_eq!(written, 18, "as many as the page lists");
}

#[test]
fn parameters_are_declared() {
    for scheme in [
        "fp8-block:64x32",
        "fp8-block:64x32,scale=ue8m0",
        "fp8-channel,scale=bf16",
        "ct:float-quantized,strategy=tensor",
        "ct:float-quantized,block=64x64",
        "ct:int-quantized,symmetric=false",
        "ct:int-quantized,group=64",
        "ct:pack-quantized,bits=3,group=32",
        "ct:pack-quantized,bits=8,strategy=channel,scale=bf16",
        "ct:pack-quantized,bits=4,group=32,symmetric=false",
    ] {
        check("a.weight", &[192, 256], scheme.parse().unwrap());
    }
}

#[test]
fn awkward_shapes() {
    check("a.weight", &[576, 300], "fp8-block".parse().unwrap());
    check("a.weight", &[13, 33], "comfy:nvfp4".parse().unwrap());
    check("a.weight", &[13, 33], "comfy:mxfp8".parse().unwrap());
    check("e.gate_up_proj", &[3, 64, 128], "modelopt:NVFP4".parse().unwrap());
    check("e.gate_up_proj", &[3, 200, 128], "fp8-block".parse().unwrap());
    check("e.weight", &[3, 64, 128], "ct:pack-quantized".parse().unwrap());
}

#[test]
fn what_has_no_form_is_refused() {
    let error = |tensor: &Tensor, scheme: &str| target(tensor, scheme.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(
        error(&dense("a.weight", &[64]), "fp8-block"),
        "tensor \"a.weight\": it has fewer than two dimensions, which fp8-block cannot hold; keep it with --keep"
    );
    assert!(
        error(&dense("a.weight", &[64, 30]), "ct:mxfp4-pack-quantized").contains("no whole number of groups of 32")
    );
    assert!(error(&dense("a.weight", &[64, 0]), "fp8-block").contains("no elements"));
    let integers = Tensor { dtype: DType::I32, ..dense("a.weight", &[64, 64]) };
    assert!(error(&integers, "fp8-block").contains("its elements are i32"));
    assert_eq!(error(&dense("a.weight", &[64, 64]), "awq"), "scheme awq is not written");
    assert!(error(&dense("a.weight", &[64, 64]), "mlx:mxfp4").contains("it takes the same values in another packing"));
}

#[test]
fn dense_results_declare_nothing() {
    let documents = Documents {
        config: Some(json!({
            "quantization_config": {}, "text_config": {"quantization_config": {}, "dtype": "bfloat16"},
            "compression_config": {}, "quantization": {}, "moe_quant_algo": "NVFP4", "a": 1
        })),
        hf_quant_config: Some(json!({})),
        params: Some(json!({"dim": 3, "quantization": {}})),
    };
    let all = changes(&documents, &Outcome { scheme: Scheme::PLAIN, kept: &[] }).unwrap();
    let after = changed(documents, &all);
    assert_eq!(after.config, Some(json!({"text_config": {"dtype": "bfloat16"}, "a": 1})));
    assert_eq!((after.hf_quant_config, after.params), (None, Some(json!({"dim": 3}))));
    assert_eq!(all.len(), 7);
}

#[test]
fn metadata_of_the_source_scheme_goes() {
    let header =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>();
    let source = header(&[("format", "pt"), ("quantization_config", "{}"), ("note", "{}")]);
    assert_eq!(metadata(&source, &[]), header(&[("format", "pt"), ("note", "{}")]));
}

#[test]
fn presets_keep_what_they_name() {
    let keeps = |preset: &str, name: &str| preset.parse::<Preset>().unwrap().keeps(name);
    for (preset, kept, other) in [
        ("norms", "model.layers.0.post_attention_layernorm.weight", "model.norm.layers.0.mlp.up_proj.weight"),
        ("norms", "encoder.layer.0.output.LayerNorm.bias", "encoder.layer.0.output.dense.bias"),
        ("embeddings", "model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"),
        ("router", "model.layers.3.mlp.gate.weight", "model.layers.3.mlp.gate_proj.weight"),
        ("lm_head", "lm_head.weight", "model.layers.3.attention.wo.weight"),
        ("ssm", "backbone.layers.0.mixer.D", "backbone.layers.0.mixer.D_proj.weight"),
    ] {
        assert!(keeps(preset, kept) && !keeps(preset, other), "{preset}");
    }
    assert!("norm".parse::<Preset>().is_err());
}
