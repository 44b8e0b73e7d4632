"""Every pair of each package against the specification of its name."""

import itertools
import platform

import numpy as np
import pytest
import truecast as tc
from comparison import compare, pairs
from dtypes import to_f64
from inputs import INTEGERS, TYPES, inputs
from libraries import NUMPY, TORCH, TORCH_RELEASE, by_numpy, by_torch

on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="open results of x86")


def assert_right(spec: str, library, source: str, to: str) -> None:
    verdict = compare(spec, library, source, to)
    # What is left open is no more than the pages say.
    is_float, integer = TYPES[source].is_float, not TYPES[to].is_float
    assert is_float and integer and to != "bool" or to == "f8e8m0" or not verdict["undefined"]


@pytest.mark.parametrize(("source", "to"), pairs(TORCH))
def test_torch(source, to):
    assert_right(f"torch@{TORCH_RELEASE}", by_torch, source, to)


@pytest.mark.parametrize(("source", "to"), pairs(NUMPY))
def test_numpy(source, to):
    assert_right("numpy@2", by_numpy, source, to)


@pytest.mark.parametrize(("source", "to"), [p for p in pairs(TYPES) if not set(p.values) <= set(NUMPY)])
def test_ml_dtypes(source, to):
    assert_right("ml_dtypes@0.6", by_numpy, source, to)


def test_types_of_numpy_are_not_those_of_ml_dtypes():
    with pytest.raises(tc.SpecError):
        tc.cast(np.ones(1, np.float32), "f16", spec="ml_dtypes")


@pytest.mark.parametrize("source", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(("spec", "library", "negative"), [("torch", by_torch, 1), ("ml_dtypes", by_numpy, 255)])
def test_above_the_smallest_e8m0(spec, library, negative, source):
    """docs/spec/torch.md §2, ml_dtypes.md §2: 2^-126 instead of the nearest value."""
    source, e8m0 = TYPES[source], TYPES["f8e8m0"]
    x = inputs(spec, source, e8m0)
    magnitude = np.abs(to_f64(x))
    x = x[(magnitude > 2.0**-127) & (magnitude < 1.5 * 2.0**-127)]
    below = to_f64(x) < 0
    result = library(x, e8m0)
    # float64 becomes float32 first, in which some of them are 2^-127.
    is_smallest = np.abs(to_f64(to_f64(x).astype(np.float32))) == 2.0**-127
    codes = e8m0.codes(result)[~is_smallest]
    assert below.any() and not below.all()
    assert set(codes[~below[~is_smallest]].tolist()) == {1} and set(codes[below[~is_smallest]].tolist()) == {negative}
    verdict = tc.check(x, result, "f8e8m0", spec=spec)
    assert verdict.passes and verdict["undefined"] == x.size


# Open in the specification: what the pages say of x86.
BEYOND = [5e9, -5e9, np.inf, -np.inf, np.nan]
OPEN = {
    "i8": [0, 0, 0, 0, 0],
    "u16": [0, 0, 0, 0, 0],
    "i32": [0x80000000] * 5,
    "u32": [5_000_000_000 - 2**32, 2**33 - 5_000_000_000, 0, 0, 0],
    "i64": [5_000_000_000, 2**64 - 5_000_000_000, 1 << 63, 1 << 63, 1 << 63],
    "u64": [5_000_000_000, 2**64 - 5_000_000_000, 0, 1 << 63, 1 << 63],
}


@on_x86
@pytest.mark.parametrize("to", OPEN)
@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("library", [by_torch, by_numpy])
def test_out_of_range_on_x86(library, source, to):
    x = np.array(BEYOND, TYPES[source].numpy)
    assert TYPES[to].codes(library(x, TYPES[to], gaps=True)).tolist() == OPEN[to]


@on_x86
@pytest.mark.parametrize("library", [by_torch, by_numpy])
def test_only_u32_depends_on_the_loop(library):
    """docs/spec/numpy.md §2, torch.md §3."""
    for source, to in itertools.product(["f32", "f64"], INTEGERS):
        x = np.full(100, 5e9, TYPES[source].numpy)
        together, alone = library(x, TYPES[to])[0], library(x[:1], TYPES[to])[0]
        assert (together == alone) == (to != "u32")


@on_x86
@pytest.mark.parametrize("source", ["f8e5m2", "f8e3m4", "f8e4m3ieee"])
def test_eight_bits_of_ml_dtypes_to_integers(source):
    """docs/spec/ml_dtypes.md §3."""
    x = np.array([np.inf, -np.inf, np.nan]).astype(TYPES[source].numpy)
    for to in INTEGERS:
        limits = np.iinfo(TYPES[to].numpy)
        assert by_numpy(x, TYPES[to]).tolist() == [limits.max, limits.min, 0]
