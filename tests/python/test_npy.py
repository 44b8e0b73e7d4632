"""`.npy` and `.npz` against NumPy: what it writes is read, what truecast writes it loads.

docs/interfaces.md §4: bf16 is `<V2`, f8e5m2 `|V1`, every other narrow type `<V1` and one element a byte, which is how
ml_dtypes arrays are saved, but for f8e5m2: NumPy cannot load the `<f1` that it saves.
"""

import container
import ml_dtypes
import numpy as np
import pytest
from dtypes import F8, FINITE, IEEE_ONLY, INTEGERS, TYPES, assert_same
from values import all_codes, weights

NATIVE = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
NARROW = [*F8, *FINITE, "f8e8m0", *IEEE_ONLY, "i4", "u4", "i2", "u2"]


def some(dtype: np.dtype, shape) -> np.ndarray:
    """Values that f64 holds, 64-bit extremes apart; filled row by row."""
    n = int(np.prod(shape))
    values = np.random.default_rng(11).integers(-120, 120, n) if dtype.kind in "if" else np.arange(n) % 251
    return values.astype(dtype).reshape(shape)


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
@pytest.mark.parametrize("kind", NATIVE)
def test_numpy_types_are_read(truecast, tmp_path, kind, order):
    source = some(np.dtype(order + kind), (7, 3))
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "f64")
    np.testing.assert_array_equal(np.load(out), source.astype("<f8"), strict=True)


@pytest.mark.parametrize("dst", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"])
def test_numpy_types_are_written(truecast, tmp_path, dst):
    source = some(np.dtype("f4"), (5, 4)).clip(0, 100)
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", dst)
    np.testing.assert_array_equal(np.load(out), source.astype(TYPES[dst].numpy), strict=True)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4, 5)], ids=str)
def test_shapes(truecast, tmp_path, shape):
    source = some(np.dtype("f4"), shape)
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "f16")
    np.testing.assert_array_equal(np.load(out), source.astype("f2"), strict=True)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3, 1, 2, 2)], ids=str)
@pytest.mark.parametrize("kind", ["<f4", ">i2", "<U3"])
def test_fortran_order(truecast, tmp_path, kind, shape):
    source = np.asfortranarray(some(np.dtype("i2"), shape).astype(kind))
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    assert b"'fortran_order': True" in path.read_bytes()
    truecast.convert(path, out, "--to", "f32")
    np.testing.assert_array_equal(np.load(out), source.astype("f4"), strict=True)
    truecast("verify", path, out, "--to", "f32")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_fortran_order_in_archives(truecast, tmp_path, save):
    arrays = {"a": np.asfortranarray(some(np.dtype("f4"), (70, 30))), "b": some(np.dtype("f4"), (7, 3))}
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    save(path, **arrays)
    truecast.convert(path, out, "--to", "f16")
    for name, written in np.load(out).items():
        np.testing.assert_array_equal(written, arrays[name].astype("f2"), strict=True)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (1, 4), ()], ids=str)
def test_fortran_order_without_effect(truecast, tmp_path, shape):
    """Arrays of one long dimension are contiguous both ways; NumPy then writes False, and they are read."""
    source = np.asfortranarray(some(np.dtype("f4"), shape))
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "f16")
    np.testing.assert_array_equal(np.load(out), source.astype("f2"), strict=True)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
def test_header_versions(truecast, tmp_path, version):
    source, path, out = some(np.dtype("f4"), (6,)), tmp_path / "in.npy", tmp_path / "out.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, source, version=version)
    truecast.convert(path, out, "--to", "bf16")
    np.testing.assert_array_equal(np.load(out).view(ml_dtypes.bfloat16).astype("f4"), source)


@pytest.mark.parametrize("name", NARROW)
def test_ml_dtypes_arrays(truecast, tmp_path, name):
    """Read with `--from` (f8e5m2 as NumPy saves it says what it is), and written to the same elements as ml_dtypes
    saves, in a file that NumPy loads and ml_dtypes views."""
    t = TYPES[name]
    source = all_codes(t)
    spec = ("--spec", "ieee") if name in IEEE_ONLY else ()
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    if name != "f8e5m2":
        truecast("inspect", path, code=2)
    truecast.convert(path, out, "--to", "f32", "--from", name, *spec)
    expected = source.astype(np.float32)
    assert_same(np.load(out), expected, TYPES["f32"], source)

    # Back from values: NaN loses its payload, and finite-only types have none.
    again = tmp_path / "again.npy"
    # Where the type has infinities, they stay.
    exact = {"f8e8m0": ("--saturate", "false", "--round-mode", "nearest")}
    exact |= {name: ("--saturate", "false") for name in F8}
    truecast.convert(out, again, "--to", name, *spec, *exact.get(name, ()))
    result, descr = container.read_npy(again, t)
    assert descr == ("|V1" if name == "f8e5m2" else "<V1")
    assert_same(np.load(again).view(t.numpy), source, t)
    assert_same(result, source, t)
    saved, theirs = path.read_bytes(), again.read_bytes()
    assert len(saved) == len(theirs)
    no_nan = ~np.isnan(expected)
    stored = [np.frombuffer(data[-len(source) :], dtype="u1")[no_nan] for data in (saved, theirs)]
    assert (stored[0] == stored[1]).all()


