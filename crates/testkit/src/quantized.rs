//! Quantized layers and files in the forms that other programs write. Source: `docs/spec/checkpoints.md §4`.

use crate::random::drawn;
use crate::safetensors::{Tensor, f32s, safetensors};
use serde_json::{Value, json};

/// Name of the layer.
pub const NAME: &str = "l.0.q_proj";

/// Little-endian bytes.
pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Distinct positive f16 scales, from 2^-5 (0x2800) up.
pub fn halves(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (0x2800 + drawn(i + 7, 2000) as u16).to_le_bytes()).collect()
}

/// Packs fields of `bits` bits into words, from the low bit up.
pub fn stream(fields: impl Iterator<Item = u32>, bits: usize) -> Vec<u32> {
    let mut words = Vec::new();
    for (i, field) in fields.enumerate() {
        for n in 0..bits {
            let at = i * bits + n;
            if at / 32 == words.len() {
                words.push(0);
            }
            words[at / 32] |= (field >> n & 1) << (at % 32);
        }
    }
    words
}

/// A tensor: name, dtype, shape, bytes.
pub type Named = (String, &'static str, Vec<u64>, Vec<u8>);

/// A `.safetensors` file with these tensors.
pub fn file(tensors: &[Named]) -> Vec<u8> {
    let all = tensors.iter().map(|(name, dtype, shape, data)| (&name[..], *dtype, &shape[..], data.clone()));
    safetensors(&all.collect::<Vec<_>>(), &[("format", "pt")])
}

/// Size of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of inputs.
    pub k: usize,
    /// Number of outputs.
    pub m: usize,
    /// Number of inputs per group.
    pub group: usize,
}

/// Zero points of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroPoints {
    /// Pseudo-random values.
    Drawn,
    /// The midpoint everywhere, as in symmetric quantization.
    Midpoint,
}

/// Format of GPTQ files; the first format stores zero points minus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Their numbers.
pub enum GptqFormat {
    First,
    Second,
}

/// Pseudo-random code of element `[m, k]`.
pub fn code(k: usize, m: usize, bits: usize) -> u32 {
    drawn(k * 4099 + m, 1 << bits) as u32
}

/// Zero point of group `g` in output `m`.
pub fn zero(g: usize, m: usize, bits: usize, zeros: ZeroPoints) -> u32 {
    match zeros {
        ZeroPoints::Drawn => drawn(g * 77 + m + 5, 1 << bits) as u32,
        ZeroPoints::Midpoint => 1 << (bits - 1),
    }
}

