//! Codes, scales and zero points that are packed again, of checkpoints as other programs write them:
//! `docs/spec/checkpoints.md` §8, with the packings of §3.7 to §3.9, §4.4.2, §4.5, §4.9 and §4.10.

use crate::checkpoint_relayout::tensors;
use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::random::drawn;
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

const FILE: &str = "model.safetensors";
const NAME: &str = "l.0.q_proj";

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Scales of f16 that are not alike: 0x2800 is 2^-5.
fn halves(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (0x2800 + drawn(i + 7, 2000) as u16).to_le_bytes()).collect()
}

/// Fields one after the other, from the low bit on.
fn stream(fields: impl Iterator<Item = u32>, bits: usize) -> Vec<u32> {
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

type Named = (String, &'static str, Vec<u64>, Vec<u8>);

fn file(tensors: &[Named]) -> Vec<u8> {
    let all = tensors.iter().map(|(name, dtype, shape, data)| (&name[..], *dtype, &shape[..], data.clone()));
    safetensors(&all.collect::<Vec<_>>(), &[("format", "pt")])
}

fn write(folder: &Folder, dir: &str, tensors: &[Named], config: &Value) {
    let norm = ("norm.weight".to_string(), "F32", vec![2], f32s(&[1.0, 2.0]));
    folder.write(&format!("{dir}/{FILE}"), &file(&[tensors, &[norm]].concat()));
    folder.write(&format!("{dir}/config.json"), config.to_string().as_bytes());
}

/// Inputs, outputs, inputs of a group.
#[derive(Clone, Copy)]
struct Size {
    k: usize,
    m: usize,
    group: usize,
}

fn code(k: usize, m: usize, bits: usize) -> u32 {
    drawn(k * 4099 + m, 1 << bits) as u32
}

/// Zero points; of symmetric ones all are the midpoint.
fn zero(g: usize, m: usize, bits: usize, is_symmetric: bool) -> u32 {
    if is_symmetric { 1 << (bits - 1) } else { drawn(g * 77 + m + 5, 1 << bits) as u32 }
}

/// Nibble `n` of a word is column `8 j + (0,2,4,6,1,3,5,7)[n]`.
fn awq_word(of: impl Fn(usize) -> u32) -> u32 {
    [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate().fold(0, |word, (n, column)| word | of(column) << (4 * n))
}

fn awq(size: Size, is_symmetric: bool) -> (Vec<Named>, Value) {
    let Size { k, m, group } = size;
    let per_row = |rows: usize, of: &dyn Fn(usize, usize) -> u32| -> Vec<u32> {
        (0..rows).flat_map(|r| (0..m / 8).map(move |j| awq_word(|c| of(r, 8 * j + c)))).collect()
    };
    let (codes, zeros) = (per_row(k, &|k, m| code(k, m, 4)), per_row(k / group, &|g, m| zero(g, m, 4, is_symmetric)));
    let (rows, groups, wide) = (k as u64, (k / group) as u64, m as u64);
    let tensors = vec![
        (format!("{NAME}.qweight"), "I32", vec![rows, wide / 8], words(&codes)),
        (format!("{NAME}.qzeros"), "I32", vec![groups, wide / 8], words(&zeros)),
        (format!("{NAME}.scales"), "F16", vec![groups, wide], halves(k / group * m)),
    ];
    let config = json!({"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": true, "version": "gemm"});
    (tensors, json!({"quantization_config": config}))
}

/// Tensors in the first format, whose zero points are stored less 1, or in the second; and the configuration.
fn gptq(size: Size, bits: usize, is_first: bool, is_symmetric: bool) -> (Vec<Named>, Value) {
    let Size { k, m, group } = size;
    let groups = k / group;
    let columns: Vec<Vec<u32>> = (0..m).map(|m| stream((0..k).map(|k| code(k, m, bits)), bits)).collect();
    let per_column = columns[0].len();
    let codes: Vec<u32> = (0..per_column).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    let less = u32::from(is_first);
    let mask = (1 << bits) - 1;
    let of_group = |g| stream((0..m).map(|m| zero(g, m, bits, is_symmetric).wrapping_sub(less) & mask), bits);
    let zeros: Vec<u32> = (0..groups).flat_map(of_group).collect();
    let tensors = vec![
        (format!("{NAME}.qweight"), "I32", vec![per_column as u64, m as u64], words(&codes)),
        (format!("{NAME}.qzeros"), "I32", vec![groups as u64, (zeros.len() / groups) as u64], words(&zeros)),
        (format!("{NAME}.scales"), "F16", vec![groups as u64, m as u64], halves(groups * m)),
        (
            format!("{NAME}.g_idx"),
            "I32",
            vec![k as u64],
            words(&(0..k).map(|k| (k / group) as u32).collect::<Vec<_>>()),
        ),
    ];
    let format = if is_first { "gptq" } else { "gptq_v2" };
    let config = json!({
        "quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": false, "checkpoint_format": format,
    });
    (tensors, json!({"quantization_config": config}))
}

/// Carried over, proved, and unquantized tensors made of both are the same.
fn same_values(folder: &Folder, to: &str) {
    for dir in ["b", "f32", "same"] {
        drop(std::fs::remove_dir_all(folder.path(dir)));
    }
    folder.run(&format!("convert a b --scheme {to} --relayout exact --report r.json --quiet --force")).succeeds();
    folder.run("verify a b").succeeds();
    folder.run("verify a b --report r.json").succeeds();
    folder.run("convert a f32 --to f32 --quiet").succeeds();
    folder.run("convert b same --to f32 --quiet").succeeds();
    assert_eq!(tensors(folder, "f32"), tensors(folder, "same"), "{to}");
}

fn flipped(folder: &Folder, tensor: &str, byte: usize) {
    let path = format!("b/{FILE}");
    let parsed = Parsed::new(&folder.read(&path));
    let at = parsed.place(tensor) + byte % parsed.bytes(tensor).len();
    folder.run_with_flipped(&path, at, 0x10, "verify a b").says(&[tensor]);
}

/// Rows that are columns in AWQ, in another order, with zero points along the other axis; in more than one piece.
#[test]
fn awq_as_pack_quantized() {
    let pack = "ct:pack-quantized";
    for size in [Size { k: 64, m: 24, group: 32 }, Size { k: 256, m: 1064, group: 128 }] {
        let folder = Folder::new();
        let (tensors_of, config) = awq(size, false);
        write(&folder, "a", &tensors_of, &config);
        same_values(&folder, pack);
        let found = Parsed::new(&folder.read(&format!("b/{FILE}")));
        assert_eq!(found.dtype(&format!("{NAME}.weight_scale")), "F16");
        // The page's dense bit streams along the inputs, and of zero points along the outputs.
        let rows: Vec<u32> = (0..size.m).flat_map(|m| stream((0..size.k).map(|k| code(k, m, 4)), 4)).collect();
        assert!(found.bytes(&format!("{NAME}.weight_packed")) == words(&rows));
        let groups = size.k / size.group;
        let columns: Vec<_> = (0..groups).map(|g| stream((0..size.m).map(|m| zero(g, m, 4, false)), 4)).collect();
        let of_rows: Vec<u32> = (0..columns[0].len()).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        assert!(found.bytes(&format!("{NAME}.weight_zero_point")) == words(&of_rows));
        let weights = &folder.json("b/config.json")["quantization_config"]["config_groups"]["group_0"]["weights"];
        assert_eq!((&weights["symmetric"], &weights["group_size"]), (&json!(false), &json!(size.group)));
        for (part, byte) in [("weight_packed", 77), ("weight_scale", 31), ("weight_zero_point", 9)] {
            flipped(&folder, &format!("{NAME}.{part}"), byte);
        }
        let first = folder.read(&format!("b/{FILE}"));
        for how in ["--threads 1 --max-memory 1MiB", "--threads 3"] {
            let line = format!("convert a b --scheme {pack} --relayout exact --quiet --force {how}");
            folder.run(&line).succeeds();
            assert!(folder.read(&format!("b/{FILE}")) == first, "{how}");
        }
        let said = ["q_proj", "not the midpoint", "symmetric=false"];
        folder.run(&format!("convert a c --scheme {pack},symmetric=true --relayout exact")).fails(2, &said);
        folder.run(&format!("convert a c --scheme {pack},group=16 --relayout exact")).fails(2, &["other blocks"]);
        folder
            .run(&format!("convert a c --scheme {pack},bits=3 --relayout exact"))
            .fails(2, &["codes have another type"]);
        folder
            .run(&format!("convert a c --scheme {pack},scale=bf16 --relayout exact"))
            .fails(2, &["scales is not exact"]);
        folder.run(&format!("convert a c --scheme {pack},scale=f32 --relayout exact --quiet")).succeeds();
        folder.run("verify a c").succeeds();
        assert!(!folder.path("c/r.json").exists());
    }
    let folder = Folder::new();
    let (of, config) = awq(Size { k: 96, m: 40, group: 32 }, true);
    write(&folder, "a", &of, &config);
    same_values(&folder, &format!("{pack},symmetric=true"));
    let found = Parsed::new(&folder.read(&format!("b/{FILE}")));
    assert!(!found.names().contains(&&*format!("{NAME}.weight_zero_point")));
    // Wider codes hold narrower ones.
    same_values(&folder, "ct:int-quantized");
}

#[test]
fn gptq_as_pack_quantized() {
    let size = Size { k: 96, m: 40, group: 32 };
    for (bits, is_first) in [(4, true), (4, false), (3, true), (8, true), (2, false)] {
        for is_symmetric in [false, true] {
            let folder = Folder::new();
            let (of, config) = gptq(size, bits, is_first, is_symmetric);
            write(&folder, "a", &of, &config);
            same_values(&folder, "ct:pack-quantized");
            flipped(&folder, &format!("{NAME}.weight_zero_point"), 2);
            let symmetric = "ct:pack-quantized,symmetric=true";
            match is_symmetric {
                true => same_values(&folder, symmetric),
                false => {
                    let ran = folder.run(&format!("convert a c --scheme {symmetric} --relayout exact"));
                    ran.fails(2, &["not the midpoint"]);
                }
            }
        }
    }
    // An order of columns that the result has no index for.
    let folder = Folder::new();
    let (mut of, config) = gptq(size, 4, true, false);
    of[3].3 = words(&(0..96).map(|k| k % 3).collect::<Vec<u32>>());
    write(&folder, "a", &of, &config);
    folder.run("convert a b --scheme ct:pack-quantized --relayout exact").fails(2, &[NAME, "an index"]);
    assert!(!folder.path("b").exists());
}

/// Three bits of which none cross a word, and those that do; signed ones two rows in a byte.
#[test]
fn integers_in_other_words() {
    let (m, k) = (40usize, 64usize);
    let folder = Folder::new();
    let padded: Vec<u32> = (0..m)
        .flat_map(|m| {
            (0..k)
                .collect::<Vec<_>>()
                .chunks(10)
                .map(|of| stream(of.iter().map(|k| code(*k, m, 3)), 3)[0])
                .collect::<Vec<_>>()
        })
        .collect();
    let shape: Vec<u8> = [m as u64, k as u64].iter().flat_map(|n| n.to_le_bytes()).collect();
    let of = [
        (format!("{NAME}.weight_packed"), "I32", vec![40, 7], words(&padded)),
        (format!("{NAME}.weight_scale"), "F16", vec![40, 2], halves(80)),
        (format!("{NAME}.weight_shape"), "I64", vec![2], shape),
    ];
    let weights = json!({"num_bits": 3, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true});
    let group = json!({"targets": ["Linear"], "format": "pack-quantized", "weights": weights});
    let config = json!({
        "quant_method": "compressed-tensors", "format": "pack-quantized", "version": "0.15.0", "ignore": [],
        "config_groups": {"group_0": group},
    });
    write(&folder, "a", &of, &json!({"quantization_config": config}));
    same_values(&folder, "ct:pack-quantized");
    let rows: Vec<u32> = (0..m).flat_map(|m| stream((0..k).map(|k| code(k, m, 3)), 3)).collect();
    assert!(Parsed::new(&folder.read(&format!("b/{FILE}"))).bytes(&format!("{NAME}.weight_packed")) == words(&rows));
    // Rows 2 i and 2 i + 1 in the low and high nibbles, as two's complements.
    let folder = Folder::new();
    let pairs = |i: usize| (0..k).map(move |k| (code(k, 2 * i, 4) | code(k, 2 * i + 1, 4) << 4) as u8);
    let of = [
        (format!("{NAME}.weight"), "U8", vec![20, 64], (0..m / 2).flat_map(pairs).collect()),
        (format!("{NAME}.weight_scale"), "F16", vec![40, 2], halves(80)),
    ];
    let config = json!({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 32});
    write(&folder, "a", &of, &json!({"quantization_config": config}));
    same_values(&folder, "ct:pack-quantized");
    let rows: Vec<u32> = (0..m).flat_map(|m| stream((0..k).map(|k| code(k, m, 4) ^ 8), 4)).collect();
    assert!(Parsed::new(&folder.read(&format!("b/{FILE}"))).bytes(&format!("{NAME}.weight_packed")) == words(&rows));
    folder.run("convert a c --scheme ct:pack-quantized,symmetric=false --relayout exact").fails(2, &["no zero points"]);
}

fn quantized(folder: &Folder, shape: [u64; 2], scheme: &str) {
    let values: Vec<f32> =
        (0..shape[0] * shape[1]).map(|i| (drawn(i as usize, 2001) as f32 - 1000.0) * 0.001).collect();
    let of = [(&*format!("{NAME}.weight"), "F32", &shape[..], f32s(&values))];
    folder.write(&format!("dense/{FILE}"), &safetensors(&of, &[("format", "pt")]));
    folder.write("dense/config.json", b"{}");
    drop(std::fs::remove_dir_all(folder.path("a")));
    folder.run(&format!("convert dense a --scheme {scheme} --quiet")).succeeds();
}

/// Other nibbles, tiles and padding, there and back; words in place of bytes.
#[test]
fn orders_and_padding() {
    for ([rows, cols], from, to) in [
        ([48, 64], "comfy:nvfp4", "modelopt:W4A16_NVFP4"),
        ([131, 144], "comfy:nvfp4", "modelopt:W4A16_NVFP4"),
        ([131, 160], "comfy:mxfp8", "mxfp8"),
        ([7, 64], "ct:mxfp4-pack-quantized", "mlx:mxfp4"),
        ([7, 64], "mxfp8", "mlx:mxfp8"),
        ([40, 64], "ct:pack-quantized,group=32", "ct:int-quantized"),
    ] {
        let folder = Folder::new();
        quantized(&folder, [rows, cols], from);
        same_values(&folder, to);
        for (name, _, _, bytes) in
            tensors(&folder, "b").iter().filter(|(name, ..)| name != &format!("{NAME}.comfy_quant"))
        {
            flipped(&folder, name, bytes.len() / 2);
        }
        if to == "ct:int-quantized" {
            let ran = folder.run("convert b c --scheme ct:pack-quantized,bits=4 --relayout exact");
            ran.fails(2, &["codes have another type"]);
            continue;
        }
        folder.run(&format!("convert b c --scheme {from} --relayout exact --quiet")).succeeds();
        folder.run("verify b c").succeeds();
        folder.run("convert a f32 --to f32 --quiet --force").succeeds();
        folder.run("convert c same --to f32 --quiet --force").succeeds();
        assert_eq!(tensors(&folder, "f32"), tensors(&folder, "same"), "{from} {to}");
    }
}

/// Scales of other types, where each has its equal; an inexact scale is an error before anything is written.
#[test]
fn scales_of_other_types() {
    let folder = Folder::new();
    quantized(&folder, [70, 96], "fp8-block:32x32,scale=ue8m0");
    same_values(&folder, "fp8-block:32x32,scale=f32");
    let report = folder.json("r.json");
    let rows = report["tensors"].as_array().unwrap();
    let scale = rows.iter().find(|row| row["name"] == format!("{NAME}.weight_scale_inv")).unwrap();
    assert_eq!((&scale["from"], &scale["to"], &scale["lossless"]), (&json!("f8e8m0"), &json!("f32"), &json!(true)));
    std::fs::remove_dir_all(folder.path("a")).unwrap();
    std::fs::rename(folder.path("b"), folder.path("a")).unwrap();
    same_values(&folder, "fp8-block:32x32,scale=ue8m0");
    quantized(&folder, [70, 96], "fp8-block:32x32,scale=f32");
    let said = [NAME, "one of its scales is not exact"];
    folder.run("convert a c --scheme fp8-block:32x32,scale=ue8m0 --relayout exact").fails(2, &said);
    assert!(!folder.path("c").exists());
}

/// Shards in parts and resumed give the same bytes.
#[test]
fn parts_and_resume() {
    let folder = Folder::new();
    let (of, config) = awq(Size { k: 64, m: 1064, group: 32 }, false);
    let shards = [("1", &of[..1]), ("2", &of[1..])].map(|(at, parts)| {
        let norm = (format!("norm{at}.weight"), "F32", vec![2], f32s(&[1.0, 2.0]));
        file(&[parts, &[norm]].concat())
    });
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"];
    let [first, second] = shards;
    folder.write_shards("a", &json!({}), &[(names[0], first), (names[1], second)]);
    folder.write("a/config.json", config.to_string().as_bytes());
    let how = "--scheme ct:pack-quantized --relayout exact --quiet";
    folder.run(&format!("convert a b {how}")).succeeds();
    folder.run("verify a b").succeeds();
    let same = |dir: &str| {
        for name in names.into_iter().chain(["model.safetensors.index.json"]) {
            assert!(folder.read(&format!("{dir}/{name}")) == folder.read(&format!("b/{name}")), "{dir} {name}");
        }
    };
    folder.run(&format!("convert a c {how} --part 2/2")).succeeds();
    folder.run(&format!("convert a c {how} --part 1/2")).succeeds();
    same("c");
    std::fs::remove_file(folder.path(&format!("c/{}", names[0]))).unwrap();
    folder.run(&format!("convert a c {how} --resume")).succeeds();
    same("c");
}
