//! GGUF files are dequantized: `docs/spec/checkpoints.md §9`, with the container and the arithmetic written out here.

use crate::run::{Folder, has};
use serde_json::json;
use truecast_testkit::formats::{bf16, halves};
use truecast_testkit::gguf::{Written, gguf, key, text};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

/// A finite f16 without its sign.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
    if exponent == 0 { fraction * 2f32.powi(-24) } else { (1024.0 + fraction) * 2f32.powi(exponent - 25) }
}

const DOUBLED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

const HALVES: [u16; 6] = [0x3c01, 0x2e66, 0x0001, 0x7bff, 0x1234, 0x0000];

/// Blocks of Q8_0, with the values of their elements.
fn q8_0() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, d) in HALVES.into_iter().enumerate() {
        bytes.extend(d.to_le_bytes());
        for i in 0..32 {
            let q = (block * 91 + i * 57) as u8 as i8;
            bytes.push(q as u8);
            values.push(half(d) * f32::from(q));
        }
    }
    (bytes, values)
}

fn q4_1() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, d) in HALVES.into_iter().enumerate() {
        let m = HALVES[(block + 1) % 6];
        bytes.extend(d.to_le_bytes());
        bytes.extend(m.to_le_bytes());
        let nibbles: Vec<u8> = (0..16).map(|i| (block * 77 + i * 31) as u8).collect();
        bytes.extend(&nibbles);
        let codes = nibbles.iter().map(|b| b & 15).chain(nibbles.iter().map(|b| b >> 4));
        values.extend(codes.map(|q| half(d) * f32::from(q) + half(m)));
    }
    (bytes, values)
}

fn mxfp4() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, e) in [0u8, 1, 2, 127, 200, 254].into_iter().enumerate() {
        bytes.push(e);
        let nibbles: Vec<u8> = (0..16).map(|i| (block * 77 + i * 31) as u8).collect();
        bytes.extend(&nibbles);
        let codes = nibbles.iter().map(|b| b & 15).chain(nibbles.iter().map(|b| b >> 4));
        // 2^(e-128), which is a subnormal for small e.
        let scale = 2f64.powi(i32::from(e) - 128) as f32;
        values.extend(codes.map(|q| DOUBLED[usize::from(q)] * scale));
    }
    (bytes, values)
}

/// Two matrices of one row of 64, before their factors.
fn nvfp4() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for block in 0..2usize {
        // 1, 2, 4 and 13 * 2^-6 in E4M3.
        let scales = [(0x38, 1.0f32), (0x40, 2.0), (0x48, 4.0), (0x25, 0.203_125)];
        bytes.extend(scales.map(|(code, _)| code));
        for (group, (_, scale)) in scales.into_iter().enumerate() {
            let nibbles: Vec<u8> = (0..8).map(|i| (block * 91 + group * 77 + i * 31) as u8).collect();
            bytes.extend(&nibbles);
            let codes = nibbles.iter().map(|b| b & 15).chain(nibbles.iter().map(|b| b >> 4));
            values.extend(codes.map(|q| DOUBLED[usize::from(q)] * (scale / 2.0)));
        }
    }
    (bytes, values)
}

/// A dequantized tensor: name, shape, values.
type Dense = (&'static str, Vec<u64>, Vec<f32>);

/// Every kind of tensor, with the expected f32 values.
fn model() -> (Vec<u8>, Vec<Dense>) {
    let ((q8, of_q8), (q4, of_q4), (mx, of_mx), (nv, of_nv)) = (q8_0(), q4_1(), mxfp4(), nvfp4());
    let factors = [0.3f32, 1.7];
    let plain = [0.1f32, -465.0, 1e-40];
    let tokens = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &text("a"), &text("bc")].concat();
    let keys = [
        key("general.architecture", 8, &text("llama")),
        key("general.file_type", 4, &7u32.to_le_bytes()),
        key("general.quantization_version", 4, &2u32.to_le_bytes()),
        key("general.alignment", 4, &32u32.to_le_bytes()),
        key("tokenizer.ggml.tokens", 9, &tokens),
        key("llama.eps", 6, &1e-5f32.to_le_bytes()),
        key("llama.count", 4, &22u32.to_le_bytes()),
        key("llama.flag", 7, &[1]),
    ];
    let file = gguf(
        &keys,
        &[
            ("q8.weight", &[64, 3], 8, q8),
            ("q4.weight", &[96, 1, 2], 3, q4),
            ("mx.weight", &[192], 39, mx),
            ("nv.weight", &[64, 1, 2], 40, nv),
            ("nv.scale", &[2], 0, f32s(&factors)),
            ("nv.input_scale", &[2], 0, f32s(&[1.0, 1.0])),
            ("norm.weight", &[3], 0, f32s(&plain)),
            ("half.bias", &[2], 30, vec![0x80, 0x3f, 0xc0, 0x7f]),
            ("ids", &[1], 26, vec![5, 0, 0, 0]),
        ],
    );
    let of_nv = of_nv.iter().enumerate().map(|(i, value)| value * factors[i / 64]).collect();
    let expected = vec![
        ("q8.weight", vec![3, 64], of_q8),
        ("q4.weight", vec![2, 1, 96], of_q4),
        ("mx.weight", vec![192], of_mx),
        ("nv.weight", vec![2, 1, 64], of_nv),
        ("norm.weight", vec![3], plain.to_vec()),
    ];
    (file, expected)
}

