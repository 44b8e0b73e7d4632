use super::hyperparameters::Dimensions;
use super::*;
use serde_json::json;

fn files() -> Files {
    let config = json!({
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 8
    });
    let splits = json!([
        {
            "type": "Split", "behavior": "Isolated", "invert": false,
            "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}
        },
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}
    ]);
    let tokenizer = json!({
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
        "added_tokens": [{"id": 3, "content": "<end>", "special": true}, {"id": 5, "content": "x\u{2581}y", "special": false}]
    });
    Files { config, tokenizer: Some(tokenizer), ..Files::default() }
}

fn value<'a>(keys: &'a Keys, name: &str) -> &'a [u8] {
    keys.pairs().find(|(key, _)| *key == name).expect("a key").1
}

fn refusal(files: &Files) -> String {
    Model::new(&files.config).and_then(|model| keys(&model, files)).expect_err("refused").to_string()
}

#[test]
fn keys_of_a_small_model() {
    let files = files();
    let keys = keys(&Model::new(&files.config).expect("a known model"), &files).expect("a known model");
    assert_eq!(keys.text("tokenizer.ggml.pre"), Some("qwen2"));
    assert_eq!(value(&keys, "qwen2.context_length"), [4, 0, 0, 0, 0, 128, 0, 0]);
    assert_eq!(value(&keys, "qwen2.rope.freq_base"), [6, 0, 0, 0, 0, 64, 28, 70]);
    let types = &value(&keys, "tokenizer.ggml.token_type")[16..];
    assert_eq!(types.iter().step_by(4).copied().collect::<Vec<_>>(), [1, 1, 1, 3, 5, 4, 5, 5]);
    assert!(value(&keys, "tokenizer.ggml.tokens").windows(6).any(|text| text == b"[PAD4]"));
}

#[test]
fn dimensions_of_a_small_model() {
    let found = Model::new(&files().config).and_then(|model| model.dimensions()).expect("a known model");
    assert_eq!((found.heads, found.kv_heads, found.head, found.key_rows), (4, 2, Some(16), 0));
}

#[test]
fn unknown_values_are_refused_by_name() {
    let cases = [
        ("model_type", json!("bert"), "model_type is \"bert\", expected one of llama, mistral"),
        ("architectures", json!(["Qwen2Model"]), "architectures is [\"Qwen2Model\"], expected [\"Qwen2ForCausalLM\"]"),
        ("hidden_act", json!("relu"), "hidden_act is \"relu\", expected \"silu\""),
        ("hidden_size", json!(-1), "hidden_size is -1, expected an integer of 32 bits"),
        ("hidden_size", json!(null), "hidden_size is missing"),
        ("num_attention_heads", json!(0), "num_attention_heads is 0, expected more than none"),
        ("vocab_size", json!(u32::MAX), "vocab_size is 4294967295, expected at most 1048576"),
        ("vocab_size", json!(5), "token \"x\u{2581}y\" has the number 5, and vocab_size is 5"),
        ("rope_scaling", json!({"type": "dynamic", "factor": 2.0}), "rope_scaling: type is \"dynamic\""),
        ("rope_scaling", json!({"type": "yarn"}), "rope_scaling: factor is missing"),
        ("rope_scaling", json!({"type": "yarn", "factor": 4, "beta_slow": 2}), "beta_slow is 2, expected 1"),
    ];
    for (name, value, expected) in cases {
        let mut files = files();
        files.config[name] = value;
        assert!(refusal(&files).contains(expected), "{}", refusal(&files));
    }
}

