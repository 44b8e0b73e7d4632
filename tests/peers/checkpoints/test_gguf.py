"""GGUF files made by the package `gguf`, converted by the command, beside what the package makes of them."""

import json
import os
import struct
import subprocess

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter
from gguf.quants import dequantize, quantize

import gguf_blocks

# Rows, columns and leading dimensions; a row has whole blocks of every type.
SHAPE = (3, 7, 512)


def bf16(values):
    """To nearest, ties to even. No NaN comes here."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def weights(seed):
    random = np.random.default_rng(seed)
    values = random.standard_normal(SHAPE).astype(np.float32) * np.exp2(random.integers(-30, 10, (*SHAPE[:2], 1)))
    values[0, 0, :64] = 0
    values[1, 2, ::5] = -0.0
    return values.astype(np.float32)


def rows(name, seed):
    """The bytes of a tensor: made by the package of weights, or random blocks where it only reads them."""
    try:
        return quantize(weights(seed), Type[name])
    except NotImplementedError:
        elements, _ = gguf_blocks.blocks(np.random.default_rng(0), name, 6)
        _, data = gguf_blocks.blocks(np.random.default_rng(seed), name, int(np.prod(SHAPE)) // elements)
        return data.reshape(*SHAPE[:2], -1)


def write(path, tensors):
    """Names to (type, bytes), or arrays of plain elements."""
    writer = GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 1)
    writer.add_float32("llama.epsilon", 1e-6)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    for name, tensor in tensors.items():
        if isinstance(tensor, tuple):
            writer.add_tensor(name, tensor[1], raw_dtype=Type[tensor[0]])
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    begin = 8 + length
    at = lambda entry: data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]]
    return metadata, {name: (entry["dtype"], entry["shape"], at(entry)) for name, entry in header.items()}


def run(*arguments):
    command = [os.environ["TRUECAST_BIN"], *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.mark.parametrize("name", gguf_blocks.READ)
def test_blocks(tmp_path, name):
    data = rows(name, 7)
    random = np.random.default_rng(1)
    # Signs of zero count: of a product and of the table they are those of the package.
    expected = dequantize(data, Type[name]).reshape(SHAPE)
    tensors = {
        "blk.0.ffn_up_exps.weight": (name, data),
        "blk.0.norm.weight": random.standard_normal(512).astype(np.float32),
        "blk.0.half.weight": random.standard_normal((2, 33)).astype(np.float16),
        "ids": np.arange(5, dtype=np.int32),
    }
    source, dense, exact = tmp_path / "a.gguf", tmp_path / "b.safetensors", tmp_path / "f.safetensors"
    write(source, tensors)
    run("convert", source, dense, "--to", "bf16", "--quiet", "--max-memory", "1MiB")
    metadata, found = load(dense)
    assert metadata == {
        "format": "pt", "general.architecture": "llama", "llama.block_count": "1", "llama.epsilon": "1e-6"
    }
    assert sorted(found) == sorted(tensors)
    assert found["blk.0.ffn_up_exps.weight"] == ("BF16", list(SHAPE), bf16(expected).tobytes())
    norm, half = tensors["blk.0.norm.weight"], tensors["blk.0.half.weight"]
    assert found["blk.0.norm.weight"] == ("BF16", [512], bf16(norm).tobytes())
    assert found["blk.0.half.weight"] == ("BF16", [2, 33], bf16(half).tobytes())
    assert found["ids"] == ("I32", [5], tensors["ids"].tobytes())
    run("convert", source, exact, "--to", "f32", "--quiet")
    assert load(exact)[1]["blk.0.ffn_up_exps.weight"][2] == expected.astype("<f4").tobytes()
    run("verify", source, dense, "--to", "bf16")
    run("compare", source, exact, "--fail-on", "inexact")


def test_factors_of_nvfp4(tmp_path):
    """The package leaves the multiplication to others; it is one product of f32."""
    data = rows("NVFP4", 3)
    factors = np.array([0.3, 1.7, 1e-3], np.float32)
    source, result = tmp_path / "a.gguf", tmp_path / "b.safetensors"
    write(source, {"a.weight": ("NVFP4", data), "a.scale": factors, "a.input_scale": np.ones(3, np.float32)})
    run("convert", source, result, "--to", "bf16", "--quiet")
    expected = dequantize(data, Type.NVFP4).reshape(SHAPE) * factors[:, None, None]
    assert load(result)[1] == {"a.weight": ("BF16", list(SHAPE), bf16(expected.astype(np.float32)).tobytes())}
    run("verify", source, result, "--to", "bf16")