@pytest.mark.parametrize("name", ["f8e5m2", "f8e4m3fn", "bf16", "i4"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_the_report_says_how_to_view(truecast, tmp_path, name, suffix):
    """NumPy loads opaque elements; the line of the report makes numbers of them."""
    values = np.array([1.0, -2.0, 0.5, 3.0] if name != "i4" else [1.0, -2.0, 0.0, 3.0], dtype="f4")
    path, out = container.write_npy(tmp_path / "in.npy", values), tmp_path / f"out.{suffix}"
    said = truecast("convert", path, out, "--to", name)
    line = next(line for line in said.splitlines() if line.startswith("in Python: "))
    loaded = np.load(out)
    a = loaded if suffix == "npy" else loaded[loaded.files[0]]
    seen = eval(line.removeprefix("in Python: "), {"a": a, "ml_dtypes": ml_dtypes})
    np.testing.assert_array_equal(seen.astype("f4"), values)


def test_what_numpy_knows_needs_no_line(truecast, tmp_path):
    path = container.write_npy(tmp_path / "in.npy", np.ones(3, dtype="f4"))
    assert "in Python" not in truecast("convert", path, tmp_path / "out.npy", "--to", "f16")
    assert "in Python" not in truecast("convert", path, tmp_path / "out.safetensors", "--to", "bf16")


@pytest.mark.parametrize("carrier", ["u1", "i1"])
def test_codes_in_bytes(truecast, tmp_path, carrier):
    """`--from` is also accepted over u1 and i1, and over u2 for bf16."""
    source = np.arange(256, dtype="u1")
    path, out = container.write_npy(tmp_path / "in.npy", source.view(carrier)), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "f32", "--from", "f8e4m3fn")
    assert_same(np.load(out), source.view(ml_dtypes.float8_e4m3fn).astype("f4"), TYPES["f32"])


def test_bfloat16_descriptor(truecast, tmp_path):
    source, path, out = weights(1000), tmp_path / "in.npy", tmp_path / "out.npy"
    container.write_npy(path, source)
    truecast.convert(path, out, "--to", "bf16")
    loaded = np.load(out)
    assert loaded.dtype == np.dtype("V2") and container.read_npy(out, TYPES["bf16"])[1] == "<V2"
    np.testing.assert_array_equal(loaded.view("u2"), source.astype(ml_dtypes.bfloat16).view("u2"))

    as_u2, back = container.write_npy(tmp_path / "u2.npy", loaded.view("u2")), tmp_path / "back.npy"
    truecast.convert(as_u2, back, "--to", "f32", "--from", "bf16")
    np.testing.assert_array_equal(np.load(back), source.astype(ml_dtypes.bfloat16).astype("f4"))


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
def test_npz(truecast, tmp_path, compressed):
    arrays = {"w": weights(70_001), "b": weights(7).reshape(7, 1), "scalar": np.float64(0.1), "n": np.arange(4)}
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    truecast.convert(path, out, "--to", "f16")
    with np.load(out) as result:
        assert result.files == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(result[name], np.asarray(array).astype("f2"), strict=True)


def test_npz_to_bfloat16(truecast, tmp_path):
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(path, a=weights(100), b=weights(3))
    truecast.convert(path, out, "--to", "bf16")
    with np.load(path) as before, np.load(out) as result:
        for name in before.files:
            expected = before[name].astype(ml_dtypes.bfloat16)
            np.testing.assert_array_equal(result[name].view("u2"), expected.view("u2"))


def test_npz_of_a_type_without_descriptor(truecast, tmp_path):
    """`verify` takes the options of `convert` (docs/interfaces.md §3), so it knows the type that `<V1` stands for."""
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(path, a=weights(100), b=weights(3))
    truecast("convert", path, out, "--to", "f8e4m3fn")
    with np.load(path) as before, np.load(out) as result:
        for name in before.files:
            expected = before[name].astype(ml_dtypes.float8_e4m3fn)
            np.testing.assert_array_equal(result[name].view("u1"), expected.view("u1"))
    said = truecast("verify", path, out, "--to", "f8e4m3fn")
    assert said.splitlines()[-1].startswith("verified: ")


def test_damaged_npz_is_malformed(truecast, tmp_path):
    """A flipped bit breaks the checksum of the member, which is exit code 3 rather than 1."""
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(path, a=weights(10_000))
    truecast("convert", path, out, "--to", "f16")
    data = bytearray(out.read_bytes())
    data[len(data) // 2] ^= 1
    out.write_bytes(data)
    truecast("verify", path, out, "--to", "f16", code=3)


@pytest.mark.parametrize("name", [name for name in INTEGERS if TYPES[name].bits < 8])
def test_sub_byte_integers(truecast, tmp_path, name):
    """One element a byte, high bits zero, as ml_dtypes does: -1 in int4 is 0F."""
    source = all_codes(TYPES[name]).astype(np.float32)
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", name)
    np.testing.assert_array_equal(np.load(out).view("u1"), source.astype(TYPES[name].numpy).view("u1"))


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.array(["text"]), id="text"),
        pytest.param(np.array([1 + 2j]), id="complex128"),
        pytest.param(np.array([1 + 2j], dtype="c8"), id="complex64"),
        pytest.param(np.array(["2020-01-01"], dtype="M8[D]"), id="date"),
        pytest.param(np.zeros(2, dtype=[("a", "f4")]), id="structured"),
        pytest.param(np.zeros(2, dtype="f16"), id="longdouble"),
        pytest.param(np.array([None]), id="object"),
    ],
)
def test_what_is_no_number_is_refused(truecast, tmp_path, array):
    path, out = tmp_path / "in.npy", tmp_path / "out.npy"
    np.save(path, array, allow_pickle=True)
    truecast("convert", path, out, "--to", "f16", code=3)
    assert not out.exists()
