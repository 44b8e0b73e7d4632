"""Every scheme: a checkpoint of it, made by the package that defines it, becomes what that package makes of it."""

import json

import numpy as np
import pytest
import torch

from folders import check

BF16 = torch.bfloat16
F8 = torch.float8_e4m3fn


def random(*shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * scale


def codes(*shape, seed=0):
    """E4M3 codes of every kind but NaN."""
    generator = torch.Generator().manual_seed(seed)
    some = torch.randint(0, 256, shape, generator=generator, dtype=torch.int64).to(torch.uint8)
    some[(some & 0x7F) == 0x7F] = 0
    return some.view(F8)


def some_bytes(*shape, seed=0, low=0, high=256):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator, dtype=torch.int64).to(torch.uint8)


def times(values, scales):
    """One multiplication in f32, one rounding."""
    return (values.float() * scales.float()).to(BF16)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def nibbles(packed, first="low"):
    """The values of pairs of E2M1 along the last dimension."""
    low, high = E2M1[(packed & 15).long()], E2M1[(packed >> 4).long()]
    pair = (low, high) if first == "low" else (high, low)
    return torch.stack(pair, -1).flatten(-2)


def powers(scales):
    return torch.pow(torch.tensor(2.0, dtype=torch.float64), scales.double() - 127)


def fp8_config(**more):
    return {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], **more}}


