//! Scales that are powers of two, of blocks of another size or beside codes of another type: `docs/spec/checkpoints.md §8`.
//! What is expected is computed here by the page's arithmetic, in f64, where every product is exact.

use crate::checkpoint_relayout::tensors;
use crate::files::{Parsed, f32s, safetensors};
use crate::run::Folder;

const FILE: &str = "model.safetensors";
const NAME: &str = "l.0.q_proj.weight";
const MXFP4: &str = "ct:mxfp4-pack-quantized";
const MODELOPT: &str = "modelopt:W4A16_NVFP4";

/// A number of 0 to `n` - 1 that looks drawn.
fn drawn(i: usize, n: usize) -> usize {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % n
}

fn e2m1(code: u8) -> f64 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
    if code & 8 == 0 { magnitude } else { -magnitude }
}

/// Sign, four bits of exponent of bias 7, three of significand; NaN is none of the codes here.
fn e4m3(code: u8) -> f64 {
    let (field, fraction) = (i32::from(code >> 3 & 15), f64::from(code & 7));
    let magnitude = if field == 0 { fraction * 2f64.powi(-9) } else { (8.0 + fraction) * 2f64.powi(field - 10) };
    assert_ne!(code & 0x7f, 0x7f);
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// A stack of matrices whose rows are blocks of 32, by codes and exponents.
struct Mx {
    shape: Vec<usize>,
    codes: Vec<u8>,
    exponents: Vec<i32>,
}

impl Mx {
    /// Exponents of `lowest` to 0; every fifth block holds zeros of both signs, of an exponent far off.
    fn new(shape: &[usize], lowest: i32) -> Mx {
        let n: usize = shape.iter().product();
        let is_zero = |block: usize| block % 5 == 3;
        let code = |i: usize| if is_zero(i / 32) { (drawn(i, 2) * 8) as u8 } else { drawn(i, 16) as u8 };
        let exponent = |block: usize| match () {
            () if is_zero(block) => [90, -127][block % 2],
            () if block == 0 => 0,
            () if block == 1 => lowest,
            () => -(drawn(block, (1 - lowest) as usize) as i32),
        };
        let mut codes: Vec<u8> = (0..n).map(code).collect();
        // No other block is zero by chance.
        (0..n / 32).filter(|block| !is_zero(*block)).for_each(|block| codes[block * 32 + 5] = 7);
        Mx { shape: shape.into(), codes, exponents: (0..n / 32).map(exponent).collect() }
    }

    fn value(&self, i: usize) -> f64 {
        e2m1(self.codes[i]) * 2f64.powi(self.exponents[i / 32])
    }

    fn is_zero(&self, block: usize) -> bool {
        self.codes[block * 32..][..32].iter().all(|code| code & 7 == 0)
    }

    fn cols(&self) -> usize {
        *self.shape.last().unwrap()
    }

    /// The checkpoint `a`: what a writer of the scheme makes of any values, with these codes and scales.
    fn write(&self, folder: &Folder) {
        write(folder, &self.shape, MXFP4, &[("_packed", packed(&self.codes)), ("_scale", self.bytes())]);
    }

    fn bytes(&self) -> Vec<u8> {
        self.exponents.iter().map(|exponent| (exponent + 127) as u8).collect()
    }
}

/// The low nibble first.
fn packed(codes: &[u8]) -> Vec<u8> {
    codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()
}

fn write(folder: &Folder, shape: &[usize], scheme: &str, parts: &[(&str, Vec<u8>)]) {
    drop(std::fs::create_dir(folder.path("dense")));
    drop(std::fs::remove_dir_all(folder.path("a")));
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (drawn(i, 2001) as f32 - 1000.0) * 0.001).collect();
    let dims: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
    let of = [(NAME, "F32", &dims[..], f32s(&values)), ("norm.weight", "F32", &[2], f32s(&[1.0, 2.0]))];
    folder.write(&format!("dense/{FILE}"), &safetensors(&of, &[("format", "pt")]));
    folder.write("dense/config.json", b"{}");
    folder.run(&format!("convert dense a --scheme {scheme} --quantize {NAME} --quiet")).succeeds();
    for (part, bytes) in parts {
        set(folder, "a", &format!("{NAME}{part}"), bytes);
    }
    std::fs::remove_file(folder.path("a/truecast-manifest.json")).unwrap();
}

