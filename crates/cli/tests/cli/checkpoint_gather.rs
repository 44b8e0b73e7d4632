//! NVFP4 of folders in blocks of a GGUF file: `docs/spec/checkpoints.md §8`, §9.5. Checkpoints are written byte for byte, and
//! what is expected is computed here by the page's arithmetic, in f32 with its roundings.

use crate::run::{Folder, has};
use serde_json::{Value, json};
use truecast_testkit::formats::{E2M1, e4m3};
use truecast_testkit::gguf::Written;
use truecast_testkit::random::drawn;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

const LINE: &str = "--scheme gguf:nvfp4 --relayout";

/// A stack of matrices, by codes and scales of 16 of them.
#[derive(Clone)]
struct Nvfp4 {
    shape: Vec<usize>,
    codes: Vec<u8>,
    scales: Vec<u8>,
    /// One, or one for each matrix.
    seconds: Vec<f32>,
}

impl Nvfp4 {
    /// Every code but that of -0, and every scale that is a number.
    fn new(shape: &[usize], seconds: &[f32]) -> Nvfp4 {
        let n: usize = shape.iter().product();
        let codes = (0..n).map(|i| [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15][drawn(i, 15)]).collect();
        let scales = (0..n / 16).map(|i| drawn(i + 7, 0x7f) as u8).collect();
        Nvfp4 { shape: shape.into(), codes, scales, seconds: seconds.into() }
    }

    fn dims(&self, per_entry: u64) -> Vec<u64> {
        let mut dims: Vec<u64> = self.shape.iter().map(|n| *n as u64).collect();
        *dims.last_mut().unwrap() /= per_entry;
        dims
    }

    /// The low nibble first.
    fn packed(&self) -> Vec<u8> {
        self.codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect()
    }

    /// 4 scales; byte 8k + j holds elements 16k + j and 16k + j + 8 (§9.5).
    fn blocks(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (codes, scales) in self.codes.chunks(64).zip(self.scales.chunks(4)) {
            bytes.extend(scales);
            bytes.extend((0..32).map(|i| codes[i / 8 * 16 + i % 8] | codes[i / 8 * 16 + i % 8 + 8] << 4));
        }
        bytes
    }

    /// Values before and after: forms A2 and §9.5.
    fn values(&self) -> Vec<[f32; 2]> {
        let of_matrix = self.codes.len() / self.seconds.len();
        let value = |(i, code): (usize, &u8)| {
            let (c, s, g) = (E2M1[usize::from(*code)], e4m3(self.scales[i / 16]), self.seconds[i / of_matrix]);
            let code = if *code == 8 { 0.0 } else { 2.0 * c };
            [c * (s * g), code * (s / 2.0) * g]
        };
        self.codes.iter().enumerate().map(value).collect()
    }

    /// Zeros that lose a sign, and values that differ otherwise.
    fn loss(&self) -> [usize; 2] {
        let differ = |[a, b]: &[f32; 2]| a.to_bits() != b.to_bits();
        let all: Vec<_> = self.values().into_iter().filter(differ).collect();
        let zeros = all.iter().filter(|[a, b]| a == b).count();
        [zeros, all.len() - zeros]
    }
}

const NAME: &str = "l.0.q_proj";

/// The folder `a` as ModelOpt writes it, codes in another shard than scales, beside a norm and an embedding.
fn modelopt(folder: &Folder, tensor: &Nvfp4) {
    drop(std::fs::remove_dir_all(folder.path("a")));
    let global: &[u64] = if tensor.seconds.len() == 1 { &[] } else { &[tensor.seconds.len() as u64] };
    let name = |last: &str| format!("{NAME}.{last}");
    let [weight, scale, second, input] = ["weight", "weight_scale", "weight_scale_2", "input_scale"].map(name);
    let first =
        [("embed.weight", "F32", &[2u64, 8][..], f32s(&[0.5; 16])), (&weight, "U8", &tensor.dims(2), tensor.packed())];
    let rest = [
        (second.as_str(), "F32", global, f32s(&tensor.seconds)),
        (&input, "F32", &[], f32s(&[0.5])),
        (&scale, "F8_E4M3", &tensor.dims(16), tensor.scales.clone()),
        ("norm.weight", "F32", &[3], f32s(&[1.0, 2.0, 0.1])),
    ];
    let files = ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"];
    let (first, rest) = (safetensors(&first, &[("format", "pt")]), safetensors(&rest, &[("format", "pt")]));
    folder.write_shards("a", &json!({}), &[(files[0], first), (files[1], rest)]);
    configured(folder, json!({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["embed"]}));
}

