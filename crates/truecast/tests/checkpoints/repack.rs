//! Repacking of codes, scales and zero points (`docs/spec/checkpoints.md §8`). The checkpoints have the packings of
//! other programs: §3.7 to §3.9, §4.4.2, §4.5, §4.9 and §4.10.

use crate::work::{FILE, Work};
use serde_json::{Value, json};
use truecast::report::Report;
use truecast_testkit::quantized::{
    GptqFormat, NAME, Named, Size, ZeroPoints, awq, code, file, gptq, halves, stream, words, zero,
};
use truecast_testkit::random::drawn;
use truecast_testkit::safetensors::f32s;

fn write(work: &Work, tensors: &[Named], config: &Value) {
    let norm = ("norm.weight".to_string(), "F32", vec![2], f32s(&[1.0, 2.0]));
    work.write(&format!("a/{FILE}"), &file(&[tensors, &[norm]].concat()));
    work.write("a/config.json", config.to_string().as_bytes());
}

/// Carries over, verifies, and compares the dequantized tensors.
fn same_values(work: &Work, to: &str) -> Report {
    work.remove(&["b", "f32", "same"]);
    let report = work.convert("a", "b", &format!("scheme={to} relayout=exact replace"));
    work.verify("a", "b", "");
    work.convert("a", "f32", "to=f32");
    work.convert("b", "same", "to=f32");
    assert_eq!(work.tensors("f32"), work.tensors("same"), "{to}");
    report
}

fn flipped(work: &Work, tensor: &str, byte: usize) {
    let path = format!("b/{FILE}");
    let parsed = work.parsed(&path);
    let at = parsed.place(tensor) + byte % parsed.bytes(tensor).len();
    work.flipped(&path, at, 0x10, tensor, || work.checked("a", "b", ""));
}

/// AWQ transposes stored matrices, has another order of nibbles, and has zero points along the other axis. One of the
/// sizes needs several pieces.
#[test]
fn awq_as_pack_quantized() {
    let pack = "ct:pack-quantized";
    for size in [Size { k: 64, m: 24, group: 32 }, Size { k: 256, m: 1064, group: 128 }] {
        let work = Work::new();
        let (tensors_of, config) = awq(size, ZeroPoints::Drawn);
        write(&work, &tensors_of, &config);
        same_values(&work, pack);
        let found = work.parsed(&format!("b/{FILE}"));
        assert_eq!(found.dtype(&format!("{NAME}.weight_scale")), "F16");
        // Codes are bit streams along the inputs, zero points along the outputs.
        let rows: Vec<u32> = (0..size.m).flat_map(|m| stream((0..size.k).map(|k| code(k, m, 4)), 4)).collect();
        assert!(found.bytes(&format!("{NAME}.weight_packed")) == words(&rows));
        let groups = size.k / size.group;
        let columns: Vec<_> =
            (0..groups).map(|g| stream((0..size.m).map(|m| zero(g, m, 4, ZeroPoints::Drawn)), 4)).collect();
        let of_rows: Vec<u32> = (0..columns[0].len()).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        assert!(found.bytes(&format!("{NAME}.weight_zero_point")) == words(&of_rows));
        let weights = &work.json("b/config.json")["quantization_config"]["config_groups"]["group_0"]["weights"];
        assert_eq!((&weights["symmetric"], &weights["group_size"]), (&json!(false), &json!(size.group)));
        for (part, byte) in [("weight_packed", 77), ("weight_scale", 31), ("weight_zero_point", 9)] {
            flipped(&work, &format!("{NAME}.{part}"), byte);
        }
        let first = work.read(&format!("b/{FILE}"));
        for how in ["threads=1 mebibytes=1", "threads=3"] {
            work.convert("a", "b", &format!("scheme={pack} relayout=exact replace {how}"));
            assert!(work.read(&format!("b/{FILE}")) == first, "{how}");
        }
        let said = ["q_proj", "not the midpoint", "symmetric=false"];
        work.refused("a", "c", &format!("scheme={pack},symmetric=true relayout=exact"), "inexact-relayout", &said);
        work.refused(
            "a",
            "c",
            &format!("scheme={pack},group=16 relayout=exact"),
            "inexact-relayout",
            &["other blocks"],
        );
        work.refused(
            "a",
            "c",
            &format!("scheme={pack},bits=3 relayout=exact"),
            "inexact-relayout",
            &["codes have another type"],
        );
        work.refused(
            "a",
            "c",
            &format!("scheme={pack},scale=bf16 relayout=exact"),
            "inexact-relayout",
            &["scales is not exact"],
        );
        work.convert("a", "c", &format!("scheme={pack},scale=f32 relayout=exact"));
        work.verify("a", "c", "");
    }
    let work = Work::new();
    let (of, config) = awq(Size { k: 96, m: 40, group: 32 }, ZeroPoints::Midpoint);
    write(&work, &of, &config);
    same_values(&work, &format!("{pack},symmetric=true"));
    let found = work.parsed(&format!("b/{FILE}"));
    assert!(!found.names().contains(&&*format!("{NAME}.weight_zero_point")));
    // Wider codes can hold narrower ones.
    same_values(&work, "ct:int-quantized");
}