/// Puts other bytes into a tensor.
fn set(folder: &Folder, dir: &str, tensor: &str, bytes: &[u8]) {
    let path = format!("{dir}/{FILE}");
    let mut file = folder.read(&path);
    let parsed = Parsed::new(&file);
    let old = parsed.bytes(tensor).to_vec();
    assert_eq!(old.len(), bytes.len(), "{tensor}");
    let at = parsed.begin(tensor, &file);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    folder.write(&path, &file);
}

fn part(folder: &Folder, dir: &str, name: &str) -> Vec<u8> {
    Parsed::new(&folder.read(&format!("{dir}/{FILE}"))).bytes(&format!("{NAME}{name}")).to_vec()
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_le_bytes(bytes.try_into().unwrap())
}

/// Carries `a` over, proves it, and that a wrong bit of any part is found; the same bytes however it is done.
fn carried(folder: &Folder, to: &str, parts: &[&str]) {
    for dir in ["b", "c", "f32", "same"] {
        drop(std::fs::remove_dir_all(folder.path(dir)));
    }
    let line = format!("--scheme {to} --relayout exact --quiet --force");
    folder.run(&format!("convert a b {line} --report r.json")).succeeds();
    folder.run("verify a b").succeeds();
    folder.run("verify a b --report r.json --full").succeeds();
    folder.run("convert a f32 --to f32 --quiet").succeeds();
    folder.run("convert b same --to f32 --quiet").succeeds();
    assert_eq!(tensors(folder, "f32"), tensors(folder, "same"), "{to}");
    let right = folder.read(&format!("b/{FILE}"));
    for how in ["--threads 1 --max-memory 2MiB", "--threads 3"] {
        folder.run(&format!("convert a c {line} {how}")).succeeds();
        assert!(folder.read(&format!("c/{FILE}")) == right, "{how}");
    }
    for name in parts {
        let tensor = format!("{NAME}{name}");
        let bytes = part(folder, "b", name);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 8;
            set(folder, "b", &tensor, &wrong);
            let ran = folder.run("verify a b --full").exits(1);
            assert!(ran.out.contains(&tensor), "{tensor} {at}: {}", ran.out);
        }
        set(folder, "b", &tensor, &bytes);
    }
}

/// The second scale makes 2^8 of the largest; codes stay what they are.
#[test]
fn mxfp4_as_nvfp4() {
    for (shape, lowest) in [(vec![7, 96], -17), (vec![131, 160], -9), (vec![3, 5, 64], -17)] {
        let folder = Folder::new();
        let mx = Mx::new(&shape, lowest);
        mx.write(&folder);
        for (to, names) in [
            (MODELOPT, ["", "_scale", "_scale_2"]),
            ("ct:nvfp4-pack-quantized", ["_packed", "_scale", "_global_scale"]),
        ] {
            carried(&folder, to, &names);
            let [codes, scales, global] = names.map(|name| part(&folder, "b", name));
            assert_eq!(unpacked(&codes), mx.codes, "{to}");
            // The largest exponent is 0.
            let global = f32_of(&global);
            assert_eq!(global, if to == MODELOPT { 2f32.powi(-8) } else { 2f32.powi(8) });
            for (i, code) in unpacked(&codes).into_iter().enumerate() {
                let scale = e4m3(scales[i / 16]);
                let value =
                    e2m1(code) * if to == MODELOPT { scale * f64::from(global) } else { scale / f64::from(global) };
                assert_eq!(value.to_bits(), mx.value(i).to_bits(), "{to} {i}");
            }
            for (block, pair) in scales.chunks(2).enumerate().filter(|(block, _)| !mx.is_zero(*block)) {
                assert_eq!((e4m3(pair[0]), pair[0]), (2f64.powi(mx.exponents[block] + 8), pair[1]));
            }
        }
    }
}