fn configured(folder: &Folder, quantization: Value) {
    let config = json!({"model_type": "qwen3", "quantization_config": quantization});
    folder.write("a/config.json", config.to_string().as_bytes());
}

/// A folder `a` of one file, by the last words of names.
fn written(folder: &Folder, parts: &[(&str, &str, Vec<u64>, Vec<u8>)], metadata: &[(&str, &str)]) {
    drop(std::fs::remove_dir_all(folder.path("a")));
    let names: Vec<String> = parts.iter().map(|(last, ..)| format!("{NAME}.{last}")).collect();
    let all =
        parts.iter().zip(&names).map(|((_, dtype, shape, bytes), name)| (&name[..], *dtype, &shape[..], bytes.clone()));
    folder.write("a/model.safetensors", &safetensors(&all.collect::<Vec<_>>(), metadata));
}

/// `b.gguf` holds the blocks and the factors, and nothing else of the weight.
fn holds(folder: &Folder, tensor: &Nvfp4, factors: Option<&[f32]>) -> Written {
    let result = Written::new(&folder.read("b.gguf"));
    assert_eq!(result.tensor(&format!("{NAME}.weight")), (40, &tensor.dims(1)[..], &tensor.blocks()[..]));
    match factors {
        Some(factors) => {
            let expected = (0, &[factors.len() as u64][..], &f32s(factors)[..]);
            assert_eq!(result.tensor(&format!("{NAME}.scale")), expected);
        }
        None => assert!(!result.names().iter().any(|name| name.ends_with("scale")), "{:?}", result.names()),
    }
    result
}

#[test]
fn codes_and_scales_lie_in_blocks() {
    let folder = Folder::new();
    for shape in [[1, 64], [3, 128], [131, 64], [7, 320], [40, 4096]] {
        let tensor = Nvfp4::new(&shape, &[0.125]);
        assert_eq!(tensor.loss(), [0, 0]);
        modelopt(&folder, &tensor);
        let ran = folder.run(&format!("convert a b.gguf {LINE} exact --report r.json --force")).exits(0);
        assert!(ran.out.contains("--relayout exact") && !ran.err.contains("last bits"), "{}{}", ran.out, ran.err);
        let result = holds(&folder, &tensor, Some(&[0.125]));
        assert_eq!(result.tensor("norm.weight"), (0, &[3][..], &f32s(&[1.0, 2.0, 0.1])[..]));
        assert_eq!(result.tensor("embed.weight"), (0, &[2, 8][..], &f32s(&[0.5; 16])[..]));
        assert_eq!(result.names().len(), 4, "{:?}", result.names());
        assert_eq!(result.key("general.file_type"), Some(&[4, 0, 0, 0, 39, 0, 0, 0][..]));
        assert_eq!(result.key("general.quantization_version"), Some(&[4, 0, 0, 0, 2, 0, 0, 0][..]));
        folder.run(&format!("verify a b.gguf {LINE} exact")).succeeds();
        folder.run("verify a b.gguf --report r.json --full").succeeds();
        folder.run("verify a b.gguf --report r.json --sample 1%").succeeds();
        // The same bytes however it is done.
        let right = folder.read("b.gguf");
        for how in ["--threads 1 --max-memory 2MiB", "--threads 3"] {
            folder.run(&format!("convert a c.gguf {LINE} exact --quiet --force {how}")).succeeds();
            assert!(folder.read("c.gguf") == right, "{how}");
        }
        // The same values.
        let expected: Vec<f32> = tensor.values().iter().map(|[before, _]| *before).collect();
        for (src, dst) in [("a", "dense"), ("b.gguf", "dense.safetensors")] {
            drop(std::fs::remove_dir_all(folder.path("dense")));
            folder.run(&format!("convert {src} {dst} --to f32 --quiet --force")).succeeds();
            let file = if dst == "dense" { "dense/model-00002-of-00002.safetensors" } else { dst };
            let parsed = Parsed::new(&folder.read(file));
            assert!(parsed.bytes(&format!("{NAME}.weight")) == f32s(&expected), "{src}");
        }
    }
}

