//! Dequantization and quantization of GGUF files: `docs/spec/checkpoints.md §9`, with independent code for container
//! and arithmetic.

use crate::work::Work;
use serde_json::{Value, json};
use truecast::report::{Report, Rows};
use truecast_testkit::formats::{bf16, halves};
use truecast_testkit::gguf::{Written, text};
use truecast_testkit::gguf_model::{DOUBLED, model};
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{f32s, safetensors};

fn json_of(report: &Report) -> Value {
    serde_json::to_value(report).unwrap()
}

#[test]
fn blocks_become_dense() {
    let (file, expected) = model();
    let work = Work::new();
    work.write("a.gguf", &file);
    let report = work.convert("a.gguf", "b.safetensors", "to=bf16");
    let warnings = report.warnings.join("\n");
    assert!(warnings.contains("tokenizer.ggml.tokens") && warnings.contains("GGUF names"), "{warnings}");
    let result = work.parsed("b.safetensors");
    for (name, shape, values) in &expected {
        assert_eq!((result.dtype(name), result.shape(name)), ("BF16", &json!(shape)), "{name}");
        let values: Vec<u16> = values.iter().map(|value| bf16(*value)).collect();
        assert_eq!(halves(result.bytes(name)), values, "{name}");
    }
    assert_eq!((result.dtype("ids"), result.bytes("half.bias")), ("I32", &[0x80, 0x3f, 0xc0, 0x7f][..]));
    assert_eq!(result.names().len(), 7);
    let metadata = json!({
        "format": "pt", "general.architecture": "llama", "llama.count": "22", "llama.eps": "1e-5", "llama.flag": "true"
    });
    let mut found = result.metadata().clone();
    assert!(found.as_object_mut().unwrap().remove("truecast.options").is_some());
    assert_eq!(found, metadata);
    let report = json_of(&report);
    let schemes: Vec<_> = report["tensors"].as_array().unwrap().iter().map(|row| row["scheme"].clone()).collect();
    assert_eq!(schemes[..4], ["gguf:Q8_0", "gguf:Q4_1", "gguf:MXFP4", "gguf:NVFP4"].map(|name| json!(name)));
    assert_eq!(report["dropped"][0]["tensor"], "nv.input_scale");
    work.verify("a.gguf", "b.safetensors", "to=bf16");
    work.convert("a.gguf", "f.safetensors", "to=f32 threads=1 mebibytes=1");
    let exact = work.parsed("f.safetensors");
    for (name, _, values) in &expected {
        assert_eq!(exact.bytes(name), f32s(values), "{name}");
    }
    assert!(work.compared("a.gguf", "f.safetensors").equal());
    let rounded = work.compared("a.gguf", "b.safetensors");
    assert_eq!((rounded.equal(), rounded.structural_differences()), (false, 0));
    for (name, ..) in &expected {
        let check = || work.checked("a.gguf", "f.safetensors", "to=f32");
        work.flipped("f.safetensors", exact.place(name), 1, name, check);
    }
}

#[test]
fn files_become_files_of_other_types() {
    let (file, expected) = model();
    let work = Work::new();
    work.write("a.gguf", &file);
    let before = Written::new(&file);
    let report = work.convert("a.gguf", "b.gguf", "to=bf16 keep=norm.weight");
    let lost = ["__metadata__", "names"].map(|word| report.warnings.iter().any(|said| said.contains(word)));
    assert_eq!(lost, [false; 2], "{:?}", report.warnings);
    let result = Written::new(&work.read("b.gguf"));
    let shape_of = |shape: &[u64]| shape.to_vec();
    for (name, shape, values) in &expected {
        if *name != "norm.weight" {
            let bytes: Vec<u8> = values.iter().flat_map(|value| bf16(*value).to_le_bytes()).collect();
            assert_eq!(result.tensor(name), (30, &shape_of(shape)[..], &bytes[..]), "{name}");
        }
    }
    for name in ["norm.weight", "half.bias", "ids"] {
        assert_eq!(result.tensor(name), before.tensor(name), "{name}");
    }
    assert_eq!(result.names().len(), 7);
    let names: Vec<&str> = result.keys.iter().map(|(name, _)| name.as_str()).collect();
    let kept = ["general.architecture", "general.file_type", "general.alignment", "tokenizer.ggml.tokens"];
    assert_eq!(names, [&kept[..], &["llama.eps", "llama.count", "llama.flag", "truecast.options"]].concat());
    for name in names.iter().filter(|name| !["general.file_type", "truecast.options"].contains(name)) {
        assert_eq!(result.key(name), before.key(name), "{name}");
    }
    assert_eq!(result.key("general.file_type"), Some(&[4, 0, 0, 0, 32, 0, 0, 0][..]));
    work.verify("a.gguf", "b.gguf", "to=bf16 keep=norm.weight");
    assert_ne!(work.checked("a.gguf", "b.gguf", "to=bf16").differences, []);
    assert_eq!(work.compared("a.gguf", "b.gguf").structural_differences(), 0);
    work.convert("a.gguf", "c.gguf", "to=bf16 keep=norm.weight threads=1 mebibytes=1");
    assert_eq!(work.read("c.gguf"), work.read("b.gguf"));
    // Each changed bit of keys, types and data is a difference; zeros in gaps are ignored.
    let whole = work.read("b.gguf");
    let key = whole.windows(9).position(|bytes| bytes == b"llama.eps").unwrap() + 9 + 4;
    let last = whole.len() - 32;
    for at in [key, last] {
        work.flipped("b.gguf", at, 1, "", || work.checked("a.gguf", "b.gguf", "to=bf16 keep=norm.weight"));
    }
}

