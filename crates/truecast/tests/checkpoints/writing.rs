//! Quantization of checkpoints: `docs/spec/checkpoints.md §7`, `docs/interfaces.md §4.2`, with independent code for the
//! arithmetic.

use crate::work::Work;
use serde_json::{Value, json};
use truecast::report::Rows;
use truecast_testkit::folder::{COLS, FIRST, ROWS, SECOND, linear_model, weights};
use truecast_testkit::formats::e4m3;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

/// Nearest E4M3 code, ties to even; saturates.
fn to_e4m3(x: f32) -> u8 {
    let distance = |value: f32| (f64::from(x.abs()) - f64::from(value)).abs();
    let nearest = |best: u8, code: u8| {
        let (old, new) = (distance(e4m3(best)), distance(e4m3(code)));
        if new < old || (new == old && code.is_multiple_of(2)) { code } else { best }
    };
    (0..0x7f).fold(0, nearest) | if x.is_sign_negative() { 0x80 } else { 0 }
}

fn model() -> Work {
    let work = Work::new();
    linear_model().iter().for_each(|(file, bytes)| work.write(&format!("model/{file}"), bytes));
    work
}

const KEEP: &str = "keep_preset=embeddings";

/// Values that exceed the last code by more than half a step count as saturated (`docs/spec/checkpoints.md §10`). A
/// scale that is rounded down causes some.
#[test]
fn saturated_values_are_counted() {
    let work = Work::new();
    let values: Vec<f32> = (0..64 * 64).map(|i| ((i * 7919 % 4001) as f32 - 2000.0) * 0.0113).collect();
    let tensor = ("l.q_proj.weight", "F32", &[64u64, 64][..], f32s(&values));
    work.write("model/model.safetensors", &safetensors(&[tensor], &[]));
    work.write("model/config.json", b"{}");
    let report = work.convert("model", "out", "scheme=ct:mxfp8-quantized mx_scale=floor");
    let made = work.parsed("out/model.safetensors");
    let (codes, scales) = (made.bytes("l.q_proj.weight"), made.bytes("l.q_proj.weight_scale"));
    let is_saturated = |(i, x): (usize, &f32)| {
        let scale = 2f64.powi(i32::from(scales[i / 32]) - 127);
        let sign = if codes[i] == 0x7e { 1.0 } else { -1.0 };
        let beyond = sign * f64::from(*x) - 448.0 * scale;
        matches!(codes[i], 0x7e | 0xfe) && beyond > 16.0 * scale * (1.0 + 2f64.powi(-16))
    };
    let expected = values.iter().enumerate().filter(|of| is_saturated(*of)).count();
    assert!(expected > 0 && expected < values.len() / 2, "{expected}");
    assert_eq!(report.tensors[0].counts.saturated, expected as u64);
}

#[test]
fn blocks_of_fp8() {
    let work = model();
    let report = work.convert("model", "out", &format!("scheme=fp8-block {KEEP}"));
    // 130 rows are not a whole number of blocks.
    assert!(report.warnings.iter().any(|warning| warning.contains("128")), "{:?}", report.warnings);
    let first = work.parsed(&format!("out/{FIRST}"));
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
    let source = work.parsed(&format!("model/{FIRST}"));
    for kept in ["model.embed_tokens.weight", "model.layers.0.input_layernorm.weight"] {
        assert_eq!((first.dtype(kept), first.bytes(kept)), ("F32", source.bytes(kept)), "{kept}");
    }
    let config = work.json("out/config.json");
    let declared = json!({
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
        "modules_to_not_convert": ["model.embed_tokens", "lm_head"]
    });
    assert_eq!((&config["quantization_config"], &config["torch_dtype"]), (&declared, &json!("float32")));
    let index = work.json("out/model.safetensors.index.json");
    let bytes = 2 * (ROWS * COLS + 2 * 4) + 2 * 64 * 4 + 2 * 4;
    assert_eq!(index["metadata"]["total_size"], json!(bytes));
    assert_eq!(index["weight_map"][&scale_name], FIRST);
    assert_eq!(work.read("out/tokenizer.json"), b"{}");
    let report = serde_json::to_value(report).unwrap();
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

    work.verify("model", "out", "");
    work.verify("model", "out", &format!("scheme=fp8-block {KEEP}"));
    assert_ne!(work.checked("model", "out", "scheme=fp8-channel").differences, []);
    let compared = serde_json::to_value(work.compared("model", "out").with(Rows::All)).unwrap();
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
    let same = work.compared("out", "out");
    assert!(same.equal());
    for tensor in [name, &scale_name] {
        let path = format!("out/{FIRST}");
        work.flipped(&path, first.place(tensor), 1, tensor, || work.checked("model", "out", ""));
    }
}