#[test]
fn a_wrong_bit_is_found() {
    let folder = Folder::new();
    let tensor = Nvfp4::new(&[5, 192], &[0.125]);
    modelopt(&folder, &tensor);
    folder.run(&format!("convert a b.gguf {LINE} exact --report r.json --quiet")).succeeds();
    let right = folder.read("b.gguf");
    let blocks = tensor.blocks();
    let begin = right.windows(blocks.len()).position(|bytes| bytes == blocks).unwrap();
    let factor = right.windows(4).rposition(|bytes| bytes == 0.125f32.to_le_bytes()).unwrap();
    for at in [begin, begin + 3, begin + 4, begin + 36 * 7 + 20, begin + blocks.len() - 1, factor] {
        folder.run_with_flipped("b.gguf", at, 1, "verify a b.gguf --report r.json --full").says(&[NAME]);
    }
}

#[test]
fn stacks_have_a_factor_or_one_for_each_matrix() {
    let folder = Folder::new();
    for (shape, seconds) in
        [([3, 5, 64], &[0.5f32, 0.25, 0.0625][..]), ([3, 5, 64], &[0.5]), ([2, 130, 128], &[0.25, 0.5])]
    {
        let tensor = Nvfp4::new(&shape, seconds);
        modelopt(&folder, &tensor);
        folder.run(&format!("convert a b.gguf {LINE} exact --quiet --force")).succeeds();
        holds(&folder, &tensor, Some(seconds));
        folder.run(&format!("verify a b.gguf {LINE} exact --full")).succeeds();
        for how in ["--threads 1 --max-memory 2MiB", "--threads 3"] {
            folder.run(&format!("convert a c.gguf {LINE} exact --quiet --force {how}")).succeeds();
            assert!(folder.read("c.gguf") == folder.read("b.gguf"), "{how}");
        }
    }
    // One for gate and one for up is more than a matrix has there.
    let tensor = Nvfp4::new(&[2, 6, 64], &[0.5, 0.25, 0.5, 0.25]);
    modelopt(&folder, &Nvfp4 { seconds: vec![0.5; 2], ..tensor.clone() });
    let path = "a/model-00001-of-00002.safetensors";
    let halves = [
        (format!("{NAME}.weight_scale_2"), "F32", vec![2, 2], f32s(&tensor.seconds)),
        (format!("{NAME}.input_scale"), "F32", vec![], f32s(&[0.5])),
        (format!("{NAME}.weight_scale"), "F8_E4M3", tensor.dims(16), tensor.scales.clone()),
        ("norm.weight".into(), "F32", vec![3], f32s(&[1.0, 2.0, 0.1])),
    ];
    let halves: Vec<_> =
        halves.iter().map(|(name, dtype, dims, bytes)| (&name[..], *dtype, &dims[..], bytes.clone())).collect();
    folder.write(path, &safetensors(&halves, &[("format", "pt")]));
    folder.run(&format!("convert a d.gguf {LINE} exact")).fails(2, &[NAME, "4 global scales for 2 matrices"]);
    assert!(!folder.path("d.gguf").exists());
}