/// Quantization by §9.3 and §9.4 in f32 arithmetic.
fn quantized(id: u32, values: &[f32]) -> Vec<u8> {
    let block = |values: &[f32]| {
        let amax = values.iter().fold(0f32, |a, x| a.max(x.abs()));
        if id == 8 {
            let d = amax / 127.0;
            let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
            let codes = values.iter().map(|x| (x * inverse).round() as i8 as u8);
            return [&f16(d).to_le_bytes()[..], &codes.collect::<Vec<_>>()].concat();
        }
        let e = if amax == 0.0 { 0 } else { (amax.log2().floor() as i32 + 125).clamp(0, 254) as u8 };
        let scale = 2f64.powi(i32::from(e) - 128) as f32;
        let error = |code: usize, x: f32| (DOUBLED[code] * scale - x).abs();
        let code = |x: &f32| (1..16).fold(0, |best, code| if error(code, *x) < error(best, *x) { code } else { best });
        let codes: Vec<u8> = values.iter().map(|x| code(x) as u8).collect();
        [vec![e], (0..16).map(|i| codes[i] | codes[i + 16] << 4).collect()].concat()
    };
    values.chunks(32).flat_map(block).collect()
}

/// Nearest f16 of zero or of a number in the normal range.
fn f16(x: f32) -> u16 {
    if x == 0.0 {
        return 0;
    }
    let bits = x.to_bits();
    let rounded = bits + 0xfff + (bits >> 13 & 1);
    assert!((113 << 23..142 << 23).contains(&rounded), "{x}");
    ((rounded - (112 << 23)) >> 13) as u16
}

fn weights() -> Vec<f32> {
    (0..6 * 96).map(|i| ((i * 7919) % 1009 - 504) as f32 / 300.0 * if i % 5 == 0 { 4.0 } else { 0.25 }).collect()
}

