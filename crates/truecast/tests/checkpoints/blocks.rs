//! Reported counts of blocks (`docs/spec/checkpoints.md §10`), compared with source and result.

use crate::work::{FILE, Work};
use serde_json::{Value, json};
use truecast::report::Report;
use truecast_core::scaled::{BlockType, ggml};
use truecast_testkit::gguf::Written;
use truecast_testkit::json::has;
use truecast_testkit::safetensors::f32s;

const NAME: &str = "l.0.q_proj.weight";

/// Rows of zeros, exact values, small values and mixed values.
fn values(rows: usize, cols: usize) -> Vec<f32> {
    let exact = [1.0, 2.0, 3.0, 4.0, 6.0, 0.5, -1.5, -0.0];
    let of = |row: usize, col: usize| match row % 5 {
        0 => 0.0,
        1 => exact[col % 8],
        2 => ((row * 31 + col * 17) % 101) as f32 * 1e-7,
        _ => ((row * 7919 + col * 104_729) % 2003) as f32 * 0.003 - 3.0,
    };
    (0..rows).flat_map(|row| (0..cols).map(move |col| of(row, col))).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|v| f32::from_le_bytes(*v)).collect()
}

fn row(report: &Report) -> Value {
    let report = serde_json::to_value(report).unwrap();
    report["tensors"].as_array().unwrap().iter().find(|row| row["name"] == NAME).unwrap().clone()
}

#[test]
fn blocks_that_lost_nothing() {
    for ([rows, cols], scheme, block, padding) in [
        ([7, 64], "ct:mxfp4-pack-quantized", [1, 32], [0, 0]),
        ([7, 64], "modelopt:W4A16_NVFP4", [1, 16], [0, 0]),
        ([1300, 64], "modelopt:W4A16_NVFP4", [1, 16], [0, 0]),
        ([130, 70], "fp8-block:32x32", [32, 32], [0, 0]),
        ([1300, 64], "fp8-tensor", [1300, 64], [0, 0]),
        ([7, 96], "ct:int-quantized,strategy=channel", [1, 96], [0, 0]),
        ([7, 70], "comfy:mxfp8", [1, 32], [25, 26]),
        ([40, 64], "comfy:nvfp4", [1, 16], [8, 0]),
    ] {
        let work = Work::new();
        let x = values(rows, cols);
        let of = [(NAME, "F32", &[rows as u64, cols as u64][..], f32s(&x))];
        work.model("a", &of, "{}");
        let report = work.convert("a", "b", &format!("scheme={scheme}"));
        work.convert("b", "c", "to=f32");
        let y = floats(work.parsed(&format!("c/{FILE}")).bytes(NAME));
        // Rows keep their padding, which cannot be distinguished from columns.
        let wide = cols + padding[1];
        let (mut blocks, mut lossless) = (0, 0);
        for top in (0..rows).step_by(block[0]) {
            for left in (0..cols).step_by(block[1]) {
                blocks += 1;
                let all = (top..(top + block[0]).min(rows))
                    .flat_map(|r| (left..(left + block[1]).min(cols)).map(move |c| [r * cols + c, r * wide + c]));
                lossless += u64::from(all.into_iter().all(|[at, to]| x[at].to_bits() == y[to].to_bits()));
            }
        }
        let found = row(&report);
        assert_eq!([&found["blocks"], &found["blocks_lossless"]], [&json!(blocks), &json!(lossless)], "{scheme}");
        assert_eq!([&found["pad_rows"], &found["pad_cols"]], padding.map(|n| json!(n)).each_ref(), "{scheme}");
        assert_eq!([&found["scale_nan"], &found["scale_saturated"]], [&json!(0), &json!(0)], "{scheme}");
        let file = work.parsed(&format!("b/{FILE}"));
        let scales = file.names().into_iter().find(|name| name.ends_with("_scale")).filter(|_| padding == [0, 0]);
        if let Some(scales) = scales.filter(|name| file.dtype(name) == "F8_E4M3") {
            let zeros = file.bytes(scales).iter().filter(|code| **code & 0x7f == 0).count();
            assert_eq!(found["scale_zero"], json!(zeros), "{scheme}");
        }
        for how in ["threads=1 mebibytes=1", "threads=4"] {
            let report = work.convert("a", "b", &format!("scheme={scheme} replace {how}"));
            assert_eq!(row(&report), found, "{scheme} {how}");
        }
    }
}

