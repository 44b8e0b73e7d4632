//! One small checkpoint of every scheme of §4, with the expected groups.

use truecast_core::DType;
use truecast_core::scaled::{Code, Form, GlobalRule, Group as Order, Packing, Zero};
use truecast_schemes::{Detection, Dropped, Options, Role};

use crate::{Case, f32s, i64s, names, tensors};

fn planes(found: &Detection) -> truecast_core::scaled::Planes {
    *found.groups[0].layout.planes().unwrap()
}

/// Checks that every tensor is part of a group, dropped, or listed in `plain`.
fn settled(case: &Case, found: &Detection, plain: &[&str]) {
    for (stored, role) in case.tensors.iter().zip(&found.roles) {
        assert_eq!(*role == Role::Plain, plain.contains(&&*stored.tensor.name), "{}", stored.tensor.name);
    }
}

#[test]
fn deepseek_blocks() {
    let case = tensors(
        "a.weight f8e4m3fn 576x300
         a.weight_scale_inv f32 5x3
         a.activation_scale f32 -
         e.gate_up_proj f8e4m3fn 4x256x128
         e.gate_up_proj_scale_inv f8e8m0 4x2x1
         b.weight f8e4m3fn 128x128
         b.weight_scale_inv u8 1x1
         norm.weight bf16 300",
    )
    .quantization(r#"{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}"#);
    let found = case.detect_groups(&[
        "a.weight fp8-block:128x128 576x300: codes=a.weight scales=a.weight_scale_inv",
        "e.gate_up_proj fp8-block:128x128 4x256x128: codes=e.gate_up_proj scales=e.gate_up_proj_scale_inv",
        "b.weight fp8-block:128x128 128x128: codes=b.weight scales=b.weight_scale_inv",
    ]);
    settled(&case, &found, &["norm.weight"]);
    assert_eq!(case.role(&found, "a.activation_scale"), Role::Dropped(Dropped::ActivationScale));
    let scale = |i: usize| found.groups[i].layout.planes().unwrap().scales.plane.code;
    assert_eq!([scale(0), scale(1), scale(2)], [DType::F32, DType::F8E8M0, DType::F8E8M0].map(Code::Float));
    assert_eq!(found.groups[1].layout.matrices, 4);
}

#[test]
fn fp8_of_tensors() {
    let case = tensors(
        "a.weight f8e4m3fn 6x4
         a.weight_scale_inv f32 -
         b.weight f8e4m3fn 6x4
         b.weight_scale_inv bf16 1",
    )
    .quantization(r#"{"quant_method": "fp8", "activation_scheme": "dynamic"}"#);
    let found = case.detect();
    assert_eq!(names(&found), ["fp8-tensor"]);
    assert_eq!(planes(&found).scales.block, [6, 4]);
}

#[test]
fn deepseek_v4() {
    let case = tensors(
        "layers.0.ffn.experts.0.w1.weight i8 8x64
         layers.0.ffn.experts.0.w1.scale f8e8m0 8x4
         layers.0.attn.wq.weight f8e4m3fn 200x128
         layers.0.attn.wq.scale f8e8m0 2x1
         q_l2_clip.scale f32 1",
    )
    .config(
        r#"{"expert_dtype": "fp4", "quantization_config":
            {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}}"#,
    );
    let found = case.detect_groups(&[
        "layers.0.ffn.experts.0.w1.weight deepseek-v4,block=128x128 8x128: \
             codes=layers.0.ffn.experts.0.w1.weight scales=layers.0.ffn.experts.0.w1.scale",
        "layers.0.attn.wq.weight deepseek-v4,block=128x128 200x128: \
             codes=layers.0.attn.wq.weight scales=layers.0.attn.wq.scale",
    ]);
    settled(&case, &found, &["q_l2_clip.scale"]);
    assert_eq!(planes(&found).codes.code, Code::Float(DType::F4E2M1));
}

#[test]
fn deepseek_v4_with_experts_by_modelopt() {
    let case = tensors(
        "layers.0.ffn.experts.0.w1.weight u8 8x64
         layers.0.ffn.experts.0.w1.weight_scale f8e4m3fn 8x8
         layers.0.ffn.experts.0.w1.weight_scale_2 f32 -
         mtp.0.ffn.experts.0.w1.weight i8 8x64
         mtp.0.ffn.experts.0.w1.scale f8e8m0 8x4
         layers.0.attn.wq.weight f8e4m3fn 200x128
         layers.0.attn.wq.scale f8e8m0 2x1",
    )
    .holds("layers.0.ffn.experts.0.w1.weight_scale_2", f32s(&[0.001]))
    .config(
        r#"{"expert_dtype": "fp4", "moe_quant_algo": "NVFP4", "quantization_config":
            {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}}"#,
    );
    let found = case.detect();
    let schemes: Vec<String> = found.groups.iter().map(|group| group.scheme.to_string()).collect();
    assert_eq!(schemes, ["modelopt:NVFP4", "deepseek-v4,block=128x128", "deepseek-v4,block=128x128"]);
    settled(&case, &found, &[]);
}