#[test]
fn what_is_not_quantized() {
    let work = model();
    let rules = "rule=*q_proj*=f16 keep=*embed*";
    work.convert("model", "out", &format!("scheme=fp8-tensor to=bf16 {rules}"));
    let (first, second) = (work.read(&format!("out/{FIRST}")), work.read(&format!("out/{SECOND}")));
    let (first, second) = (Parsed::new(&first), Parsed::new(&second));
    let dtypes: Vec<&str> = ["embed_tokens", "layers.0.self_attn.q_proj", "layers.0.input_layernorm"]
        .map(|name| first.dtype(&format!("model.{name}.weight")))
        .into();
    assert_eq!(dtypes, ["F32", "F16", "BF16"]);
    assert_eq!(second.dtype("model.layers.0.self_attn.k_proj.weight"), "F8_E4M3");
    assert_eq!(second.shape("model.layers.0.self_attn.k_proj.weight_scale_inv"), &json!([]));
    assert_eq!(second.dtype("model.layers.0.ids"), "I32");
    let config = work.json("out/config.json");
    assert_eq!(config["torch_dtype"], "bfloat16");
    let kept = json!(["model.embed_tokens", "model.layers.0.self_attn.q_proj", "lm_head"]);
    assert_eq!(config["quantization_config"]["modules_to_not_convert"], kept);
    work.verify("model", "out", "");
    // Embeddings are kept unless a glob selects them; the first matching rule applies.
    work.convert("model", "usual", "scheme=fp8-tensor");
    assert_eq!(work.parsed(&format!("usual/{FIRST}")).dtype("model.embed_tokens.weight"), "F32");
    work.convert("model", "all", "scheme=fp8-tensor quantize=*embed* keep=*k_proj*");
    assert_eq!(work.parsed(&format!("all/{FIRST}")).dtype("model.embed_tokens.weight"), "F8_E4M3");
    let kept = json!(["model.layers.0.self_attn.k_proj", "lm_head"]);
    assert_eq!(work.json("all/config.json")["quantization_config"]["modules_to_not_convert"], kept);
    work.verify("model", "all", "");
}

#[test]
fn division_of_the_work_changes_no_byte() {
    let work = model();
    for scheme in ["fp8-block:32x32", "fp8-tensor", "ct:pack-quantized,group=8"] {
        let (words, other) = (format!("scheme={scheme} {KEEP}"), format!("scheme=fp8-channel {KEEP}"));
        work.convert("model", "out", &words);
        let expected = work.files("out");
        work.convert("model", "small", &format!("{words} mebibytes=2 threads=1"));
        assert_eq!(work.files("small"), expected);
        work.convert("model", "parts", &format!("{words} part=2/2"));
        // A second part with other options leaves the work unfinished.
        work.convert("model", "parts", &format!("{other} part=1/2"));
        assert!(!work.path("parts/config.json").exists());
        work.refused("model", "parts", &format!("{words} merge"), "not-resumable", &["parts"]);
        work.remove(&["parts"]);
        work.convert("model", "parts", &format!("{words} part=2/2"));
        work.convert("model", "parts", &format!("{words} part=1/2"));
        assert_eq!(work.files("parts"), expected);
        std::fs::remove_file(work.path(&format!("parts/{SECOND}"))).unwrap();
        work.convert("model", "parts", &format!("{words} resume"));
        assert_eq!(work.files("parts"), expected);
        work.refused("model", "parts", &format!("{other} resume"), "not-resumable", &["scheme"]);
        work.remove(&["out", "small", "parts"]);
    }
}

