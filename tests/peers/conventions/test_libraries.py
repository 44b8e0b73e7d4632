"""Every pair of each package against the specification of its name."""

import itertools
import platform

import numpy as np
import pytest
import truecast as tc
from dtypes import to_f64
from inputs import INTEGERS, TYPES, every_code, inputs
from libraries import NUMPY, TORCH, TORCH_RELEASE, by_numpy, by_torch

on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="open results of x86")


def pairs(first, second=None):
    return [pytest.param(*pair, id="-".join(pair)) for pair in itertools.product(first, second or first)]


def is_above_smallest(x: np.ndarray) -> np.ndarray:
    """To e8m0: between its smallest value and 1.5 times that, where both packages round up (docs/spec/torch.md §2)."""
    with np.errstate(all="ignore"):
        magnitude = np.abs(to_f64(to_f64(x).astype(np.float32)))
    return (magnitude > 2.0**-127) & (magnitude < 1.5 * 2.0**-127)


def compare(spec: str, library, source: str, to: str) -> None:
    source, to = TYPES[source], TYPES[to]
    some = every_code(source) if source.bits <= 16 else np.ones(1, source.numpy)
    if library(some, to) is None:
        with pytest.raises((tc.SpecError, tc.DTypeError)):
            tc.cast(some, to.name, spec=spec)
        return
    x = inputs(spec, source, to)
    if to.name == "f8e8m0" and source.name != to.name:
        x = x[~is_above_smallest(x)]
    for gaps in (False, True):
        verdict = tc.check(x, library(x, to, gaps), to.name, spec=spec)
        assert verdict.passes, verdict
    # What is left open is no more than the pages say.
    leaves_open = source.is_float and not to.is_float and to.name != "bool" or to.name == "f8e8m0"
    assert leaves_open or not verdict["undefined"]


@pytest.mark.parametrize(("source", "to"), pairs(TORCH))
def test_torch(source, to):
    compare(f"torch@{TORCH_RELEASE}", by_torch, source, to)


@pytest.mark.parametrize(("source", "to"), pairs(NUMPY))
def test_numpy(source, to):
    compare("numpy@2", by_numpy, source, to)


@pytest.mark.parametrize(("source", "to"), [p for p in pairs(TYPES) if not set(p.values) <= set(NUMPY)])
def test_ml_dtypes(source, to):
    compare("ml_dtypes@0.6", by_numpy, source, to)


def test_types_of_numpy_are_not_those_of_ml_dtypes():
    with pytest.raises(tc.SpecError):
        tc.cast(np.ones(1, np.float32), "f16", spec="ml_dtypes")


@pytest.mark.parametrize("source", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(("spec", "library", "negative"), [("torch", by_torch, 1), ("ml_dtypes", by_numpy, 255)])
def test_above_the_smallest_e8m0(spec, library, negative, source):
    """docs/spec/torch.md §2, ml_dtypes.md §2: 2^-126 instead of the nearest value."""
    source, e8m0 = TYPES[source], TYPES["f8e8m0"]
    x = inputs(spec, source, e8m0)
    x = x[is_above_smallest(x)]
    with np.errstate(all="ignore"):
        below = to_f64(x) < 0
    codes = e8m0.codes(library(x, e8m0))
    assert below.any() and not below.all()
    assert set(codes[~below].tolist()) == {1} and set(codes[below].tolist()) == {negative}
    assert not tc.check(x[~below], library(x, e8m0)[~below], "f8e8m0", spec=spec).passes


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
