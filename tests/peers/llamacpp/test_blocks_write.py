"""Blocks that truecast writes beside those of ggml: equal in all bytes."""

import os
import subprocess

import gguf
import ggml_write
import numpy as np
import pytest

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"]
ROW = 256 * 64


def kinds():
    """Rows of f32 by kind."""
    random = np.random.default_rng(7)
    normal = lambda: random.standard_normal(ROW)
    bits = lambda mask: (random.integers(0, 2**32, ROW, dtype=np.uint64).astype(np.uint32) & np.uint32(mask)).view(np.float32)
    yield "normal", normal()
    for exponent in (-30, -20, -15, -14.5, -10, -7, -5, 5, 10, 18, 20, 30, 37, 38.5):
        yield f"times 10^{exponent}", np.clip(normal() * 10.0**exponent, -3.4e38, 3.4e38)
    yield "constant blocks", np.repeat(normal()[: ROW // 256], 256)
    yield "constant groups", np.repeat(normal()[: ROW // 16], 16)
    yield "zero", np.zeros(ROW)
    yield "minus zero", -np.zeros(ROW)
    yield "mostly zero", np.where(random.random(ROW) < 0.8, 0, normal())
    yield "groups of zeros", np.where(np.arange(ROW) // 16 % 3 == 0, 0, normal())
    yield "positive", np.abs(normal())
    yield "negative", -np.abs(normal())
    yield "far from zero", normal() * 0.01 + 1
    yield "ties", random.integers(-8, 9, ROW)
    yield "ties at halves", random.integers(-31, 32, ROW) / 2
    yield "few values", random.integers(-1, 2, ROW)
    yield "one outlier", np.where(np.arange(ROW) % 97 == 0, 100, normal() * 0.01)
    yield "one large outlier", np.where(np.arange(ROW) % 256 == 0, -1000, normal() * 1e-6)
    yield "alternating", np.tile([1, -1], ROW // 2) * np.repeat(random.random(ROW // 32), 32)
    yield "monotone", np.tile(np.arange(256), ROW // 256) * np.repeat(normal()[: ROW // 256], 256)
    yield "groups of many scales", normal() * np.repeat(np.exp(random.standard_normal(ROW // 16) * 8), 16)
    yield "one element", np.where(np.arange(ROW) % 32 == np.repeat(random.integers(0, 32, ROW // 32), 32), 1.0, 0)
    yield "any bits", np.where(np.isfinite(x := bits(0xFFFFFFFF)), x, bits(0xBFFFFFFF))
    yield "subnormal", bits(0x807FFFFF)


def of_type(rows, dtype):
    """The rows as elements of a type, and the f32 values of these elements."""
    if dtype == "f32":
        return rows, rows
    if dtype == "f16":
        half = np.clip(rows, -65504, 65504).astype(np.float16)
        return half, half.astype(np.float32)
    bits = rows.view(np.uint32) & np.uint32(0xFFFF0000)
    return (bits >> np.uint32(16)).astype(np.uint16), bits.view(np.float32)


@pytest.fixture(scope="module")
def rows():
    return {kind: np.ascontiguousarray(row, np.float32) for kind, row in kinds()}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", TYPES)
def test_blocks_are_those_of_ggml(name, dtype, rows, tmp_path):
    stored, values = of_type(np.stack(list(rows.values())), dtype)
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "any")
    types = {"bf16": gguf.GGMLQuantizationType.BF16}
    for at, kind in enumerate(rows):
        row = stored[at : at + 1]
        writer.add_tensor(f"{kind}.weight", row.view(np.uint8) if dtype == "bf16" else row, raw_dtype=types.get(dtype))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    command = ["quantize", "in.gguf", "out.gguf", name.lower(), "--quantize", "*"]
    ran = subprocess.run([os.environ["TRUECAST_BIN"], *command], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    wrong = []
    for at, kind in enumerate(rows):
        tensor = found[f"{kind}.weight"]
        assert tensor.tensor_type.name == name
        # Tiny blocks differ on purpose (docs/spec/checkpoints.md §9.3, §9.4): ggml casts NaN, and its exponent wraps.
        tiny = {"Q8_0": 127 / 3.4e38, "MXFP4": 2.0**-124}.get(name, 0)
        elements, size = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
        blocks = values[at].reshape(-1, elements)
        most = np.abs(blocks).max(axis=1)
        expected = np.frombuffer(ggml_write.quantize_rows(name, values[at : at + 1]), np.uint8).reshape(-1, size)
        differs = (tensor.data.reshape(-1, size) != expected).any(axis=1) & ((most >= tiny) | (most == 0))
        if differs.any():
            wrong.append((kind, int(differs.sum()), int(differs.argmax())))
    assert not wrong


def test_nvfp4_is_not_written(tmp_path):
    """ggml's encoder of its scales is defective (docs/spec/checkpoints.md §12), so no blocks are made of weights."""
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "any")
    writer.add_tensor("a.weight", np.ones((1, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    command = [os.environ["TRUECAST_BIN"], "quantize", "in.gguf", "out.gguf", "gguf:nvfp4"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 2 and "gguf:NVFP4 can be read, not written" in ran.stderr