/// f16 scales end at 65504: larger values saturate.
#[test]
fn scales_at_their_ends() {
    let work = Work::new();
    let of = [(NAME, "F32", &[3u64, 64][..], f32s(&[[1e9; 64], [0.0; 64], [3.0; 64]].concat()))];
    work.model("a", &of, "{}");
    let report = work.convert("a", "b", "scheme=ct:pack-quantized,group=32,scale=f16");
    let found = row(&report);
    let file = work.parsed(&format!("b/{FILE}"));
    let scales: Vec<u16> =
        file.bytes(&format!("{NAME}_scale")).as_chunks::<2>().0.iter().map(|code| u16::from_le_bytes(*code)).collect();
    let count = |wanted: u16| json!(scales.iter().filter(|code| **code == wanted).count());
    has(&found, &json!({ "blocks": 6, "scale_saturated": count(0x7bff), "scale_nan": 0 }));
    assert_eq!(found["scale_zero"], count(0), "{found}");
    assert!(scales.contains(&0x7bff) || scales.contains(&0x7c00), "{scales:x?}");
}

/// GGUF blocks contain their scales.
#[test]
fn blocks_of_gguf_files() {
    let work = Work::new();
    let x = values(10, 256);
    let of = [(NAME, "F32", &[10u64, 256][..], f32s(&x))];
    work.model("a", &of, "{}");
    for (scheme, len) in [
        ("gguf:q8_0", 32),
        ("gguf:mxfp4", 32),
        ("gguf:q4_0", 32),
        ("gguf:q5_1", 32),
        ("gguf:q2_k", 256),
        ("gguf:q6_k", 256),
        ("gguf:iq4_xs", 256),
    ] {
        let report = work.convert(&format!("a/{FILE}"), "b.gguf", &format!("scheme={scheme} replace"));
        work.convert("b.gguf", "c.safetensors", "to=f32 replace");
        let y = floats(work.parsed("c.safetensors").bytes(NAME));
        let is_same = |(x, y): (&[f32], &[f32])| x.iter().zip(y).all(|(x, y)| x.to_bits() == y.to_bits());
        let lossless = x.chunks(len).zip(y.chunks(len)).filter(|pair| is_same(*pair)).count();
        let found = row(&report);
        assert_eq!([&found["blocks"], &found["blocks_lossless"]], [&json!(2560 / len), &json!(lossless)], "{scheme}");
        let zero_in = x.iter().filter(|x| **x == 0.0).count();
        let to_zero = x.iter().zip(&y).filter(|(x, y)| **x != 0.0 && **y == 0.0).count();
        assert_eq!([&found["zero_in"], &found["flushed_to_zero"]], [&json!(zero_in), &json!(to_zero)], "{scheme}");
        let written = Written::new(&work.read("b.gguf"));
        let (_, _, bytes) = written.tensor(NAME);
        let block = scheme.trim_start_matches("gguf:").to_uppercase();
        let block = BlockType::ALL.into_iter().find(|known| known.name() == block).unwrap();
        let d = |bytes: &[u8]| match block {
            BlockType::MXFP4 => 1,
            BlockType::Q8_0 => u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7fff,
            _ => ggml::scale(block, bytes) & 0x7fff,
        };
        let zeros = bytes.chunks(block.bytes() as usize).filter(|bytes| d(bytes) == 0).count();
        assert_eq!([&found["scale_zero"], &found["scale_nan"]], [&json!(zeros), &json!(0)], "{scheme}");
    }
}