#[test]
fn gpt_oss() {
    let case = tensors(
        "model.layers.0.mlp.experts.gate_up_proj_blocks u8 2x6x3x16
         model.layers.0.mlp.experts.gate_up_proj_scales u8 2x6x3
         block.0.mlp.mlp1_weight.blocks u8 2x6x3x16
         block.0.mlp.mlp1_weight.scales u8 2x6x3
         model.layers.0.mlp.experts.gate_up_proj_bias bf16 2x6",
    )
    .quantization(r#"{"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}"#);
    let found = case.detect_groups(&[
            "model.layers.0.mlp.experts.gate_up_proj gpt-oss 2x96x6: \
             codes=model.layers.0.mlp.experts.gate_up_proj_blocks scales=model.layers.0.mlp.experts.gate_up_proj_scales",
            "block.0.mlp.mlp1_weight gpt-oss 2x6x96: \
             codes=block.0.mlp.mlp1_weight.blocks scales=block.0.mlp.mlp1_weight.scales",
        ]);
    settled(&case, &found, &["model.layers.0.mlp.experts.gate_up_proj_bias"]);
    assert_eq!(found.groups.iter().map(|group| group.layout.transposed).collect::<Vec<_>>(), [true, false]);
    // Without a configuration, the names imply the same groups.
    let found = Case { documents: Default::default(), ..case }.detect();
    assert_eq!((found.groups.len(), found.warnings.len()), (2, 1));
}

fn ct(format: &str, weights: &str) -> String {
    format!(
        r#"{{"quant_method": "compressed-tensors", "format": "{format}", "version": "0.20.0", "ignore": ["lm_head"],
            "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {weights}}}}}}}"#
    )
}

#[test]
fn compressed_tensors_float() {
    for (strategy, extra, shape) in
        [("tensor", "", "1"), ("channel", "", "6x1"), ("block", r#", "block_structure": [4, 4]"#, "2x3")]
    {
        let case = tensors(&format!(
            "a.weight f8e4m3fn 6x10
             a.weight_scale bf16 {shape}
             a.input_scale bf16 1
             attn.k_scale bf16 1
             lm_head.weight bf16 6x10"
        ))
        .quantization(&ct(
            "float-quantized",
            &format!(r#"{{"num_bits": 8, "type": "float", "strategy": "{strategy}"{extra}}}"#),
        ));
        let found = case.detect();
        assert_eq!(found.groups.len(), 1);
        settled(&case, &found, &["attn.k_scale", "lm_head.weight"]);
    }
}

#[test]
fn compressed_tensors_int() {
    let case = tensors(
        "a.weight i8 6x10
         a.weight_scale f32 6x1
         a.weight_zero_point i8 6x1",
    )
    .quantization(&ct("int-quantized", r#"{"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": false}"#));
    let found = case.detect();
    assert!(matches!(planes(&found).zero, Zero::Grid { plus: 0, .. }));
    assert_eq!(planes(&found).codes.code, Code::signed(8));
}

#[test]
fn compressed_tensors_packed() {
    let weights = r#"{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}"#;
    let case = tensors(
        "a.weight_packed i32 12x8
         a.weight_scale bf16 12x2
         a.weight_shape i64 2
         a.weight_zero_point i32 2x2
         a.weight_g_idx i32 64",
    )
    .holds("a.weight_shape", i64s(&[12, 64]))
    .quantization(&ct("pack-quantized", weights));
    let found = case.detect_groups(&[
        "a.weight ct:pack-quantized,bits=4,strategy=group,group=32,symmetric=true 12x64: codes=a.weight_packed \
          scales=a.weight_scale zero-points=a.weight_zero_point group-index=a.weight_g_idx",
    ]);
    assert_eq!(case.role(&found, "a.weight_shape"), Role::Dropped(Dropped::Shape));
    let planes = planes(&found);
    assert_eq!((planes.codes.packing, planes.group), (Packing::WORDS, Order::OfColumn));
}

#[test]
fn compressed_tensors_fp4() {
    let case = tensors(
        "a.weight_packed u8 6x16
         a.weight_scale f8e4m3fn 6x2
         a.weight_global_scale f32 1
         a.input_global_scale f32 1",
    )
    .holds("a.weight_global_scale", f32s(&[3000.0]))
    .quantization(&ct(
        "nvfp4-pack-quantized",
        r#"{"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}"#,
    ));
    let found = case.detect();
    settled(&case, &found, &[]);
    assert_eq!(planes(&found).global.unwrap().rule, GlobalRule::Divide);
    assert_eq!(found.groups[0].shape, [6, 32].into());
}

#[test]
fn compressed_tensors_mx() {
    for (format, codes, width, code) in [
        ("mxfp4-pack-quantized", "a.weight_packed u8", 32, DType::F4E2M1),
        ("mxfp6-pack-quantized", "a.weight_packed u8", 48, DType::F6E2M3),
        ("mxfp8-quantized", "a.weight f8e4m3fn", 64, DType::F8E4M3Fn),
    ] {
        let case = tensors(&format!("{codes} 6x{width}\na.weight_scale u8 6x2"))
            .quantization(&ct(format, r#"{"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}"#));
        let found = case.detect();
        assert_eq!((&*found.groups[0].shape, planes(&found).codes.code), (&[6, 64][..], Code::Float(code)));
    }
}

#[test]
fn compressed_tensors_with_groups_of_their_own() {
    let case = tensors(
        "m.q.weight f8e4m3fn 6x32
         m.q.weight_scale bf16 6x1
         m.up.weight_packed u8 6x16
         m.up.weight_scale u8 6x1",
    )
    .quantization(
        r#"{"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {
            "FP8_DYNAMIC": ["re:.*q$"],
            "group_1": {"targets": ["m.up"], "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}}}}"#,
    );
    let found = case.detect();
    assert_eq!(names(&found), ["ct:float-quantized,strategy=channel", "ct:mxfp4-pack-quantized"]);
}

#[test]
fn modelopt() {
    let case = tensors(
        "a.weight f8e4m3fn 6x32
         a.weight_scale f32 -
         a.input_scale f32 -
         attn.k_proj.weight f8e4m3fn 6x32
         attn.k_proj.weight_scale f32 -
         attn.k_proj.k_scale f32 -",
    )
    .hf_quant_config(
        r#"{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#,
    )
    .config(r#"{"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}}"#);
    let found = case.detect();
    settled(&case, &found, &[]);
    assert_eq!(case.role(&found, "attn.k_proj.k_scale"), Role::Dropped(Dropped::CacheScale));
    assert_eq!(found.schemes.len(), 1);
}

#[test]
fn modelopt_algorithms() {
    for (algorithm, lines, shape) in [
        ("FP8_PER_CHANNEL_PER_TOKEN", "a.weight f8e4m3fn 6x32\na.weight_scale f32 6", vec![6, 32]),
        ("fp8_pb_wo", "a.weight f8e4m3fn 256x384\na.weight_scale f32 2x1x3x1", vec![256, 384]),
        ("MXFP8", "a.weight f8e4m3fn 6x64\na.weight_scale u8 6x2", vec![6, 64]),
        ("mxfp4", "a.weight u8 6x32\na.weight_scale u8 6x2", vec![6, 64]),
        ("W8A8_SQ_PER_CHANNEL", "a.weight i8 6x32\na.weight_scale f32 6", vec![6, 32]),
        ("FP8", "a.weight i8 3x6x32\na.weight_scale f32 3", vec![3, 6, 32]),
    ] {
        let case = tensors(lines).hf_quant_config(&format!(r#"{{"quantization": {{"quant_algo": "{algorithm}"}}}}"#));
        assert_eq!(*case.detect().groups[0].shape, *shape, "{algorithm}");
    }
    let case = tensors("a.weight u8 6x32\na.weight_scale bf16 12x2")
        .hf_quant_config(r#"{"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 16}}"#);
    assert_eq!(case.detect().groups[0].shape, [12, 32].into());
}

#[test]
fn modelopt_nvfp4() {
    let case = tensors(
        "a.weight u8 6x16
         a.weight_scale f8e4m3fn 6x2
         a.weight_scale_2 f32 -
         a.pre_quant_scale bf16 3
         e.gate_up_proj u8 2x6x16
         e.gate_up_proj_weight_scale f8e4m3fn 2x6x2
         e.gate_up_proj_weight_scale_2 f32 2x2
         e.gate_up_proj_input_scale f32 2",
    )
    .holds("a.weight_scale_2", f32s(&[0.5]))
    .holds("a.pre_quant_scale", [0x80, 0x3f].repeat(3))
    .holds("e.gate_up_proj_weight_scale_2", f32s(&[0.5; 4]))
    .hf_quant_config(r#"{"quantization": {"quant_algo": "NVFP4", "group_size": 16}}"#);
    let found = case.detect();
    settled(&case, &found, &[]);
    assert_eq!(case.role(&found, "a.pre_quant_scale"), Role::Dropped(Dropped::Ones));
    // Gate and up have half of the rows each.
    let global = found.groups[1].layout.planes().unwrap().global.unwrap();
    assert_eq!((global.block, found.groups[1].layout.matrices), ([3, 32], 2));
}

#[test]
fn modelopt_by_layers() {
    let case = tensors(
        "m.a.weight u8 6x16
         m.a.weight_scale f8e4m3fn 6x2
         m.a.weight_scale_2 f32 -
         m.b.weight f8e4m3fn 6x16
         m.b.weight_scale f32 -",
    )
    .holds("m.a.weight_scale_2", f32s(&[0.5]))
    .hf_quant_config(
        r#"{"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers":
            {"m.a": {"quant_algo": "NVFP4", "group_size": 16}, "m.b": {"quant_algo": "FP8"}}}}"#,
    );
    assert_eq!(names(&case.detect()), ["modelopt:NVFP4", "modelopt:FP8"]);
}

#[test]
fn comfy_scaled_fp8() {
    let case = tensors(
        "model.scaled_fp8 f8e4m3fn 2
         model.a.weight f8e4m3fn 6x32
         model.a.scale_weight f32 -
         model.a.scale_input f32 -
         other.weight f32 6x32",
    );
    let found = case.detect();
    settled(&case, &found, &["other.weight"]);
    assert_eq!(case.role(&found, "model.scaled_fp8"), Role::Dropped(Dropped::Marker));
    let case = tensors(
        "a.weight f8e5m2 6x128
         a.scale_weight bf16 6x2x1
         b.weight f8e4m3fn 6x32
         b.scale_weight bf16 6x1",
    );
    let found = case.detect();
    assert_eq!(planes(&found).scales.block, [1, 64]);
    assert_eq!(found.warnings.len(), 1);
}

#[test]
fn comfy_markers() {
    let case = tensors(
        "model.a.weight f8e5m2 6x32
         model.a.weight_scale f32 -
         model.a.comfy_quant u8 27
         model.b.weight u8 16x16
         model.b.weight_scale f8e4m3fn 128x4
         model.b.weight_scale_2 f32 -
         model.c.weight f8e4m3fn 32x64
         model.c.weight_scale u8 128x4
         model.d.weight i8 32x64
         model.d.weight_scale f32 1",
    )
    .holds("model.a.comfy_quant", *br#"{"format": "float8_e5m2"}  "#)
    .holds("model.b.weight_scale_2", f32s(&[0.5]))
    .metadata(
        "_quantization_metadata",
        r#"{"format_version": "1.0", "layers": {"b": {"format": "nvfp4", "orig_dtype": "torch.bfloat16"},
            "model.c": "mxfp8", "d": {"format": "int8_tensorwise"}}}"#,
    );
    let found = case.detect();
    settled(&case, &found, &[]);
    assert_eq!(names(&found), ["comfy:float8_e5m2", "comfy:nvfp4", "comfy:mxfp8", "comfy:int8_tensorwise"]);
    let planes = found.groups[1].layout.planes().unwrap();
    assert_eq!((planes.codes.packing, planes.scales.plane.packing), (Packing::HighFirst, Packing::Swizzled));
    assert_eq!(found.groups[1].original, Some(DType::Bf16));
    assert_eq!(found.choices.len(), 2);
    // Without the data of the marker, types and shapes tell the format.
    let found = case.detect_with(&Options { header_alone: true, ..Options::default() }).unwrap();
    assert_eq!(names(&found), ["comfy:float8_e5m2", "comfy:nvfp4", "comfy:mxfp8", "comfy:int8_tensorwise"]);
    // The reference has the shape without padding.
    let shape = |name: &str| (name == "model.b.weight").then(|| vec![13, 27]);
    let found = case.detect_with(&Options { reference: Some(&shape), ..Options::default() }).unwrap();
    assert_eq!((&*found.groups[1].shape, found.groups[1].layout.kept), (&[13, 27][..], [13, 27]));
}

#[test]
fn torchao() {
    let entry = |class: &str, data: &str| {
        format!(r#"{{"_type": "{class}", "_data": {data}, "_tensor_data_names": ["qdata", "scale"]}}"#)
    };
    let case = tensors(
        "a._weight_qdata f8e4m3fn 6x32
         a._weight_scale f32 6x1
         b._weight_qdata u8 6x32
         b._weight_scale f8e8m0 6x2
         c._weight_qdata u8 6x16
         c._weight_scale f8e4m3fn 512
         c._weight_per_tensor_scale f32 -
         d._weight_qdata i8 6x32
         d._weight_scale f32 6x1
         norm.weight bf16 6",
    )
    .holds("c._weight_per_tensor_scale", f32s(&[0.5]))
    .metadata("tensor_names", r#"["a.weight", "b.weight", "c.weight", "d.weight", "norm.weight"]"#)
    .metadata("a.weight", &entry("Float8Tensor", r#"{"block_size": [1, 32], "dtype": "torch.bfloat16"}"#))
    .metadata(
        "b.weight",
        &entry(
            "MXTensor",
            r#"{"elem_dtype": {"_type": "torch.dtype", "_data": "float4_e2m1fn_x2"}, "block_size": 32}"#,
        ),
    )
    .metadata(
        "c.weight",
        &entry("NVFP4Tensor", r#"{"block_size": 16, "is_swizzled_scales": true, "orig_dtype": "torch.float32"}"#),
    )
    .metadata("d.weight", &entry("Int8Tensor", r#"{"block_size": [1, 32]}"#))
    .metadata("norm.weight", r#"{"_type": "Tensor"}"#)
    .quantization(r#"{"quant_method": "torchao"}"#);
    let found = case.detect();
    settled(&case, &found, &["norm.weight"]);
    let shown: Vec<_> = found.groups.iter().map(|group| (&*group.name, group.shape.to_vec(), group.original)).collect();
    assert_eq!(
        shown,
        [
            ("a.weight", vec![6, 32], Some(DType::Bf16)),
            ("b.weight", vec![6, 64], None),
            ("c.weight", vec![6, 32], Some(DType::F32)),
            ("d.weight", vec![6, 32], None),
        ]
    );
}

#[test]
fn mxfp8() {
    let case = tensors(
        "a.weight f8e4m3fn 6x64
         a.weight_scale_inv u8 6x2
         b.weight f8e4m3fn 6x64
         b.weight_scale f8e8m0 6x2",
    );
    for config in [
        r#"{"quant_method": "mxfp8", "weight_block_size": [1, 32], "scale_fmt": "ue8m0"}"#,
        r#"{"quant_method": "fp8", "weight_block_size": [1, 32], "scale_fmt": "ue8m0"}"#,
    ] {
        let found = case.clone().quantization(config).detect();
        assert_eq!((found.groups.len(), found.schemes[0].to_string().as_str()), (2, "mxfp8"));
    }
}

#[test]
fn awq() {
    let case = tensors(
        "a.qweight i32 256x3
         a.qzeros i32 2x3
         a.scales f16 2x24",
    )
    .quantization(r#"{"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "version": "GEMM"}"#);
    let found =
        case.detect_groups(&["a.weight awq,group=128 24x256: codes=a.qweight scales=a.scales zero-points=a.qzeros"]);
    assert_eq!((planes(&found).codes.packing, found.groups[0].layout.transposed), (Packing::Awq, true));
}

#[test]
fn gptq() {
    for (format, plus) in [("", 1), (r#", "checkpoint_format": "gptq_v2""#, 0)] {
        let case = tensors(
            "a.qweight i32 24x32
             a.qzeros i32 2x3
             a.scales f16 2x32
             a.g_idx i32 256",
        )
        .quantization(&format!(
            r#"{{"quant_method": "gptq", "bits": 3, "group_size": 128, "desc_act": true{format}}}"#
        ));
        let found = case.detect();
        assert_eq!(found.groups[0].shape, [32, 256].into());
        assert!(matches!(planes(&found).zero, Zero::Grid { plus: found, .. } if found == plus));
        assert_eq!(planes(&found).group, Order::OfRow);
    }
}

#[test]
fn bitnet() {
    let case = tensors("a.weight u8 6x32\na.weight_scale bf16 1").quantization(r#"{"quant_method": "bitnet"}"#);
    let found = case.detect();
    assert_eq!((&*found.groups[0].shape, planes(&found).form), (&[24, 32][..], Form::Divide));
    // With the other class of layers, the scale multiplies.
    let case = case
        .quantization(r#"{"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}"#);
    assert_eq!(planes(&case.detect()).form, Form::Times);
    assert_eq!(planes(&case.asked_for("bitnet").unwrap()).form, Form::Times);
}

#[test]
fn mlx() {
    let case = tensors(
        "a.weight u32 6x8
         a.scales bf16 6x1
         a.biases bf16 6x1
         b.weight u32 6x12
         b.scales bf16 6x1
         b.biases bf16 6x1",
    )
    .config(r#"{"quantization": {"group_size": 64, "bits": 4, "b": {"group_size": 64, "bits": 6}}}"#);
    case.detect_groups(&[
        "a.weight mlx:affine,bits=4,group=64 6x64: codes=a.weight scales=a.scales biases=a.biases",
        "b.weight mlx:affine,bits=6,group=64 6x64: codes=b.weight scales=b.scales biases=b.biases",
    ]);
    for (mode, bits, group, width, scales) in [("mxfp4", 4, 32, 8, 2), ("mxfp8", 8, 32, 16, 2), ("nvfp4", 4, 16, 8, 4)]
    {
        let case = tensors(&format!("a.weight u32 6x{width}\na.scales u8 6x{scales}"))
            .config(&format!(r#"{{"quantization": {{"group_size": {group}, "bits": {bits}, "mode": "{mode}"}}}}"#));
        assert_eq!(case.detect().groups[0].shape, [6, 64].into());
    }
    // A module without a mode is affine, even if the common mode is another.
    let case = tensors(
        "a.weight u32 6x8
         a.scales u8 6x2
         b.weight u32 6x16
         b.scales bf16 6x1
         b.biases bf16 6x1",
    )
    .config(
        r#"{"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4", "b": {"group_size": 64, "bits": 8}, "c": false}}"#,
    );
    assert_eq!(
        case.groups(&case.detect())[1],
        "b.weight mlx:affine,bits=8,group=64 6x64: codes=b.weight scales=b.scales biases=b.biases"
    );
}

#[test]
fn mistral() {
    let case = tensors(
        "layers.0.attention.wq.weight f8e4m3fn 6x32
         layers.0.attention.wq.qscale_weight f32 -
         layers.0.attention.wq.qscale_act f32 -",
    )
    .params(r#"{"dim": 32, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}"#);
    let found = case.detect();
    settled(&case, &found, &[]);
    assert_eq!(found.schemes[0].to_string(), "mistral-fp8");
}

#[test]
fn plain() {
    // Parameters with names like scales, and f8 tensors without scales.
    let case = tensors(
        "norm.scale f32 6
         logit_scale f32 -
         a.weight f8e4m3fn 6x32
         position_ids i64 1x6
         mask u8 6",
    );
    let found = case.detect();
    assert_eq!((found.groups.len(), found.schemes.len(), found.warnings.len()), (0, 0, 0));
    assert!(found.roles.iter().all(|role| *role == Role::Plain));
}
