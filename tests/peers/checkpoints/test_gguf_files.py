"""GGUF files as other programs leave them: models in parts, five dimensions, original shapes, blocks that only other
programs write. The package `gguf` writes and reads them."""

import json
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

import gguf_blocks


def write(path, tensors, keys=()):
    """Names to arrays, or to (type, bytes of rows); keys as (method of the writer, name, value)."""
    writer = GGUFWriter(path, "llama")
    for method, name, value in keys:
        getattr(writer, method)(name, value)
    for name, tensor in tensors.items():
        if isinstance(tensor, tuple):
            writer.add_tensor(name, tensor[1], raw_dtype=Type[tensor[0]])
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def part(no, count, tensors):
    return [("add_uint16", "split.no", no), ("add_uint16", "split.count", count),
            ("add_int32", "split.tensors.count", tensors)]


def load(path):
    """(type, shape, bytes) of each tensor, and the metadata, of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    at = lambda entry: data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]]
    return {name: (entry["dtype"], entry["shape"], at(entry)) for name, entry in header.items()}, metadata


def tensors_of(path):
    return {t.name: (t.tensor_type.name, [int(n) for n in reversed(t.shape)], t.data.tobytes())
            for t in GGUFReader(path).tensors}


def run(*arguments, code=0):
    ran = subprocess.run([os.environ["TRUECAST_BIN"], *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran


def refused(*arguments, words, code=3):
    said = run(*arguments, code=code).stderr
    assert all(word in said for word in words) and "panicked" not in said, said


RANDOM = np.random.default_rng(5)
WEIGHTS = [RANDOM.standard_normal((4, 64)).astype(np.float32) for _ in range(3)]


def split(folder, weights=WEIGHTS, prefix="m"):
    """One part for each of the weights; the first has the keys."""
    for no, values in enumerate(weights):
        keys = part(no, len(weights), len(weights)) + ([("add_uint32", "llama.block_count", 3)] if no == 0 else [])
        write(folder / f"{prefix}-{no + 1:05}-of-{len(weights):05}.gguf",
              {f"blk.{no}.weight": ("Q8_0", quantize(values, Type.Q8_0))}, keys)
    return folder / f"{prefix}-00001-of-{len(weights):05}.gguf"


@pytest.mark.parametrize("given", ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf", ""])
def test_parts_are_one_model(tmp_path, given):
    model = tmp_path / "model"
    model.mkdir()
    split(model)
    source, dense, whole = model / given, tmp_path / "d.safetensors", tmp_path / "w.gguf"
    expected = {f"blk.{no}.weight": dequantize(quantize(w, Type.Q8_0), Type.Q8_0) for no, w in enumerate(WEIGHTS)}
    run("convert", source, dense, "--to", "f32", "--quiet")
    found, metadata = load(dense)
    assert found == {name: ("F32", [4, 64], values.tobytes()) for name, values in expected.items()}
    assert metadata["llama.block_count"] == "3" and not any(key.startswith("split.") for key in metadata)
    run("verify", source, dense, "--to", "f32")
    run("compare", source, dense, "--fail-on", "inexact")
    run("convert", source, whole, "--scheme", "gguf:q8_0", "--quiet")
    run("verify", source, whole, "--scheme", "gguf:q8_0")
    fields = GGUFReader(whole).fields
    assert "llama.block_count" in fields and not any(key.startswith("split.") for key in fields)
    assert tensors_of(whole) == {f"blk.{no}.weight": ("Q8_0", [4, 64], quantize(w, Type.Q8_0).tobytes())
                                 for no, w in enumerate(WEIGHTS)}
    listed = json.loads(run("inspect", source, "--json").stdout)
    assert [tensor["name"] for tensor in listed["tensors"]] == list(expected)
    assert "blk.2.weight" in run("show", source, "blk.2.weight[0]").stdout


def test_parts_that_are_not_one_model(tmp_path):
    first = split(tmp_path)
    out = tmp_path / "o.safetensors"
    second, third = (tmp_path / f"m-0000{n}-of-00003.gguf" for n in (2, 3))
    whole = {path: path.read_bytes() for path in (first, second, third)}
    for command in (["convert", third, out, "--to", "f32"], ["inspect", third], ["show", third, "blk.2.weight"],
                    ["compare", first, third], ["convert", tmp_path, out, "--to", "f32"]):
        second.unlink()
        refused(*command, words=["m-00002-of-00003.gguf", "is missing"])
        second.write_bytes(whole[second])
    rows = ("Q8_0", quantize(WEIGHTS[1], Type.Q8_0))
    cases = [
        ({"blk.1.weight": rows}, part(0, 3, 3), ["split.no is 0, expected 1"]),
        ({"blk.1.weight": rows}, part(1, 4, 3), ["split.count is 4, expected 3"]),
        ({"blk.1.weight": rows}, part(1, 3, 9), ["split.tensors.count is 9, expected 3"]),
        ({"blk.1.weight": rows}, [], ["split.no is missing"]),
        ({"blk.0.weight": rows}, part(1, 3, 3), ["blk.0.weight", "m-00001-of-00003.gguf"]),
        ({"blk.1.weight": rows, "more": rows}, part(1, 3, 3), ["4 tensors", "split.tensors.count is 3"]),
        ({}, part(1, 3, 3), ["2 tensors", "split.tensors.count is 3"]),
    ]
    for tensors, keys, words in cases:
        write(second, tensors, keys)
        refused("convert", first, out, "--to", "f32", words=words)
    second.write_bytes(whole[second])
    # A name that does not say where the others are, or says of a whole file that it is a part.
    renamed = tmp_path / "renamed" / "first.gguf"
    renamed.parent.mkdir()
    shutil.copy(second, renamed)
    refused("inspect", renamed, words=["-00002-of-00003.gguf"])
    write(renamed.with_name("w-00001-of-00002.gguf"), {"a": rows})
    refused("inspect", renamed.with_name("w-00001-of-00002.gguf"), words=["name"])
    joined = tmp_path / "joined.gguf"
    joined.write_bytes(b"".join(whole.values()))
    refused("convert", joined, out, "--to", "f32", words=["bytes after the data of the last tensor"])
    assert not out.exists()
    # Of several models one has to be named; a folder does not become a folder.
    refused("convert", tmp_path, out, "--to", "f32", words=["several", "joined.gguf"], code=2)
    joined.unlink()
    refused("convert", tmp_path, tmp_path / "folder", "--to", "f32", words=[".safetensors or .gguf"], code=2)


@pytest.mark.parametrize("shape", [(16, 16, 1, 2, 2), (2, 3, 4, 5, 32), (1, 2, 1, 2, 1, 2)])
def test_more_dimensions_than_ggml_takes(tmp_path, shape):
    values = RANDOM.standard_normal(shape).astype(np.float32)
    source, dense, again = tmp_path / "a.gguf", tmp_path / "b.safetensors", tmp_path / "c.gguf"
    write(source, {"patch_embedding.weight": values, "q.weight": WEIGHTS[0]})
    run("convert", source, dense, "--to", "f16", "--quiet")
    half = values.astype(np.float16)
    assert load(dense)[0]["patch_embedding.weight"] == ("F16", list(shape), half.tobytes())
    assert "dimensions, more than ggml takes" in run("convert", dense, again, "--scheme", "gguf:q8_0").stderr
    run("verify", dense, again, "--scheme", "gguf:q8_0")
    tensors = tensors_of(again)
    assert tensors["q.weight"][0] == "Q8_0" and tensors["patch_embedding.weight"][1] == list(shape)
    if shape[-1] % 32:
        assert tensors["patch_embedding.weight"] == ("F16", list(shape), half.tobytes())


# The stored shape, the original one, the type of the list, and the type of the tensor.
@pytest.mark.parametrize("stored, original, block", [
    ((9, 32), (8, 4, 3, 3), "Q8_0"), ((9, 32), (8, 4, 3, 3), "F32"), ((3, 64), (2, 1, 4, 4, 6), "Q8_0"), ((64,), (1, 64), "F32"),
])
def test_original_shapes(tmp_path, stored, original, block):
    values = RANDOM.standard_normal(stored).astype(np.float32)
    source, dense, again = tmp_path / "a.gguf", tmp_path / "b.safetensors", tmp_path / "c.gguf"
    tensor = (block, quantize(values, Type[block])) if block != "F32" else values
    key = "comfy.gguf.orig_shape.conv.weight"
    write(source, {"conv.weight": tensor, "q": WEIGHTS[0]}, [("add_array", key, list(original))])
    values = dequantize(tensor[1], Type[block]).reshape(stored) if block != "F32" else values
    ran = run("convert", source, dense, "--to", "f32")
    assert load(dense)[0]["conv.weight"] == ("F32", list(original), values.tobytes()) and key not in ran.stderr
    run("verify", source, dense, "--to", "f32")
    run("compare", source, dense, "--fail-on", "different")
    assert str(list(original[1:])) in run("show", source, "conv.weight[0]").stdout
    # In a GGUF file the key says so.
    run("convert", source, again, "--to", "f16", "--quiet")
    assert tensors_of(again)["conv.weight"] == ("F16", list(stored), values.astype(np.float16).tobytes())
    assert GGUFReader(again).fields[key].contents() == list(original)
    for wrong in ([8, 4, 3, 4], [-8, 4, 3, 3], "8x4x3x3", [0.5]):
        method = "add_string" if isinstance(wrong, str) else "add_array"
        write(source, {"conv.weight": tensor}, [(method, key, wrong)])
        refused("convert", source, tmp_path / "w.safetensors", "--to", "f32", words=["conv.weight", str(list(stored))])


# Types that truecast does not write.
FOREIGN = ["IQ2_XXS", "IQ1_S", "IQ3_S", "IQ4_XS", "IQ1_M", "TQ1_0"]


@pytest.mark.parametrize("name", FOREIGN)
def test_blocks_that_are_copied(tmp_path, name):
    _, odd = gguf_blocks.blocks(RANDOM, name, 6)
    source, other, copy = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "c.gguf"
    read = quantize(WEIGHTS[0], Type.Q8_0)
    write(source, {"odd.weight": (name, odd), "read.weight": ("Q8_0", read)})
    values = dequantize(odd, Type[name])
    assert np.float32(run("show", source, "odd.weight[3, 9]").stdout.split()[-1]) == values[3, 9]
    same = json.loads(run("compare", source, source, "--json").stdout)
    assert same["equal"] and len(same["tensors"]) == 2 and not same["warnings"]
    for options in (["--to", "f16"], ["--scheme", "gguf:q8_0"]):
        options += ["--keep", "odd.weight", "--force"]
        run("convert", source, copy, *options, "--quiet")
        assert tensors_of(copy)["odd.weight"] == (name, [6, 256], odd.tobytes())
        run("verify", source, copy, *[option for option in options if option != "--force"])
    refused("convert", source, tmp_path / "d.safetensors", "--to", "f16", "--keep", "odd.weight", words=["odd.weight", name], code=2)
    # Quantized anew, from its values.
    run("convert", source, copy, "--scheme", "gguf:q8_0", "--force", "--quiet")
    assert tensors_of(copy)["odd.weight"] == ("Q8_0", [6, 256], quantize(values, Type.Q8_0).tobytes())
    write(other, {"odd.weight": values, "read.weight": ("Q8_0", read)})
    assert json.loads(run("compare", source, other, "--json").stdout)["equal"]
    values[4, 5] += np.float32(1)
    write(other, {"odd.weight": values, "read.weight": ("Q8_0", read)})
    assert not json.loads(run("compare", source, other, "--json").stdout)["equal"]
