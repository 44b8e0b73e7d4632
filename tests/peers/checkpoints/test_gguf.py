"""GGUF files made by the package `gguf`, converted by the command, beside what the package makes of them."""

import json
import os
import struct
import subprocess

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

import gguf_blocks
from folders import checkpoint

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
    assert json.loads(metadata.pop("truecast.options"))["to"] == "bf16"
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


def values(path):
    """Keys with their values as lists, and tensors as (type, shape outermost first, bytes)."""
    reader = GGUFReader(path)
    keys = {name: (field.types, field.contents()) for name, field in reader.fields.items() if name[:5] != "GGUF."}
    offsets = [tensor.data_offset for tensor in reader.tensors]
    assert all((offset - offsets[0]) % reader.alignment == 0 for offset in offsets)
    tensors = {
        tensor.name: (tensor.tensor_type.name, [int(n) for n in reversed(tensor.shape)], tensor.data.tobytes())
        for tensor in reader.tensors
    }
    assert path.stat().st_size % reader.alignment == 0
    return keys, tensors


def awkward(seed):
    """Weights with ties, huge and tiny blocks, subnormals, and a last row of zeros."""
    random = np.random.default_rng(seed)
    rows = weights(seed).reshape(-1, 32)
    rows[0] = np.linspace(-8, 8, 32)
    rows[1] = 127 * np.linspace(-1, 1, 32)
    rows[2] *= np.float32(1e-38)
    rows[3] = np.float32(2.0) ** np.arange(-149, -117, dtype=np.float32)
    rows[4] = np.float32(3e38) * random.uniform(-1, 1, 32)
    rows[5:9] = np.arange(128).reshape(4, 32) / np.float32(2)
    rows[-16:] = 0
    return rows.reshape(SHAPE)


@pytest.mark.parametrize("name", gguf_blocks.WRITTEN)
def test_written_from_folders(tmp_path, name):
    """Blocks are the package's, bit for bit; keys and shapes are read as they are meant."""
    first, half = awkward(5), torch.randn(4, 64, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    norm = np.random.default_rng(2).standard_normal(512).astype(np.float32)
    shards = [
        {"a.experts.weight": torch.from_numpy(first), "a.norm.weight": torch.from_numpy(norm)},
        {"b.weight": half, "b.ids": torch.arange(5)},
    ]
    source = checkpoint(tmp_path / "model", shards, {"model_type": "flux", "torch_dtype": "float32"})
    result = tmp_path / "r.gguf"
    with np.errstate(all="ignore"):
        blocks = {"a.experts.weight": quantize(first, Type[name]), "b.weight": quantize(half.float().numpy(), Type[name])}
    # A scale beyond f16 is infinite. Where 127 / amax is, the package casts what is no number to integers, and its exponent
    # of MXFP4 wraps below zero: there the command writes a scale of 0, and codes of the page.
    made = blocks["a.experts.weight"].reshape(-1, {"Q8_0": 34, "MXFP4": 17}[name])
    if name == "Q8_0":
        assert np.isinf(made[:, :2].copy().view(np.float16)).any()
    small = np.abs(first.reshape(-1, 32)).max(-1)
    small = (small > 0) & (small < {"Q8_0": 127 / np.finfo(np.float32).max, "MXFP4": 2.0**-125}[name])
    assert small.any()
    run("convert", source, result, "--scheme", f"gguf:{name.lower()}", "--quiet")
    keys, found = values(result)
    assert json.loads(keys.pop("truecast.options")[1])["scheme"] == f"gguf:{name}"
    assert {key: value for key, (_, value) in keys.items()} == {
        "general.architecture": "flux", "general.name": "model", "general.quantization_version": 2,
        "general.file_type": {"Q8_0": 7, "MXFP4": 38}[name],
    }
    for tensor, data in blocks.items():
        kind, shape, ours = found[tensor]
        assert (kind, shape) == (name, [*SHAPE] if tensor[0] == "a" else [4, 64])
        ours, theirs = np.frombuffer(ours, np.uint8).reshape(-1, made.shape[1]), data.reshape(-1, made.shape[1])
        differ = (ours != theirs).any(-1)
        if tensor[0] == "a":
            assert (ours[small, 0 : 2 if name == "Q8_0" else 1] == 0).all()
            differ &= ~small
        assert not differ.any(), f"{tensor}: {differ.sum()} blocks, first {differ.argmax()}"
    assert found["a.norm.weight"] == ("F32", [512], norm.tobytes())
    assert found["b.ids"] == ("I64", [5], np.arange(5, dtype="<i8").tobytes())
    run("verify", source, result, "--scheme", f"gguf:{name}", "--full")


@pytest.mark.parametrize("to", ["f32", "f16", "bf16", "gguf:q8_0", "gguf:mxfp4"])
@pytest.mark.parametrize("name", ["Q4_K", "Q8_0", "MXFP4"])
def test_written_from_files(tmp_path, name, to):
    """Keys of the source stay, arrays among them; values are those of the package, rounded or quantized by it."""
    data = rows(name, 7)
    norm = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    source, result = tmp_path / "a.gguf", tmp_path / "b.gguf"
    write(source, {"blk.0.w.weight": (name, data), "blk.0.norm.weight": norm, "ids": np.arange(5, dtype=np.int32)})
    option = ["--scheme", to] if ":" in to else ["--to", to, "--keep", "*norm*"]
    run("convert", source, result, *option, "--quiet", "--max-memory", "1MiB")
    (before, _), (keys, found) = values(source), values(result)
    own = {"general.file_type", "general.quantization_version", "truecast.options"}
    assert {k: v for k, v in keys.items() if k not in own} == {k: v for k, v in before.items() if k not in own}
    assert keys["tokenizer.ggml.tokens"][1] == ["a", "b"]
    expected = dequantize(data, Type[name]).reshape(SHAPE)
    if to.upper() == f"GGUF:{name}":
        right = data
    elif ":" in to:
        right = quantize(expected, Type[to.split(":")[1].upper()])
    else:
        right = {"f32": lambda: expected, "f16": lambda: expected.astype("<f2"), "bf16": lambda: bf16(expected)}[to]()
    kind, shape, ours = found["blk.0.w.weight"]
    assert (kind, shape) == (to.split(":")[-1].upper(), list(SHAPE))
    assert ours == np.ascontiguousarray(right).tobytes()
    assert found["blk.0.norm.weight"] == ("F32", [512], norm.tobytes())
    run("verify", source, result, *option, "--full")