/// Nibble `n` of word `j` belongs to column `8 j + (0,2,4,6,1,3,5,7)[n]`.
fn awq_word(of: impl Fn(usize) -> u32) -> u32 {
    [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate().fold(0, |word, (n, column)| word | of(column) << (4 * n))
}

/// Tensors of AutoAWQ, and the configuration.
pub fn awq(size: Size, zeros: ZeroPoints) -> (Vec<Named>, Value) {
    let Size { k, m, group } = size;
    let per_row = |rows: usize, of: &dyn Fn(usize, usize) -> u32| -> Vec<u32> {
        (0..rows).flat_map(|r| (0..m / 8).map(move |j| awq_word(|c| of(r, 8 * j + c)))).collect()
    };
    let (codes, zero_points) = (per_row(k, &|k, m| code(k, m, 4)), per_row(k / group, &|g, m| zero(g, m, 4, zeros)));
    let (rows, groups, wide) = (k as u64, (k / group) as u64, m as u64);
    let tensors = vec![
        (format!("{NAME}.qweight"), "I32", vec![rows, wide / 8], words(&codes)),
        (format!("{NAME}.qzeros"), "I32", vec![groups, wide / 8], words(&zero_points)),
        (format!("{NAME}.scales"), "F16", vec![groups, wide], halves(k / group * m)),
    ];
    let config = json!({"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": true, "version": "gemm"});
    (tensors, json!({"quantization_config": config}))
}

/// Tensors of AutoGPTQ, and the configuration.
pub fn gptq(size: Size, bits: usize, format: GptqFormat, zeros: ZeroPoints) -> (Vec<Named>, Value) {
    let Size { k, m, group } = size;
    let groups = k / group;
    let columns: Vec<Vec<u32>> = (0..m).map(|m| stream((0..k).map(|k| code(k, m, bits)), bits)).collect();
    let per_column = columns[0].len();
    let codes: Vec<u32> = (0..per_column).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    let less = u32::from(format == GptqFormat::First);
    let mask = (1 << bits) - 1;
    let of_group = |g| stream((0..m).map(|m| zero(g, m, bits, zeros).wrapping_sub(less) & mask), bits);
    let zero_points: Vec<u32> = (0..groups).flat_map(of_group).collect();
    let tensors = vec![
        (format!("{NAME}.qweight"), "I32", vec![per_column as u64, m as u64], words(&codes)),
        (
            format!("{NAME}.qzeros"),
            "I32",
            vec![groups as u64, (zero_points.len() / groups) as u64],
            words(&zero_points),
        ),
        (format!("{NAME}.scales"), "F16", vec![groups as u64, m as u64], halves(groups * m)),
        (
            format!("{NAME}.g_idx"),
            "I32",
            vec![k as u64],
            words(&(0..k).map(|k| (k / group) as u32).collect::<Vec<_>>()),
        ),
    ];
    let format = if format == GptqFormat::First { "gptq" } else { "gptq_v2" };
    let config = json!({
        "quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": false, "checkpoint_format": format,
    });
    (tensors, json!({"quantization_config": config}))
}

/// A file with codes, a scale of this name, a bias, and integers.
pub fn scaled(scale: &'static str) -> Vec<u8> {
    let codes = (0..12u8).map(|i| i * 19).collect();
    let tensors: [Tensor; 4] = [
        ("a.weight", "F8_E4M3", &[3, 4], codes),
        (scale, "F32", &[], f32s(&[0.3])),
        ("a.bias", "F32", &[3], f32s(&[0.1, 465.0, -2.0])),
        ("ids", "I32", &[1], vec![7, 0, 0, 0]),
    ];
    safetensors(&tensors, &[("made", "by hand")])
}

/// Files that declare a quantization. Each file declares it in another way.
pub fn files() -> Vec<(&'static str, Vec<u8>)> {
    let codes: Vec<u8> = (0..64 * 64u32).map(|i| (i * 37 % 251) as u8).collect();
    let layer = r#"{"format":"float8_e4m3fn"}"#.as_bytes().to_vec();
    let comfy = [
        ("a.weight", "F8_E4M3", &[64, 64][..], codes.clone()),
        ("a.weight_scale", "F32", &[], f32s(&[0.0123])),
        ("a.input_scale", "F32", &[], f32s(&[1.5])),
        ("a.comfy_quant", "U8", &[26], layer),
        ("norm.weight", "BF16", &[2], vec![0x80, 0x3f, 0, 0x40]),
    ];
    let torchao = [
        ("a._weight_qdata", "F8_E4M3", &[64, 64][..], codes.clone()),
        ("a._weight_scale", "F32", &[64, 1], f32s(&(1..65).map(|i| i as f32 * 0.01).collect::<Vec<_>>())),
        ("b", "F32", &[1], f32s(&[0.1])),
    ];
    let data = r#"{"_type":"Float8Tensor","_data":{"block_size":[1,64],"dtype":"torch.bfloat16"},"_tensor_data_names":["qdata","scale"]}"#;
    let logical =
        [("format", "pt"), ("tensor_names", r#"["a.weight","b"]"#), ("a.weight", data), ("b", r#"{"_type":"Tensor"}"#)];
    let gpt_oss = [
        ("a.mlp1_weight.blocks", "U8", &[2, 64, 2, 16][..], codes.clone()),
        ("a.mlp1_weight.scales", "U8", &[2, 64, 2], (0..=255).collect()),
    ];
    vec![
        ("names", scaled("a.scale_weight")),
        ("comfy", safetensors(&comfy, &[])),
        ("torchao", safetensors(&torchao, &logical)),
        ("blocks", safetensors(&gpt_oss, &[])),
    ]
}
