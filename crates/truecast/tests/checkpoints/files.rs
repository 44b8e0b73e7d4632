//! Single files. The result of a file has the bytes that the result of a folder with one shard has, and its options as
//! metadata.

use crate::work::Work;
use serde_json::json;
use truecast_testkit::quantized::files;
use truecast_testkit::safetensors::{f32s, safetensors, without_metadata};

const OPTIONS: &str = "truecast.options";

#[test]
fn a_file_becomes_what_its_folder_becomes() {
    for (name, bytes) in files() {
        let work = Work::new();
        work.write("a.safetensors", &bytes);
        work.write("dir/model.safetensors", &bytes);
        work.convert("dir", "out", "to=bf16");
        let report = serde_json::to_value(work.convert("a.safetensors", "b.safetensors", "to=bf16")).unwrap();
        let result = work.read("b.safetensors");
        assert_eq!(without_metadata(&result, OPTIONS), work.read("out/model.safetensors"), "{name}");
        assert!(report["tensors"][0]["scheme"].is_string() && report.get("shards").is_none(), "{name}: {report}");
        work.verify("a.safetensors", "b.safetensors", "to=bf16");
        // The bf16 result differs from the f32 result only by the last rounding.
        work.convert("a.safetensors", "f.safetensors", "to=f32");
        let compared = work.compared("a.safetensors", "f.safetensors");
        assert!(compared.equal() && compared.warnings.is_empty(), "{name}: {:?}", compared.warnings);
        work.write("config.json", br#"{"quantization_config": {"quant_method": "awq"}}"#);
        work.convert("a.safetensors", "c.safetensors", "to=bf16 threads=1 mebibytes=1");
        assert_eq!(work.read("c.safetensors"), result, "{name}");
        let check = || work.checked("a.safetensors", "b.safetensors", "to=bf16");
        work.flipped("b.safetensors", result.len() - 1, 1, "", check);
    }
}

#[test]
fn values_and_dropped_tensors() {
    let work = Work::new();
    work.write("a.safetensors", &files().swap_remove(1).1);
    let report = work.convert("a.safetensors", "b.safetensors", "to=bf16");
    let dropped: Vec<&str> = report.dropped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(dropped, ["a.input_scale", "a.comfy_quant"]);
    let result = work.parsed("b.safetensors");
    assert_eq!(result.names(), ["a.weight", "norm.weight"]);
    // Code 0x25 is 13 * 2^-6: 0.0123 * 0.203125, rounded to bf16.
    let expected = ((0.0123f32 * 0.203_125).to_bits() + 0x7fff) >> 16;
    assert_eq!(result.bytes("a.weight")[2..4], (expected as u16).to_le_bytes());
}

/// A scheme with markers in the tensors can be written to a single file.
#[test]
fn a_file_is_quantized() {
    let values: Vec<f32> = (0..64 * 96).map(|i| ((i * 37 % 1001) as f32 - 500.0) * 0.013).collect();
    let tensors =
        [("a.weight", "F32", &[64u64, 96][..], f32s(&values)), ("norm.weight", "F32", &[2], f32s(&[1.0, 2.0]))];
    let bytes = safetensors(&tensors, &[("made", "by hand")]);
    for scheme in ["comfy:float8_e4m3fn", "comfy:nvfp4", "comfy:mxfp8"] {
        let (work, words) = (Work::new(), format!("scheme={scheme}"));
        work.write("a.safetensors", &bytes);
        work.write("dir/model.safetensors", &bytes);
        work.convert("dir", "out", &words);
        work.convert("a.safetensors", "b.safetensors", &words);
        let written = without_metadata(&work.read("b.safetensors"), OPTIONS);
        assert_eq!(written, work.read("out/model.safetensors"), "{scheme}");
        let result = work.parsed("b.safetensors");
        assert!(result.names().contains(&"a.comfy_quant"), "{scheme}");
        work.verify("a.safetensors", "b.safetensors", &words);
        work.convert("b.safetensors", "c.safetensors", "to=f32");
        assert_eq!(work.parsed("c.safetensors").shape("a.weight"), &json!([64, 96]), "{scheme}");
        let check = || work.checked("a.safetensors", "b.safetensors", &words);
        work.flipped("b.safetensors", result.place("a.weight") + 5, 1, "a.weight", check);
    }
}