/// Values that are not finite are an error before anything is written, or are replaced and counted (§3.6).
#[test]
fn values_that_are_not_finite() {
    for scheme in ["fp8-block", "fp8-tensor", "fp8-channel"] {
        let work = model();
        let mut values = weights();
        (values[77], values[78], values[79]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let shape = [ROWS as u64, COLS as u64];
        let second = [
            ("model.layers.0.self_attn.k_proj.weight", "F32", &shape[..], f32s(&values)),
            ("model.layers.0.ids", "I32", &[2, 1], vec![1, 0, 0, 0, 2, 0, 0, 0]),
        ];
        work.write(&format!("model/{SECOND}"), &safetensors(&second, &[]));
        let words = format!("scheme={scheme} {KEEP}");
        let error = work.error("model", "out", &words);
        assert_eq!(error.error_code().name(), "invalid-code");
        assert!(["k_proj.weight", "element 77"].iter().all(|name| error.to_string().contains(name)), "{error}");
        work.remove(&["out"]);
        let report = work.convert("model", "out", &format!("{words} nonfinite=saturate"));
        let report = serde_json::to_value(report).unwrap();
        let is_it = |row: &&Value| row["name"].as_str().unwrap().contains("k_proj");
        let row = report["tensors"].as_array().unwrap().iter().find(is_it).unwrap().clone();
        assert_eq!((&row["nan_in"], &row["inf_in"], &row["saturated"]), (&json!(1), &json!(2), &json!(2)), "{row}");
        let second = work.parsed(&format!("out/{SECOND}"));
        let codes = second.bytes("model.layers.0.self_attn.k_proj.weight");
        assert_eq!(codes[77..80], [0, 0x7e, 0xfe]);
        work.verify("model", "out", "");
    }
}

#[test]
fn tensors_that_share_a_scale() {
    let work = Work::new();
    let small: Vec<f32> = (0..256).map(|i| (i % 13) as f32 * 0.25).collect();
    let large: Vec<f32> = small.iter().map(|x| x * 10.0).collect();
    let name = |layer: usize, which: &str| format!("layers.{layer}.attn.{which}.weight");
    let names: Vec<String> = (0..2).flat_map(|l| ["q_proj", "k_proj", "o_proj"].map(|w| name(l, w))).collect();
    let tensors: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), "F32", &[16u64, 16][..], f32s(if i == 1 { &large } else { &small })))
        .collect();
    work.write("model/a.safetensors", &safetensors(&tensors[..1], &[]));
    work.write("model/b.safetensors", &safetensors(&tensors[1..], &[]));
    let scheme = "scheme=modelopt:W4A16_NVFP4";
    work.convert("model", "out", &format!("{scheme} share_global=*q_proj*,*k_proj*"));
    let (a, b) = (work.parsed("out/a.safetensors"), work.parsed("out/b.safetensors"));
    let of = |parsed: &Parsed, name: &str| parsed.bytes(&format!("{name}_scale_2")).to_vec();
    let [small, large] = [3f32, 30.0].map(|amax| f32s(&[amax / 2688.0]));
    assert_eq!((of(&a, &names[0]), of(&b, &names[1]), of(&b, &names[2])), (large.clone(), large, small.clone()));
    assert_eq!((of(&b, &names[3]), of(&b, &names[4])), (small.clone(), small));
    work.verify("model", "out", "");
    // Tensors that loaders store in one layer share a scale by default.
    work.convert("model", "usual", scheme);
    ["a", "b"]
        .map(|file| [format!("usual/{file}.safetensors"), format!("out/{file}.safetensors")].map(|at| work.read(&at)))
        .into_iter()
        .for_each(|[usual, out]| assert!(usual == out));
    work.refused(
        "model",
        "no",
        &format!("{scheme} share_global=*q_proj*,*x_proj*"),
        "inapplicable-option",
        &["*x_proj*"],
    );
    work.refused(
        "model",
        "no",
        "scheme=fp8-block share_global=*q_proj*,*k_proj*",
        "inapplicable-option",
        &["global scale"],
    );
}

#[test]
fn a_replaced_work_declares_one_scheme() {
    let work = model();
    work.convert("model", "out", &format!("scheme=modelopt:FP8_PER_CHANNEL_PER_TOKEN {KEEP}"));
    assert!(work.path("out/hf_quant_config.json").exists());
    work.convert("model", "out", &format!("scheme=fp8-block {KEEP} replace"));
    assert!(!work.path("out/hf_quant_config.json").exists());
    work.convert("out", "dense", "to=f32");
}

#[test]
fn large_weights_of_nvfp4_are_told() {
    for scheme in ["modelopt:W4A16_NVFP4", "ct:nvfp4-pack-quantized"] {
        let work = Work::new();
        work.write("model/config.json", b"{}");
        let large: Vec<f32> = (0..64).map(|i| i as f32 * 100.0).collect();
        let small: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let tensors = [("a.weight", "F32", &[2u64, 32][..], f32s(&large)), ("b.weight", "F32", &[2, 32], f32s(&small))];
        work.write("model/model.safetensors", &safetensors(&tensors, &[]));
        let said = work.convert("model", "out", &format!("scheme={scheme}")).warnings.join("\n");
        assert!(said.contains("tensor \"a.weight\": magnitudes above 2688") && !said.contains("b.weight"), "{said}");
        work.refused("out", "back", "to=f32", "inconsistent-checkpoint", &["2688"]);
        work.convert("out", "back", "to=f32 trust_scales");
        let back = work.parsed("back/model.safetensors");
        let last = back.bytes("a.weight").as_chunks::<4>().0.last().map(|bytes| f32::from_le_bytes(*bytes));
        assert_eq!(last.map(|x| (x - 6300.0).abs() < 1.0), Some(true), "{last:?}");
        let kept = work.convert("model", "kept", &format!("scheme={scheme} keep=a.weight"));
        assert!(!kept.warnings.join("").contains("2688"));
    }
}