/// There and back, and halves of which one is zero.
#[test]
fn nvfp4_as_mxfp4() {
    let folder = Folder::new();
    let shape = [37, 96];
    let mx = Mx::new(&shape, -17);
    let mut codes = mx.codes.clone();
    let scale = |exponent: i32| match exponent {
        -9.. => ((exponent + 7).max(0) * 8) as u8 | if exponent < -6 { 1 << (exponent + 9) } else { 0 },
        _ => unreachable!("E4M3 has no such power"),
    };
    let mut scales: Vec<u8> = (0..codes.len() / 16)
        .map(|half| if mx.is_zero(half / 2) { 0x53 } else { scale(mx.exponents[half / 2] + 8) })
        .collect();
    // Zeros of any scale stand beside a half of block 2, and of block 4 before it.
    codes[2 * 32 + 16..3 * 32].fill(8);
    codes[4 * 32..4 * 32 + 16].fill(0);
    (codes[2 * 32], codes[4 * 32 + 17]) = (3, 13);
    (scales[5], scales[8]) = (0, 0x45);
    let global = 2f32.powi(-20);
    let source = |scales: &[u8], codes: &[u8]| {
        let parts = [("", packed(codes)), ("_scale", scales.to_vec()), ("_scale_2", f32s(&[global]))];
        write(&folder, &shape, MODELOPT, &parts);
    };
    source(&scales, &codes);
    carried(&folder, MXFP4, &["_packed", "_scale"]);
    let (found, made) = (unpacked(&part(&folder, "b", "_packed")), part(&folder, "b", "_scale"));
    assert_eq!(found, codes);
    for (i, code) in found.iter().enumerate() {
        let value = e2m1(*code) * 2f64.powi(i32::from(made[i / 32]) - 127);
        let expected = e2m1(codes[i]) * e4m3(scales[i / 16]) * f64::from(global);
        assert_eq!(value.to_bits(), expected.to_bits(), "{i}");
    }
    folder.run(&format!("convert b c --scheme {MODELOPT} --relayout exact --quiet --force")).succeeds();
    folder.run("verify b c --full").succeeds();

    let refused = |scales: &[u8], codes: &[u8], said: &[&str]| {
        source(scales, codes);
        let all = [&[NAME, "without --relayout the tensor is quantised anew"], said].concat();
        drop(std::fs::remove_dir_all(folder.path("d")));
        folder.run(&format!("convert a d --scheme {MXFP4} --relayout exact")).fails(2, &all);
        assert!(!folder.path("d").exists());
    };
    let changed = |at: usize, code: u8| {
        let mut scales = scales.clone();
        scales[at] = code;
        scales
    };
    // 1.125 is none; neither is 0 before codes that are none.
    refused(&changed(20 * 6 + 2, 0x39), &codes, &["block at [20, 32] is no power of two"]);
    refused(&changed(20 * 6 + 3, 0x00), &codes, &["block at [20, 48] is no power of two"]);
    refused(&changed(20 * 6 + 3, 0x7f), &codes, &["block at [20, 48] is no power of two"]);
    let other = scales[20 * 6 + 2] + 8;
    refused(
        &changed(20 * 6 + 3, other),
        &codes,
        &["block at [20, 32], of 1 x 32 elements", "1 binary orders apart", "equal ones"],
    );
}

