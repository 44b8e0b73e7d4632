//! A GGUF file with tensors of every dequantized type, and their values according to `docs/spec/checkpoints.md §9`.

use crate::gguf::{gguf, key, text};
use crate::safetensors::f32s;

/// Value of a finite, nonnegative f16.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
    if exponent == 0 { fraction * 2f32.powi(-24) } else { (1024.0 + fraction) * 2f32.powi(exponent - 25) }
}

/// Values of the E2M1 codes, times two.
pub const DOUBLED: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

/// Bits of f16: normal, subnormal, largest, zero.
const HALVES: [u16; 6] = [0x3c01, 0x2e66, 0x0001, 0x7bff, 0x1234, 0x0000];

/// Bytes of two codes, and the codes: low nibbles, then high nibbles.
fn nibbles(bytes: usize, seed: usize) -> (Vec<u8>, Vec<u8>) {
    let nibbles: Vec<u8> = (0..bytes).map(|i| (seed + i * 31) as u8).collect();
    let codes = nibbles.iter().map(|b| b & 15).chain(nibbles.iter().map(|b| b >> 4)).collect();
    (nibbles, codes)
}

fn q8_0() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, d) in HALVES.into_iter().enumerate() {
        let codes: Vec<u8> = (0..32).map(|i| (block * 91 + i * 57) as u8).collect();
        bytes.extend(d.to_le_bytes().iter().chain(&codes));
        values.extend(codes.iter().map(|q| half(d) * f32::from(*q as i8)));
    }
    (bytes, values)
}

fn q4_1() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, d) in HALVES.into_iter().enumerate() {
        let (m, (nibbles, codes)) = (HALVES[(block + 1) % 6], nibbles(16, block * 77));
        bytes.extend([&d.to_le_bytes()[..], &m.to_le_bytes(), &nibbles].concat());
        values.extend(codes.iter().map(|q| half(d) * f32::from(*q) + half(m)));
    }
    (bytes, values)
}

fn mxfp4() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (block, e) in [0u8, 1, 2, 127, 200, 254].into_iter().enumerate() {
        let (nibbles, codes) = nibbles(16, block * 77);
        bytes.extend([&[e][..], &nibbles].concat());
        // 2^(e-128), a subnormal for small e.
        let scale = 2f64.powi(i32::from(e) - 128) as f32;
        values.extend(codes.iter().map(|q| DOUBLED[usize::from(*q)] * scale));
    }
    (bytes, values)
}

/// Two matrices of shape `[1, 64]` before they are multiplied by their factors.
fn nvfp4() -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for block in 0..2usize {
        // 1, 2, 4 and 13 * 2^-6 in E4M3.
        let scales = [(0x38, 1.0f32), (0x40, 2.0), (0x48, 4.0), (0x25, 0.203_125)];
        bytes.extend(scales.map(|(code, _)| code));
        for (group, (_, scale)) in scales.into_iter().enumerate() {
            let (nibbles, codes) = nibbles(8, block * 91 + group * 77);
            bytes.extend(nibbles);
            values.extend(codes.iter().map(|q| DOUBLED[usize::from(*q)] * (scale / 2.0)));
        }
    }
    (bytes, values)
}

/// A dequantized tensor: name, shape, values.
pub type Dense = (&'static str, Vec<u64>, Vec<f32>);

/// The file, and the expected f32 values.
pub fn model() -> (Vec<u8>, Vec<Dense>) {
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
