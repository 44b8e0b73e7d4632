//! Dense checkpoints become quantized ones: `docs/spec/checkpoints.md §7`, `docs/interfaces.md §4.2`, with the arithmetic
//! written out here.

use crate::checkpoint::tree;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::formats::e4m3;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

/// The code of the nearest value, of ties the even one; beyond the last is the last.
fn to_e4m3(x: f32) -> u8 {
    let distance = |value: f32| (f64::from(x.abs()) - f64::from(value)).abs();
    let nearest = |best: u8, code: u8| {
        let (old, new) = (distance(e4m3(best)), distance(e4m3(code)));
        if new < old || (new == old && code.is_multiple_of(2)) { code } else { best }
    };
    (0..0x7f).fold(0, nearest) | if x.is_sign_negative() { 0x80 } else { 0 }
}

const ROWS: usize = 130;
const COLS: usize = 40;

fn weights() -> Vec<f32> {
    (0..ROWS * COLS).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.0137 * if i < 2 * COLS { 100.0 } else { 1.0 }).collect()
}

const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";

/// Two shards: matrices, a norm, an embedding, integers.
fn model() -> Folder {
    let folder = Folder::new();
    let shape = [ROWS as u64, COLS as u64];
    let few: Vec<f32> = weights()[..64].to_vec();
    let first = [
        ("model.embed_tokens.weight", "F32", &[8u64, 8][..], f32s(&few)),
        ("model.layers.0.self_attn.q_proj.weight", "F32", &shape, f32s(&weights())),
        ("model.layers.0.input_layernorm.weight", "F32", &[64], f32s(&few)),
    ];
    let second = [
        ("model.layers.0.self_attn.k_proj.weight", "F32", &shape[..], f32s(&weights())),
        ("model.layers.0.ids", "I32", &[2, 1], vec![1, 0, 0, 0, 2, 0, 0, 0]),
    ];
    let (first, second) = (safetensors(&first, &[("format", "pt")]), safetensors(&second, &[]));
    let metadata = json!({ "total_parameters": 9 });
    folder.write_shards("model", &metadata, &[(FIRST, first), (SECOND, second)]);
    folder.write("model/config.json", b"{\n  \"model_type\": \"x\",\n  \"torch_dtype\": \"float32\"\n}\n");
    folder.write("model/tokenizer.json", b"{}");
    folder
}

const KEEP: &str = "--keep-preset embeddings";

/// Values beyond the last code by more than half a step are counted one by one (`docs/spec/checkpoints.md §10`); a scale that
/// is rounded down has some.
#[test]
fn saturated_values_are_counted() {
    let folder = Folder::new();
    let values: Vec<f32> = (0..64 * 64).map(|i| ((i * 7919 % 4001) as f32 - 2000.0) * 0.0113).collect();
    let tensor = ("l.q_proj.weight", "F32", &[64u64, 64][..], f32s(&values));
    folder.write("model/model.safetensors", &safetensors(&[tensor], &[]));
    folder.write("model/config.json", b"{}");
    folder.run("convert model out --scheme ct:mxfp8-quantized --mx-scale floor --report r.json --quiet").succeeds();
    let made = Parsed::new(&folder.read("out/model.safetensors"));
    let (codes, scales) = (made.bytes("l.q_proj.weight"), made.bytes("l.q_proj.weight_scale"));
    let is_saturated = |(i, x): (usize, &f32)| {
        let scale = 2f64.powi(i32::from(scales[i / 32]) - 127);
        let sign = if codes[i] == 0x7e { 1.0 } else { -1.0 };
        let beyond = sign * f64::from(*x) - 448.0 * scale;
        matches!(codes[i], 0x7e | 0xfe) && beyond > 16.0 * scale * (1.0 + 2f64.powi(-16))
    };
    let expected = values.iter().enumerate().filter(|of| is_saturated(*of)).count();
    assert!(expected > 0 && expected < values.len() / 2, "{expected}");
    assert_eq!(folder.json("r.json")["tensors"][0]["saturated"], json!(expected));
}