/// Codes of f8e4m3fn: 6 * 2^6 = 384 of the largest block, and 0.5 * 2^-8 = 2^-9 of one 14 binary orders below.
#[test]
fn mxfp4_as_fp8_blocks() {
    for (shape, lowest) in [(vec![200, 416], -14), (vec![3, 130, 64], -14), (vec![5, 32], 0)] {
        let folder = Folder::new();
        let mx = Mx::new(&shape, lowest);
        mx.write(&folder);
        for (to, name, size) in [
            ("fp8-block", "_scale_inv", 1),
            ("fp8-block,scale=f32", "_scale_inv", 4),
            ("fp8-block:64x96,scale=bf16", "_scale_inv", 2),
        ] {
            carried(&folder, to, &["", name]);
            let (codes, scales) = (part(&folder, "b", ""), part(&folder, "b", name));
            let [high, wide] = if to.contains("64x96") { [64, 96] } else { [128, 128] };
            let (cols, rows) = (mx.cols(), shape[shape.len() - 2]);
            let (down, across) = (rows.div_ceil(high), cols.div_ceil(wide));
            assert_eq!(scales.len(), shape.iter().product::<usize>() / (rows * cols) * down * across * size);
            let scale = |i: usize| -> f64 {
                let (matrix, row, col) = (i / (rows * cols), i / cols % rows, i % cols);
                let at = (matrix * down + row / high) * across + col / wide;
                let bytes = &scales[at * size..][..size];
                match size {
                    1 => 2f64.powi(i32::from(bytes[0]) - 127),
                    2 => f32_of(&[&[0, 0], bytes].concat()).into(),
                    _ => f32_of(bytes).into(),
                }
            };
            for (i, code) in codes.iter().enumerate() {
                assert_eq!((e4m3(*code) * scale(i)).to_bits(), mx.value(i).to_bits(), "{to} {i}");
            }
            // Block 0 has the largest exponent.
            assert_eq!(scale(0), 2f64.powi(-6));
        }
    }
    let folder = Folder::new();
    Mx::new(&[200, 416], -15).write(&folder);
    let said =
        [NAME, "block at [0, 0], of 128 x 128 elements", "2^-15 and 2^0", "15 binary orders apart", "14 at most"];
    folder.run("convert a b --scheme fp8-block --relayout exact").fails(2, &said);
    assert!(!folder.path("b").exists());
}

#[test]
fn what_no_scale_serves_is_an_error() {
    let folder = Folder::new();
    Mx::new(&[7, 96], -18).write(&folder);
    let said =
        [NAME, MXFP4, MODELOPT, "block at [0, 32] needs the scale 2^-18", "[0, 0] 2^0", "18 binary orders", "span 17"];
    folder.run(&format!("convert a b --scheme {MODELOPT} --relayout exact")).fails(2, &said);
    let mut mx = Mx::new(&[7, 96], -3);
    mx.exponents[4] = 128;
    mx.write(&folder);
    let said = ["block at [1, 32] is no power of two"];
    folder.run(&format!("convert a b --scheme {MODELOPT} --relayout exact")).fails(2, &said);
    // Zeros times NaN are NaN.
    let mut mx = Mx::new(&[7, 96], -3);
    mx.exponents[3] = 128;
    mx.write(&folder);
    let said = ["block at [1, 0] is no power of two"];
    folder.run("convert a b --scheme fp8-block --relayout exact").fails(2, &said);
    // The ends of the range: the second scale of one is subnormal, of the other held to what f32 has.
    for exponent in [-127, 122] {
        let mut mx = Mx::new(&[7, 96], 0);
        mx.exponents.fill(exponent);
        mx.exponents[0] = exponent + 5;
        mx.write(&folder);
        for to in [MODELOPT, "ct:nvfp4-pack-quantized", "fp8-block"] {
            drop(std::fs::remove_dir_all(folder.path("b")));
            folder.run(&format!("convert a b --scheme {to} --relayout exact --quiet")).exits(0);
            folder.run("verify a b --full").succeeds();
        }
    }
    assert!(!folder.path("d").exists());
}

/// Shards in parts and resumed give the same bytes; nothing but zeros has a scale too.
#[test]
fn zeros_and_parts() {
    let folder = Folder::new();
    let mut mx = Mx::new(&[130, 64], 0);
    mx.codes.fill(8);
    mx.write(&folder);
    for (to, parts) in [("fp8-block", &["", "_scale_inv"]), (MODELOPT, &["", "_scale"])] {
        carried(&folder, to, parts);
        drop(std::fs::remove_dir_all(folder.path("d")));
        folder.run(&format!("convert a d --scheme {to} --relayout exact --quiet --part 1/1 --force")).succeeds();
        assert!(folder.read(&format!("d/{FILE}")) == folder.read(&format!("b/{FILE}")), "{to}");
    }
}
