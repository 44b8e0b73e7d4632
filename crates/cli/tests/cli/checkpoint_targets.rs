//! Requirements of particular targets, and tensors that they leave alone: gpt-oss, scales of activations, types of
//! scales (`docs/spec/checkpoints.md §4.3`, §7.2, §7.3, §7.8, §11.3).

use crate::run::{Folder, has};
use serde_json::{Value, json};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

const FILE: &str = "model.safetensors";
const WEIGHT: &str = "layers.0.mlp.up_proj.weight";

fn bf16s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_bits().to_le_bytes()[2..].to_vec()).collect()
}

/// Tensors of bf16 and a configuration, as the folder `dir`.
fn model(folder: &Folder, dir: &str, tensors: &[(&str, &[u64])], config: &Value) {
    let values = |shape: &[u64]| -> Vec<f32> {
        (0..shape.iter().product()).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.03125).collect()
    };
    let all: Vec<_> = tensors.iter().map(|(name, shape)| (*name, "BF16", *shape, bf16s(&values(shape)))).collect();
    folder.write(&format!("{dir}/{FILE}"), &safetensors(&all, &[("format", "pt")]));
    folder.write(&format!("{dir}/config.json"), config.to_string().as_bytes());
}

fn parsed(folder: &Folder, dir: &str) -> Parsed {
    Parsed::new(&folder.read(&format!("{dir}/{FILE}")))
}

/// Experts with rows of inputs become blocks along the inputs; everything else of gpt-oss stays.
#[test]
fn experts_of_gpt_oss() {
    let folder = Folder::new();
    let (gate_up, down) = ("layers.0.mlp.experts.gate_up_proj", "layers.0.mlp.experts.down_proj");
    let tensors: [(&str, &[u64]); 6] = [
        (gate_up, &[2, 64, 192]),
        (down, &[2, 96, 64]),
        ("layers.0.mlp.experts.gate_up_proj_bias", &[2, 192]),
        ("layers.0.mlp.router.weight", &[2, 64]),
        ("layers.0.self_attn.q_proj.weight", &[64, 64]),
        ("embed_tokens.weight", &[8, 64]),
    ];
    model(&folder, "a", &tensors, &json!({"model_type": "gpt_oss", "torch_dtype": "bfloat16"}));
    folder.run("convert a b --scheme gpt-oss --report r.json").exits(0).says(&["quantized: 4.25 bits per weight"]);
    assert_eq!(folder.json("r.json")["bits_per_weight"], json!(4.25));
    let made = parsed(&folder, "b");
    assert_eq!(made.shape(&format!("{gate_up}_blocks")), &json!([2, 192, 2, 16]));
    assert_eq!(made.shape(&format!("{down}_scales")), &json!([2, 64, 3]));
    for (name, _) in &tensors[2..] {
        assert_eq!(made.dtype(name), "BF16", "{name}");
    }
    let declared = folder.json("b/config.json")["quantization_config"].clone();
    assert_eq!(
        (&declared["quant_method"], &declared["modules_to_not_convert"][2]),
        (&json!("mxfp4"), &json!("embed_tokens"))
    );
    folder.run("verify a b --full").succeeds();
    // A block has the scale of 32 inputs of one output: those of column 5 of the first expert.
    let (source, scales) = (parsed(&folder, "a"), made.bytes(&format!("{gate_up}_scales")).to_vec());
    let element = |row: usize, col: usize| {
        let at = (row * 192 + col) * 2;
        let bytes = &source.bytes(gate_up)[at..at + 2];
        f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16)
    };
    let amax = (0..32).fold(0f32, |most, row| most.max(element(row, 5).abs()));
    assert_eq!(i32::from(scales[5 * 2]) - 127, (amax / 6.0).log2().ceil() as i32);
    // Any of its bits matters, and back it has the shape that it had.
    let path = format!("b/{FILE}");
    let right = folder.read(&path);
    for byte in [right.len() - 1, right.len() / 2] {
        folder.run_with_flipped(&path, byte, 1, "verify a b --full");
    }
    folder.run("convert b c --to bf16 --quiet").succeeds();
    assert_eq!(
        (parsed(&folder, "c").shape(gate_up), parsed(&folder, "c").shape(down)),
        (&json!([2, 64, 192]), &json!([2, 96, 64]))
    );
    // Memory and threads change no byte; on the way there again no value changes.
    folder.run("convert a few --scheme gpt-oss --quiet --threads 1 --max-memory 2MiB").succeeds();
    assert!(folder.read(&format!("few/{FILE}")) == right);
    folder.run("convert c again --scheme gpt-oss --quiet").succeeds();
    folder.run("convert again d --to bf16 --quiet").succeeds();
    assert!(folder.read(&format!("d/{FILE}")) == folder.read(&format!("c/{FILE}")));
    // Other schemes leave such experts alone, and say so.
    folder.run("convert a e --scheme fp8-block:32x32").exits(0).warns(&[gate_up, "1 other are not quantized"]);
    assert_eq!(parsed(&folder, "e").dtype(gate_up), "BF16");
    let kept = folder.json("e/config.json")["quantization_config"]["modules_to_not_convert"].to_string();
    assert!(kept.contains("layers.0.mlp.experts"), "{kept}");
}