#[test]
fn blocks_become_dense() {
    let (file, expected) = model();
    let folder = Folder::with("a.gguf", &file);
    let ran = folder.run("convert a.gguf b.safetensors --to bf16 --report r.json").exits(0);
    ran.warns(&["tokenizer.ggml.tokens", "GGUF names"]);
    let result = Parsed::new(&folder.read("b.safetensors"));
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
    assert_eq!(*result.metadata(), metadata);
    let report = folder.json("r.json");
    let schemes: Vec<_> = report["tensors"].as_array().unwrap().iter().map(|row| row["scheme"].clone()).collect();
    assert_eq!(schemes[..4], ["gguf:Q8_0", "gguf:Q4_1", "gguf:MXFP4", "gguf:NVFP4"].map(|name| json!(name)));
    assert_eq!(report["dropped"][0]["tensor"], "nv.input_scale");
    folder.run("verify a.gguf b.safetensors --to bf16").succeeds();
    folder.run("verify a.gguf b.safetensors --report r.json --full").succeeds();
    // The f32 of the definition.
    folder.run("convert a.gguf f.safetensors --to f32 --quiet --threads 1 --max-memory 1MiB").exits(0);
    let exact = Parsed::new(&folder.read("f.safetensors"));
    for (name, _, values) in &expected {
        assert_eq!(exact.bytes(name), f32s(values), "{name}");
    }
    assert_eq!(folder.run("compare a.gguf f.safetensors --json").succeeds().object("compare")["equal"], json!(true));
    let rounded = folder.run("compare a.gguf b.safetensors --json").succeeds().object("compare");
    assert_eq!((&rounded["equal"], &rounded["only_first"]), (&json!(false), &json!([])));
    // One bit is found, wherever it is.
    for (name, ..) in &expected {
        let verify = "verify a.gguf f.safetensors --to f32";
        folder.run_with_flipped("f.safetensors", exact.place(name), 1, verify).says(&[name]);
    }
}