#[test]
fn what_is_lost_is_an_error_or_counted() {
    let folder = Folder::new();
    // -0 stands in three places.
    let mut tensor = Nvfp4::new(&[5, 128], &[0.125]);
    for at in [129 + 3, 300, 639] {
        tensor.codes[at] = 8;
    }
    modelopt(&folder, &tensor);
    assert_eq!(tensor.loss(), [3, 0]);
    let refused = [NAME, "3 zeros lose their sign", "[1, 4]", "--relayout lossy"];
    folder.run(&format!("convert a b.gguf {LINE} exact")).fails(2, &refused);
    assert!(!folder.path("b.gguf").exists());
    folder.run(&format!("convert a b.gguf {LINE} lossy --report r.json")).exits(0).warns(&["3 zeros lose their sign"]);
    holds(&folder, &tensor, Some(&[0.125]));
    folder.run("verify a b.gguf --report r.json --full").succeeds();

    // The global scale of a tensor with the largest magnitude 0.3, as §7.4 makes it.
    let second = 0.3f32 / 2688.0;
    for shape in [vec![33, 192], vec![2, 9, 64]] {
        let tensor = Nvfp4::new(&shape, &vec![second; if shape.len() == 3 { 2 } else { 1 }]);
        let [zeros, rounded] = tensor.loss();
        assert!(zeros == 0 && rounded > 20);
        modelopt(&folder, &tensor);
        let first = tensor.values().iter().position(|[a, b]| a.to_bits() != b.to_bits()).unwrap();
        let cols = shape[shape.len() - 1];
        let place = format!("{}, {}]", first / cols, first % cols);
        let said = format!("{rounded} values differ in the last bits");
        folder.run(&format!("convert a c.gguf {LINE} exact")).fails(2, &[&said[..], &place, "--relayout lossy"]);
        assert!(!folder.path("c.gguf").exists());
        folder.run(&format!("convert a b.gguf {LINE} lossy --report r.json --force")).exits(0).warns(&[&said]);
        holds(&folder, &tensor, Some(&tensor.seconds));
        folder.run("verify a b.gguf --report r.json --full").succeeds();
        let ran = folder.run(&format!("convert a c.gguf {LINE} lossy --fail-on inexact --quiet")).exits(1);
        assert!(ran.err.contains(&format!("inexact: {rounded}")), "{}", ran.err);
        std::fs::remove_file(folder.path("c.gguf")).unwrap();
        reported(&folder.json("r.json"), &tensor);
        // What is made of it dense has the values of §9.5.
        folder.run("convert b.gguf dense.safetensors --to f32 --quiet --force").succeeds();
        let expected: Vec<f32> = tensor.values().iter().map(|[_, after]| *after).collect();
        let parsed = Parsed::new(&folder.read("dense.safetensors"));
        assert!(parsed.bytes(&format!("{NAME}.weight")) == f32s(&expected));
    }
}

/// The report measures what became of the values.
fn reported(report: &Value, tensor: &Nvfp4) {
    let row = report["tensors"].as_array().unwrap().iter().find(|row| row["to_scheme"] == "gguf:NVFP4").unwrap();
    let values: Vec<[f64; 2]> = tensor.values().iter().map(|pair| pair.map(f64::from)).collect();
    let errors = values.iter().map(|[x, y]| (y - x).abs());
    let largest = errors.clone().fold(0.0, f64::max);
    let [zeros, rounded] = tensor.loss();
    let expected = json!({
        "name": format!("{NAME}.weight"), "scheme": "modelopt:NVFP4", "from": "f4e2m1", "to": "f4e2m1",
        "shape": tensor.shape, "elements": values.len(), "converted": true, "group": "converted", "lossless": false,
        "bytes_in": tensor.blocks().len(), "bytes_out": tensor.blocks().len(),
        "exact": values.len() - rounded, "inexact": rounded, "sign_of_zero_lost": zeros,
        "zero_in": values.iter().filter(|[x, _]| *x == 0.0).count(),
        "max_abs_error": largest, "index_max_abs": errors.clone().position(|error| error == largest),
    });
    has(row, &expected);
    let rmse = (errors.map(|error| error * error).sum::<f64>() / values.len() as f64).sqrt();
    assert!((row["rmse"].as_f64().unwrap() / rmse - 1.0).abs() < 1e-9);
    assert_eq!(report["total"]["lossless"], false);
}

