//! Codes and scales that are carried over to another scheme: `docs/spec/checkpoints.md §8`.

use crate::work::{FILE, Work};
use truecast_testkit::safetensors::{Parsed, f32s};

const NAME: &str = "l.0.q_proj.weight";

/// A matrix with a given largest magnitude, an embedding and a norm.
fn dense(largest: f32) -> Work {
    let work = Work::new();
    let value = |i: u32| if i == 7 { largest } else { ((i * 37 % 1009) as f32 - 504.0) * 0.001 };
    let tensors = [
        (NAME, "F32", &[48u64, 64][..], f32s(&(0..48 * 64).map(value).collect::<Vec<_>>())),
        ("embed.weight", "F32", &[4, 8], f32s(&[0.5; 32])),
        ("norm.weight", "F32", &[2], f32s(&[1.0, 2.0])),
    ];
    work.model("dense", &tensors, "{}");
    work
}

fn quantize(work: &Work, scheme: &str) {
    work.convert("dense", "a", &format!("scheme={scheme} keep_preset=embeddings replace"));
}

/// Converts to the scheme `to` and back, which restores the checkpoint. The dequantized values are equal under both
/// schemes.
fn there_and_back(work: &Work, from: &str, to: &str) {
    work.remove(&["b", "c", "f32", "same"]);
    work.convert("a", "b", &format!("scheme={to} relayout=exact replace"));
    work.verify("a", "b", "");
    work.convert("b", "c", &format!("scheme={from} relayout=exact"));
    assert_eq!(work.tensors("c"), work.tensors("a"), "{from} {to}");
    assert_eq!(work.json("c/config.json"), work.json("a/config.json"), "{from} {to}");
    work.convert("a", "f32", "to=f32");
    work.convert("b", "same", "to=f32");
    assert_eq!(work.tensors("f32"), work.tensors("same"), "{from} {to}");
}

#[test]
fn the_same_bytes_under_other_names() {
    let work = dense(3.3);
    for (from, to) in [
        ("mxfp8", "ct:mxfp8-quantized"),
        ("ct:mxfp8-quantized", "modelopt:MXFP8"),
        ("fp8-block:32x32", "ct:float-quantized,strategy=block,block=32x32"),
        ("fp8-channel,scale=f32", "modelopt:FP8_PER_CHANNEL_PER_TOKEN"),
    ] {
        quantize(&work, from);
        there_and_back(&work, from, to);
    }
    quantize(&work, "mxfp8");
    work.convert("a", "b", "scheme=ct:mxfp8-quantized relayout=exact replace");
    let ignored = &work.json("b/config.json")["quantization_config"]["ignore"];
    let outside = r"re:[^.]*(\.[0-9]*[^.0-9][^.]*)*(\.[0-9]+)*$";
    for entry in ["embed", outside, "lm_head", r"re:(.*\.)?lm_head(\..*)?$"] {
        assert!(ignored.as_array().unwrap().contains(&entry.into()), "{entry}: {ignored}");
    }
    let path = format!("b/{FILE}");
    let right = work.read(&path);
    for (byte, bit) in [(Parsed::new(&right).place(NAME) + 9, 1), (right.len() - 1, 0x40)] {
        work.flipped(&path, byte, bit, "", || work.checked("a", "b", ""));
    }
}

/// One scheme multiplies by the global scale, and the other divides by it. 2^-10 has an exact inverse, but 3.3 / 2688
/// has none.
#[test]
fn second_scales() {
    let (modelopt, ct) = ("modelopt:W4A16_NVFP4", "ct:nvfp4-pack-quantized");
    let work = dense(2.625);
    quantize(&work, modelopt);
    there_and_back(&work, modelopt, ct);
    let global = work.parsed(&format!("b/{FILE}")).bytes(&format!("{NAME}_global_scale")).to_vec();
    assert_eq!(global, f32s(&[1024.0]));
    let work = dense(3.3);
    quantize(&work, modelopt);
    let said = [NAME, modelopt, ct, "global scale"];
    work.refused("a", "b", &format!("scheme={ct} relayout=exact"), "inexact-relayout", &said);
    let warnings = work.convert("a", "b", &format!("scheme={ct} relayout=lossy")).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("global scale")), "{warnings:?}");
    work.verify("a", "b", "");
    let [a, b] = ["a", "b"].map(|dir| work.parsed(&format!("{dir}/{FILE}")));
    assert_eq!(a.bytes(NAME), b.bytes(&format!("{NAME}_packed")));
    assert_eq!(a.bytes(&format!("{NAME}_scale")), b.bytes(&format!("{NAME}_scale")));
    let scale = f32::from_le_bytes(a.bytes(&format!("{NAME}_scale_2")).try_into().unwrap());
    assert_eq!(b.bytes(&format!("{NAME}_global_scale")), f32s(&[1.0 / scale]));
    let at = b.place(&format!("{NAME}_global_scale"));
    work.flipped(&format!("b/{FILE}"), at, 1, NAME, || work.checked("a", "b", ""));
}

#[test]
fn what_cannot_be_carried_over_is_an_error() {
    let work = dense(3.3);
    for (from, to, said) in [
        ("fp8-block:32x32", "ct:mxfp4-pack-quantized", "codes have another type"),
        ("fp8-block:32x32", "fp8-block:16x16", "scales cover other blocks"),
        ("fp8-block:32x32", "fp8-block:32x32,scale=bf16", "scales is not exact"),
        ("ct:mxfp4-pack-quantized", "comfy:nvfp4", "scales cover other blocks"),
    ] {
        quantize(&work, from);
        work.refused("a", "b", &format!("scheme={to} relayout=exact"), "inexact-relayout", &[NAME, said]);
    }
    quantize(&work, "modelopt:W4A16_NVFP4");
    for (to, code, said) in
        [("gguf:nvfp4", "inexact-relayout", "gguf:NVFP4"), ("gguf:q8_0", "inexact-relayout", "gguf:Q8_0")]
    {
        work.refused("a", "b.gguf", &format!("scheme={to} relayout=exact"), code, &[said]);
    }
    work.refused("dense", "b", "scheme=fp8-block relayout=exact", "inapplicable-option", &["relayout has no effect"]);
}