#[test]
fn blocks_of_fp8() {
    let folder = model();
    let ran = folder.run(&format!("convert model out --scheme fp8-block {KEEP} --report r.json")).exits(0);
    // 130 rows are not a whole number of blocks.
    assert!(ran.err.lines().count() == 2 && ran.err.contains("warning") && ran.err.contains("128"), "{}", ran.err);
    assert!(ran.out.contains("--scheme fp8-block --keep-preset embeddings"), "{}", ran.out);
    let first = Parsed::new(&folder.read(&format!("out/{FIRST}")));
    let name = "model.layers.0.self_attn.q_proj.weight";
    let scale_name = format!("{name}_scale_inv");
    assert_eq!((first.dtype(name), first.shape(name)), ("F8_E4M3", &json!([ROWS, COLS])));
    assert_eq!((first.dtype(&scale_name), first.shape(&scale_name)), ("F32", &json!([2, 1])));
    let weights = weights();
    let amax = |rows: std::ops::Range<usize>| {
        weights[rows.start * COLS..rows.end * COLS].iter().fold(0f32, |most, x| most.max(x.abs()))
    };
    let scales = [amax(0..128) / 448.0, amax(128..ROWS) / 448.0];
    assert_eq!(first.bytes(&scale_name), f32s(&scales));
    let codes: Vec<u8> = weights.iter().enumerate().map(|(i, x)| to_e4m3(x / scales[i / COLS / 128])).collect();
    assert_eq!(first.bytes(name), codes);
    // The others stay, and say so.
    let source = Parsed::new(&folder.read(&format!("model/{FIRST}")));
    for kept in ["model.embed_tokens.weight", "model.layers.0.input_layernorm.weight"] {
        assert_eq!((first.dtype(kept), first.bytes(kept)), ("F32", source.bytes(kept)), "{kept}");
    }
    let config = folder.json("out/config.json");
    let declared = json!({
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
        "modules_to_not_convert": ["model.embed_tokens", "lm_head"]
    });
    assert_eq!((&config["quantization_config"], &config["torch_dtype"]), (&declared, &json!("float32")));
    let index = folder.json("out/model.safetensors.index.json");
    let bytes = 2 * (ROWS * COLS + 2 * 4) + 2 * 64 * 4 + 2 * 4;
    assert_eq!(index["metadata"]["total_size"], json!(bytes));
    assert_eq!(index["weight_map"][&scale_name], FIRST);
    assert_eq!(folder.read("out/tokenizer.json"), b"{}");
    // The report has a row for each tensor of the source, with its losses.
    let report = folder.json("r.json");
    let row = report["tensors"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!((&row["from"], &row["to"], &row["to_scheme"]), (&json!("f32"), &json!("f8e4m3fn"), &json!("fp8-block")));
    assert_eq!((&row["group"], &row["bytes_out"]), (&json!("converted"), &json!(ROWS * COLS + 8)));
    let value = |i: usize| e4m3(codes[i]) * scales[i / COLS / 128];
    let error = |i: usize| (f64::from(value(i)) - f64::from(weights[i])).abs();
    let largest = (0..codes.len()).map(error).fold(0.0, f64::max);
    assert_eq!(row["max_abs_error"].as_f64(), Some(largest));
    let noise: f64 = (0..codes.len()).map(|i| error(i).powi(2)).sum();
    let signal: f64 = weights.iter().map(|x| f64::from(*x).powi(2)).sum();
    let sqnr = row["sqnr_db"].as_f64().unwrap();
    assert!((sqnr - 10.0 * (signal / noise).log10()).abs() < 1e-9, "{sqnr}");
    let exact = (0..codes.len()).filter(|i| error(*i) == 0.0).count();
    let subnormal = codes.iter().filter(|code| (1..8).contains(&(**code & 0x7f))).count();
    assert_eq!((&row["exact"], &row["saturated"], &row["subnormal"]), (&json!(exact), &json!(0), &json!(subnormal)));

    folder.run("verify model out").succeeds();
    folder.run("verify model out --full --report r.json").succeeds();
    folder.run(&format!("verify model out --scheme fp8-block {KEEP}")).succeeds();
    folder.run("verify model out --scheme fp8-channel").exits(1);
    let compared = folder.run("compare model out --json").exits(0).object("compare");
    for (group, figure) in
        [("converted", "tensors"), ("converted", "sqnr_db"), ("converted", "inexact"), ("kept", "tensors")]
    {
        assert_eq!(compared["total"][group][figure], report["total"][group][figure], "{group} {figure}");
    }
    let of = |row: &&Value| row["name"] == name;
    let compared = compared["tensors"].as_array().unwrap().iter().find(of).unwrap().clone();
    for field in ["sqnr_db", "from", "to", "group"] {
        assert_eq!(compared[field], row[field], "{field}");
    }
    folder.run("compare model out --summary").exits(0).says(&["out is quantized by: fp8-block:128x128"]);
    let same = folder.run("compare out out --json").exits(0).object("compare");
    assert_eq!((&same["equal"], &same["total"]["converted"]["tensors"]), (&json!(true), &json!(0)));
    // One bit of a code or of a scale is found.
    for (tensor, said) in [(name, "1 wrong element; the first is 0"), (&scale_name, "1 wrong entry; the first is 0")] {
        let path = format!("out/{FIRST}");
        folder.run_with_flipped(&path, first.place(tensor), 1, "verify model out").says(&[tensor, said]);
    }
}

/// Tensors that are not quantized become `--to`; rules and `--keep` go before.
#[test]
fn what_is_not_quantized() {
    let folder = model();
    let rules = "--rule *q_proj*=f16 --keep *embed*";
    folder.run(&format!("convert model out --scheme fp8-tensor --to bf16 {rules} --quiet")).succeeds();
    let (first, second) = (folder.read(&format!("out/{FIRST}")), folder.read(&format!("out/{SECOND}")));
    let (first, second) = (Parsed::new(&first), Parsed::new(&second));
    let dtypes: Vec<&str> = ["embed_tokens", "layers.0.self_attn.q_proj", "layers.0.input_layernorm"]
        .map(|name| first.dtype(&format!("model.{name}.weight")))
        .into();
    assert_eq!(dtypes, ["F32", "F16", "BF16"]);
    assert_eq!(second.dtype("model.layers.0.self_attn.k_proj.weight"), "F8_E4M3");
    assert_eq!(second.shape("model.layers.0.self_attn.k_proj.weight_scale_inv"), &json!([]));
    assert_eq!(second.dtype("model.layers.0.ids"), "I32");
    let config = folder.json("out/config.json");
    assert_eq!(config["torch_dtype"], "bfloat16");
    let kept = json!(["model.embed_tokens", "model.layers.0.self_attn.q_proj", "lm_head"]);
    assert_eq!(config["quantization_config"]["modules_to_not_convert"], kept);
    folder.run("verify model out").succeeds();
    // Tables stay as they are, unless a glob selects them; the first rule that matches decides.
    folder.run("convert model usual --scheme fp8-tensor --quiet").succeeds();
    assert_eq!(Parsed::new(&folder.read(&format!("usual/{FIRST}"))).dtype("model.embed_tokens.weight"), "F32");
    let ran = folder.run("convert model all --scheme fp8-tensor --quantize *embed* --keep *k_proj*").exits(0);
    assert!(ran.out.contains("--quantize '*embed*' --keep '*k_proj*'"), "{}", ran.out);
    assert_eq!(Parsed::new(&folder.read(&format!("all/{FIRST}"))).dtype("model.embed_tokens.weight"), "F8_E4M3");
    let kept = json!(["model.layers.0.self_attn.k_proj", "lm_head"]);
    assert_eq!(folder.json("all/config.json")["quantization_config"]["modules_to_not_convert"], kept);
    folder.run("verify model all").succeeds();
    folder.run("convert model none --to bf16 --quantize *embed*").fails(2, &["--scheme"]);
}

#[test]
fn division_of_the_work_changes_no_byte() {
    let folder = model();
    for scheme in ["fp8-block:32x32", "fp8-tensor", "ct:pack-quantized,group=8"] {
        let out = scheme.replace([':', ','], "-");
        let options = format!("--scheme {scheme} {KEEP} --quiet");
        folder.run(&format!("convert model {out} {options}")).succeeds();
        let expected = tree(&folder, &out);
        let small = format!("{out}-small");
        folder.run(&format!("convert model {small} {options} --max-memory 2MiB --threads 1")).succeeds();
        assert_eq!(tree(&folder, &small), expected);
        let parts = format!("{out}-parts");
        folder.run(&format!("convert model {parts} {options} --part 2/2")).succeeds();
        // Another part with other options does not end the work.
        folder.run(&format!("convert model {parts} --scheme fp8-channel {KEEP} --quiet --part 1/2")).succeeds();
        assert!(!folder.path(&format!("{parts}/config.json")).exists());
        folder.run(&format!("convert model {parts} {options} --merge")).fails(2, &["was started differently"]);
        std::fs::remove_dir_all(folder.path(&parts)).unwrap();
        folder.run(&format!("convert model {parts} {options} --part 2/2")).succeeds();
        folder.run(&format!("convert model {parts} {options} --part 1/2")).succeeds();
        assert_eq!(tree(&folder, &parts), expected);
        std::fs::remove_file(folder.path(&format!("{parts}/{SECOND}"))).unwrap();
        folder.run(&format!("convert model {parts} {options} --resume")).succeeds();
        assert_eq!(tree(&folder, &parts), expected);
        folder
            .run(&format!("convert model {parts} --scheme fp8-channel {KEEP} --resume"))
            .fails(2, &["option scheme was"]);
    }
}

/// Values that no scaled format carries are an error before anything is written, or are replaced and counted (§3.6).
#[test]
fn values_that_are_not_finite() {
    for scheme in ["fp8-block", "fp8-tensor", "fp8-channel"] {
        let folder = model();
        let mut values = weights();
        (values[77], values[78], values[79]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let shape = [ROWS as u64, COLS as u64];
        let second = [
            ("model.layers.0.self_attn.k_proj.weight", "F32", &shape[..], f32s(&values)),
            ("model.layers.0.ids", "I32", &[2, 1], vec![1, 0, 0, 0, 2, 0, 0, 0]),
        ];
        folder.write(&format!("model/{SECOND}"), &safetensors(&second, &[]));
        let asked = format!("convert model out --scheme {scheme} {KEEP}");
        folder.run(&format!("{asked} --quiet")).fails(3, &["k_proj.weight", "element 77", "--nonfinite saturate"]);
        std::fs::remove_dir_all(folder.path("out")).unwrap();
        let report = folder.run(&format!("{asked} --nonfinite saturate --json")).exits(0).object("convert");
        let is_it = |row: &&Value| row["name"].as_str().unwrap().contains("k_proj");
        let row = report["tensors"].as_array().unwrap().iter().find(is_it).unwrap().clone();
        assert_eq!((&row["nan_in"], &row["inf_in"], &row["saturated"]), (&json!(1), &json!(2), &json!(2)), "{row}");
        let second = Parsed::new(&folder.read(&format!("out/{SECOND}")));
        let codes = second.bytes("model.layers.0.self_attn.k_proj.weight");
        assert_eq!(codes[77..80], [0, 0x7e, 0xfe]);
        folder.run("verify model out").succeeds();
    }
}

#[test]
fn tensors_that_share_a_scale() {
    let folder = Folder::new();
    let small: Vec<f32> = (0..256).map(|i| (i % 13) as f32 * 0.25).collect();
    let large: Vec<f32> = small.iter().map(|x| x * 10.0).collect();
    let name = |layer: usize, which: &str| format!("layers.{layer}.attn.{which}.weight");
    let names: Vec<String> = (0..2).flat_map(|l| ["q_proj", "k_proj", "o_proj"].map(|w| name(l, w))).collect();
    let tensors: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), "F32", &[16u64, 16][..], f32s(if i == 1 { &large } else { &small })))
        .collect();
    folder.write("model/a.safetensors", &safetensors(&tensors[..1], &[]));
    folder.write("model/b.safetensors", &safetensors(&tensors[1..], &[]));
    let scheme = "--scheme modelopt:W4A16_NVFP4 --quiet";
    folder.run(&format!("convert model out {scheme} --share-global *q_proj*,*k_proj*")).succeeds();
    let (a, b) = (Parsed::new(&folder.read("out/a.safetensors")), Parsed::new(&folder.read("out/b.safetensors")));
    let of = |parsed: &Parsed, name: &str| parsed.bytes(&format!("{name}_scale_2")).to_vec();
    let [small, large] = [3f32, 30.0].map(|amax| f32s(&[amax / 2688.0]));
    assert_eq!((of(&a, &names[0]), of(&b, &names[1]), of(&b, &names[2])), (large.clone(), large, small.clone()));
    assert_eq!((of(&b, &names[3]), of(&b, &names[4])), (small.clone(), small));
    folder.run("verify model out --full").succeeds();
    // Tensors that loaders hold in one layer share a scale anyway.
    folder.run(&format!("convert model usual {scheme}")).succeeds();
    ["a", "b"]
        .map(|file| [format!("usual/{file}.safetensors"), format!("out/{file}.safetensors")].map(|at| folder.read(&at)))
        .into_iter()
        .for_each(|[usual, out]| assert!(usual == out));
    // Patterns that change nothing are errors.
    for (options, said) in [("--share-global *q_proj*,*x_proj*", "*x_proj*"), ("--share-global [", "no ']'")] {
        folder.run(&format!("convert model no {scheme} {options}")).fails(2, &["--share-global", said]);
    }
    folder.run("convert model no --scheme fp8-block --share-global *q_proj*,*k_proj*").fails(2, &["no global scale"]);
}

