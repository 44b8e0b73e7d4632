"""safetensors files against the Python package safetensors 0.8.0.

What the package cannot do (docs/spec/checkpoints.md §1.9) is asserted too, so that a newer package shows up.
"""

import ctypes
import hashlib
import json

import container
import ml_dtypes  # also teaches NumPy bfloat16, which safetensors needs
import numpy as np
import pytest
import safetensors
from command import ROOT
from dtypes import FINITE, IN_SAFETENSORS, TYPES
from safetensors.numpy import load_file, save
from values import inputs

# Names that the package uses in its Python interface where they are not NumPy's.
TORCH_NAMES = {"f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn_x2"}
NUMPY_READS = {"bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"}
F6 = {"f6e2m3", "f6e3m2"}


def view(path) -> dict[str, dict]:
    """The package's own view of the bytes."""
    return dict(safetensors.deserialize(path.read_bytes()))


def test_sample_is_what_the_package_writes(sample):
    """testdata/README.md."""
    data = sample.read_bytes()
    assert data == save(load_file(sample), {"format": "pt"})
    readme = (ROOT / "testdata" / "README.md").read_text()
    assert hashlib.sha256(data).hexdigest() in readme and f"{len(data):,}" in readme


@pytest.mark.parametrize("dst", IN_SAFETENSORS)
def test_results_open(truecast, sample, tmp_path, dst):
    out = tmp_path / "out.safetensors"
    truecast.convert(sample, out, "--to", dst)
    t, before, after = TYPES[dst], view(sample), view(out)
    by_hand = container.read_safetensors(out)[0]
    assert after.keys() == before.keys()
    for name, entry in after.items():
        copied = before[name]["dtype"] == "I64"
        assert entry["dtype"] == ("I64" if copied else t.safetensors)
        assert entry["shape"] == before[name]["shape"]
        assert bytes(entry["data"]) == container.pack(by_hand[name], TYPES["i64"] if copied else t)
        if copied:
            assert entry["data"] == before[name]["data"]

    with safetensors.safe_open(out, framework="numpy") as file:
        assert sorted(file.keys()) == sorted(before)
        metadata = file.metadata()
        assert json.loads(metadata.pop("truecast.options"))["to"] == dst
        assert metadata == {"format": "pt"}
        for name in file.keys():
            piece = file.get_slice(name)
            assert piece.get_shape() == before[name]["shape"]
            if before[name]["dtype"] == "I64":
                continue
            assert piece.get_dtype() == t.safetensors
            if dst in NUMPY_READS:
                tensor = file.get_tensor(name)
                assert tensor.dtype == t.numpy and tensor.tobytes() == by_hand[name].tobytes()
            else:
                # §1.9: NumPy has no such attribute; F6 has no dtype anywhere.
                error = safetensors.SafetensorError if dst in F6 else AttributeError
                with pytest.raises(error):
                    file.get_tensor(name)


@pytest.mark.parametrize("dst", [name for name in IN_SAFETENSORS if name not in F6])
def test_bytes_equal_the_package(truecast, sample, tmp_path, dst):
    """§1.8 item 4: canonical order and one metadata key give exactly the bytes that the package writes.

    The sample is in canonical order, its I64 tensor first, and truecast keeps the order of the source while it is
    aligned (§1.5). That stays canonical in every type of a rank below I64, since all float tensors change together.
    """
    if dst in ("i64", "u64"):
        pytest.skip("the order of the source, which is kept, is not canonical if the others become I64 or U64")
    # A shard of a folder has no options in its metadata.
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "model.safetensors").write_bytes(sample.read_bytes())
    truecast("convert", tmp_path / "in", tmp_path / "out", "--to", dst, "--quiet")
    out = tmp_path / "out" / "model.safetensors"
    specs, alive = {}, []
    for name, tensor in container.read_safetensors(out)[0].items():
        t = TYPES["i64"] if tensor.dtype == np.int64 else TYPES[dst]
        data = container.pack(tensor, t)
        buffer = ctypes.create_string_buffer(data, len(data))
        alive.append(buffer)
        shape = list(tensor.shape)
        if t.name == "f4e2m1":
            shape[-1] //= 2  # §1.4: the package doubles it
        dtype = TORCH_NAMES.get(t.name, str(t.numpy))
        specs[name] = safetensors.TensorSpec(
            dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(data)
        )
    assert out.read_bytes() == safetensors.serialize(specs, {"format": "pt"})


@pytest.mark.parametrize("src", IN_SAFETENSORS)
def test_every_type_is_read(truecast, tmp_path, src):
    """Widened to f64; integers up to 32 bits and every float are exact, 64-bit integers round once as in NumPy."""
    if src in ("i64", "u64", "i32", "u32"):
        source = np.frombuffer(np.random.default_rng(5).bytes(4096), dtype=TYPES[src].numpy)
    elif src == "bool":
        source = np.array([True, False, False, True])
    else:
        source = inputs(src, "f64")
    path = container.write_safetensors(tmp_path / "in.safetensors", {"x": (TYPES[src], source)})
    out = tmp_path / "out.safetensors"
    # A rule, because integers are copied by default.
    truecast.convert(path, out, "--rule", "x=f64")
    narrow = source.astype(np.float32) if src in FINITE or src.startswith("f8") or src == "bf16" else source
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(load_file(out)["x"], narrow.astype(np.float64))


