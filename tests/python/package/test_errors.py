"""Errors: which of Python's own they are too, what they say singly, and that their texts are those of Python."""

import errno
import pickle
from pathlib import Path

import numpy as np
import pytest
import truecast as tc
from container import write_safetensors
from dtypes import TYPES

X = np.float32([1, 2])


@pytest.mark.parametrize(
    "call",
    [
        lambda path: tc.convert(path, path.with_name("b.npy"), "bf16"),
        lambda path: tc.verify(path, path, "bf16"),
        lambda path: tc.compare(path, path),
        lambda path: tc.inspect(path),
        lambda path: tc.convert(path.with_name("folder"), path.with_name("other"), "bf16"),
    ],
)
def test_a_missing_file_is_python_s_own(call, tmp_path):
    with pytest.raises(tc.MissingFileError) as found:
        call(tmp_path / "a.npy")
    error = found.value
    assert isinstance(error, (tc.FileError, FileNotFoundError)) and error.errno == errno.ENOENT
    assert error.filename in (str(tmp_path / "a.npy"), str(tmp_path / "folder")) and error.filename in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errno, again.filename) == (type(error), str(error), errno.ENOENT, error.filename)


def test_a_destination_that_exists_is_python_s_own(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.npy").write_bytes(b"")
    (tmp_path / "c").mkdir()
    write_safetensors(tmp_path / "c" / "model.safetensors", {"w": (TYPES["f32"], X)})
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_bytes(b"")
    for src, dst in (("a.npy", "b.npy"), ("c", "d")):
        with pytest.raises(tc.DestinationExistsError) as found:
            tc.convert(tmp_path / src, tmp_path / dst, "f16")
        assert isinstance(found.value, tc.UsageError) and isinstance(found.value, FileExistsError)
        assert (found.value.errno, found.value.filename) == (errno.EEXIST, str(tmp_path / dst))
        assert "force=True" in str(found.value) and "--" not in str(found.value)
        assert found.value.code == "destination-exists"


@pytest.mark.parametrize(
    "call, index, value",
    [
        (lambda: tc.cast([1.0, 1e6], "f16", spec="ieee", overflow="error"), 1, 1e6),
        (lambda: tc.cast(np.int32([0, 300]), "i8", spec="ieee", int_overflow="error"), 1, 300),
        (lambda: tc.cast(np.array(["1", "x"]), "f32"), 1, '"x"'),
        (lambda: tc.quantize(np.full((2, 32), np.inf, np.float32), "mxfp4"), 0, None),
    ],
)
def test_an_element_that_is_refused_is_named(call, index, value):
    with pytest.raises(tc.InputError) as found:
        call()
    assert (found.value.index, found.value.value, found.value.tensor) == (index, value, None)
    assert type(found.value.value) is type(value) and "--" not in str(found.value)
    again = pickle.loads(pickle.dumps(found.value))
    assert (again.index, again.value, str(again)) == (index, value, str(found.value))


def test_a_tensor_of_a_file_is_named(tmp_path):
    source = tmp_path / "a.safetensors"
    write_safetensors(source, {"fine": (TYPES["f32"], X), "wide": (TYPES["f32"], np.float32([1, 1e6]))})
    with pytest.raises(tc.InputError) as found:
        tc.convert(source, tmp_path / "b.safetensors", "f16", spec="ieee", overflow="error")
    assert (found.value.tensor, found.value.index, found.value.value) == ("wide", 1, 1e6)
    assert found.value.code == "refused-value"


CODES = np.uint8([0x21])


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: tc.cast(CODES, "f32", from_="f4e2m1", shape=(-1,)), tc.UsageError, r"shape = \(-1,\)"),
        (lambda: tc.cast(CODES, "f32", from_="f4e2m1", shape=2), tc.UsageError, "shape = 2"),
        (lambda: tc.cast(CODES, "f32", from_="f4e2m1", shape="2"), tc.UsageError, "shape = '2'"),
        (lambda: tc.dequantize(tc.Quantized("mxfp4", (2, -32), CODES, CODES)), tc.UsageError, "shape"),
        (lambda: tc.dequantize(CODES, CODES), tc.DTypeError, "takes what quantize gives"),
        (lambda: tc.set_num_threads(-1), tc.UsageError, "threads must be from 1 to 512"),
        (lambda: tc.set_num_threads(0), tc.UsageError, "threads must be from 1 to 512"),
        (lambda: tc.set_num_threads("two"), tc.UsageError, "threads must be from 1 to 512"),
        (lambda: tc.convert("a.npy", "b.npy", rules="*.bias=f32"), tc.UsageError, "rules = .*pairs such as"),
        (lambda: tc.convert("a.npy", "b.npy", rules=[("*",)]), tc.UsageError, "rules = "),
        (lambda: tc.convert("a.npy", "b.npy", rules=3), tc.UsageError, "rules = 3"),
        (lambda: tc.convert("a.npy", "b.npy", rules={"*": "f23"}), tc.DTypeError, "f23"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", keep=3), tc.UsageError, "keep = 3"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", keep="["), tc.UsageError, "keep"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", force=2), tc.UsageError, "force = 2: expected True or False"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", spec=3), tc.UsageError, "spec = 3"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", reference=3), tc.UsageError, "reference = 3"),
        (lambda: tc.convert("a.npy", "b.npy", "f16", min_elements=-1), tc.UsageError, 'min_elements "-1": expected'),
        (lambda: tc.convert("a.npy", "b.npy", "f16", max_memory="1 XB"), tc.UsageError, "max_memory"),
        (lambda: tc.convert("a", "b", "f16", nibbles="hihg"), tc.UsageError, "nibbles .*did you mean high"),
        (lambda: tc.cast(np.array([1, 2.5], object), "f16"), tc.DTypeError, r"element 0 is int: .*np.asarray\(x, float\)"),
        (lambda: tc.cast(np.longdouble([1]), "f16"), tc.DTypeError, "does not know arrays of float128$"),
        (lambda: tc.cast(b"\x01", "f32"), tc.DTypeError, "name their type with from_=, and the tensor's shape="),
        (lambda: tc.quantize(np.full((2, 32), np.nan), "mxfp4"), tc.InputError, 'nonfinite="saturate" replaces it'),
        (lambda: tc.convert("a.npy", "b.npy"), tc.UsageError, "nothing to do: name a type"),
        (lambda: tc.verify("a.npy", "b.npy", "f16", full=True, sample_seed=3), tc.UsageError, "full and sample_seed exclude"),
        (lambda: tc.convert("a", "b", "f16", scheme="mxfp4", relayout="exact"), tc.UsageError, "relayout and to exclude"),
        (lambda: tc.convert("a", "b", relayout="exact"), tc.UsageError, "relayout needs scheme"),
        (lambda: tc.convert("a", "b", "f16", merge=True, force=True), tc.UsageError, "merge and force|force and merge"),
    ],
)
def test_misuse_is_an_error_of_the_package(call, kind, words):
    with pytest.raises(kind, match=words) as found:
        call()
    assert isinstance(found.value, tc.TruecastError) and "--" not in str(found.value)


def test_the_package_can_be_told_from_others():
    """Whatever is raised has its public name."""
    for name in ("MissingFileError", "DestinationExistsError", "InputError"):
        assert getattr(tc, name).__module__ == "truecast" and name in tc.__all__
    assert Path(tc.__file__).parent.joinpath("py.typed").exists()


@pytest.mark.parametrize("name, same", [("torch.bfloat16", "bf16"), ("torch.float8_e4m3fn", "f8e4m3fn"), ("<f2", "f16"), (">i4", "i32")])
def test_names_as_other_libraries_write_them(name, same):
    assert tc.finfo(name).name == same
    with pytest.raises(tc.DTypeError):
        tc.finfo("torch.f23")


def test_a_truth_value_of_numpy_is_one():
    assert np.isnan(tc.cast(np.float32([465]), "f8e4m3fn", saturate=np.False_).astype(np.float32))


def test_counts_are_completed():
    _, counts = tc.cast_with_report(X, "f16")
    assert {"saturated", "sqnr_db", "to_dict"} <= set(dir(counts))
