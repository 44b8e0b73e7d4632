"""Every scheme that is written: codes and scales are those of the package that defines the scheme, where its formula is the
same, and what was written loads there with the values that truecast reads."""

import json
import os
import subprocess

import numpy as np
import pytest
import torch

from folders import checkpoint, load, raw
from test_schemes import BF16, F8, decompressed, nibbles, random

NAME = "model.layers.0.mlp.up_proj"


def run(*words):
    return subprocess.run([os.environ["TRUECAST_BIN"], *map(str, words)], capture_output=True, text=True, timeout=120)


def written(tmp_path, tensors, scheme, *options, config=None):
    """What truecast makes of dense tensors; the result is verified and made dense again too."""
    source = checkpoint(tmp_path / "source", [tensors], config)
    result, dense = tmp_path / "result", tmp_path / "dense"
    ran = run("convert", source, result, "--scheme", scheme, "--quiet", *options)
    assert ran.returncode == 0, ran.stderr
    ran = run("verify", source, result, "--full")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = run("convert", result, dense, "--to", "f32", "--quiet")
    assert ran.returncode == 0, ran.stderr
    return result


def tensor(found, name):
    """A tensor of what `load` found, of any type as bytes of its width."""
    dtype, shape, data = found[name]
    types = {"F32": torch.float32, "F16": torch.float16, "BF16": BF16, "F8_E4M3": F8, "U8": torch.uint8,
             "F8_E5M2": torch.float8_e5m2, "I8": torch.int8, "I32": torch.int32, "I64": torch.int64,
             "F8_E8M0": torch.float8_e8m0fnu}
    return torch.frombuffer(bytearray(data), dtype=types[dtype]).reshape(shape)


def weights(*shape, seed=0):
    """Random numbers with an outlier in some rows, zeros and a block of small ones."""
    weight = random(*shape, seed=seed, scale=0.02)
    weight[::7, 3] *= 30
    weight[1, :64] = 0
    weight[2] *= 1e-4
    return weight


def same(found, name, expected):
    dtype, shape, data = found[name]
    assert list(shape) == list(expected.shape), name
    size = expected.dtype.itemsize
    ours, theirs = np.frombuffer(data, f"<u{size}"), np.frombuffer(raw(expected), f"<u{size}")
    differ = np.flatnonzero(ours != theirs)
    assert differ.size == 0, f"{name}: {differ.size} of {ours.size} differ, first {differ[0]}: " \
                             f"{ours[differ[0]]:#x}, not {theirs[differ[0]]:#x}"


def quantized(weight, preset, group=None):
    """Codes, scales and zero points of compressed-tensors, with its formula in f32."""
    from compressed_tensors.quantization import preset_name_to_scheme
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    args = preset_name_to_scheme(preset, ["Linear"]).weights.model_copy()
    if group:
        args.group_size = group
    rows, columns = weight.shape
    width = group or args.group_size or columns
    grouped = weight.reshape(rows, columns // width, width)
    low, high = grouped.amin(-1), grouped.amax(-1)
    second = None
    if preset.startswith("NVFP4"):
        second = generate_gparam(weight.amin().reshape(1), weight.amax().reshape(1))
    scale, zero = calculate_qparams(low, high, args, global_scale=second)
    kind = {"float": F8, "int": torch.int8}[args.type] if args.num_bits == 8 else None
    codes = quantize(weight, scale, zero, args, dtype=kind, global_scale=second)
    return codes, scale, zero, second, args


def test_channels_of_fp8(tmp_path):
    weight = weights(70, 96)
    codes, scale, *_ = quantized(weight, "FP8_DYNAMIC")
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, "fp8-channel"))
    same(found, f"{NAME}.weight_scale", scale)
    same(found, f"{NAME}.weight", codes)


def test_channels_of_int8(tmp_path):
    weight = weights(70, 96)
    codes, scale, *_ = quantized(weight, "W8A8")
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, "ct:int-quantized"))
    same(found, f"{NAME}.weight_scale", scale)
    same(found, f"{NAME}.weight", codes)