#[test]
fn what_cannot_be_converted() {
    let folder = Folder::with("a.gguf", &gguf(&[], &[("a.weight", &[256], 23, vec![0; 136])]));
    folder.run("convert a.gguf b.safetensors --to bf16").fails(3, &["a.gguf", "a.weight", "IQ4_XS"]);
    // A scale of MXFP4 that is not a number.
    folder.write("a.gguf", &gguf(&[], &[("a.weight", &[32], 39, [&[0xff][..], &[0; 16]].concat())]));
    folder.run("convert a.gguf b.safetensors --to bf16 --quiet").fails(3, &["a.gguf", "a.weight", "0xff"]);
    let (file, _) = model();
    folder.write("a.gguf", &file);
    folder.run("convert a.gguf b.npz --to bf16").fails(2, &["b.npz", ".safetensors"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --keep q8.weight").fails(2, &["q8.weight"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --rule zork=f32").fails(2, &["zork"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --from-scheme awq").fails(2, &["--from-scheme belongs to"]);
    folder.write("a.gguf", &file[..file.len() - 40]);
    folder.run("convert a.gguf b.safetensors --to bf16").exits(3);
    assert!(!folder.path("b.safetensors").exists());
    // Kept ones, other types and a dry run.
    folder.write("a.gguf", &file);
    folder.run("convert a.gguf b.safetensors --rule *.weight=f16 --dry-run").exits(0);
    folder
        .run("convert a.gguf b.safetensors --to f8e4m3fn --keep norm.weight --keep half.bias")
        .fails(2, &["--scheme NAME"]);
    folder.run("convert a.gguf b.safetensors --keep norm.weight --keep half.bias --rule *=f8e4m3fn").exits(0);
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(["q8.weight", "norm.weight", "half.bias"].map(|name| result.dtype(name)), ["F8_E4M3", "F32", "BF16"]);
    folder.run("verify a.gguf b.safetensors --keep norm.weight --keep half.bias --rule *=f8e4m3fn").succeeds();
    let dense = safetensors(&[("q8.weight", "F32", &[3, 64], vec![0; 768])], &[]);
    folder.write("zero.safetensors", &dense);
    folder.run("compare a.gguf zero.safetensors --fail-on inexact").exits(1);
}

#[test]
fn files_become_files_of_other_types() {
    let (file, expected) = model();
    let folder = Folder::with("a.gguf", &file);
    let before = Written::new(&file);
    let ran = folder.run("convert a.gguf b.gguf --to bf16 --keep norm.weight --report r.json").exits(0);
    assert!(!ran.err.contains("__metadata__") && !ran.err.contains("names"), "{}", ran.err);
    let result = Written::new(&folder.read("b.gguf"));
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
    // Keys stay, arrays among them, except statements about types.
    let names: Vec<&str> = result.keys.iter().map(|(name, _)| name.as_str()).collect();
    let kept = ["general.architecture", "general.file_type", "general.alignment", "tokenizer.ggml.tokens"];
    assert_eq!(names, [&kept[..], &["llama.eps", "llama.count", "llama.flag"]].concat());
    for name in names.iter().filter(|name| **name != "general.file_type") {
        assert_eq!(result.key(name), before.key(name), "{name}");
    }
    assert_eq!(result.key("general.file_type"), Some(&[4, 0, 0, 0, 32, 0, 0, 0][..]));
    folder.run("verify a.gguf b.gguf --to bf16 --keep norm.weight --full").succeeds();
    folder.run("verify a.gguf b.gguf --report r.json").succeeds();
    folder.run("verify a.gguf b.gguf --to bf16").exits(1);
    folder.run("compare a.gguf b.gguf").succeeds();
    folder.run("compare a.gguf none.gguf").fails(4, &["none.gguf", "No such file"]);
    folder.run("inspect b.gguf").succeeds();
    // The same bytes with any memory and threads.
    folder.run("convert a.gguf c.gguf --to bf16 --keep norm.weight --threads 1 --max-memory 1MiB --quiet").exits(0);
    assert_eq!(folder.read("c.gguf"), folder.read("b.gguf"));
    // Every bit counts, wherever it is: keys, types, data; not the zeros between.
    let whole = folder.read("b.gguf");
    let key = whole.windows(9).position(|bytes| bytes == b"llama.eps").unwrap() + 9 + 4;
    let last = whole.len() - 32;
    for at in [key, last] {
        folder.run_with_flipped("b.gguf", at, 1, "verify a.gguf b.gguf --to bf16 --keep norm.weight");
    }
}

/// Quantization by §9.3 and §9.4, with f32 of the language.
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

/// The nearest f16 of a number that is not a subnormal of it and below its largest, or 0.
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
    let folder = Folder::new();
    let (a, b) = (weights(), weights().iter().map(|x| -x).collect::<Vec<_>>());
    let norm = [1.0f32, 2.0, 3.0];
    folder.write("m/config.json", br#"{"model_type": "qwen3", "torch_dtype": "float32"}"#);
    folder.write("m/model-1.safetensors", &safetensors(&[("x.weight", "F32", &[6, 96], f32s(&a))], &[]));
    let second = [("y_exps.weight", "F32", &[2, 3, 96][..], f32s(&b)), ("y.norm.weight", "F32", &[3], f32s(&norm))];
    folder.write("m/model-2.safetensors", &safetensors(&second, &[]));
    for (name, id, file_type) in [("q8_0", 8, 7), ("MXFP4", 39, 38)] {
        let ran = folder.run(&format!("convert m {name}.gguf --scheme gguf:{name} --report {name}.json")).exits(0);
        assert!(ran.err.contains("hyperparameters"), "{}", ran.err);
        let result = Written::new(&folder.read(&format!("{name}.gguf")));
        assert_eq!(result.tensor("x.weight"), (id, &[6, 96][..], &quantized(id, &a)[..]));
        assert_eq!(result.tensor("y_exps.weight"), (id, &[2, 3, 96][..], &quantized(id, &b)[..]));
        assert_eq!(result.tensor("y.norm.weight"), (0, &[3][..], &f32s(&norm)[..]));
        let said = [
            ("general.architecture", [&8u32.to_le_bytes()[..], &text("qwen3")].concat()),
            ("general.name", [&8u32.to_le_bytes()[..], &text("m")].concat()),
            ("general.quantization_version", vec![4, 0, 0, 0, 2, 0, 0, 0]),
            ("general.file_type", vec![4, 0, 0, 0, file_type, 0, 0, 0]),
        ];
        assert_eq!(result.keys, said.map(|(key, value)| (key.to_string(), value)));
        folder.run(&format!("verify m {name}.gguf --scheme gguf:{name}")).succeeds();
        folder.run(&format!("verify m {name}.gguf --report {name}.json --sample 1%")).succeeds();
        let report = folder.json(&format!("{name}.json"));
        let row = &report["tensors"][0];
        has(row, &json!({ "to_scheme": format!("gguf:{}", name.to_uppercase()), "elements": 576 }));
        // Dense again, the values are those that the report was about.
        folder.run(&format!("convert {name}.gguf {name}.safetensors --to f32 --quiet")).exits(0);
        let ran = folder.run(&format!("compare m {name}.safetensors --json")).exits(0).object("compare");
        let found = ran["tensors"].as_array().unwrap().iter().find(|row| row["name"] == "x.weight").unwrap().clone();
        for measure in ["exact", "flushed_to_zero", "rmse", "sqnr_db", "max_abs_error"] {
            assert_eq!(found[measure], row[measure], "{measure}");
        }
        // One bit is found.
        let file = format!("{name}.gguf");
        let at = folder.read(&file).len() - 100;
        folder.run_with_flipped(&file, at, 1, &format!("verify m {file} --scheme gguf:{name}"));
    }
    // Blocks of the target's kind stay as they are; others are quantized again.
    let kept = folder.run("convert q8_0.gguf again.gguf --scheme gguf:q8_0 --report k.json").exits(0).out;
    assert_eq!(folder.read("again.gguf"), folder.read("q8_0.gguf"));
    // Their counts are about elements: 576 in each of the two, and three of the norm.
    let row = folder.json("k.json")["tensors"][0].clone();
    let q8_0 = json!("gguf:Q8_0");
    assert_eq!((&row["scheme"], &row["to_scheme"], &row["group"]), (&q8_0, &q8_0, &json!("kept")));
    assert_eq!((&row["shape"], &row["elements"], &row["exact"]), (&json!([6, 96]), &json!(576), &json!(576)));
    has(&row, &json!({ "bytes_in": 576 / 32 * 34, "converted": false, "from": "i8" }));
    let total = folder.json("k.json")["total"].clone();
    has(&total, &json!({ "elements": 1155, "kept": { "elements": 1155 }, "integers": { "elements": 0 } }));
    assert!(kept.contains("Q8_0 kept") && kept.contains("1_155 elements") && !kept.contains("left out"), "{kept}");
    let planned = folder.run("convert q8_0.gguf d.gguf --scheme gguf:q8_0 --dry-run --json").exits(0).object("convert");
    assert_eq!((&planned["total"]["elements"], &planned["tensors"][0]["shape"]), (&json!(1155), &json!([6, 96])));
    let verified =
        folder.run("verify q8_0.gguf again.gguf --scheme gguf:q8_0 --full --json").succeeds().object("verify");
    assert_eq!((&verified["elements"], &verified["methods"]["copied"]), (&json!(1155), &json!(1155)));
    assert_eq!(
        folder.run("compare q8_0.gguf again.gguf --json").succeeds().object("compare")["total"]["elements"],
        json!(1155)
    );
    assert!(folder.run("convert m t.gguf --scheme gguf:q8_0").exits(0).out.contains("f32 -> Q8_0"));
    assert!(folder.run("convert q8_0.gguf t.safetensors --to bf16").exits(0).out.contains("Q8_0 -> bf16"));
    assert!(folder.run("compare m q8_0.gguf").exits(0).out.contains("f32 | Q8_0"));
    folder.run("convert MXFP4.gguf mixed.gguf --scheme gguf:q8_0 --keep x.* --quiet").exits(0);
    let mixed = Written::new(&folder.read("mixed.gguf"));
    assert_eq!((mixed.tensor("x.weight").0, mixed.tensor("y_exps.weight").0), (39, 8));
    folder.run("verify MXFP4.gguf mixed.gguf --scheme gguf:q8_0 --keep x.*").succeeds();
    folder.run("convert MXFP4.gguf dense.gguf --to bf16 --keep x.* --quiet").exits(0);
    let dense = Written::new(&folder.read("dense.gguf"));
    assert_eq!((dense.tensor("x.weight"), dense.tensor("y_exps.weight").0), (mixed.tensor("x.weight"), 30));
    assert!(dense.key("general.quantization_version").is_some());
    folder.run("verify MXFP4.gguf dense.gguf --to bf16 --keep x.*").succeeds();
    // Values beyond the last code are counted.
    let saturated = folder.json("MXFP4.json")["tensors"][0]["saturated"].clone();
    let beyond = |block: &[f32]| {
        let amax = block.iter().fold(0f32, |a, x| a.max(x.abs()));
        let step = 2f32.powi(amax.log2().floor() as i32 - 2);
        block.iter().filter(|x| x.abs() > 7.0 * step * (1.0 + 1e-4)).count() as u64
    };
    assert_eq!(saturated, json!(a.chunks(32).map(beyond).sum::<u64>()));
}

#[test]
fn what_no_file_of_blocks_holds() {
    let folder = Folder::new();
    let (a, codes) = (f32s(&weights()), vec![1u8; 4]);
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F32", &[6, 96], a.clone())], &[]));
    folder.write("u8.safetensors", &safetensors(&[("a.weight", "U8", &[4], codes)], &[]));
    folder.write("odd.safetensors", &safetensors(&[("a.weight", "F32", &[8, 72], a.clone())], &[]));
    folder.write("nine.safetensors", &safetensors(&[("a", "F32", &[1, 1, 1, 1, 1, 1, 1, 6, 96], a)], &[]));
    folder.run("convert u8.safetensors b.gguf --to bf16").fails(2, &["a.weight", "u8", ".gguf"]);
    folder.run("convert odd.safetensors b.gguf --scheme gguf:q8_0").fails(2, &["a.weight", "72", "32"]);
    folder.run("convert nine.safetensors b.gguf --to bf16").fails(3, &["9 dimensions"]);
    folder.run("convert a.safetensors b.gguf --to f8e4m3fn").fails(2, &["f8e4m3fn", ".gguf"]);
    folder.run("convert a.safetensors b.gguf --scheme fp8-block").fails(2, &["fp8-block", "gguf:Q8_0"]);
    folder.run("convert a.safetensors b.safetensors --scheme gguf:q8_0").fails(2, &["gguf:Q8_0", ".gguf"]);
    folder.run("convert a.safetensors b.gguf --scheme gguf:q4_k").fails(2, &["gguf:Q4_K"]);
    folder.run("convert a.safetensors b.gguf --scheme gguf:q8_0 --scale-search mse").fails(2, &["--scale-search"]);
    folder.run("convert a.safetensors b.gguf --scheme gguf:mxfp4 --mx-scale even").fails(2, &["--mx-scale"]);
    folder.run("convert a.safetensors a.gguf --scheme gguf:q8_0 --quiet").exits(0);
    folder.run("convert a.gguf a.gguf --to bf16 --force").fails(2, &["a.gguf"]);
    folder.run("convert a.safetensors a.gguf --to bf16").fails(2, &["a.gguf", "--force"]);
    std::fs::create_dir(folder.path("m")).unwrap();
    std::fs::copy(folder.path("a.safetensors"), folder.path("m/model.safetensors")).unwrap();
    for option in ["--resume", "--no-sidecars", "--part 1/2", "--merge"] {
        let name = option.split(' ').next().unwrap();
        folder.run(&format!("convert m b.gguf --to bf16 {option}")).fails(2, &[name, ".gguf"]);
    }
    let npy = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}";
    folder.write("a.npy", npy);
    folder.run("convert a.npy b.gguf --to bf16").fails(2, &["a.npy", ".safetensors"]);
    assert!(!folder.path("b.gguf").exists() && !folder.path("b.safetensors").exists());
    folder.run("convert m b.gguf --to bf16 --dry-run").exits(0);
    assert!(!folder.path("b.gguf").exists());
}
