//! Folders that hold several checkpoints, parts of checkpoints, adapters: `docs/spec/checkpoints.md §2.3`, §2.7.

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::json;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

const WEIGHTS: &str = "model.safetensors";

/// Values that bf16 has, so that their bf16 is the upper half of each.
fn values(seed: u32) -> Vec<f32> {
    (0..64).map(|i| f32::from_bits((0x3f80 + (seed + i) % 64) << 16)).collect()
}

fn file(name: &str, seed: u32) -> Vec<u8> {
    safetensors(&[(name, "F32", &[8, 8], f32s(&values(seed)))], &[("format", "pt")])
}

/// What has weights, each with a configuration; what is copied; what is left out with a warning.
struct Kind {
    name: &'static str,
    weights: &'static [&'static str],
    copied: &'static [(&'static str, &'static str)],
    left_out: &'static [&'static str],
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "sentence-transformers",
        weights: &[WEIGHTS, "2_Dense/model.safetensors", "3_Dense/model.safetensors"],
        copied: &[
            ("modules.json", r#"[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "3_Dense"}]"#),
            ("1_Pooling/config.json", r#"{"word_embedding_dimension": 8}"#),
        ],
        left_out: &["onnx/model.onnx", "openvino/openvino_model.bin", "pytorch_model.bin"],
    },
    Kind {
        name: "sentence-transformers without weights at the top",
        weights: &["0_CLIPModel/model.safetensors", "2_Dense/model.safetensors"],
        copied: &[("modules.json", r#"[{"path": "0_CLIPModel"}, {"path": "2_Dense"}]"#)],
        left_out: &[],
    },
    Kind {
        name: "pipeline",
        weights: &[
            "text_encoder/model.safetensors",
            "transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
            "transformer/diffusion_pytorch_model-00002-of-00002.safetensors",
            "unet/diffusion_pytorch_model.safetensors",
        ],
        copied: &[
            (
                "model_index.json",
                r#"{"_class_name": "P", "unet": ["diffusers", "U"], "scheduler": ["diffusers", "S"]}"#,
            ),
            ("scheduler/scheduler_config.json", "{}"),
        ],
        left_out: &["sd.safetensors", "unet/diffusion_pytorch_model.fp16.safetensors", "unet/model.onnx"],
    },
    Kind {
        name: "adapters in folders",
        weights: &[WEIGHTS, "speech-lora/adapter_model.safetensors", "vision/lora/adapter_model.safetensors"],
        copied: &[("speech-lora/adapter_config.json", "{}")],
        left_out: &["original/model.safetensors", "adapter_model.safetensors"],
    },
    Kind {
        name: "parts and an adapter",
        weights: &["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
        copied: &[("adapter_config.json", "{}")],
        left_out: &["adapter_model.safetensors"],
    },
];

fn folder(kind: &Kind) -> Folder {
    let folder = Folder::new();
    for (seed, path) in (0..).zip(kind.weights) {
        let (below, of_many) = (path.rsplit_once('/').map_or("", |(below, _)| below), path.contains("-of-"));
        // Several components have tensors of one name.
        let tensor = if of_many { format!("{seed}.weight") } else { "linear.weight".into() };
        folder.write(&format!("in/{path}"), &file(&tensor, seed));
        folder.write(&format!("in/{below}/config.json"), b"{\"a\": {\"dtype\": \"float32\"}}");
    }
    kind.copied.iter().for_each(|(path, text)| folder.write(&format!("in/{path}"), text.as_bytes()));
    kind.left_out.iter().for_each(|path| folder.write(&format!("in/{path}"), &file("linear.weight", 9)));
    folder
}

#[test]
fn all_weights_of_a_folder_are_converted() {
    for kind in &KINDS {
        let folder = folder(kind);
        let ran = folder.run("convert in out --to bf16 --report r.json").exits(0).warns(kind.left_out);
        assert_eq!(ran.err.lines().count(), kind.left_out.len(), "{}: {}", kind.name, ran.err);
        let out = tree(&folder, "out");
        for (seed, path) in (0..).zip(kind.weights) {
            let found = Parsed::new(&out[*path]);
            let upper: Vec<u8> = values(seed).iter().flat_map(|value| value.to_le_bytes()[2..].to_vec()).collect();
            let name = found.names()[0].to_string();
            assert_eq!((found.dtype(&name), found.bytes(&name)), ("BF16", &upper[..]), "{}: {path}", kind.name);
            let config =
                path.rsplit_once('/').map_or("config.json".into(), |(below, _)| format!("{below}/config.json"));
            assert_eq!(out[&config], b"{\"a\": {\"dtype\": \"bfloat16\"}}", "{config}");
        }
        kind.copied.iter().for_each(|(path, text)| assert_eq!(out[*path], text.as_bytes(), "{path}"));
        assert!(kind.left_out.iter().all(|path| !out.contains_key(*path)), "{}", kind.name);
        // The whole, and each component by itself.
        folder.run("verify in out").exits(0);
        folder.run("verify in out --report r.json").exits(0);
        let last = kind.weights[kind.weights.len() - 1];
        if let Some((component, _)) = last.rsplit_once('/') {
            folder.run(&format!("verify in/{component} out/{component}")).exits(0);
            folder
                .run_with_flipped(&format!("out/{last}"), out[last].len() - 1, 0x40, "verify in out")
                .says(&[component]);
            folder.write("out/more/model.safetensors", &file("x", 0));
            folder.run("verify in out").exits(1).says(&["out/more", "did not write"]);
            std::fs::remove_dir_all(folder.path("out/more")).unwrap();
        }
        // What is there is not replaced unless that is asked for; what is finished is kept; a dry run says the same.
        folder.run("convert in out --to bf16").fails(2, &["exists and holds"]);
        folder.run("convert in out --to bf16 --resume").exits(0).says(&["correct and kept"]);
        folder.run("convert in out --to f16 --force --quiet").exits(0);
        folder.run("verify in out").exits(0);
        folder.run("convert in new --to bf16 --dry-run").exits(0).says(&[last]);
        assert!(!folder.path("new").exists());
        folder.run("convert in new --to bf16 --resume --quiet").exits(0);
        assert_eq!(tree(&folder, "new"), out, "{}", kind.name);
    }
}

/// Rules are for all of them; what is for one model says which there are.
#[test]
fn options_of_folders_of_several_models() {
    let folder = folder(&KINDS[2]);
    folder.run("convert in out --to bf16 --keep 1.* --quiet").exits(0);
    let kept = Parsed::new(&folder.read(&format!("out/{}", KINDS[2].weights[1])));
    assert_eq!(kept.dtype("1.weight"), "F32");
    folder.run("verify in out").exits(0);
    folder.run("convert in new --to bf16 --keep nothing*").fails(2, &["keep \"nothing*\" matches no tensor"]);
    for options in ["--part 1/2", "--merge", "--delete-source", "--from-scheme gptq", "--scheme fp8-tensor"] {
        let option = options.split(' ').next().unwrap();
        let said = [option, "one model", "\"text_encoder\", \"transformer\" or \"unet\" by itself"];
        folder.run(&format!("convert in new --to bf16 {options}")).fails(2, &said);
    }
    folder.run("convert in new.gguf --scheme gguf:q8_0").fails(2, &["one model"]);
    folder.run("inspect in").fails(2, &["several models"]);
    folder.run("compare in out").fails(2, &["several models"]);
    folder.run("quantize in/unet new fp8-tensor --quiet").exits(0);
    // A scheme is of the model at the top.
    let folder = self::folder(&KINDS[0]);
    folder.run("quantize in out fp8-tensor --quiet").exits(0).warns(&["\"2_Dense\" and \"3_Dense\" not quantized"]);
    let (top, dense) = (folder.read("out/model.safetensors"), folder.read("out/2_Dense/model.safetensors"));
    assert_eq!(
        (Parsed::new(&top).dtype("linear.weight"), Parsed::new(&dense).dtype("linear.weight")),
        ("F8_E4M3", "F32")
    );
    folder.run("verify in out").exits(0);
}

/// What has a part of a model is refused, or says so.
#[test]
fn gaps_are_not_hidden() {
    let part = |number: u32, of: u32| format!("model-{number:05}-of-{of:05}.safetensors");
    let cases: [(&[String], &str); 4] = [
        (&[part(1, 3), part(3, 3)], "\"model-00002-of-00003.safetensors\" is missing"),
        (&[part(2, 2)], "\"model-00001-of-00002.safetensors\" is missing"),
        (&[part(1, 2), part(2, 2), part(3, 3)], "two sets of parts"),
        (&[part(1, 1), "model-1-of-1.safetensors".into()], "two sets of parts"),
    ];
    for (names, said) in cases {
        let folder = Folder::new();
        (0..).zip(names).for_each(|(seed, name)| folder.write(&format!("in/{name}"), &file(&seed.to_string(), seed)));
        folder.run("convert in out --to bf16").fails(3, &["in: ", said]);
        assert!(!folder.path("out").exists());
        let alone = folder.run(&format!("convert in/{} one.safetensors --to bf16", names[0])).exits(0);
        assert_eq!(alone.err.contains("by its name part"), !names[0].contains("00001-of-00001"), "{}", alone.err);
    }
    // An index decides; what contradicts it is said.
    let folder = Folder::new();
    folder.write_shards(
        "in",
        &json!({ "total_size": 600 }),
        &[(&part(1, 3), file("a", 0)), (&part(3, 3), file("b", 0))],
    );
    let said =
        ["total_size in \"model.safetensors.index.json\" is 600", "take 512 bytes", "00002-of-00003.safetensors"];
    folder.run("convert in out --to bf16").exits(0).warns(&said);
    // Two variants: the advice works.
    let folder = Folder::new();
    for name in ["m.fp16.safetensors", "m.safetensors"] {
        folder.write(&format!("in/{name}"), &file("a", 0));
    }
    folder.run("convert in out --to bf16").fails(3, &["give one of the files by itself"]);
    folder.run("convert in/m.fp16.safetensors out.safetensors --to bf16 --quiet").succeeds();
}

/// Folders and files of weights in forms that are not read.
#[test]
fn other_weights_are_named() {
    for (name, said) in [
        ("__0_0.distcp", "dcp_to_torch_save"),
        ("tf_model.h5", "h5py"),
        ("flax_model.msgpack", "msgpack_restore"),
        ("model.nemo", "tar -xf"),
        ("pytorch_model.pt", "save_file"),
    ] {
        let folder = Folder::with(&format!("in/{name}"), b"x");
        folder.run("convert in out --to bf16").fails(2, &["holds no .safetensors file", name, said]);
        folder.run(&format!("convert in/{name} out.safetensors --to bf16")).fails(2, &[name, said]);
        // What belongs to the model is not left out because it is not read.
        folder.write("in/modules.json", br#"[{"path": ""}, {"path": "2_Dense"}]"#);
        folder.write("in/2_Dense/model.safetensors", &file("linear.weight", 0));
        folder.run("convert in out --to bf16").fails(2, &[name, said]);
    }
    let folder = Folder::with("in/a/b/model.safetensors", &file("w", 0));
    folder.run("convert in out --to bf16").fails(2, &["holds no .safetensors file; give \"a/b\" by itself"]);
}

#[test]
fn adapters_are_not_quantized() {
    let lora = safetensors(
        &[("l.0.q_proj.lora_A.weight", "F32", &[8, 8], f32s(&values(0))), ("l.0.bias", "F32", &[8], vec![0; 32])],
        &[],
    );
    for name in ["adapter_model.safetensors", "model.safetensors", "kohya.safetensors"] {
        let folder = Folder::with(&format!("in/{name}"), &lora);
        folder.run("quantize in out fp8-tensor").fails(2, &["adapter", "merge it"]);
        folder.run(&format!("quantize in/{name} out.safetensors comfy:float8_e4m3fn")).fails(2, &["adapter"]);
        folder.run("convert in out --to bf16 --quiet").succeeds();
    }
}

#[cfg(unix)]
#[test]
fn links_to_components_are_followed_if_that_is_asked_for() {
    let folder = folder(&KINDS[0]);
    folder.write("else/model.safetensors", &file("w", 0));
    std::os::unix::fs::symlink("../else", folder.path("in/4_Dense")).unwrap();
    folder.run("convert in out --to bf16").fails(3, &["4_Dense", "symbolic link"]);
    folder.run("convert in out --to bf16 --follow-links --quiet").exits(0);
    assert_eq!(Parsed::new(&folder.read("out/4_Dense/model.safetensors")).dtype("w"), "BF16");
}