@pytest.mark.parametrize("preset", [
    "W4A16", "W3A16", "W8A16", "W4A16_ASYM", "W8A8", "FP8_DYNAMIC", "FP8_BLOCK", "NVFP4A16", "MXFP4A16", "MXFP8A16",
])
def test_presets_are_settings_of_the_package(tmp_path, preset):
    from compressed_tensors.quantization import QuantizationConfig, preset_name_to_scheme

    result = written(tmp_path, {f"{NAME}.weight": weights(256, 256)}, preset)
    config = json.loads((result / "config.json").read_text())["quantization_config"]
    ours = QuantizationConfig.model_validate(config).config_groups["group_0"]
    theirs = preset_name_to_scheme(preset, ["Linear"])
    # The package's groups of 128 inputs with FP8_BLOCK forbid other widths; truecast's scale of a token does not.
    inputs = [] if preset == "FP8_BLOCK" else ["input_activations", "output_activations"]
    for part in ["weights", *inputs]:
        fields = lambda args: args and args.model_dump(include={
            "num_bits", "type", "symmetric", "group_size", "strategy", "block_structure", "dynamic"})
        assert fields(getattr(ours, part)) == fields(getattr(theirs, part)), part


@pytest.mark.parametrize("preset,scheme", [
    ("W4A16", "ct:pack-quantized,bits=4,group=32"), ("W8A16", "ct:pack-quantized,bits=8,group=32"),
    ("W4A16_ASYM", "ct:pack-quantized,bits=4,group=32,symmetric=false"),
])
def test_packed_integers(tmp_path, preset, scheme):
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    weight = weights(70, 96)
    if "ASYM" in preset:
        # For a group of zeros the package stores the zero point 0 and not -8; the values are the same (§7.5).
        weight[1] += 0.01
    codes, scale, zero, _, args = quantized(weight, preset, group=32)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, scheme))
    same(found, f"{NAME}.weight_scale", scale)
    same(found, f"{NAME}.weight_packed", pack_to_int32(codes.to(torch.int8), args.num_bits))
    same(found, f"{NAME}.weight_shape", torch.tensor([70, 96]))
    if not args.symmetric:
        packed = pack_to_int32(zero.to(torch.int8), args.num_bits, packed_dim=0)
        same(found, f"{NAME}.weight_zero_point", packed)


def test_nvfp4(tmp_path):
    weight = weights(70, 96)
    codes, scale, _, second, _ = quantized(weight, "NVFP4A16", group=16)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, "ct:nvfp4-pack-quantized"))
    same(found, f"{NAME}.weight_global_scale", second)
    same(found, f"{NAME}.weight_scale", scale.to(F8))
    assert torch.equal(nibbles(tensor(found, f"{NAME}.weight_packed")), codes.float())


@pytest.mark.parametrize("preset,scheme", [("MXFP4A16", "ct:mxfp4-pack-quantized"), ("MXFP8A16", "ct:mxfp8-quantized")])
def test_mx(tmp_path, preset, scheme):
    weight = weights(70, 96)
    codes, scale, *_ = quantized(weight, preset, group=32)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, scheme, "--mx-scale", "ct"))
    stored = tensor(found, f"{NAME}.weight_scale")
    exact = scale.float() > 0
    # The package gives zero blocks the scale 1 (§12).
    is_zero = weight.reshape(70, 3, 32).abs().amax(-1) == 0
    theirs = torch.log2(scale.float()).round().to(torch.int64) + 127
    assert torch.equal(stored.long()[~is_zero], theirs[~is_zero]) and bool(exact[~is_zero].all())
    if "fp8" in scheme:
        ours = tensor(found, f"{NAME}.weight").float()
    else:
        ours = nibbles(tensor(found, f"{NAME}.weight_packed"))
    assert torch.equal(ours, codes.float())


