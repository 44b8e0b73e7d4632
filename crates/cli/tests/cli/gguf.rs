//! GGUF files become dense: `docs/spec/checkpoints.md §9`, with the container and the arithmetic written out here.

use crate::files::{Parsed, f32s, safetensors};
use crate::run::Folder;
use serde_json::json;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn key(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [&text(name)[..], &kind.to_le_bytes(), value].concat()
}

/// Name, dimensions as the file has them (the fastest first), type, data.
type Tensor<'a> = (&'a str, &'a [u64], u32, Vec<u8>);

fn gguf(keys: &[Vec<u8>], tensors: &[Tensor]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((keys.len() as u64).to_le_bytes());
    file.extend(keys.concat());
    let mut data = Vec::new();
    for (name, dims, id, bytes) in tensors {
        file.extend(text(name));
        file.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| file.extend(dim.to_le_bytes()));
        file.extend(id.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(32), 0);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    [file, data].concat()
}

fn bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn bf16s(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// A finite f16 without its sign.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
    if exponent == 0 { fraction * 2f32.powi(-24) } else { (1024.0 + fraction) * 2f32.powi(exponent - 25) }
}

const DOUBLED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

const HALVES: [u16; 6] = [0x3c01, 0x2e66, 0x0001, 0x7bff, 0x1234, 0x0000];

/// Blocks of Q8_0, with what their elements are.
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

/// What a tensor becomes: name, shape, values.
type Dense = (&'static str, Vec<u64>, Vec<f32>);

/// Every kind of tensor, with what each should be as f32.
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
    assert!(
        ran.err.contains("tokenizer.ggml.tokens") && ran.err.contains("names that they have in GGUF"),
        "{}",
        ran.err
    );
    let result = Parsed::new(&folder.read("b.safetensors"));
    for (name, shape, values) in &expected {
        assert_eq!((result.dtype(name), result.shape(name)), ("BF16", &json!(shape)), "{name}");
        let values: Vec<u16> = values.iter().map(|value| bf16(*value)).collect();
        assert_eq!(bf16s(result.bytes(name)), values, "{name}");
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
        let mut wrong = folder.read("f.safetensors");
        let data = wrong.len() - data_bytes(&exact);
        let offset = data + offset_of(&exact, name);
        wrong[offset] ^= 1;
        folder.write("w.safetensors", &wrong);
        let ran = folder.run("verify a.gguf w.safetensors --to f32").exits(1);
        assert!(ran.out.contains(name), "{name}: {}", ran.out);
    }
}

fn data_bytes(file: &Parsed) -> usize {
    file.names().iter().map(|name| file.bytes(name).len()).sum()
}

/// Where a tensor's data begins, counted from the first.
fn offset_of(file: &Parsed, name: &str) -> usize {
    let first = file.names().iter().map(|name| file.bytes(name).as_ptr() as usize).min().unwrap();
    file.bytes(name).as_ptr() as usize - first
}

#[test]
fn what_cannot_be_converted() {
    let folder = Folder::with("a.gguf", &gguf(&[], &[("a.weight", &[256], 23, vec![0; 136])]));
    folder.run("convert a.gguf b.safetensors --to bf16").fails(3, &["a.gguf", "a.weight", "IQ4_XS"]);
    // A scale of MXFP4 that is no number.
    folder.write("a.gguf", &gguf(&[], &[("a.weight", &[32], 39, [&[0xff][..], &[0; 16]].concat())]));
    folder.run("convert a.gguf b.safetensors --to bf16 --quiet").fails(3, &["a.gguf", "a.weight", "0xff"]);
    let (file, _) = model();
    folder.write("a.gguf", &file);
    folder.run("convert a.gguf b.npz --to bf16").fails(2, &["b.npz", ".safetensors"]);
    folder.run("convert a.gguf b.gguf --to bf16").fails(2, &["b.gguf"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --keep q8.weight").fails(2, &["q8.weight"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --rule zork=f32").fails(2, &["zork"]);
    folder.run("convert a.gguf b.safetensors --to bf16 --from-scheme awq").fails(2, &["--from-scheme belongs to"]);
    folder.write("a.gguf", &file[..file.len() - 40]);
    folder.run("convert a.gguf b.safetensors --to bf16").exits(3);
    assert!(!folder.path("b.safetensors").exists());
    // Kept ones, other types and a dry run.
    folder.write("a.gguf", &file);
    folder.run("convert a.gguf b.safetensors --rule *.weight=f16 --dry-run").exits(0);
    folder.run("convert a.gguf b.safetensors --to f8e4m3fn --keep norm.weight --keep half.bias").exits(0);
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(["q8.weight", "norm.weight", "half.bias"].map(|name| result.dtype(name)), ["F8_E4M3", "F32", "BF16"]);
    folder.run("verify a.gguf b.safetensors --to f8e4m3fn --keep norm.weight --keep half.bias").succeeds();
    let dense = safetensors(&[("q8.weight", "F32", &[3, 64], vec![0; 768])], &[]);
    folder.write("zero.safetensors", &dense);
    folder.run("compare a.gguf zero.safetensors --fail-on inexact").exits(1);
}