#[test]
fn folders_become_one_file() {
    let work = Work::new();
    let (a, b) = (weights(), weights().iter().map(|x| -x).collect::<Vec<_>>());
    let norm = [1.0f32, 2.0, 3.0];
    work.write("m/config.json", br#"{"model_type": "qwen3", "torch_dtype": "float32"}"#);
    work.write("m/model-1.safetensors", &safetensors(&[("x.weight", "F32", &[6, 96], f32s(&a))], &[]));
    let second = [("y_exps.weight", "F32", &[2, 3, 96][..], f32s(&b)), ("y.norm.weight", "F32", &[3], f32s(&norm))];
    work.write("m/model-2.safetensors", &safetensors(&second, &[]));
    let mut saturated = Value::Null;
    for (name, id, file_type) in [("q8_0", 8, 7), ("MXFP4", 39, 38)] {
        let report = work.convert("m", &format!("{name}.gguf"), &format!("scheme=gguf:{name} keep_names"));
        assert!(report.warnings.iter().any(|said| said.contains("hyperparameters")), "{:?}", report.warnings);
        let result = Written::new(&work.read(&format!("{name}.gguf")));
        assert_eq!(result.tensor("x.weight"), (id, &[6, 96][..], &quantized(id, &a)[..]));
        assert_eq!(result.tensor("y_exps.weight"), (id, &[2, 3, 96][..], &quantized(id, &b)[..]));
        assert_eq!(result.tensor("y.norm.weight"), (0, &[3][..], &f32s(&norm)[..]));
        let said = [
            ("general.architecture", [&8u32.to_le_bytes()[..], &text("qwen3")].concat()),
            ("general.name", [&8u32.to_le_bytes()[..], &text("m")].concat()),
            ("general.quantization_version", vec![4, 0, 0, 0, 2, 0, 0, 0]),
            ("general.file_type", vec![4, 0, 0, 0, file_type, 0, 0, 0]),
        ];
        assert_eq!(result.keys[..4], said.map(|(key, value)| (key.to_string(), value)));
        let [(last, options)] = &result.keys[4..] else { panic!("{:?}", result.keys) };
        // A text: its type, its length, its bytes.
        let options: Value = serde_json::from_slice(&options[12..]).unwrap();
        assert_eq!(
            (&**last, &options["scheme"]),
            ("truecast.options", &json!(format!("gguf:{}", name.to_uppercase())))
        );
        work.verify("m", &format!("{name}.gguf"), &format!("scheme=gguf:{name} keep_names"));
        let report = json_of(&report);
        let row = &report["tensors"][0];
        has(row, &json!({ "to_scheme": format!("gguf:{}", name.to_uppercase()), "elements": 576 }));
        work.convert(&format!("{name}.gguf"), &format!("{name}.safetensors"), "to=f32");
        let compared = work.compared("m", &format!("{name}.safetensors"));
        let compared = serde_json::to_value(compared.with(Rows::All)).unwrap();
        let found =
            compared["tensors"].as_array().unwrap().iter().find(|row| row["name"] == "x.weight").unwrap().clone();
        for measure in ["exact", "flushed_to_zero", "rmse", "sqnr_db", "max_abs_error"] {
            assert_eq!(found[measure], row[measure], "{measure}");
        }
        let file = format!("{name}.gguf");
        let at = work.read(&file).len() - 100;
        work.flipped(&file, at, 1, "", || work.checked("m", &file, &format!("scheme=gguf:{name} keep_names")));
        saturated = report["tensors"][0]["saturated"].clone();
    }
    // Blocks of the target type are copied, and all other blocks are quantized again.
    let kept = json_of(&work.convert("q8_0.gguf", "again.gguf", "scheme=gguf:q8_0"));
    // The recorded options differ, because they include facts about the source.
    let [again, first] = ["again.gguf", "q8_0.gguf"].map(|file| Written::new(&work.read(file)));
    assert_eq!((&again.keys[..4], again.names()), (&first.keys[..4], first.names()));
    first.names().iter().for_each(|name| assert_eq!(again.tensor(name), first.tensor(name), "{name}"));
    // Counts are in elements: 576 in each matrix, and three in the norm.
    let row = &kept["tensors"][0];
    let q8_0 = json!("gguf:Q8_0");
    assert_eq!((&row["scheme"], &row["to_scheme"], &row["group"]), (&q8_0, &q8_0, &json!("kept")));
    assert_eq!((&row["shape"], &row["elements"], &row["exact"]), (&json!([6, 96]), &json!(576), &json!(576)));
    has(row, &json!({ "bytes_in": 576 / 32 * 34, "converted": false, "from": "i8" }));
    has(&kept["total"], &json!({ "elements": 1155, "kept": { "elements": 1155 }, "integers": { "elements": 0 } }));
    let verified = work.checked("q8_0.gguf", "again.gguf", "scheme=gguf:q8_0");
    assert_eq!((verified.elements, verified.methods.copied, &*verified.differences), (1155, 1155, &[][..]));
    assert_eq!(work.compared("q8_0.gguf", "again.gguf").total.all.counts.elements, 1155);
    work.convert("MXFP4.gguf", "mixed.gguf", "scheme=gguf:q8_0 keep=x.*");
    let mixed = Written::new(&work.read("mixed.gguf"));
    assert_eq!((mixed.tensor("x.weight").0, mixed.tensor("y_exps.weight").0), (39, 8));
    work.verify("MXFP4.gguf", "mixed.gguf", "scheme=gguf:q8_0 keep=x.*");
    work.convert("MXFP4.gguf", "dense.gguf", "to=bf16 keep=x.*");
    let dense = Written::new(&work.read("dense.gguf"));
    assert_eq!((dense.tensor("x.weight"), dense.tensor("y_exps.weight").0), (mixed.tensor("x.weight"), 30));
    assert!(dense.key("general.quantization_version").is_some());
    work.verify("MXFP4.gguf", "dense.gguf", "to=bf16 keep=x.*");
    // Values beyond the last code count as saturated.
    let beyond = |block: &[f32]| {
        let amax = block.iter().fold(0f32, |a, x| a.max(x.abs()));
        let step = 2f32.powi(amax.log2().floor() as i32 - 2);
        block.iter().filter(|x| x.abs() > 7.0 * step * (1.0 + 1e-4)).count() as u64
    };
    assert_eq!(saturated, json!(a.chunks(32).map(beyond).sum::<u64>()));
}
