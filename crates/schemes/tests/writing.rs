//! Each writable scheme is recognized in the tensors and configuration written for it, with the same layout
//! (`docs/spec/checkpoints.md §5.6`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_io::folder::Edit;
use truecast_schemes::{
    Change, Checkpoint, Content, Detection, Documents, Family, Layer, Model, Options, Outcome, Scheme, Stored, Target,
    Writing, changes, detect, loaded_module, metadata, target,
};

fn dense(name: &str, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into() }
}

fn changed(mut documents: Documents, changes: &[Change]) -> Documents {
    for change in changes {
        let document = |file: &str, documents: &mut Documents| -> Value {
            let place = match file {
                "config.json" => &mut documents.config,
                "hf_quant_config.json" => &mut documents.hf_quant_config,
                "quant_model_description.json" => &mut documents.quant_model_description,
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
            "quant_model_description.json" => documents.quant_model_description = value,
            _ => documents.params = value,
        }
    }
    documents
}

fn read(target: &Target, documents: &Documents) -> Detection {
    let stored = |output: &truecast_schemes::Output| Stored { tensor: output.tensor.clone(), shard: 0 };
    let tensors: Vec<Stored> = target.tensors.iter().map(stored).collect();
    let metadata = [BTreeMap::new()];
    let checkpoint = Checkpoint { tensors: &tensors, metadata: &metadata, documents };
    let mut bytes = |number: usize| {
        Ok(match &target.tensors[number].content {
            Content::Bytes(bytes) => bytes.clone(),
            // A global scale that is plausible as multiplier and as divisor.
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
    let before = Documents { config: Some(stale), hf_quant_config: Some(json!({})), ..Documents::default() };
    let kept = ["lm_head".to_string()];
    let all = changes(&before, &Outcome { scheme, kept: &kept, ..Outcome::default() }).unwrap();
    let documents = changed(before, &all);
    assert_eq!(documents.config.as_ref().unwrap()["model_type"], "x");
    assert!(documents.config.as_ref().unwrap().get("expert_dtype").is_none());
    let found = read(&target, &documents);
    let [group] = &found.groups[..] else { panic!("{scheme}: {:?}", found.groups) };
    assert_eq!((&*group.name, group.layout.planes()), (name, target.layout.planes()), "{scheme}");
    // Files do not state padding.
    if group.layout.kept == target.layout.kept {
        assert_eq!((&*group.shape, group.layout), (shape, target.layout), "{scheme}");
    }
    assert_eq!(found.roles.iter().filter(|role| **role == truecast_schemes::Role::Plain).count(), 0, "{scheme}");
}

#[test]
fn every_scheme_that_is_written_is_read() {
    let mut written = 0;
    for family in Family::all().filter(|family| family.writing() == Writing::Yes && *family != Family::Plain) {
        match family {
            Family::GptOss => check("model.layers.0.mlp.experts.gate_up_proj", &[3, 192, 256], Scheme::of(family)),
            _ => check("model.layers.0.mlp.up_proj.weight", &[192, 256], Scheme::of(family)),
        }
        written += 1;
    }
    assert_eq!(written, 22, "as many as the page lists");
}

#[test]
fn parameters_are_declared() {
    for scheme in [
        "fp8-block:64x32", "fp8-block:64x32,scale=ue8m0", "fp8-channel,scale=bf16",
        "ct:float-quantized,strategy=tensor", "ct:float-quantized,block=64x64", "ct:int-quantized,symmetric=false",
        "ct:int-quantized,group=64", "ct:pack-quantized,bits=3,group=32",
        "ct:pack-quantized,bits=8,strategy=channel,scale=bf16", "ct:pack-quantized,bits=4,group=32,symmetric=false",
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
    check("mlp.experts.0.up_proj.weight", &[64, 128], "fp8-tensor".parse().unwrap());
    check("mlp.experts.down_proj", &[2, 96, 40], "gpt-oss".parse().unwrap());
}

#[test]
fn what_has_no_form_is_refused() {
    let error = |tensor: &Tensor, scheme: &str| target(tensor, scheme.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(
        error(&dense("a.weight", &[64]), "fp8-block"),
        "tensor \"a.weight\": fp8-block cannot hold it: it has fewer than two dimensions"
    );
    assert!(
        error(&dense("a.weight", &[64, 30]), "ct:mxfp4-pack-quantized").contains("not a whole number of groups of 32")
    );
    assert!(error(&dense("a.weight", &[64, 0]), "fp8-block").contains("no elements"));
    let integers = Tensor { dtype: DType::I32, ..dense("a.weight", &[64, 64]) };
    assert!(error(&integers, "fp8-block").contains("its elements are i32"));
    assert_eq!(error(&dense("a.weight", &[64, 64]), "awq"), "awq can be read, not written");
    assert!(error(&dense("experts.up_proj", &[2, 64, 64]), "gpt-oss").contains("it is not experts.gate_up_proj"));
    assert!(error(&dense("experts.down_proj", &[2, 48, 64]), "gpt-oss").contains("48 inputs"));
    assert!(
        error(&dense("a.weight", &[64, 320]), "modelopt:FP8_PB_WO").contains("not a whole number of groups of 128")
    );
    for read in ["NVFP4_AWQ", "NVFP4_SVD", "W4A8_NVFP4_FP8"] {
        assert!(error(&dense("a.weight", &[64, 64]), &format!("modelopt:{read}")).contains("not written"), "{read}");
    }
    assert!(error(&dense("a.weight", &[64, 64]), "mlx:mxfp4").ends_with("can be written by relayout only"));
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
        quant_model_description: Some(json!({})),
    };
    let all = changes(&documents, &Outcome::default()).unwrap();
    let after = changed(documents, &all);
    assert_eq!(after.config, Some(json!({"text_config": {"dtype": "bfloat16"}, "a": 1})));
    assert_eq!((after.hf_quant_config, after.params), (None, Some(json!({"dim": 3}))));
    assert_eq!(after.quant_model_description, None);
    assert_eq!(all.len(), 8);
}

#[test]
fn metadata_of_the_source_scheme_goes() {
    let header =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>();
    let source = header(&[("format", "pt"), ("quantization_config", "{}"), ("note", "{}")]);
    assert_eq!(metadata(&source, &[]), header(&[("format", "pt"), ("note", "{}")]));
}

/// Names of tensors from published models, and the kind of layer that each belongs to (`docs/spec/checkpoints.md
/// §11.3`).
#[test]
fn layers_are_told_by_names() {
    use Layer::{
        Bias, Convolution, Embedding, Head, HighPrecision, Modulation, NextTokens, Norm, Router, StateSpace, Tower,
    };
    for (name, rank, layer) in [
        ("model.layers.0.post_attention_layernorm.weight", 1, Some(Norm)),
        ("encoder.layer.0.output.LayerNorm.bias", 1, Some(Norm)),
        ("encoder.layer.0.output.dense.bias", 1, Some(Bias)),
        ("model.layers.0.mlp.experts.gate_up_proj_bias", 2, Some(Bias)),
        ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 2, Some(Bias)),
        ("model.norm.layers.0.mlp.up_proj.weight", 2, None),
        ("backbone.convnext.0.norm.scale.weight", 2, Some(Modulation)),
        ("backbone.norm.shift.weight", 2, Some(Modulation)),
        ("h.0.ln_1.weight", 1, Some(Norm)),
        ("flow_head.layers.0.adaln_proj.weight", 2, Some(Modulation)),
        ("model.embed_tokens.weight", 2, Some(Embedding)),
        ("transformer.wte.weight", 2, Some(Embedding)),
        ("bert.embeddings.token_type_embeddings.weight", 2, Some(Embedding)),
        ("vit.embeddings.patch_embeddings.projection.weight", 4, Some(Embedding)),
        ("vit.embeddings.cls_token", 3, Some(Embedding)),
        ("shared.weight", 2, Some(Embedding)),
        ("model.layers.0.mlp.shared_experts.up_proj.weight", 2, None),
        ("lm_head.weight", 2, Some(Head)),
        ("language_model.lm_head.weight", 2, Some(Head)),
        ("output.weight", 2, Some(Head)),
        ("layers.0.attention.output.dense.weight", 2, None),
        ("model.layers.61.shared_head.head.weight", 2, Some(Head)),
        ("model.layers.61.eh_proj.weight", 2, Some(NextTokens)),
        ("mtp.layers.0.mlp.up_proj.weight", 2, Some(NextTokens)),
        ("model.layers.3.mlp.gate.weight", 2, Some(Router)),
        ("model.layers.3.block_sparse_moe.gate.weight", 2, Some(Router)),
        ("model.layers.3.mlp.shared_expert_gate.weight", 2, Some(Router)),
        ("model.layers.3.feed_forward.gate.weight", 2, Some(Router)),
        ("model.layers.3.moe.gate.weight", 2, Some(Router)),
        ("model.layers.3.mlp.gate.wg.weight", 2, Some(Router)),
        ("model.layers.3.feed_forward.router.weight", 2, Some(Router)),
        ("blk.0.ffn_gate_inp.weight", 2, Some(Router)),
        ("model.layers.3.mlp.gate_proj.weight", 2, None),
        ("model.layers.3.attention.wo.weight", 2, None),
        ("backbone.layers.0.mixer.A_log", 1, Some(StateSpace)),
        ("backbone.layers.0.mixer.conv1d.weight", 3, Some(StateSpace)),
        ("backbone.layers.0.mixer.D_proj.weight", 2, None),
        ("model.layers.0.linear_attn.in_proj_a.weight", 2, Some(StateSpace)),
        ("model.layers.0.linear_attn.in_proj_ba.weight", 2, None),
        ("rwkv.blocks.0.attention.time_mix_key", 3, Some(StateSpace)),
        ("model.encoder.conv1.weight", 3, Some(Convolution)),
        ("stem.0.weight", 4, Some(Convolution)),
        ("visual.blocks.0.attn.qkv.weight", 2, Some(Tower)),
        ("model.vision_tower.encoder.layers.0.mlp.fc1.weight", 2, Some(Tower)),
        ("multi_modal_projector.linear_1.weight", 2, Some(Tower)),
        // Words inside a block do not show the kind of the block.
        ("transformer_blocks.0.audio_attn.to_q.weight", 2, None),
        ("double_blocks.0.img_attn.qkv.weight", 2, None),
        ("double_blocks.0.img_mod.lin.weight", 2, Some(Modulation)),
        ("layers.0.adaLN_modulation.0.weight", 2, Some(Modulation)),
        ("layers.0.mlp.down_proj.lora_A.vision.weight", 2, Some(HighPrecision)),
        ("model.layers.0.mlp.proj_out.weight", 2, None),
    ] {
        assert_eq!(Layer::by_name(name, rank), layer, "{name}");
    }
    assert!("norm".parse::<Layer>().is_err() && "linear".parse::<Layer>().is_err());
}

/// If the name does not decide, neighboring tensors, rank and kind of model do.
#[test]
fn layers_are_told_by_their_neighbors() {
    let of = |tensors: &[(&str, &[u64])], config: Value| {
        let tensors: Vec<Tensor> = tensors.iter().map(|(name, shape)| dense(name, shape)).collect();
        Model::new(&tensors, Some(&config)).layer(&tensors[0])
    };
    assert_eq!(of(&[("a.up_proj.weight", &[8, 4]), ("a.up_proj.bias", &[8])], json!({})), Layer::Linear);
    assert_eq!(of(&[("a.up_proj.weight", &[4, 8]), ("a.up_proj.bias", &[8])], json!({})), Layer::Linear);
    assert_eq!(of(&[("mlp.c_fc.weight", &[4, 8]), ("mlp.c_fc.bias", &[8])], json!({})), Layer::InputRows);
    assert_eq!(of(&[("mlp.c_fc.weight", &[8, 4]), ("mlp.c_fc.bias", &[8])], json!({})), Layer::Linear);
    assert_eq!(of(&[("attn.c_proj.weight", &[8, 8])], json!({"model_type": "gpt2"})), Layer::InputRows);
    assert_eq!(of(&[("a.out_proj.weight", &[4, 4]), ("a.in_proj_weight", &[12, 4])], json!({})), Layer::HighPrecision);
    assert_eq!(of(&[("a.in_proj_weight", &[12, 4])], json!({})), Layer::Unknown);
    assert_eq!(of(&[("block.0.DenseReluDense.wo.weight", &[4, 8])], json!({})), Layer::HighPrecision);
    assert_eq!(
        of(&[("block.0.mlp.wo.weight", &[4, 8])], json!({"model_type": "switch_transformers"})),
        Layer::HighPrecision
    );
    assert_eq!(of(&[("block.0.wo.weight", &[4, 8])], json!({"model_type": "llama"})), Layer::Linear);
    let imitation: [(&str, &[u64]); 2] = [("a.query.weight", &[4, 8]), ("a.query.weight_integer", &[4, 8])];
    assert_eq!(of(&imitation, json!({"model_type": "ibert"})), Layer::HighPrecision);
    assert_eq!(of(&[("layers.1.shared_transf.q_proj.weight", &[4, 8])], json!({})), Layer::HighPrecision);
    assert_eq!(of(&[("mlp.experts.up_proj", &[2, 4, 8])], json!({})), Layer::Experts);
    assert_eq!(of(&[("mixer.latents", &[2, 4, 8])], json!({})), Layer::Unknown);
}

/// The axis of inputs in fused experts. The sizes of both layers show the axis, or else the model's width.
#[test]
fn experts_have_rows_of_outputs_or_of_inputs() {
    let of = |first: (&str, &[u64; 3]), second: (&str, &[u64; 3]), width: u64| {
        let tensors = [dense(first.0, first.1), dense(second.0, second.1)];
        let config = json!({"hidden_size": width});
        let model = Model::new(&tensors, Some(&config));
        [model.has_input_rows(&tensors[0]), model.has_input_rows(&tensors[1])]
    };
    let (gate_up, down, up) = ("experts.gate_up_proj", "experts.down_proj", "experts.up_proj");
    assert_eq!(of((gate_up, &[4, 32, 24]), (down, &[4, 24, 16]), 0), [false, false]);
    assert_eq!(of((gate_up, &[4, 24, 32]), (down, &[4, 16, 24]), 0), [true, true]);
    // The width is twice the inner size.
    assert_eq!(of((gate_up, &[4, 32, 32]), (down, &[4, 32, 16]), 32), [false, false]);
    assert_eq!(of((gate_up, &[4, 32, 32]), (down, &[4, 16, 32]), 32), [true, true]);
    assert_eq!(of((up, &[4, 16, 24]), ("x", &[1, 1, 1]), 24), [false, false]);
    assert_eq!(of((up, &[4, 24, 16]), ("x", &[1, 1, 1]), 24), [true, false]);
}

const OUTSIDE: &str = r"[^.]*(\.[0-9]*[^.0-9][^.]*)*(\.[0-9]+)*$";

/// The modules are heads that a loader makes from the table of tokens, modules outside of blocks, and modules with
/// another name in memory.
#[test]
fn modules_in_memory_are_named() {
    let of = |names: &[&str], quantized: &[&str]| {
        let tensors: Vec<Tensor> = names.iter().map(|name| dense(name, &[9, 4])).collect();
        let quantized: Vec<String> = quantized.iter().map(|name| (*name).to_owned()).collect();
        Model::new(&tensors, Some(&json!({"vocab_size": 9}))).modules_in_memory(&quantized)
    };
    let inside = ["model.layers.0.a"];
    // Loaders keep the usual names of a table and a head.
    assert_eq!(of(&["model.language_model.embed_tokens.weight"], &inside), ["lm_head"]);
    assert_eq!(of(&["model.embed_tokens.weight", "lm_head.weight"], &inside), [""; 0]);
    assert_eq!(of(&["model.decoder.embed_tokens.weight"], &inside), [OUTSIDE, "lm_head"]);
    for other in ["gpt_neox.embed_in.weight", "weight", "model.embed_positions.weight", "a.out.0.weight"] {
        assert_eq!(of(&["lm_head.weight", other], &inside), [OUTSIDE], "{other}");
    }
    // An expression for modules outside of blocks would match the quantized module.
    assert_eq!(of(&["lm_head.weight", "pooler.dense.weight"], &["pooler.dense", inside[0]]), [""; 0]);
    let of = |names: &[&str]| of(names, &inside);
    let stacked = ["model.layers.0.block_sparse_moe.input_linear.weight", "lm_head.weight"];
    assert_eq!(of(&stacked), ["block_sparse_moe.experts"]);
    assert_eq!(of(&["model.layers.0.block_sparse_moe.gate.weight", "lm_head.weight"]), ["router"]);
    let towers = ["audio_tower", "vision_encoder", "vision_model", "vision_tower"];
    assert_eq!(of(&["visual.blocks.0.attn.wqkv.weight", "lm_head.weight"]), [&towers[..], &["visual"]].concat());
    // Blocks next to the main stack belong to a tower, even without a usual name.
    let beside = ["model.embed_tokens.weight", "model.layers.0.a.weight", "vit.x.layers.0.a.weight", "lm_head.weight"];
    assert_eq!(of(&beside), [&towers[..], &["visual"]].concat());
    // torch's packed attention becomes four layers. Its module may have another name in memory.
    let packed = of(&["a.layers.0.attn.in_proj_weight", "a.layers.0.fc.weight", "lm_head.weight"]);
    assert!(
        ["attn.q_proj", "self_attn.o_proj"].iter().all(|layer| packed.contains(&String::from(*layer))),
        "{packed:?}"
    );
    // All members of a list of heads share the first member.
    let heads = ["lm_head.weight", "layers.0.norm.bias", "layers.0.a.weight", "bbox_embed.0.layers.0.weight"];
    assert!(of(&heads).contains(&"bbox_embed".to_owned()));
}

/// A loader sees fused experts as one module, with and without `.weight` in the name.
#[test]
fn experts_are_one_module() {
    for (name, shape, module) in [
        ("a.experts.fc1.weight", &[2, 4, 8][..], Some("a.experts")),
        ("a.experts.gate_up_proj", &[2, 4, 8], Some("a.experts")),
        ("a.experts.0.fc1.weight", &[4, 8], Some("a.experts.0.fc1")),
        ("a.conv.weight", &[2, 4, 8], Some("a.conv")),
        ("a.norm.weight", &[4, 8], None),
        // transformers matches an empty entry with the end of every name.
        ("weight", &[4, 8], None),
        ("a.experts.fc1.bias", &[4], None),
    ] {
        assert_eq!(loaded_module(&dense(name, shape)).as_deref(), module, "{name}");
    }
}

/// transformers matches an entry with the beginning or the end of a name, and an expression with the beginning only. A
/// module inside another module needs an expression.
#[test]
fn listed_modules_are_found_below_others() {
    let in_memory = [OUTSIDE, "attn.q_proj", "lm_head", "lm_heads"].map(String::from);
    let quantized = ["layers.0.self_attn.q_proj".to_owned()];
    let documents = |scheme: &str| {
        let scheme = scheme.parse().unwrap();
        let outcome = Outcome { scheme, in_memory: &in_memory, quantized: &quantized, ..Outcome::default() };
        changed(Documents::default(), &changes(&Documents::default(), &outcome).unwrap())
    };
    for scheme in ["fp8-block", "fp8-tensor", "mxfp8", "gpt-oss"] {
        let listed = &documents(scheme).config.unwrap()["quantization_config"]["modules_to_not_convert"];
        assert_eq!(*listed, json!([OUTSIDE, "lm_head", "lm_heads", r".*\.attn\.q_proj", r".*\.lm_heads"]), "{scheme}");
    }
    // ModelOpt's lists cannot have expressions.
    let listed = &documents("modelopt:MXFP8").config.unwrap()["quantization_config"]["ignore"];
    assert_eq!(*listed, json!(in_memory[1..]));
}

/// Entries of compressed-tensors' `ignore` match every kept module by its end, and no quantized module.
#[test]
fn ignored_modules_are_told_by_their_ends() {
    let kept = [
        "lm_head", "a.layers.2.mlp.experts", "vision_tower.blocks.0.wqkv", "vision_tower.blocks.0.wo",
        "model.encoder.pooler.dense", "a.layers.0.mlp.gate", "a.layers.1.mlp.gate", "v.blocks.0.fc.2",
        "a.layers.1.mlp.up",
    ];
    let quantized = ["a.layers.0.mlp.gate_proj", "a.layers.0.mlp.up", "v.blocks.0.fc.1"];
    let scheme = "ct:pack-quantized".parse().unwrap();
    let [kept, quantized] = [kept.map(String::from).to_vec(), quantized.map(String::from).to_vec()];
    let ignored = |in_memory: [&str; 2]| {
        let in_memory = in_memory.map(String::from);
        let kept_too = Outcome { scheme, kept: &kept, ..Outcome::default() };
        let outcome = Outcome { in_memory: &in_memory, quantized: &quantized, ..kept_too };
        let documents = changed(Documents::default(), &changes(&Documents::default(), &outcome).unwrap());
        documents.config.unwrap()["quantization_config"]["ignore"].clone()
    };
    let expected = [
        "lm_head", r"re:(.*\.)?lm_head$", r"re:(.*\.)?experts(\..*)?$", r"re:(.*\.)?vision_tower\..*",
        r"re:(.*\.)?model\.encoder\..*", r"re:(.*\.)?gate$", r"re:(.*\.)?fc\.2$", r"re:(.*\.)?layers\.1\.mlp\.up$",
        "router", r"re:(.*\.)?router(\..*)?$", r"re:(.*\.)?mlp\.experts(\..*)?$",
    ];
    assert_eq!(ignored(["router", "mlp.experts"]), json!(expected));
    // One expression replaces all modules outside of blocks, because loaders may know them as parts of quantized
    // modules.
    let outside = format!("re:{OUTSIDE}");
    let expected = [&expected[..1], &expected[2..4], &expected[5..8], &[&outside, "router", expected[9]]].concat();
    assert_eq!(ignored([OUTSIDE, "router"]), json!(expected));
}