#[test]
fn gptq_as_pack_quantized() {
    let size = Size { k: 96, m: 40, group: 32 };
    use GptqFormat::{First, Second};
    for (bits, format) in [(4, First), (4, Second), (3, First), (8, First), (2, Second)] {
        for zeros in [ZeroPoints::Drawn, ZeroPoints::Midpoint] {
            let work = Work::new();
            let (of, config) = gptq(size, bits, format, zeros);
            write(&work, &of, &config);
            same_values(&work, "ct:pack-quantized");
            flipped(&work, &format!("{NAME}.weight_zero_point"), 2);
            let symmetric = "ct:pack-quantized,symmetric=true";
            match zeros {
                ZeroPoints::Midpoint => drop(same_values(&work, symmetric)),
                ZeroPoints::Drawn => {
                    let words = format!("scheme={symmetric} relayout=exact");
                    work.refused("a", "c", &words, "inexact-relayout", &["not the midpoint"]);
                }
            }
        }
    }
    // The result has no index for this order of columns.
    let work = Work::new();
    let (mut of, config) = gptq(size, 4, GptqFormat::First, ZeroPoints::Drawn);
    of[3].3 = words(&(0..96).map(|k| k % 3).collect::<Vec<u32>>());
    write(&work, &of, &config);
    work.refused("a", "b", "scheme=ct:pack-quantized relayout=exact", "inexact-relayout", &[NAME, "an index"]);
}

/// Codes of three bits that cross words, and codes that do not. Signed codes with two rows per byte.
#[test]
fn integers_in_other_words() {
    let (m, k) = (40usize, 64usize);
    let work = Work::new();
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
    write(&work, &of, &json!({"quantization_config": config}));
    same_values(&work, "ct:pack-quantized");
    let rows: Vec<u32> = (0..m).flat_map(|m| stream((0..k).map(|k| code(k, m, 3)), 3)).collect();
    assert!(work.parsed(&format!("b/{FILE}")).bytes(&format!("{NAME}.weight_packed")) == words(&rows));
    // Rows 2 i and 2 i + 1 are the low and high nibbles, in two's complement.
    let work = Work::new();
    let pairs = |i: usize| (0..k).map(move |k| (code(k, 2 * i, 4) | code(k, 2 * i + 1, 4) << 4) as u8);
    let of = [
        (format!("{NAME}.weight"), "U8", vec![20, 64], (0..m / 2).flat_map(pairs).collect()),
        (format!("{NAME}.weight_scale"), "F16", vec![40, 2], halves(80)),
    ];
    let config = json!({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 32});
    write(&work, &of, &json!({"quantization_config": config}));
    same_values(&work, "ct:pack-quantized");
    let rows: Vec<u32> = (0..m).flat_map(|m| stream((0..k).map(|k| code(k, m, 4) ^ 8), 4)).collect();
    assert!(work.parsed(&format!("b/{FILE}")).bytes(&format!("{NAME}.weight_packed")) == words(&rows));
    work.refused(
        "a",
        "c",
        "scheme=ct:pack-quantized,symmetric=false relayout=exact",
        "inexact-relayout",
        &["no zero points"],
    );
}