def test_deepseek_blocks(tmp_path):
    from compressed_tensors.entrypoints.convert import FP8BlockDequantizer

    weights = {"a": codes(576, 300), "b": codes(128, 1, seed=1), "c": codes(129, 127, seed=2)}
    scales = {
        name: random(-(-w.shape[0] // 128), -(-w.shape[1] // 128), seed=3).abs() for name, w in weights.items()
    }
    oracle = FP8BlockDequantizer(dtype=BF16)
    expected = {f"{n}.weight": oracle._create_dequantized_weight(w, scales[n]) for n, w in weights.items()}
    norm = random(300).to(BF16)
    shards = [
        {f"{name}.weight": weight for name, weight in weights.items()},
        # In another shard than their codes.
        {**{f"{name}.weight_scale_inv": scale for name, scale in scales.items()}, "norm.weight": norm},
    ]
    check(tmp_path, shards, {**expected, "norm.weight": norm}, fp8_config())


def test_deepseek_powers_of_two(tmp_path):
    weight, scale = codes(192, 320), some_bytes(2, 3, low=100, high=150)
    grown = powers(scale).float().repeat_interleave(128, 0)[:192].repeat_interleave(128, 1)[:, :320]
    shard = {
        "a.weight": weight, "a.weight_scale_inv": scale.view(torch.float8_e8m0fnu),
        "b.weight": weight, "b.weight_scale_inv": scale,
    }
    dense = times(weight, grown)
    check(tmp_path, [shard], {"a.weight": dense, "b.weight": dense}, fp8_config(scale_fmt="ue8m0"))


def test_experts_in_stacks(tmp_path):
    weight, scale = codes(3, 192, 130), random(3, 2, 2).abs()
    grown = scale.repeat_interleave(128, 1)[:, :192].repeat_interleave(128, 2)[:, :, :130]
    shard = {"m.experts.gate_up_proj": weight, "m.experts.gate_up_proj_scale_inv": scale}
    check(tmp_path, [shard], {"m.experts.gate_up_proj": times(weight, grown)}, fp8_config())


def test_deepseek_v4(tmp_path):
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    packed = some_bytes(8, 32).view(torch.int8)
    scale = some_bytes(8, 2, low=110, high=140).view(torch.float8_e8m0fnu)
    expected = Fp8Dequantize(None)._dequantize_one(packed, scale, BF16)
    name = "layers.0.ffn.experts.0.w1"
    shard = {f"{name}.weight": packed, f"{name}.scale": scale}
    check(tmp_path, [shard], {f"{name}.weight": expected}, {**fp8_config(scale_fmt="ue8m0"), "expert_dtype": "fp4"})


def test_gpt_oss(tmp_path):
    from transformers.integrations.mxfp4 import _convert_moe_packed_tensors

    blocks, scales = some_bytes(3, 6, 2, 16), some_bytes(3, 6, 2, low=110, high=140)
    expected = _convert_moe_packed_tensors(blocks, scales, dtype=BF16)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    shard = {f"{name}_blocks": blocks, f"{name}_scales": scales}
    check(tmp_path, [shard], {name: expected.contiguous()}, {"quantization_config": {"quant_method": "mxfp4"}})


def ct_config(format, weights, activations=None):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    config = {"quant_method": "compressed-tensors", "format": format, "version": "0.20.0", "ignore": ["lm_head"]}
    return {"quantization_config": {**config, "config_groups": {"group_0": group}}}


def decompressed(format, preset, tensors):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import preset_name_to_scheme

    scheme = preset_name_to_scheme(preset, ["Linear"])
    return BaseCompressor.get_value_from_registry(format).decompress(dict(tensors), scheme)["weight"]


@pytest.mark.parametrize("format,preset,tensors,weights", [
    ("float-quantized", "FP8_DYNAMIC", lambda: {"weight": codes(6, 40), "weight_scale": random(6, 1).abs().to(BF16)},
     {"num_bits": 8, "type": "float", "strategy": "channel"}),
    ("int-quantized", "W8A8", lambda: {
        "weight": some_bytes(6, 40).view(torch.int8), "weight_scale": random(6, 1).abs().to(BF16)},
     {"num_bits": 8, "type": "int", "strategy": "channel"}),
    ("nvfp4-pack-quantized", "NVFP4A16", lambda: {
        "weight_packed": some_bytes(6, 32), "weight_scale": random(6, 4).abs().to(F8),
        "weight_global_scale": torch.tensor([3000.0])},
     {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
    ("mxfp4-pack-quantized", "MXFP4A16", lambda: {
        "weight_packed": some_bytes(6, 32), "weight_scale": some_bytes(6, 2, low=110, high=140)},
     {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}),
    ("mxfp6-pack-quantized", "MXFP6A16", lambda: {
        "weight_packed": some_bytes(6, 48), "weight_scale": some_bytes(6, 2, low=110, high=140)},
     {"num_bits": 6, "type": "float", "strategy": "group", "group_size": 32}),
    ("mxfp8-quantized", "MXFP8A16", lambda: {
        "weight": codes(6, 64), "weight_scale": some_bytes(6, 2, low=110, high=140)},
     {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32}),
])
def test_compressed_tensors(tmp_path, format, preset, tensors, weights):
    tensors = tensors()
    expected = decompressed(format, preset, tensors).to(BF16)
    shard = {f"a.{name}": tensor for name, tensor in tensors.items()}
    shard["lm_head.weight"] = random(6, 4).to(BF16)
    check(tmp_path, [shard], {"a.weight": expected, "lm_head.weight": shard["lm_head.weight"]},
          ct_config(format, weights))


@pytest.mark.parametrize("bits,columns", [(4, 64), (8, 64), (3, 96), (5, 96), (4, 72)])
def test_compressed_tensors_packed(tmp_path, bits, columns):
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    half = 1 << (bits - 1)
    values = (some_bytes(6, columns, high=1 << bits).to(torch.int16) - half).to(torch.int8)
    group = 24 if columns == 72 else 32
    scale = random(6, columns // group).abs().to(BF16)
    shard = {
        "a.weight_packed": pack_to_int32(values, bits), "a.weight_scale": scale,
        "a.weight_shape": torch.tensor([6, columns], dtype=torch.int64),
    }
    expected = times(values, scale.repeat_interleave(group, 1))
    weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": group, "symmetric": True}
    check(tmp_path, [shard], {"a.weight": expected}, ct_config("pack-quantized", weights))


def test_modelopt_nvfp4(tmp_path):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    packed, scale, second = some_bytes(6, 32), random(6, 4).abs().to(F8), torch.tensor(0.0123)
    expected = NVFP4Tensor(packed, scale, 16, BF16, per_tensor_scale=second).dequantize(BF16)
    shard = {
        "a.weight": packed, "a.weight_scale": scale, "a.weight_scale_2": second, "a.input_scale": torch.tensor(0.5),
    }
    declared = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}
    config = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    check(tmp_path, [shard], {"a.weight": expected}, {"quantization_config": config},
          extra={"hf_quant_config.json": {"producer": {"name": "modelopt"}, "quantization": declared}})


def test_modelopt_fp8(tmp_path):
    weight, scale = codes(6, 40), torch.tensor(0.0123)
    shard = {"a.weight": weight, "a.weight_scale": scale, "a.k_scale": torch.tensor(1.0)}
    check(tmp_path, [shard], {"a.weight": times(weight, scale)},
          extra={"hf_quant_config.json": {"quantization": {"quant_algo": "FP8"}}})


def swizzled(scales, rows, columns):
    """Tiles of 128 rows and 4 columns (§3.8)."""
    padded = torch.zeros(-(-rows // 128) * 128, -(-columns // 4) * 4, dtype=torch.uint8)
    padded[:rows, :columns] = scales.view(torch.uint8)
    tiles = padded.view(-1, 4, 32, padded.shape[1] // 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(padded.shape).contiguous()


def test_comfy_nvfp4(tmp_path):
    packed, scale, second = some_bytes(144, 40), random(144, 5).abs().to(F8), torch.tensor(0.0123)
    total = (scale.float() * second).repeat_interleave(16, 1)
    expected = times(nibbles(packed, "high"), total)
    marker = torch.tensor(list(b'{"format": "nvfp4"}'), dtype=torch.uint8)
    shard = {
        "a.weight": packed, "a.weight_scale": swizzled(scale, 144, 5).view(F8), "a.weight_scale_2": second,
        "a.comfy_quant": marker,
    }
    check(tmp_path, [shard], {"a.weight": expected})


def test_comfy_scaled_fp8(tmp_path):
    weight, scale = codes(6, 40), torch.tensor(0.0123)
    shard = {
        "m.a.weight": weight, "m.a.scale_weight": scale, "m.a.scale_input": torch.tensor(1.0),
        "m.scaled_fp8": torch.zeros(2).to(F8),
    }
    check(tmp_path, [shard], {"m.a.weight": times(weight, scale)})


def test_torchao(tmp_path):
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import Float8Tensor
    from torchao.quantization.granularity import PerRow

    weight = random(6, 64).to(BF16)
    state = {
        "a.weight": Float8Tensor.from_hp(weight, granularity=PerRow()),
        "b.weight": MXTensor.to_mx(weight, F8, 32),
        "c.weight": MXTensor.to_mx(weight, torch.float4_e2m1fn_x2, 32),
        "d.weight": NVFP4Tensor.to_nvfp4(weight),
        "e.weight": weight,
    }
    tensors, metadata = flatten_tensor_state_dict(state)
    expected = {name: tensor if name == "e.weight" else tensor.dequantize(BF16) for name, tensor in state.items()}
    check(tmp_path, [tensors], expected, metadata=metadata)


def test_mxfp8(tmp_path):
    weight, scale = codes(6, 64), some_bytes(6, 2, low=110, high=140)
    dense = times(weight, powers(scale).float().repeat_interleave(32, 1))
    shard = {
        "a.weight": weight, "a.weight_scale_inv": scale, "b.weight": weight,
        "b.weight_scale": scale.view(torch.float8_e8m0fnu),
    }
    config = {"quant_method": "mxfp8", "weight_block_size": [1, 32], "scale_fmt": "ue8m0"}
    check(tmp_path, [shard], {"a.weight": dense, "b.weight": dense}, {"quantization_config": config})


def words(fields, bits, order=range(8)):
    """Fields of four bits along the last dimension as words."""
    grouped = fields.reshape(*fields.shape[:-1], -1, 8).astype(np.int64)
    packed = sum(grouped[..., column] << (bits * nibble) for nibble, column in enumerate(order))
    return torch.from_numpy(packed.astype(np.uint32).view(np.int32).copy())


def test_awq(tmp_path):
    generator = np.random.default_rng(0)
    q, z = generator.integers(0, 16, (256, 24)), generator.integers(0, 16, (2, 24))
    scales = random(2, 24).abs().to(torch.float16)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    shard = {"a.qweight": words(q, 4, order), "a.qzeros": words(z, 4, order), "a.scales": scales}
    exact = torch.from_numpy(q - z.repeat(128, 0)).float()
    expected = times(exact, scales.repeat_interleave(128, 0)).T.contiguous()
    config = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
    check(tmp_path, [shard], {"a.weight": expected}, {"quantization_config": config})


@pytest.mark.parametrize("format,less", [("gptq", 1), ("gptq_v2", 0)])
def test_gptq(tmp_path, format, less):
    generator = np.random.default_rng(0)
    q, z = generator.integers(0, 16, (64, 24)), generator.integers(1, 16, (2, 24))
    scales, order = random(2, 24).abs().to(torch.float16), generator.permutation(np.repeat([0, 1], 32))
    shard = {
        "a.qweight": words(q.T, 4).T.contiguous(), "a.qzeros": words(z - less, 4), "a.scales": scales,
        "a.g_idx": torch.from_numpy(order.astype(np.int32)),
    }
    exact = torch.from_numpy(q - z[order]).float()
    expected = times(exact, scales[torch.from_numpy(order)]).T.contiguous()
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "checkpoint_format": format}
    check(tmp_path, [shard], {"a.weight": expected}, {"quantization_config": config})


@pytest.mark.parametrize("linear_class", [None, "bitlinear", "autobitlinear"])
def test_bitnet(tmp_path, linear_class):
    q = np.random.default_rng(0).integers(0, 3, (8, 40))
    packed = sum(q[i * 2:i * 2 + 2] << (2 * i) for i in range(4)).astype(np.uint8)
    scale = torch.tensor([3.0]).to(BF16)
    # AutoBitLinear of transformers multiplies its output.
    factor = scale.float() if linear_class == "autobitlinear" else 1 / scale.float()
    expected = (torch.from_numpy(q - 1).float() * factor).to(BF16)
    config = {"quant_method": "bitnet", **({"linear_class": linear_class} if linear_class else {})}
    shard = {"a.weight": torch.from_numpy(packed), "a.weight_scale": scale}
    check(tmp_path, [shard], {"a.weight": expected}, {"quantization_config": config})


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx(tmp_path, bits):
    mx = pytest.importorskip("mlx.core")
    weight = mx.array(random(6, 128).numpy()).astype(mx.bfloat16)
    packed, scales, biases = mx.quantize(weight, 64, bits)
    dense = mx.dequantize(packed, scales, biases, 64, bits)

    def of(array):
        return torch.from_numpy(np.array(array.view(mx.uint16)).view(np.int16)).view(BF16)

    shard = {
        "a.weight": torch.from_numpy(np.array(packed)), "a.scales": of(scales), "a.biases": of(biases),
    }
    check(tmp_path, [shard], {"a.weight": of(dense)}, {"quantization": {"group_size": 64, "bits": bits}})


def test_mistral(tmp_path):
    weight, scale = codes(6, 40), torch.tensor(0.0123)
    shard = {"a.weight": weight, "a.qscale_weight": scale, "a.qscale_act": torch.tensor(1.0)}
    check(tmp_path, [shard], {"a.weight": times(weight, scale)})


def test_fbgemm(tmp_path):
    weight, scale = codes(6, 40), random(6, 1).abs()
    shard = {"a.weight": weight, "a.weight_scale": scale}
    config = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}
    check(tmp_path, [shard], {"a.weight": times(weight, scale)}, {"quantization_config": config})


def test_a_missing_scale_is_an_error(tmp_path):
    from folders import checkpoint, convert

    shard = {"a.weight": codes(128, 128), "b.weight": codes(128, 128), "b.weight_scale_inv": torch.ones(1, 1)}
    source = checkpoint(tmp_path / "source", [shard], fp8_config())
    ran = convert(source, tmp_path / "result")
    assert ran.returncode == 3 and 'missing scales for "a.weight"' in ran.stderr
    assert json.loads((source / "config.json").read_text())["hidden_size"] == 64