#[test]
fn what_cannot_be_done_is_said_before() {
    let folder = model();
    for (options, said) in [
        ("--scheme awq", &["awq can be read, not written"][..]),
        ("--scheme fp8-blok", &["fp8-blok", "fp8-block"]),
        ("--scheme ct:mxfp4-pack-quantized", &["groups of 32", "1 other", "q_proj"]),
        ("--scheme ct:mxfp4-pack-quantized --quantize *proj*", &["groups of 32", "also 1 other", "k_proj", "--keep"]),
        (
            "--scheme fp8-block --mx-scale floor",
            &["mx_scale has no effect", "omit --mx-scale", "no scales that are powers of two"],
        ),
        ("--scheme fp8-block --keep *", &["scheme has no effect", "--quantize GLOB"]),
        ("--scale-search mse --to f16", &["--scheme"]),
        ("--nonfinite saturate --to f16", &["--scheme"]),
        ("--scheme fp8-block --keep-preset norm", &["norm", "norms"]),
        ("--scheme fp8-block --overflow saturate", &["--overflow"]),
        ("--scheme fp8-block --spec onnx", &["--spec", "casts nothing", "--to"]),
        ("--scheme fp8-block --keep *norm* --nan canonical", &["--spec", "casts nothing"]),
    ] {
        folder.run(&format!("convert model out {options}")).fails(2, said);
        assert!(!folder.path("out").exists(), "{options}");
    }
    folder
        .run(&format!("convert model/{FIRST} out.safetensors --scheme fp8-block"))
        .fails(2, &["declared in config.json"]);
    // The default scheme, given by name, is the same as no scheme.
    folder.run("convert model plain --scheme plain --to bf16 --quiet").succeeds();
    folder.run("convert model bf16 --to bf16 --quiet").succeeds();
    assert_eq!(tree(&folder, "plain"), tree(&folder, "bf16"));
}

