"""Codes, scales and zero points that are packed anew: what compressed-tensors decodes of the result is what AutoAWQ's and
GPTQ's files stand for, and its words are those that its own packing gives. Blocks of another size with scales that are
powers of two: the values are those of the page's arithmetic, with torch's types."""

import numpy as np
import pytest
import torch

from folders import checkpoint, load
from test_schemes import decompressed, random, words
from test_writing import run, same, tensor

AWQ = (0, 2, 4, 6, 1, 3, 5, 7)
ROWS, COLUMNS, GROUP = 40, 256, 128


def fields(is_symmetric):
    generator = np.random.default_rng(7)
    zeros = generator.integers(0, 16, (COLUMNS // GROUP, ROWS))
    return generator.integers(0, 16, (COLUMNS, ROWS)), np.full_like(zeros, 8) if is_symmetric else zeros


def awq(q, z, scales):
    config = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
    return {"a.qweight": words(q, 4, AWQ), "a.qzeros": words(z, 4, AWQ), "a.scales": scales}, config


def gptq(q, z, scales):
    config = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "checkpoint_format": "gptq"}
    groups = torch.arange(COLUMNS, dtype=torch.int32) // GROUP
    stored = {"a.qweight": words(q.T, 4).T.contiguous(), "a.qzeros": words((z - 1) & 15, 4)}
    return {**stored, "a.scales": scales, "a.g_idx": groups}, config


@pytest.mark.parametrize("source", [awq, gptq])
@pytest.mark.parametrize("preset,symmetric", [("W4A16", True), ("W4A16_ASYM", False)])
def test_integers_become_pack_quantized(tmp_path, source, preset, symmetric):
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    q, z = fields(symmetric)
    scales = random(COLUMNS // GROUP, ROWS).abs().to(torch.float16)
    tensors, config = source(q, z, scales)
    folder = checkpoint(tmp_path / "source", [tensors], {"quantization_config": config})
    result = tmp_path / "result"
    scheme = f"ct:pack-quantized,symmetric={str(symmetric).lower()}"
    ran = run("convert", folder, result, "--scheme", scheme, "--relayout", "exact", "--quiet")
    assert ran.returncode == 0, ran.stderr
    ran = run("verify", folder, result, "--full")
    assert ran.returncode == 0, ran.stdout + ran.stderr

    found = load(result)
    signed = torch.from_numpy((q.T - 8).astype(np.int8))
    same(found, "a.weight_packed", pack_to_int32(signed.contiguous(), 4))
    same(found, "a.weight_scale", scales.T.contiguous())
    if not symmetric:
        zeros = torch.from_numpy((z.T - 8).astype(np.int8)).contiguous()
        same(found, "a.weight_zero_point", pack_to_int32(zeros, 4, packed_dim=0))
    parts = {name.removeprefix("a."): tensor(found, name) for name in found if name.startswith("a.weight")}
    exact = torch.from_numpy(q - z.repeat(GROUP, 0)).float() * scales.float().repeat_interleave(GROUP, 0)
    assert torch.equal(decompressed("pack-quantized", preset, parts), exact.T.to(torch.float16))


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def mxfp4(shape, lowest):
    """Codes and exponents of rows of 32; some blocks hold zeros of both signs."""
    generator = np.random.default_rng(11)
    codes = torch.from_numpy(generator.integers(0, 16, shape).astype(np.uint8))
    exponents = torch.from_numpy(generator.integers(lowest, 1, (shape[0], shape[1] // 32)))
    exponents[0, 0], exponents[-1, -1] = 0, lowest
    blocks = codes.view(shape[0], -1, 32)
    blocks[..., 3] = 5
    blocks[::7, 0] &= 8
    blocks[0, 0, 1] = 6
    values = E2M1[codes.long()] * torch.pow(2.0, exponents.double()).repeat_interleave(32, 1)
    return codes, exponents, values


def source(tmp_path, codes, exponents):
    config = {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": [], "version": "0.20.0",
              "config_groups": {"group_0": {"targets": ["Linear"], "format": "mxfp4-pack-quantized", "weights": {
                  "num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}}}}
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    tensors = {"a.weight_packed": packed.contiguous(), "a.weight_scale": (exponents + 127).to(torch.uint8)}
    return checkpoint(tmp_path / "source", [tensors], {"quantization_config": config})


def carried(tmp_path, folder, scheme):
    result = tmp_path / "result"
    ran = run("convert", folder, result, "--scheme", scheme, "--relayout", "exact", "--quiet")
    assert ran.returncode == 0, ran.stderr
    ran = run("verify", folder, result, "--full")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return load(result)


def identical(made, values):
    """The same numbers, zeros with their signs."""
    assert torch.equal(made.double().view(torch.int64), values.view(torch.int64))


@pytest.mark.parametrize("shape", [(7, 96), (131, 160)])
def test_mxfp4_becomes_nvfp4(tmp_path, shape):
    codes, exponents, values = mxfp4(shape, -17)
    found = carried(tmp_path, source(tmp_path, codes, exponents), "modelopt:W4A16_NVFP4")
    packed, scale = tensor(found, "a.weight"), tensor(found, "a.weight_scale")
    made = E2M1[torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()]
    scales = scale.float().double() * tensor(found, "a.weight_scale_2").double()
    identical(made * scales.repeat_interleave(16, 1), values)


@pytest.mark.parametrize("shape", [(40, 96), (200, 416)])
@pytest.mark.parametrize("scheme", ["fp8-block", "fp8-block,scale=f32"])
def test_mxfp4_becomes_blocks_of_fp8(tmp_path, shape, scheme):
    codes, exponents, values = mxfp4(shape, -14)
    found = carried(tmp_path, source(tmp_path, codes, exponents), scheme)
    scale = tensor(found, "a.weight_scale_inv").float().double()
    spread = scale.repeat_interleave(128, 0)[:shape[0]].repeat_interleave(128, 1)[:, :shape[1]]
    identical(tensor(found, "a.weight").float().double() * spread, values)
