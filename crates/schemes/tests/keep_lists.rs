//! What is kept in models of many families, against the lists that other tools publish, as facts (`docs/spec/checkpoints.md
//! §11.3`): llm-compressor's examples, ModelOpt's defaults, convert_to_quant's filters.

use serde_json::{Value, json};
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Family, Model};

/// Names without `.weight` of matrices of 64 x 64; one with `!` at its end is a vector.
fn tensors<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Tensor> {
    let of = |name: &str| {
        let shape: &[u64] = if name.ends_with('!') { &[64] } else { &[64, 64] };
        let name = format!("{}.weight", name.trim_end_matches('!')).into();
        Tensor { name, dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into() }
    };
    names.map(of).collect()
}

/// A family: what its files hold that lists of other tools keep, what they quantize, and its configuration.
struct Published {
    family: &'static str,
    kept: &'static [&'static str],
    quantized: &'static [&'static str],
    config: Value,
}

fn published(family: &'static str, kept: &'static [&'static str], quantized: &'static [&'static str]) -> Published {
    Published { family, kept, quantized, config: json!({"model_type": family}) }
}

fn all() -> Vec<Published> {
    let decoder: &[&str] = &["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"];
    let inner: &[&str] =
        &["language_model.model.layers.0.self_attn.q_proj", "language_model.model.layers.1.mlp.up_proj"];
    vec![
        // Image and video models: convert_to_quant.
        published(
            "flux",
            &[
                "img_in",
                "txt_in",
                "time_in.in_layer",
                "guidance_in.in_layer",
                "vector_in.out_layer",
                "final_layer.linear",
            ],
            &["double_blocks.0.img_attn.qkv", "double_blocks.0.txt_mlp.0", "single_blocks.0.linear1"],
        ),
        published(
            "flux2",
            &[
                "double_stream_modulation_img.lin",
                "single_stream_modulation.lin",
                "time_in.in_layer",
                "final_layer.linear",
            ],
            &["double_blocks.0.img_attn.qkv", "single_blocks.0.linear2"],
        ),
        published(
            "chroma",
            &["distilled_guidance_layer.layers.0.in_layer", "distilled_guidance_layer.in_proj", "final_layer.linear"],
            &["double_blocks.0.img_attn.proj", "single_blocks.7.linear1"],
        ),
        published(
            "wan",
            &[
                "text_embedding.0",
                "time_embedding.2",
                "time_projection.1",
                "head.head",
                "img_emb.proj.1",
                "casual_audio_encoder.encoder.conv1.linear",
                "motion_encoder.enc.fc.0",
                "cond_encoder",
            ],
            &["blocks.0.self_attn.q", "blocks.39.cross_attn.k_img", "blocks.0.ffn.2"],
        ),
        published(
            "hunyuan_video",
            &["img_in.proj", "vision_in.proj.1", "final_layer.adaLN_modulation.1", "guidance_in.mlp.0", "byt5_in.fc1"],
            &["double_blocks.0.img_attn_qkv", "single_blocks.0.linear1"],
        ),
        published(
            "qwen_image",
            &[
                "time_text_embed.timestep_embedder.linear_1",
                "img_in",
                "txt_in",
                "norm_out.linear",
                "proj_out",
                "transformer_blocks.0.img_mod.1",
                "transformer_blocks.5.txt_mod.1",
            ],
            &[
                "transformer_blocks.0.attn.to_q",
                "transformer_blocks.1.img_mlp.net.0.proj",
                "transformer_blocks.1.attn.to_out.0",
            ],
        ),
        published(
            "z_image",
            &["x_embedder", "cap_embedder.1", "t_embedder.mlp.0", "final_layer.linear", "layers.0.adaLN_modulation.0"],
            &["layers.0.attention.qkv", "layers.29.feed_forward.w2"],
        ),
        published(
            "anima",
            &[
                "net.x_embedder.proj.1",
                "net.t_embedder.1.linear_1",
                "net.final_layer.linear",
                "net.blocks.1.adaln_modulation_mlp.1",
            ],
            &["net.blocks.1.self_attn.q_proj", "net.blocks.2.mlp.layer1"],
        ),
        published(
            "ltx2",
            &[
                "patchify_proj",
                "audio_patchify_proj",
                "proj_out",
                "adaln_single.linear",
                "av_ca_a2v_gate_adaln_single.linear",
                "video_embeddings_connector.transformer_1d_blocks.0.attn1.to_q",
                "audio_vae.decoder.mid.attn",
                "vocoder.proj",
                "transformer_blocks.3.attn1.to_gate_logits",
                "text_embedding_projection.linear",
            ],
            &[
                "transformer_blocks.3.attn1.to_q",
                "transformer_blocks.3.audio_to_video_attn.to_k",
                "transformer_blocks.3.ff.net.2",
            ],
        ),
        published(
            "ideogram",
            &[
                "embed_image_indicator",
                "t_embedding.mlp_in",
                "llm_cond_proj",
                "adaln_proj",
                "final_layer.linear",
                "input_proj",
            ],
            &["layers.0.attention.qkv", "layers.1.feed_forward.w1"],
        ),
        published(
            "sdxl",
            &[
                "model.diffusion_model.time_embed.0",
                "model.diffusion_model.label_emb.0.0",
                "model.diffusion_model.input_blocks.1.0.emb_layers.1",
                "first_stage_model.decoder.mid.attn_1.q",
                "conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1",
            ],
            &["model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q"],
        ),
        // Models of vision and sound: examples of llm-compressor, ModelOpt, convert_to_quant.
        published(
            "minicpmv",
            &["vpm.encoder.layers.0.mlp.fc1", "resampler.kv_proj", "llm.lm_head"],
            &["llm.model.layers.0.mlp.up_proj"],
        ),
        published(
            "phi4mm",
            &[
                "model.embed_tokens_extend.image_embed.img_processor.encoder.layers.0.mlp.fc1",
                "model.layers.0.mlp.up_proj.lora_A.speech",
            ],
            decoder,
        ),
        published("phi3_v", &["model.vision_embed_tokens.img_projection.0"], decoder),
        published(
            "molmo",
            &["model.vision_backbone.image_vit.transformer.resblocks.0.attention.wq", "model.transformer.ff_out"],
            &["model.transformer.blocks.0.ff_proj"],
        ),
        published(
            "deepseek_vl_v2",
            &["vision.blocks.0.attn.qkv", "projector.layers.0"],
            &["language.model.layers.0.mlp.up_proj"],
        ),
        published(
            "deepseek_ocr",
            &[
                "model.sam_model.blocks.0.attn.qkv",
                "model.vision_model.transformer.layers.0.mlp.fc1",
                "model.projector.layers",
            ],
            decoder,
        ),
        published(
            "glm4v",
            &["transformer.vision.transformer.layers.0.mlp.fc1", "transformer.vision.linear_proj.gate_proj"],
            &["transformer.encoder.layers.0.mlp.dense_h_to_4h"],
        ),
        published(
            "moondream1",
            &["model.vision.blocks.0.mlp.fc1", "model.vision.proj_mlp.fc1", "model.region.coord_encoder"],
            &["model.text.blocks.0.mlp.fc1"],
        ),
        published(
            "voxtral",
            &[
                "mm_whisper_embeddings.whisper_encoder.transformer.layers.0.feed_forward.w1",
                "mm_whisper_embeddings.audio_language_projection.0",
            ],
            &["layers.0.feed_forward.w1"],
        ),
        published("internvl_chat", &["mlp1.1", "vision_model.encoder.layers.0.mlp.fc1"], inner),
        published(
            "idefics3",
            &["model.connector.modality_projection.proj"],
            &["model.text_model.layers.0.mlp.up_proj"],
        ),
        published(
            "janus",
            &[
                "aligner.layers.0",
                "gen_vision_model.decoder.mid.0.q",
                "gen_aligner.layers.0",
                "gen_head.output_mlp_projector",
            ],
            inner,
        ),
        published(
            "qwen3_omni_moe",
            &[
                "code2wav.pre_transformer.layers.0.mlp.down_proj",
                "thinker.visual.blocks.0.attn.qkv",
                "thinker.audio_tower.layers.0.fc1",
            ],
            &["thinker.model.layers.0.self_attn.q_proj"],
        ),
        published("kimi_vl", &["vision_tower.encoder.blocks.0.wqkv", "multi_modal_projector.linear_1"], inner),
        published(
            "granite_speech",
            &["encoder.layers.0.ff1.up_proj", "projector.qformer.encoder.layer.0.attention.attention.query"],
            inner,
        ),
        published("ovis2", &["visual_tokenizer.backbone.layers.0.fc1", "vte"], &["llm.model.layers.0.mlp.up_proj"]),
        published(
            "mllama",
            &["model.vision_model.transformer.layers.0.mlp.fc1", "model.multi_modal_projector"],
            &["model.language_model.layers.0.cross_attn.q_proj"],
        ),
        published(
            "gemma4",
            &[
                "model.embed_vision.embedding_projection",
                "model.audio_tower.layers.0.ffw.w",
                "model.layers.0.per_layer_input_gate",
                "model.layers.0.per_layer_projection",
            ],
            decoder,
        ),
        // Language models.
        published(
            "qwen3_5",
            &[
                "model.visual.merger.linear_fc1",
                "mtp.fc",
                "model.layers.0.linear_attn.in_proj_a",
                "lm_head",
                "model.layers.0.mlp.gate",
                "model.layers.0.mlp.shared_expert_gate",
            ],
            &["model.layers.0.mlp.experts.3.up_proj", "model.layers.1.mlp.shared_expert.up_proj"],
        ),
        published("llama4", &["vision_model.model.layers.0.fc1", "model.layers.0.feed_forward.router"], decoder),
        published(
            "glm_moe_dsa",
            &[
                "model.layers.0.self_attn.indexer.weights_proj",
                "model.layers.61.eh_proj",
                "model.layers.61.shared_head.head",
            ],
            decoder,
        ),
        published(
            "nemotron_h",
            &["backbone.layers.0.mixer.conv1d", "backbone.layers.1.mixer.gate", "lm_head"],
            &["backbone.layers.0.mixer.in_proj", "backbone.layers.1.mixer.experts.0.up_proj"],
        ),
        // Tables and heads of any name.
        published(
            "bart",
            &["model.shared", "classification_head.dense"],
            &["model.encoder.layers.0.fc1", "model.decoder.layers.0.fc1"],
        ),
        published("ctrl", &["transformer.w"], &["transformer.h.0.multi_head_attention.Wq"]),
        published(
            "sam",
            &["mask_decoder.iou_token", "mask_decoder.iou_prediction_head.layers.0", "prompt_encoder.point_embed.0"],
            &["mask_decoder.transformer.layers.0.mlp.lin1"],
        ),
        published(
            "deformable_detr",
            &["model.decoder.bbox_embed.0.layers.1", "class_embed.0"],
            &["model.encoder.layers.0.fc1", "model.decoder.layers.0.fc1"],
        ),
        published(
            "timesfm",
            &["model.decoder.freq_emb", "model.decoder.horizon_ff_layer.input_layer"],
            &["model.decoder.layers.0.mlp.gate_proj"],
        ),
    ]
}

/// Every table of tokens that a family may have, and a norm in each block, as its files do.
#[test]
fn published_lists_are_kept() {
    for Published { family, kept, quantized, config } in all() {
        let blocks = quantized.iter().map(|name| {
            let dot = name.match_indices('.').find(|(at, _)| name[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
            let end = dot.and_then(|(at, _)| name[at + 1..].find('.').map(|end| at + 1 + end)).unwrap();
            format!("{}.norm!", &name[..end])
        });
        let blocks: Vec<String> = blocks.collect();
        let names = kept.iter().chain(quantized).copied().chain(blocks.iter().map(String::as_str));
        let tensors = tensors(names);
        let model = Model::new(&tensors, Some(&config));
        let quantizes = |name: &&str| {
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

/// A list of blocks that is small beside the main one is kept in a model without a table of tokens.
#[test]
fn small_lists_are_beside_the_main_stack() {
    let many: Vec<String> = (0..30).map(|n| format!("layers.{n}.attention.qkv")).collect();
    let names = ["context_refiner.0.attention.qkv", "context_refiner.1.attention.qkv"];
    let tensors = tensors(names.into_iter().chain(many.iter().map(String::as_str)));
    let model = Model::new(&tensors, None);
    let is_kept = |at: usize| !model.is_quantized(&tensors[at], model.layer(&tensors[at]), Family::ComfyNvfp4);
    assert_eq!([is_kept(0), is_kept(1), is_kept(2), is_kept(31)], [true, true, false, false]);
}

/// A matrix in f32 beside others of 16 bits is so for a reason.
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