/// llama.cpp scales positions in layers that see all tokens, and not in layers with a window.
#[test]
fn scaled_positions_of_a_window_are_refused() {
    let config = |local: serde_json::Value| {
        let mut config = files().config;
        config["model_type"] = json!("gemma3_text");
        config["architectures"] = json!(["Gemma3ForCausalLM"]);
        let full = json!({"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6});
        config["rope_parameters"] = json!({"full_attention": full, "sliding_attention": local});
        config
    };
    let of = |local: serde_json::Value| {
        let mut keys = Keys::new();
        Model::new(&config(local)).and_then(|model| model.keys(&mut keys))?;
        Ok::<_, CheckpointError>(value(&keys, "gemma3.rope.freq_base_swa").to_vec())
    };
    let base = of(json!({"rope_type": "default", "rope_theta": 20_000.0})).expect("no scaling");
    assert_eq!(base, [&6u32.to_le_bytes()[..], &20_000f32.to_le_bytes()].concat());
    let refused = of(json!({"rope_type": "linear", "factor": 2.0})).expect_err("a scaling").to_string();
    assert!(refused.contains("sliding_attention: rope_type is \"linear\", expected default"), "{refused}");
}

#[test]
fn windows_that_are_not_written_are_told() {
    let full = ["full_attention", "full_attention"];
    let cases = [
        (json!({}), false),
        (json!({"sliding_window": 8}), false),
        (json!({"use_sliding_window": true, "sliding_window": 8}), false),
        (json!({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1}), true),
        (json!({"use_sliding_window": true, "sliding_window": 8, "layer_types": full}), false),
        (json!({"use_sliding_window": true, "sliding_window": 32768, "max_window_layers": 1}), false),
        (json!({"model_type": "mistral", "architectures": ["MistralForCausalLM"]}), true),
        (json!({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": null}), false),
    ];
    for (fields, expected) in cases {
        let mut config = files().config;
        config.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        let warning = Model::new(&config).and_then(|model| model.warning()).expect("a known model");
        assert_eq!(warning.is_some(), expected, "{fields}: {warning:?}");
    }
}

#[test]
fn a_text_has_one_number() {
    let mut files = files();
    let tokenizer = files.tokenizer.as_mut().expect("it is there");
    tokenizer["added_tokens"][0]["content"] = json!("ab");
    let found = keys(&Model::new(&files.config).expect("a known model"), &files).expect("a known tokenizer");
    let types = &value(&found, "tokenizer.ggml.token_type")[16..];
    assert_eq!(types.iter().step_by(4).copied().collect::<Vec<_>>(), [1, 1, 3, 5, 5, 4, 5, 5]);
    files.tokenizer.as_mut().expect("it is there")["added_tokens"][0]["content"] = json!("[PAD4]");
    assert!(refusal(&files).contains("tokens 3 and 4 have the same text, \"[PAD4]\""), "{}", refusal(&files));
}

#[test]
fn unknown_tokenizers_are_refused() {
    let cases = [
        ("/model/type", json!("Unigram"), "model.type is \"Unigram\""),
        (
            "/pre_tokenizer",
            json!({"type": "Whitespace"}),
            "pre_tokenizer is not a known one: {\"type\":\"Whitespace\"}",
        ),
        ("/pre_tokenizer/pretokenizers/0/pattern/Regex", json!("\\w+"), "pre_tokenizer is not a known one"),
        ("/added_tokens/0/id", json!("3"), "an added token is {\"id\":\"3\""),
        ("/model/merges/0", json!(["a"]), "a merge is [\"a\"]"),
    ];
    for (place, value, expected) in cases {
        let mut files = files();
        let tokenizer = files.tokenizer.as_mut().expect("it is there");
        *tokenizer.pointer_mut(place).expect("a place") = value;
        assert!(refusal(&files).contains(expected), "{}", refusal(&files));
    }
    let files = Files { tokenizer: None, ..files() };
    assert!(refusal(&files).contains("no tokenizer.json or tokenizer.model"), "{}", refusal(&files));
}

#[test]
fn a_damaged_model_of_pieces_is_refused() {
    // One piece, `a` with the score 1, and a trainer of byte-pair encoding.
    let whole = b"\x0a\x08\x0a\x01a\x15\x00\x00\x80\x3f\x12\x02\x18\x02";
    let read = pieces::read(whole).expect("pieces");
    assert_eq!((read[0].text.as_str(), read[0].score, read[0].kind), ("a", 1.0, 1));
    assert!((1..whole.len()).filter(|end| ![10].contains(end)).all(|end| pieces::read(&whole[..end]).is_err()));
    assert!(pieces::read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    let unigram = pieces::read(b"").expect_err("no type").to_string();
    assert!(unigram.contains("the model type is 1, expected 2"), "{unigram}");
}

#[test]
fn tensors_that_are_left_out_are_named() {
    let names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "vision_tower.patch.weight"];
    let item =
        |name: &str| Item { name: name.into(), shape: vec![2], values: Values::Known(vec![0.0; 2]), dtype: DType::F32 };
    let all = |count: usize| names[..count].iter().map(|name| item(name)).collect();
    let of = |architecture| Dimensions { architecture, ..Dimensions::default() };
    let said = |architecture, count| by_name::targets(of(architecture), all(count)).expect("targets").notes;
    assert_eq!(said("llama", 3), [""; 0]);
    let all = ["embed_tokens.weight", "norm.weight", "layers.1.eh_proj.weight", "layers.1.mlp.gate.weight"];
    let all = all.map(item).to_vec();
    let latent = Dimensions { layers: Some(1), ..of("deepseek2") };
    let [later] = &by_name::targets(latent, all).expect("targets").notes[..] else { panic!("one sentence") };
    assert!(later.starts_with("2 tensors of layers that predict further tokens"), "{later}");
    let [encoder, head] = &said("gemma2", 4)[..] else { panic!("two sentences") };
    assert!(encoder.starts_with("1 tensor of encoders of images or sound"), "{encoder}");
    assert!(head.starts_with("1 tensor (first \"lm_head.weight\") left out"), "{head}");
}