#[test]
fn a_replaced_folder_declares_one_scheme() {
    let folder = model();
    folder.run(&format!("convert model out --scheme modelopt:FP8_PER_CHANNEL_PER_TOKEN {KEEP} --quiet")).exits(0);
    assert!(folder.path("out/hf_quant_config.json").exists());
    folder.run(&format!("convert model out --scheme fp8-block {KEEP} --force --quiet")).exits(0);
    assert!(!folder.path("out/hf_quant_config.json").exists());
    folder.run("convert out dense --to f32 --quiet").exits(0);
}

/// Presets keep tensors of plain casts, too (§11.3), and reports say which.
#[test]
fn presets_of_plain_casts() {
    let folder = model();
    let line = "--to bf16 --keep-preset norms,embeddings";
    let ran = folder.run(&format!("convert model out {line} --report r.json")).exits(0);
    ran.says(&[&format!("{line}\n"), "kept: embeddings 1 tensor, norms 1 tensor\n"]);
    let (first, source) =
        (Parsed::new(&folder.read(&format!("out/{FIRST}"))), Parsed::new(&folder.read(&format!("model/{FIRST}"))));
    for (name, by) in [
        ("model.embed_tokens.weight", Some("embeddings")),
        ("model.layers.0.input_layernorm.weight", Some("norms")),
        ("model.layers.0.self_attn.q_proj.weight", None),
    ] {
        let report = folder.json("r.json");
        let row = report["tensors"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        assert_eq!(row.get("kept_by").and_then(Value::as_str), by, "{name}");
        match by {
            Some(_) => assert_eq!((first.dtype(name), first.bytes(name)), ("F32", source.bytes(name)), "{name}"),
            None => assert_eq!(first.dtype(name), "BF16"),
        }
    }
    assert_eq!(folder.json("r.json")["options"]["keep_preset"], json!(["norms", "embeddings"]));
    assert_eq!(folder.json("out/truecast-manifest.json")["options"]["keep_preset"], json!(["norms", "embeddings"]));
    folder.run("verify model out").succeeds();
    folder.run(&format!("verify model out {line}")).succeeds();
    folder.run("verify model out --report r.json --keep-preset norms").exits(2);
    folder.run("verify model out --to bf16").exits(1);
    // One file, by value; a rule goes before a preset, a vector stays with every preset.
    let bytes = folder.read(&format!("model/{FIRST}"));
    folder.write("a.safetensors", &bytes);
    let rule = "--rule *embed*=f16 --keep-preset embeddings";
    let ran = folder.run(&format!("convert a.safetensors b.safetensors --to bf16 {rule} --report f.json")).exits(0);
    assert!(ran.out.contains("f32 kept (dimensions)"), "{}", ran.out);
    let made = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(made.dtype("model.embed_tokens.weight"), "F16");
    assert_eq!(made.dtype("model.layers.0.input_layernorm.weight"), "F32");
    folder.run("verify a.safetensors b.safetensors --report f.json").succeeds();
    for (line, says) in [
        ("--to bf16 --keep-preset router", "keep_preset has no effect: no tensor has such a name"),
        ("--rule *embed*=f16 --keep-preset norms", "keep_preset has no effect: without a type"),
    ] {
        folder.run(&format!("convert model other {line}")).exits(2).warns(&[says]);
        folder.run(&format!("convert a.safetensors other.safetensors {line}")).exits(2);
    }
    // With a scheme the report gives the reason for tensors that could have been quantized.
    folder.run("convert model fp8 --scheme fp8-block --keep-preset norms,embeddings --report s.json").exits(0);
    let report = folder.json("s.json");
    let kept = report["tensors"].as_array().unwrap().iter().filter_map(|row| Some((&row["name"], row.get("kept_by")?)));
    assert_eq!(kept.collect::<Vec<_>>(), [(&json!("model.embed_tokens.weight"), &json!("embeddings"))]);
}

/// A global scale beyond the range that readers accept is written with a warning, which has the values.
#[test]
fn large_weights_of_nvfp4_are_told() {
    for scheme in ["modelopt:W4A16_NVFP4", "ct:nvfp4-pack-quantized"] {
        let folder = Folder::new();
        folder.write("model/config.json", b"{}");
        let large: Vec<f32> = (0..64).map(|i| i as f32 * 100.0).collect();
        let small: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let tensors = [("a.weight", "F32", &[2u64, 32][..], f32s(&large)), ("b.weight", "F32", &[2, 32], f32s(&small))];
        folder.write("model/model.safetensors", &safetensors(&tensors, &[]));
        let said = folder.run(&format!("convert model out --scheme {scheme}")).exits(0).err;
        assert!(said.contains("tensor \"a.weight\": magnitudes above 2688") && !said.contains("b.weight"), "{said}");
        folder.run("convert out back --to f32 --quiet").fails(3, &["--trust-scales"]);
        folder.run("convert out back --to f32 --trust-scales --quiet").exits(0);
        let back = Parsed::new(&folder.read("back/model.safetensors"));
        let last = back.bytes("a.weight").as_chunks::<4>().0.last().map(|bytes| f32::from_le_bytes(*bytes));
        assert_eq!(last.map(|x| (x - 6300.0).abs() < 1.0), Some(true), "{last:?}");
        folder.run(&format!("convert model kept --scheme {scheme} --keep a.weight")).exits(0).lacks(&["2688"]);
    }
}