/// Loaders of targets that quantize activations find a scale for each layer, or nothing is written.
#[test]
fn scales_of_activations() {
    let folder = Folder::new();
    model(&folder, "a", &[(WEIGHT, &[32, 64]), ("layers.0.mlp.down_proj.weight", &[64, 32])], &json!({}));
    for (scheme, other) in
        [("modelopt:NVFP4", "modelopt:W4A16_NVFP4"), ("modelopt:FP8", "modelopt:FP8_PER_CHANNEL_PER_TOKEN")]
    {
        let said = [scheme, WEIGHT, "1 other", "--activation-ranges", other];
        folder.run(&format!("convert a b --scheme {scheme}")).fails(2, &said);
        assert!(!folder.path("b").exists());
        folder.run(&format!("convert a b --scheme {other} --quiet")).succeeds();
        let algorithm = other.split(':').nth(1).unwrap();
        assert_eq!(folder.json("b/config.json")["quantization_config"]["quant_algo"], json!(algorithm));
        assert_eq!(folder.json("b/hf_quant_config.json")["quantization"]["quant_algo"], json!(algorithm));
        std::fs::remove_dir_all(folder.path("b")).unwrap();
    }
    folder.write("some.json", br#"{"layers.0.mlp.up_proj": 896}"#);
    folder.run("convert a b --scheme modelopt:FP8 --activation-ranges some.json").fails(2, &["down_proj"]);
    for wrong in ["[]", r#"{"a": "b"}"#, r#"{"a": 0}"#, r#"{"a": -1}"#, "{"] {
        folder.write("wrong.json", wrong.as_bytes());
        folder.run("convert a b --scheme modelopt:FP8 --activation-ranges wrong.json").fails(3, &["wrong.json"]);
    }
    folder.run("convert a b --scheme modelopt:FP8 --activation-ranges none.json").fails(4, &["none.json"]);
    folder
        .run("convert a b --scheme fp8-block --activation-ranges some.json")
        .fails(2, &["--activation-ranges", "fp8-block"]);
    assert!(!folder.path("b").exists());
    folder.write("all.json", br#"{"layers.0.mlp.up_proj": 896, "layers.0.mlp.down_proj.weight": 672}"#);
    let scale = |dir: &str, name: &str| parsed(&folder, dir).bytes(&format!("layers.0.mlp.{name}")).to_vec();
    for (dir, scheme, of_up, of_down) in [
        ("fp8", "modelopt:FP8", 896.0 / 448.0, 672.0 / 448.0),
        ("nvfp4", "modelopt:NVFP4", 896.0 / 2688.0, 672.0 / 2688.0),
    ] {
        folder.run(&format!("convert a {dir} --scheme {scheme} --activation-ranges all.json --quiet")).succeeds();
        assert_eq!(
            (scale(dir, "up_proj.input_scale"), scale(dir, "down_proj.input_scale")),
            (f32s(&[of_up]), f32s(&[of_down]))
        );
        assert_eq!(parsed(&folder, dir).shape("layers.0.mlp.up_proj.input_scale"), &json!([]));
        folder.run(&format!("verify a {dir}")).succeeds();
    }
    // One that a result lacks, or that is another, is a difference.
    let right = folder.read(&format!("nvfp4/{FILE}"));
    let at = right.windows(4).position(|bytes| bytes == f32s(&[0.25])).unwrap();
    folder.run_with_flipped(&format!("nvfp4/{FILE}"), at, 1, "verify a nvfp4");
    // Scales of a source are carried over, in the form of the target; a comparison takes them as bits.
    folder.run("convert nvfp4 same --scheme modelopt:NVFP4 --relayout exact --quiet").succeeds();
    assert_eq!(scale("same", "up_proj.input_scale"), scale("nvfp4", "up_proj.input_scale"));
    folder.run("convert nvfp4 ct --scheme ct:nvfp4-pack-quantized --relayout lossy --quiet").succeeds();
    assert_eq!(scale("ct", "down_proj.input_global_scale"), f32s(&[4.0]));
    let group = folder.json("ct/config.json")["quantization_config"]["config_groups"]["group_0"].clone();
    has(&group, &json!({ "input_activations": { "num_bits": 4, "dynamic": "local" } }));
    folder.run("verify nvfp4 ct").succeeds();
    folder.run("convert ct back --scheme modelopt:FP8 --quiet").succeeds();
    assert_eq!(scale("back", "down_proj.input_scale"), f32s(&[672.0 / 448.0]));
    folder.run("verify ct back").succeeds();
    // Weights alone where nothing is known.
    folder.run("convert a weights --scheme ct:nvfp4-pack-quantized --quiet").succeeds();
    let group = folder.json("weights/config.json")["quantization_config"]["config_groups"]["group_0"].clone();
    assert_eq!(group["input_activations"], Value::Null);
}

/// Scales have the type that the loader will hold the model in: `--to`, the configuration's or the weights' type.
#[test]
fn types_of_scales() {
    let folder = Folder::new();
    for (config, options, dtype) in [
        (json!({}), "", "BF16"),
        (json!({"torch_dtype": "float16"}), "", "F16"),
        (json!({"text_config": {"dtype": "float32"}}), "", "F32"),
        (json!({"torch_dtype": "float16"}), "--to bf16", "BF16"),
    ] {
        model(&folder, "a", &[(WEIGHT, &[32, 64]), ("norm.weight", &[4])], &config);
        for scheme in ["fp8-channel", "ct:pack-quantized,bits=4,group=32", "ct:int-quantized", "ct:float-quantized"] {
            folder.run(&format!("convert a b --scheme {scheme} {options} --quiet --force")).succeeds();
            assert_eq!(parsed(&folder, "b").dtype(&format!("{WEIGHT}_scale")), dtype, "{config} {scheme}");
            folder.run("verify a b").succeeds();
            folder.run(&format!("convert a c --scheme {scheme},scale=f32 {options} --quiet --force")).succeeds();
            assert_eq!(parsed(&folder, "c").dtype(&format!("{WEIGHT}_scale")), "F32", "{config} {scheme}");
        }
        folder.run("convert a b --scheme fp8-block --quiet --force").succeeds();
        assert_eq!(parsed(&folder, "b").dtype(&format!("{WEIGHT}_scale_inv")), "F32");
    }
    model(&folder, "a", &[(WEIGHT, &[32, 64])], &json!({}));
    let ran = folder.run("convert a b --scheme ct:pack-quantized,bits=4,group=32 --force").exits(0);
    ran.says(&["quantized: 4.56 bits per weight"]);
    let values: Vec<f32> = (0..64).map(|i| if i % 3 == 0 { f32::MAX } else { f32::MAX / (i as f32) }).collect();
    folder.write(&format!("a/{FILE}"), &safetensors(&[(WEIGHT, "F32", &[2, 32], f32s(&values))], &[]));
    folder.write("a/config.json", b"{}");
    for scheme in ["ct:mxfp4-pack-quantized", "ct:mxfp6-pack-quantized", "ct:mxfp8-quantized", "mxfp8"] {
        for rule in ["floor", "rceil", "even", "ct"] {
            folder
                .run(&format!("convert a b --scheme {scheme} --mx-scale {rule} --report r.json --quiet --force"))
                .exits(0);
            assert_eq!(folder.json("r.json")["total"]["to_inf"], json!(0), "{scheme} {rule}");
            folder.run("verify a b --full").succeeds();
            folder.run("convert b c --to f32 --quiet --force").succeeds();
            let back = parsed(&folder, "c");
            let is_finite = |four: &[u8]| f32::from_le_bytes(four.try_into().unwrap()).is_finite();
            assert!(back.bytes(WEIGHT).chunks(4).all(is_finite), "{scheme} {rule}");
        }
    }
}
