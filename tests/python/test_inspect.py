"""`inspect --json` against safetensors' own view of a file, and `--stats` against NumPy."""

import math

import container
import numpy as np
import pytest
import safetensors
from dtypes import FINITE, IN_SAFETENSORS, TYPES, to_f64
from naive import MIN_NORMAL
from values import inputs

STATS = ["f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2", "f8e8m0", *FINITE, "i8", "u16", "i32"]


@pytest.mark.parametrize("name", IN_SAFETENSORS)
def test_matches_safetensors(truecast, sample, tmp_path, name):
    """The sample in every type: names, types, shapes, and data where the offsets say it is."""
    path = tmp_path / "x.safetensors"
    truecast("convert", sample, path, "--to", name, "--quiet")
    said = truecast.json("inspect", path)
    data = path.read_bytes()
    theirs = dict(safetensors.deserialize(data))
    assert said["kind"] == "safetensors" and said["file_bytes"] == len(data)
    assert sorted(t["name"] for t in said["tensors"]) == sorted(theirs)
    assert [t["offset"] for t in said["tensors"]] == sorted(t["offset"] for t in said["tensors"])
    for tensor in said["tensors"]:
        entry = theirs[tensor["name"]]
        assert TYPES[tensor["dtype"]].safetensors == entry["dtype"]
        assert tensor["shape"] == entry["shape"]
        assert tensor["elements"] == math.prod(entry["shape"])
        assert tensor["bytes"] == len(entry["data"])
        assert data[tensor["offset"] : tensor["offset"] + tensor["bytes"]] == bytes(entry["data"])
    with safetensors.safe_open(path, framework="numpy") as file:
        assert said["metadata"] == file.metadata()


@pytest.mark.parametrize("name", STATS)
def test_stats(truecast, tmp_path, name):
    source = inputs(name, name) if TYPES[name].bits <= 16 or TYPES[name].is_float else np.arange(-9, 99, dtype="i4")
    path = container.write_safetensors(tmp_path / "x.safetensors", {"x": (TYPES[name], source)})
    stats = truecast.json("inspect", path, "--stats")["tensors"][0]["stats"]
    x = to_f64(source)
    finite = x[np.isfinite(x)]
    assert stats["min"] == finite.min() and stats["max"] == finite.max()
    small = (np.abs(x) < MIN_NORMAL[name]) & (x != 0) if name in MIN_NORMAL else np.zeros(len(x), dtype=bool)
    expected = {"nan": np.isnan(x), "inf": np.isinf(x), "zero": x == 0, "subnormal": small}
    assert {k: stats[k] for k in expected} == {k: int(mask.sum()) for k, mask in expected.items()}
