"""Random blocks of every type that ggml knows: what truecast reads is what ggml's `to_float` gives, bit for bit.

    LLAMA_LIBRARIES=FOLDER TRUECAST_BIN=FILE python test_blocks_read.py [--full] [TYPE ...]

reads 10,000 blocks of each type, or a million with `--full`; pytest reads the 10,000. All bytes are random, so every
scale occurs, nonfinite ones too. NaN is compared as truecast's one NaN (`docs/spec/checkpoints.md` §9.7). MXFP4 alone
has a scale, FF, that truecast refuses, as ggml's validation does (§9.4): its blocks have FE there instead.
"""

import argparse
import json
import pathlib
import struct
import tempfile

import ggml_base
import gguf
import numpy as np
import pytest
from shared import truecast, write

# gguf-py takes the fields of Q8_1 for f32.
gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_1] = (32, 36)
# Elements in a file.
MOST = 2**24
NAN = np.uint32(0x7FC00000)


def tensor_of(path):
    """Type, shape and values of the only tensor of a safetensors file."""
    with path.open("rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
        header.pop("__metadata__", None)
        [entry] = header.values()
        return entry["dtype"], entry["shape"], np.fromfile(file, "<u4")


def check(block, blocks, folder):
    """Number of NaN values among those of so many blocks."""
    random, nans = np.random.default_rng([20261128, block.number]), 0
    source, dense = folder / "a.gguf", folder / "b.safetensors"
    while blocks:
        rows = 8
        of_row = max(1, min(blocks, MOST // block.elements) // rows)
        data = random.integers(0, 256, (rows * of_row, block.bytes), np.uint8)
        if block.name == "MXFP4":
            data[:, 0] = np.minimum(data[:, 0], 0xFE)
        write(source, {"a.weight": (data.reshape(rows, -1), block.name)})
        truecast("convert", source, dense, "--to", "f32", "--force", "--quiet")
        dtype, shape, got = tensor_of(dense)
        assert (dtype, shape) == ("F32", [rows, of_row * block.elements])
        expected = ggml_base.values(block, data).ravel()
        is_nan = np.isnan(expected)
        wrong = np.flatnonzero(got != np.where(is_nan, NAN, expected.view(np.uint32)))
        for at in wrong[:1]:
            pytest.fail(f"{block} {data[at // block.elements].tobytes().hex()} {at}: {got[at]:x}, not {expected[at]}")
        nans += int(is_nan.sum())
        blocks -= min(blocks, rows * of_row)
    return nans


@pytest.mark.parametrize("block", ggml_base.block_types(), ids=lambda block: block.name)
def test_blocks(block, tmp_path):
    # A scale of 16 bits is nonfinite in one of 32 blocks; NVFP4 and MXFP4 have no such scale.
    assert (check(block, 10_000, tmp_path) > 0) == (block.name not in ("MXFP4", "NVFP4"))


def test_types_are_known():
    """`truecast schemes` lists ggml's types, with their bits for each element, beside mixtures of them."""
    listed = json.loads(truecast("schemes", "--json").stdout)["schemes"]
    stored = {row["name"]: row["stored"] for row in listed if row["name"].startswith("gguf:")}
    stored = {name: text for name, text in stored.items() if not text.startswith("mostly ")}
    bits = {f"gguf:{block.name}": block.bytes * 8 / block.elements for block in ggml_base.block_types()}
    assert {name.upper(): float(text.split()[0]) for name, text in stored.items()} == {
        name.upper(): value for name, value in bits.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("types", nargs="*")
    options = parser.parse_args()
    for one in ggml_base.block_types():
        if not options.types or one.name in options.types:
            with tempfile.TemporaryDirectory() as folder:
                number = 1_000_000 if options.full else 10_000
                found = check(one, number, pathlib.Path(folder))
                print(f"{one.name}: {number} blocks equal, {found} NaN", flush=True)