fn quantized(work: &Work, shape: [u64; 2], scheme: &str) {
    let values: Vec<f32> =
        (0..shape[0] * shape[1]).map(|i| (drawn(i as usize, 2001) as f32 - 1000.0) * 0.001).collect();
    work.model("dense", &[(&format!("{NAME}.weight"), "F32", &shape, f32s(&values))], "{}");
    work.remove(&["a"]);
    work.convert("dense", "a", &format!("scheme={scheme}"));
}

/// Different nibble orders, tiles and padding, in both directions.
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
        let work = Work::new();
        quantized(&work, [rows, cols], from);
        same_values(&work, to);
        for (name, _, _, bytes) in work.tensors("b").iter().filter(|(name, ..)| name != &format!("{NAME}.comfy_quant"))
        {
            flipped(&work, name, bytes.len() / 2);
        }
        if to == "ct:int-quantized" {
            work.refused(
                "b",
                "c",
                "scheme=ct:pack-quantized,bits=4 relayout=exact",
                "inexact-relayout",
                &["codes have another type"],
            );
            continue;
        }
        work.convert("b", "c", &format!("scheme={from} relayout=exact"));
        work.verify("b", "c", "");
        work.convert("a", "f32", "to=f32 replace");
        work.convert("c", "same", "to=f32 replace");
        assert_eq!(work.tensors("f32"), work.tensors("same"), "{from} {to}");
    }
}

/// Each scale must be exact in the new type; otherwise an error before anything is written.
#[test]
fn scales_of_other_types() {
    let work = Work::new();
    quantized(&work, [70, 96], "fp8-block:32x32,scale=ue8m0");
    let report = serde_json::to_value(same_values(&work, "fp8-block:32x32,scale=f32")).unwrap();
    let rows = report["tensors"].as_array().unwrap();
    let scale = rows.iter().find(|row| row["name"] == format!("{NAME}.weight_scale_inv")).unwrap();
    assert_eq!((&scale["from"], &scale["to"], &scale["lossless"]), (&json!("f8e8m0"), &json!("f32"), &json!(true)));
    work.remove(&["a"]);
    std::fs::rename(work.path("b"), work.path("a")).unwrap();
    same_values(&work, "fp8-block:32x32,scale=ue8m0");
    quantized(&work, [70, 96], "fp8-block:32x32,scale=f32");
    let said = [NAME, "one of its scales is not exact"];
    work.refused("a", "c", "scheme=fp8-block:32x32,scale=ue8m0 relayout=exact", "inexact-relayout", &said);
}

#[test]
fn parts_and_resume() {
    let work = Work::new();
    let (of, config) = awq(Size { k: 64, m: 1064, group: 32 }, ZeroPoints::Drawn);
    let shards = [("1", &of[..1]), ("2", &of[1..])].map(|(at, parts)| {
        let norm = (format!("norm{at}.weight"), "F32", vec![2], f32s(&[1.0, 2.0]));
        file(&[parts, &[norm]].concat())
    });
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"];
    let [first, second] = shards;
    work.write_shards("a", &json!({}), &[(names[0], first), (names[1], second)]);
    work.write("a/config.json", config.to_string().as_bytes());
    let how = "scheme=ct:pack-quantized relayout=exact";
    work.convert("a", "b", how);
    work.verify("a", "b", "");
    let same = |dir: &str| {
        for name in names.into_iter().chain(["model.safetensors.index.json"]) {
            assert!(work.read(&format!("{dir}/{name}")) == work.read(&format!("b/{name}")), "{dir} {name}");
        }
    };
    work.convert("a", "c", &format!("{how} part=2/2"));
    work.convert("a", "c", &format!("{how} part=1/2"));
    same("c");
    std::fs::remove_file(work.path(&format!("c/{}", names[0]))).unwrap();
    work.convert("a", "c", &format!("{how} resume"));
    same("c");
}