@pytest.mark.parametrize("scheme,shape", [("fp8-block", (256, 384)), ("fp8-block", (576, 300))])
def test_blocks_of_fp8(tmp_path, scheme, shape):
    from compressed_tensors.entrypoints.convert import FP8BlockDequantizer

    weight = weights(*shape)
    rows, columns = -(-shape[0] // 128), -(-shape[1] // 128)
    padded = torch.zeros(rows * 128, columns * 128)
    padded[:shape[0], :shape[1]] = weight
    blocks = padded.reshape(rows, 128, columns, 128)
    scale = blocks.abs().amax((1, 3)) / 448
    codes = (blocks / scale[:, None, :, None]).clamp(-448, 448).to(F8).float().reshape(padded.shape)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, scheme))
    same(found, f"{NAME}.weight_scale_inv", scale)
    same(found, f"{NAME}.weight", codes[:shape[0], :shape[1]].to(F8))
    dense = FP8BlockDequantizer(dtype=torch.float32)._create_dequantized_weight(
        tensor(found, f"{NAME}.weight"), tensor(found, f"{NAME}.weight_scale_inv"))
    again = load(tmp_path / "dense")
    assert torch.equal(dense, tensor(again, f"{NAME}.weight"))


def test_modelopt_nvfp4(tmp_path):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    found = load(written(tmp_path, {f"{NAME}.weight": weights(70, 96)}, "modelopt:W4A16_NVFP4"))
    packed, scale, second = (tensor(found, f"{NAME}.{name}") for name in ("weight", "weight_scale", "weight_scale_2"))
    dense = NVFP4Tensor(packed, scale, 16, torch.float32, per_tensor_scale=second).dequantize(torch.float32)
    assert torch.equal(dense, tensor(load(tmp_path / "dense"), f"{NAME}.weight"))


@pytest.mark.parametrize("scheme,format,preset", [
    ("ct:nvfp4-pack-quantized", "nvfp4-pack-quantized", "NVFP4A16"),
    ("ct:mxfp4-pack-quantized", "mxfp4-pack-quantized", "MXFP4A16"),
    ("ct:mxfp6-pack-quantized", "mxfp6-pack-quantized", "MXFP6A16"),
    ("ct:mxfp8-quantized", "mxfp8-quantized", "MXFP8A16"),
])
def test_the_package_reads_it(tmp_path, scheme, format, preset):
    found = load(written(tmp_path, {f"{NAME}.weight": weights(70, 96)}, scheme))
    tensors = {name.removeprefix(f"{NAME}."): tensor(found, name) for name in found}
    assert torch.equal(decompressed(format, preset, tensors).float(), of_dense(tmp_path).to(BF16).float())


def of_dense(tmp_path):
    return tensor(load(tmp_path / "dense"), f"{NAME}.weight")


def test_one_scale(tmp_path):
    weight = weights(70, 96)
    scale = weight.abs().amax() / 448
    codes = (weight / scale).clamp(-448, 448).to(F8)
    for number, (scheme, name) in enumerate([
        ("fp8-tensor", "weight_scale_inv"), ("modelopt:FP8", "weight_scale"), ("comfy:float8_e4m3fn", "weight_scale"),
        ("ct:float-quantized,strategy=tensor", "weight_scale"),
    ]):
        (tmp_path / str(number)).mkdir()
        (tmp_path / "ranges.json").write_text(json.dumps({NAME: 448.0}))
        ranges = ["--activation-ranges", tmp_path / "ranges.json"] if scheme == "modelopt:FP8" else []
        found = load(written(tmp_path / str(number), {f"{NAME}.weight": weight}, scheme, *ranges))
        assert tensor(found, f"{NAME}.{name}").item() == scale.item(), scheme
        same(found, f"{NAME}.weight", codes)
        assert torch.equal(of_dense(tmp_path / str(number)), codes.float() * scale)


