//! §5.4: ambiguities of files, and their resolution.

use truecast_core::scaled::Packing;
use truecast_schemes::{Nibbles, Options};

use crate::{Case, f32s, i64s, tensors};

fn packing(case: &Case, options: &Options<'_>) -> Packing {
    case.detect_with(options).unwrap().groups[0].layout.planes().unwrap().codes.packing
}

#[test]
fn nibbles_of_comfy() {
    let case = tensors("a.weight u8 16x16\na.weight_scale f8e4m3fn 128x4\na.weight_scale_2 f32 -\na.comfy_quant u8 3")
        .holds("a.weight_scale_2", f32s(&[0.5]))
        .holds("a.comfy_quant", *br#"{"format": "nvfp4"}"#);
    assert_eq!(packing(&case, &Options::default()), Packing::HighFirst);
    let low = Options { nibbles: Some(Nibbles::Low), ..Options::default() };
    assert_eq!(packing(&case, &low), Packing::BYTES);
    // Metadata of ModelOpt.
    let case = case.metadata("quantization_config", "{}");
    assert_eq!(packing(&case, &Options::default()), Packing::BYTES);
}

fn packed(bits: u32, words: u64, cols: i64, version: &str) -> Case {
    tensors(&format!("a.weight_packed i32 4x{words}\na.weight_scale bf16 4x1\na.weight_shape i64 2"))
        .holds("a.weight_shape", i64s(&[4, cols]))
        .quantization(&format!(
            r#"{{"quant_method": "compressed-tensors", "format": "pack-quantized"{version}, "config_groups": {{"g":
                {{"targets": ["Linear"], "weights": {{"num_bits": {bits}, "type": "int", "strategy": "channel"}}}}}}}}"#
        ))
}

#[test]
fn dense_and_padded_words() {
    let plain = Options::default();
    // 96 elements of 3 bits take 9 words if fields cross words, or 10 words if a word has at most 10 elements.
    assert_eq!(packing(&packed(3, 9, 96, ""), &plain), Packing::WORDS);
    assert_eq!(packing(&packed(3, 10, 96, ""), &plain), Packing::Padded);
    // 12 elements take two words either way, so the version decides.
    assert_eq!(packing(&packed(3, 2, 12, r#", "version": "0.18.0""#), &plain), Packing::WORDS);
    assert_eq!(packing(&packed(3, 2, 12, r#", "version": "0.17.1""#), &plain), Packing::Padded);
    assert!(
        packed(3, 2, 12, "").error().contains("the packing of ct:pack-quantized"),
        "{}",
        packed(3, 2, 12, "").error()
    );
    // Ten elements fit in one word, and its bytes are equal in both packings.
    packed(3, 1, 10, "").detect();
    packed(4, 2, 12, "").detect();
}

#[test]
fn bytes_are_int8_or_two_codes() {
    let lines = "a.weight i8 4x64\na.scale f8e8m0 4x4";
    assert_eq!(tensors(lines).detect().groups[0].shape, [4, 128].into());
    let case = tensors("a.weight i8 4x64\na.weight_scale f32 4x1");
    assert!(case.error().starts_with("orphan scale"));
    assert_eq!(case.asked_for("ct:int-quantized,strategy=channel").unwrap().groups[0].shape, [4, 64].into());
}

#[test]
fn an_exception_that_is_stored_quantized() {
    let case = tensors("lm_head.weight f8e4m3fn 128x128\nlm_head.weight_scale_inv f32 1x1").quantization(
        r#"{"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}"#,
    );
    let found = case.detect();
    assert_eq!((found.groups.len(), found.warnings.len()), (1, 1));
}

#[test]
fn swizzled_scales_are_told_by_the_scheme() {
    // 128 rows of 64 elements. Plain scales and swizzled scales then have equal shapes.
    let lines = "a.weight u8 128x32\na.weight_scale f8e4m3fn 128x4\na.weight_scale_2 f32 -";
    let case = tensors(lines).holds("a.weight_scale_2", f32s(&[0.5]));
    let scales = |case: &Case, scheme: &str| {
        case.asked_for(scheme).unwrap().groups[0].layout.planes().unwrap().scales.plane.packing
    };
    assert_eq!(scales(&case, "modelopt:NVFP4"), Packing::BYTES);
    assert_eq!(scales(&case, "comfy:nvfp4"), Packing::Swizzled);
}
