"""Text in `.npy` against NumPy (docs/spec/onnx.md §6, docs/interfaces.md §4)."""

import json
import subprocess

import numpy as np
import pytest

TEXTS = ["1.5", " 1e39 ", "nan", "-inf", "65519.9999999999999999999", "0.1", "-0", "+.5e-3"]


def save(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
@pytest.mark.parametrize("width", [25, 26, 1000])
def test_text_is_read(truecast, tmp_path, order, width):
    source = np.array(TEXTS).reshape(2, 4).astype(f"{order}U{width}")
    path, out = save(tmp_path / "in.npy", source), tmp_path / "out.npy"
    report = truecast.convert(path, out, "--to", "f64")
    np.testing.assert_array_equal(np.load(out), source.astype("f8"), strict=True)
    assert report["total"]["nan_in"] == 1 and report["total"]["inf_in"] == 1


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "u8", "i8", "?"])
def test_numbers_are_written(truecast, tmp_path, dtype):
    source = np.array([[0, 1, 2.5], [100, -1, 65]]).astype(dtype)
    path, out = save(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "string")
    # `str` of each element; the notation of small numbers is the same in NumPy 1 and 2.
    expected = np.array([str(x) for x in source.ravel().tolist()]).reshape(source.shape)
    np.testing.assert_array_equal(np.load(out), expected, strict=True)


def test_the_width_is_that_of_the_longest(truecast, tmp_path):
    path, out = save(tmp_path / "in.npy", np.zeros(200_000, "f4")), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", "string")
    assert np.load(out).dtype == "<U3"
    source = np.zeros(200_000, "f4")
    source[123_456] = -1.1754944e-38
    save(path, source)
    truecast("convert", path, out, "--to", "string", "--force")
    assert np.load(out).dtype == "<U14" and np.load(out)[123_456] == "-1.1754944e-38"


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3, 4)], ids=str)
def test_shapes(truecast, tmp_path, shape):
    path, text, back = save(tmp_path / "in.npy", np.full(shape, 0.1, "f4")), tmp_path / "t.npy", tmp_path / "b.npy"
    truecast.convert(path, text, "--to", "string")
    assert np.load(text).shape == shape
    truecast.convert(text, back, "--to", "f32")
    np.testing.assert_array_equal(np.load(back), np.load(path), strict=True)


def test_every_f16_survives(truecast, tmp_path):
    source = np.arange(65536, dtype="u2").view("f2")
    path, text, back = save(tmp_path / "in.npy", source), tmp_path / "t.npy", tmp_path / "b.npy"
    report = truecast.json("convert", path, text, "--to", "string")
    assert report["total"]["exact"] == 65536 and report["total"]["undefined"] == 65536
    truecast.json("convert", text, back, "--to", "f16", "--threads", "1")
    numbers = ~np.isnan(source)
    np.testing.assert_array_equal(np.load(back).view("u2")[numbers], source.view("u2")[numbers])


def test_memory_and_threads_change_nothing(truecast, tmp_path):
    values = np.random.default_rng(3).standard_normal(150_000)
    path, outs = save(tmp_path / "in.npy", values), []
    for i, options in enumerate([("--threads", "1"), ("--threads", "3"), ("--max-memory", "1MiB")]):
        text, number = tmp_path / f"t{i}.npy", tmp_path / f"n{i}.npy"
        printed = truecast.json("convert", path, text, "--to", "string", *options)
        parsed = truecast.json("convert", text, number, "--to", "bf16", *options)
        outs.append((text.read_bytes(), number.read_bytes(), printed["total"], parsed["total"]))
    assert outs[0] == outs[1] == outs[2]


def test_archives(truecast, tmp_path):
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez_compressed(path, a=np.array(["1", "2.25"]), b=np.array([1.5, 0.25]), c=np.array(["7"] * 9).reshape(3, 3))
    truecast.convert(path, out, "--to", "f32", "--keep", "c")
    found = np.load(out)
    np.testing.assert_array_equal(found["a"], np.array([1, 2.25], "f4"), strict=True)
    np.testing.assert_array_equal(found["c"], np.array(["7"] * 9).reshape(3, 3), strict=True)


@pytest.mark.parametrize("text", ["", "0x10", "1_000", "1,5", "\u0663", "1\0 2", "True"])
def test_the_first_bad_element_is_named(truecast, tmp_path, text):
    path, out = save(tmp_path / "in.npy", np.array(["1", "2", text, "x"])), tmp_path / "out.npy"
    error = refusal(truecast, "convert", path, out, "--to", "f32")
    assert "element 2 is " in error and "in.npy" in error
    assert not out.exists()


def test_integers_refuse_infinities_and_wrap(truecast, tmp_path):
    path, out = save(tmp_path / "in.npy", np.array(["18446744073709551617", "1e63", "-1", "2.9"])), tmp_path / "out.npy"
    report = truecast.convert(path, out, "--to", "u64")
    assert np.load(out).tolist() == [1, 1 << 63, 2**64 - 1, 2]
    assert report["total"]["wrapped"] == 3 and report["total"]["undefined"] == 4
    save(path, np.array(["1", "inf"]))
    assert "element 1 is \"inf\": an integer cannot be infinite" in refusal(truecast, "convert", path, out, "--to", "i8", "--force")
    save(path, np.array(["300"]))
    options = ("--spec", "ieee", "--int-overflow", "error")
    assert "element 0 is \"300\"" in refusal(truecast, "convert", path, out, "--to", "u8", "--force", *options)


def test_counts(truecast, tmp_path):
    source = np.array(["0.5", "0.1", "1e6", "-1e6", "nan", "inf", "1e-400", "-0", "0.002"])
    path, out = save(tmp_path / "in.npy", source), tmp_path / "out.npy"
    total = truecast.convert(path, out, "--to", "f8e4m3fn", "--saturate", "false")["total"]
    # Exact: 0.5, nan, -0. Both 1e6 and Inf become NaN; 1e-400 becomes zero, 0.002 a subnormal.
    names = ["exact", "inexact", "to_nan", "nan_in", "inf_in", "nan_out", "flushed_to_zero", "subnormal", "saturated"]
    assert [total[name] for name in names] == [3, 6, 3, 1, 1, 4, 1, 1, 0]
    assert total["converted"]["max_abs_error"] == pytest.approx(0.1015625 - 0.1)


def test_other_commands(truecast, tmp_path):
    path, out = save(tmp_path / "in.npy", np.array(["1.5", "2"])), tmp_path / "out.npy"
    shown = truecast.json("inspect", path)["tensors"][0]
    assert (shown["dtype"], shown["bytes"]) == ("string", 24)
    truecast.convert(path, out, "--to", "string")
    assert np.load(out).tolist() == ["1.5", "2"]
    assert truecast.json("compare", path, out)["incomparable"][0]["why"] == "string is not a number"
    truecast("convert", path, tmp_path / "x.safetensors", "--to", "string", code=2)
    truecast("convert", path, tmp_path / "x.npy", "--to", "f32", "--from", "f32", code=2)
    truecast("convert", path, tmp_path / "x.npy", "--to", "f32", "--spec", "onnx@8", code=3)
    truecast("convert", path, tmp_path / "x.npy", "--to", "f32", "--spec", "onnx@9")


def refusal(truecast, *args) -> str:
    """What standard error says of input that is refused."""
    done = subprocess.run([truecast.binary, *map(str, args), "--json"], capture_output=True, timeout=60)
    assert done.returncode == 3, done.stderr
    return json.loads(done.stderr)["error"]