def plain(tiles, rows, columns):
    """Tiles of 128 rows and 4 columns as a matrix (§3.8)."""
    tiles = tiles.view(torch.uint8).reshape(tiles.shape[0] // 128, tiles.shape[1] // 4, 32, 4, 4)
    return tiles.permute(0, 3, 2, 1, 4).reshape(tiles.shape[0] * 128, -1)[:rows, :columns].contiguous()


@pytest.mark.parametrize("shape", [(144, 80), (70, 90)])
def test_comfy_nvfp4(tmp_path, shape):
    weight = weights(*shape)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, "comfy:nvfp4"))
    rows, columns = (-(-n // 16) * 16 for n in shape)
    packed, scales, second = (tensor(found, f"{NAME}.{n}") for n in ("weight", "weight_scale", "weight_scale_2"))
    assert list(packed.shape) == [rows, columns // 2]
    effective = plain(scales, rows, columns // 16).view(F8).float() * second
    dense = nibbles(packed, "high") * effective.repeat_interleave(16, 1)
    assert not dense[shape[0]:].any() and not dense[:, shape[1]:].any()
    assert torch.equal(dense, of_dense(tmp_path))
    assert ((dense[:shape[0], :shape[1]] - weight).abs() <= effective.repeat_interleave(16, 1)[:shape[0], :shape[1]]).all()
    marker = bytes(tensor(found, f"{NAME}.comfy_quant").tolist())
    assert json.loads(marker) == {"format": "nvfp4"}


@pytest.mark.parametrize("scheme", ["comfy:mxfp8", "modelopt:MXFP8", "mxfp8"])
def test_mxfp8(tmp_path, scheme):
    weight = weights(96, 160)
    found = load(written(tmp_path, {f"{NAME}.weight": weight}, scheme))
    name = next(name for name in found if "scale" in name)
    scales = tensor(found, name)
    scales = plain(scales, 96, 5) if "comfy" in scheme else scales
    # rceil: the least power of two that no element of the block is beyond, for 448.
    amax = weight.reshape(96, 5, 32).abs().amax(-1)
    ratio = (amax / 448).numpy().view(np.uint32)
    expected = (ratio >> 23) + ((ratio & 0x7FFFFF) != 0)
    assert np.array_equal(scales.numpy(), expected)
    powers = torch.pow(torch.tensor(2.0), scales.float() - 127).repeat_interleave(32, 1)
    codes = torch.where(powers > 0, weight / powers, 0.0).clamp(-448, 448).to(F8)
    same(found, f"{NAME}.weight", codes)
    assert torch.equal(of_dense(tmp_path), codes.float() * powers)


# A model that has nothing of its own: Llama with two layers, made of its configuration.
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
    "max_position_embeddings": 64, "tie_word_embeddings": False, "dtype": "float32",
}


@pytest.mark.parametrize("scheme", [
    "fp8-block", "fp8-channel", "ct:float-quantized,strategy=tensor", "ct:int-quantized",
    "ct:pack-quantized,bits=4,group=32", "ct:pack-quantized,bits=4,group=128", "ct:nvfp4-pack-quantized",
    "ct:mxfp4-pack-quantized", "ct:mxfp8-quantized",
])
def test_a_model_loads(tmp_path, scheme):
    """transformers loads the folder by what it declares, and computes what a model with the dequantized weights does."""
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    # The package makes bf16 of these, whatever the model is.
    dtype = BF16 if "nvfp4" in scheme or "mxfp" in scheme else torch.float32
    model = LlamaForCausalLM(LlamaConfig(**LLAMA)).eval()
    tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
    result = written(tmp_path, tensors, scheme, "--keep-preset", "embeddings,lm_head", config=LLAMA)
    by_hand = AutoModelForCausalLM.from_pretrained(tmp_path / "dense", dtype=dtype).eval()
    values = load(tmp_path / "dense")
    for name, weight in by_hand.state_dict().items():
        assert torch.equal(weight, tensor(values, name).to(dtype)), name
    # Weights are compared, not what becomes of activations token by token.
    config = json.loads((result / "config.json").read_text())
    for group in config["quantization_config"].get("config_groups", {}).values():
        group["input_activations"] = None
    (result / "config.json").write_text(json.dumps(config))
    loaded = AutoModelForCausalLM.from_pretrained(result, dtype=dtype).eval()
    ids = torch.arange(24).reshape(1, -1) * 3 % 96
    with torch.no_grad():
        assert torch.equal(by_hand(ids).logits, loaded(ids).logits)