#[test]
fn what_is_not_quantized_follows_the_options() {
    let folder = Folder::new();
    let tensor = Nvfp4::new(&[5, 128], &[0.125]);
    modelopt(&folder, &tensor);
    folder.run(&format!("convert a b.gguf {LINE} exact --rule norm*=bf16 --report r.json")).exits(0);
    let result = holds(&folder, &tensor, Some(&[0.125]));
    assert_eq!(result.tensor("norm.weight").0, 30);
    assert_eq!(result.tensor("embed.weight").0, 0);
    folder.run("verify a b.gguf --report r.json --full").succeeds();
    let report = folder.json("r.json");
    let row = report["tensors"].as_array().unwrap().iter().find(|row| row["to_scheme"] == "gguf:NVFP4").unwrap();
    assert_eq!((&row["lossless"], &row["exact"]), (&json!(true), &json!(5 * 128)));
}

#[test]
fn what_no_blocks_hold() {
    let folder = Folder::new();
    let of = |line: &str, needles: &[&str]| {
        folder.run(&format!("convert a no.gguf {line}")).fails(2, needles);
        assert!(!folder.path("no.gguf").exists());
    };
    let right = Nvfp4::new(&[5, 128], &[0.125]);
    for (scale, why) in [(0x7f, "NaN"), (0xff, "NaN"), (0xb8, "negative"), (0x81, "negative")] {
        let mut tensor = right.clone();
        tensor.scales[19] = scale;
        modelopt(&folder, &tensor);
        for how in ["exact", "lossy"] {
            of(&format!("{LINE} {how}"), &[NAME, "[2, 48]", why, "--rule"]);
        }
    }
    // What the errors advise.
    folder.run(&format!("convert a b.gguf {LINE} exact --rule *q_proj*=bf16 --quiet")).fails(2, &["--relayout"]);
    modelopt(&folder, &Nvfp4::new(&[5, 96], &[0.125]));
    of(&format!("{LINE} exact"), &[NAME, "rows of 96", "blocks of 64"]);
    modelopt(&folder, &right);
    of("--scheme gguf:nvfp4", &["gguf:NVFP4", "written by relayout only"]);
    folder.run(&format!("convert a no {LINE} exact")).fails(2, &["gguf:NVFP4", ".gguf"]);
    of("--scheme gguf:q8_0 --relayout exact", &[NAME, "gguf:Q8_0"]);
    // Blocks of 32 with powers of two are others.
    let mx =
        [("weight_packed", "U8", right.dims(2), right.packed()), ("weight_scale", "U8", right.dims(32), vec![120; 20])];
    written(&folder, &mx, &[("format", "pt")]);
    let weights = json!({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": true});
    configured(&folder, compressed("mxfp4-pack-quantized", &weights));
    of(&format!("{LINE} exact"), &[NAME, "ct:mxfp4-pack-quantized", "other blocks"]);
    // Nothing is quantized.
    written(&folder, &[("weight", "F32", vec![2, 64], f32s(&[1.0; 128]))], &[("format", "pt")]);
    folder.write("a/config.json", b"{}");
    of(&format!("{LINE} exact"), &["--relayout", "no tensor is quantized"]);
    of("--scheme gguf:nvfp4", &["gguf:NVFP4", "written by relayout only"]);
}

fn compressed(format: &str, weights: &Value) -> Value {
    json!({"quant_method": "compressed-tensors", "format": format, "ignore": [], "version": "0.20.0",
        "config_groups": {"group_0": {"targets": ["Linear"], "format": format, "weights": weights}}})
}

/// Padded to tiles of 128 rows and 4 columns (§3.8).
fn swizzled(scales: &[u8], [rows, cols]: [usize; 2]) -> Vec<u8> {
    let (high, wide) = (rows.next_multiple_of(128), cols.next_multiple_of(4));
    let mut bytes = vec![0; high * wide];
    for (i, scale) in scales.iter().enumerate() {
        let (row, col) = (i / cols, i % cols);
        let tile = row / 128 * (wide / 4) + col / 4;
        bytes[tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4] = *scale;
    }
    bytes
}

#[test]
fn other_writers_have_the_same_blocks() {
    let folder = Folder::new();
    let carried = |tensor: &Nvfp4, factors: Option<&[f32]>| {
        folder.run(&format!("convert a b.gguf {LINE} exact --quiet --force")).succeeds();
        holds(&folder, tensor, factors);
        folder.run(&format!("verify a b.gguf {LINE} exact --full")).succeeds();
    };
    // compressed-tensors divides by its global scale.
    let tensor = Nvfp4::new(&[131, 192], &[1.0 / 4096.0]);
    let parts = [
        ("weight_packed", "U8", tensor.dims(2), tensor.packed()),
        ("weight_scale", "F8_E4M3", tensor.dims(16), tensor.scales.clone()),
        ("weight_global_scale", "F32", vec![1], f32s(&[4096.0])),
    ];
    written(&folder, &parts, &[("format", "pt")]);
    let weights =
        json!({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": true});
    configured(&folder, compressed("nvfp4-pack-quantized", &weights));
    carried(&tensor, Some(&[1.0 / 4096.0]));

    // MLX has words, and the largest magnitude as a global scale, or none.
    let config = json!({"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}).to_string();
    for global in [Some(2688.0 * 0.25f32), None] {
        let tensor = Nvfp4::new(&[7, 128], &[if global.is_some() { 0.25 } else { 1.0 }]);
        let mut parts = vec![
            ("weight", "U32", tensor.dims(8), tensor.packed()),
            ("scales", "U8", tensor.dims(16), tensor.scales.clone()),
        ];
        parts.extend(global.map(|global| ("global_scale", "F32", vec![], f32s(&[global]))));
        written(&folder, &parts, &[("format", "mlx")]);
        folder.write("a/config.json", config.as_bytes());
        carried(&tensor, global.map(|_| &[0.25f32][..]));
    }

    // torchao's metadata names the tensors; its scales may lie in tiles.
    for is_swizzled in [false, true] {
        let tensor = Nvfp4::new(&[160, 192], &[0.5]);
        let scales = if is_swizzled { swizzled(&tensor.scales, [160, 12]) } else { tensor.scales.clone() };
        let dims = if is_swizzled { vec![scales.len() as u64] } else { tensor.dims(16) };
        let parts = [
            ("_weight_qdata", "U8", tensor.dims(2), tensor.packed()),
            ("_weight_scale", "F8_E4M3", dims, scales),
            ("_weight_per_tensor_scale", "F32", vec![], f32s(&[0.5])),
        ];
        let data = json!({"block_size": 16, "is_swizzled_scales": is_swizzled, "orig_dtype": "torch.float32"});
        let names = ["qdata", "scale", "per_tensor_scale"];
        let entry = json!({"_type": "NVFP4Tensor", "_data": data, "_tensor_data_names": names}).to_string();
        let (weight, all) = (format!("{NAME}.weight"), json!([format!("{NAME}.weight")]).to_string());
        written(&folder, &parts, &[("tensor_names", &all), (&weight, &entry)]);
        configured(&folder, json!({"quant_method": "torchao"}));
        carried(&tensor, Some(&[0.5]));
    }

    // ComfyUI has the high nibble first, scales in tiles, and rows of zeros beyond the last of 160.
    let tensor = Nvfp4::new(&[160, 320], &[0.125]);
    let high_first = tensor.codes.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let marker = br#"{"format": "nvfp4"}"#.to_vec();
    let parts = [
        ("weight", "U8", tensor.dims(2), high_first),
        ("weight_scale", "F8_E4M3", vec![256, 20], swizzled(&tensor.scales, [160, 20])),
        ("weight_scale_2", "F32", vec![], f32s(&[0.125])),
        ("comfy_quant", "U8", vec![marker.len() as u64], marker),
    ];
    written(&folder, &parts, &[]);
    carried(&tensor, Some(&[0.125]));
    std::fs::copy(folder.path("a/model.safetensors"), folder.path("one.safetensors")).unwrap();
    folder.run(&format!("convert one.safetensors b.gguf {LINE} exact --quiet --force")).succeeds();
    holds(&folder, &tensor, Some(&[0.125]));
    folder.run(&format!("verify one.safetensors b.gguf {LINE} exact --full")).succeeds();
    for how in ["--threads 1 --max-memory 2MiB", "--threads 3"] {
        folder.run(&format!("convert one.safetensors c.gguf {LINE} exact --quiet --force {how}")).succeeds();
        assert!(folder.read("c.gguf") == folder.read("b.gguf"), "{how}");
    }
}
