"""Codes, scales and zero points that are packed anew: what compressed-tensors decodes of the result is what AutoAWQ's and
GPTQ's files stand for, and its words are those that its own packing gives."""

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