def test_rules(truecast, sample, tmp_path):
    out = tmp_path / "out.safetensors"
    rules = ("--rule", "*position_ids=i32", "--keep", "*LayerNorm*", "--rule", "*.bias=bf16", "--to", "f16")
    truecast.convert(sample, out, *rules)
    before, after = load_file(sample), load_file(out)
    for name, tensor in before.items():
        if name.endswith("position_ids"):
            expected = tensor.astype(np.int32)
        elif "LayerNorm" in name:
            expected = tensor
        elif name.endswith(".bias"):
            expected = tensor.astype(ml_dtypes.bfloat16)
        else:
            expected = tensor.astype(np.float16)
        assert after[name].dtype == expected.dtype and after[name].tobytes() == expected.tobytes(), name


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(None, id="none"),
        pytest.param({}, id="empty"),
        pytest.param({"format": "mlx"}, id="other-format"),
        pytest.param({"b": "2", "a": "1", "naïve ☃": 'quote " and \\ and \n and \u0001'}, id="text"),
    ],
)
def test_metadata_is_carried_over(truecast, tmp_path, metadata):
    """§1.7: every key unchanged, `format` = `pt` where it is absent, the options of the run, keys in byte order."""
    source = {"x": (TYPES["f32"], np.ones(3, dtype=np.float32))}
    path, out = container.write_safetensors(tmp_path / "in.safetensors", source, metadata), tmp_path / "o.safetensors"
    truecast.convert(path, out, "--to", "f16")
    expected = {"format": "pt", **(metadata or {})}
    with safetensors.safe_open(out, framework="numpy") as file:
        found = file.metadata()
    assert json.loads(found.pop("truecast.options"))["to"] == "f16"
    assert found == expected
    keys = list(container.read_safetensors(out)[1])
    assert keys == sorted(keys, key=str.encode)


@pytest.mark.parametrize("names", [["", "a"], ["a/b", "a.b"], ['"quoted"\\', "tab\there"], ["模型", "𝔘nicode", "é"]])
def test_names(truecast, tmp_path, names):
    tensors = {name: (TYPES["f32"], np.full(2, i, dtype=np.float32)) for i, name in enumerate(names)}
    path, out = container.write_safetensors(tmp_path / "in.safetensors", tensors), tmp_path / "out.safetensors"
    truecast.convert(path, out, "--to", "bf16")
    assert {n: float(v[0]) for n, v in load_file(out).items()} == {n: float(i) for i, n in enumerate(names)}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1, 1, 1, 1, 1, 1), (5, 3)], ids=str)
def test_shapes(truecast, tmp_path, shape):
    source = np.full(shape, 1.5, dtype=np.float32)
    tensors = {"x": (TYPES["f32"], source), "other": (TYPES["i64"], np.arange(3))}
    path, out = container.write_safetensors(tmp_path / "in.safetensors", tensors), tmp_path / "out.safetensors"
    truecast.convert(path, out, "--to", "f16")
    result = load_file(out)
    np.testing.assert_array_equal(result["x"], source.astype(np.float16), strict=True)
    np.testing.assert_array_equal(result["other"], np.arange(3), strict=True)


def test_unaligned_source(truecast, tmp_path):
    """§1.5: header lengths need not be multiples of 8; the data order of the source is not canonical here."""
    a, b = np.arange(3, dtype=np.int8), np.arange(5, dtype=np.float32)
    tensors = {"a": (TYPES["i8"], a), "b": (TYPES["f32"], b)}
    path = container.write_safetensors(tmp_path / "in.safetensors", tensors, pad=False)
    out = tmp_path / "out.safetensors"
    truecast.convert(path, out, "--to", "f64")
    result = load_file(out)
    np.testing.assert_array_equal(result["a"], a, strict=True)
    np.testing.assert_array_equal(result["b"], b.astype(np.float64), strict=True)
    start = container.payload_start(out)
    header = json.loads(out.read_bytes()[8:start])
    for name, size in [("a", 1), ("b", 8)]:
        assert (start + header[name]["data_offsets"][0]) % size == 0


def test_complex_is_copied(truecast, tmp_path):
    """docs/interfaces.md §1: c64 can only be copied; a rule that converts it is an error."""
    tensors = {"z": np.array([1 + 2j, np.nan - 1j], dtype=np.complex64), "w": np.ones(3, dtype=np.float32)}
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(save(tensors))
    truecast("convert", path, out, "--to", "f16")
    result = load_file(out)
    assert result["z"].dtype == np.complex64 and result["z"].tobytes() == tensors["z"].tobytes()
    assert result["w"].dtype == np.float16
    truecast("verify", path, out, "--to", "f16")
    truecast("convert", path, tmp_path / "no.safetensors", "--rule", "z=f32", code=3)


@pytest.mark.parametrize("dst", ["i4", "u4", "i2", "u2"])
def test_types_without_a_name_are_refused(truecast, sample, tmp_path, dst):
    """§1.3; a combination that makes no sense is exit code 2 (docs/interfaces.md §4)."""
    out = tmp_path / "out.safetensors"
    truecast("convert", sample, out, "--to", dst, code=2)
    assert not list(tmp_path.iterdir())
