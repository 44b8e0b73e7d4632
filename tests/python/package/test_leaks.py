"""Memory and references: what calls leave behind, whatever they are called with."""

import gc
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
import truecast as tc

CALLS = 1_000_000
BOUND_KIB = 4096


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_million_calls_leave_nothing():
    """The peak of the resident set stays, after a beginning in which caches and pools are filled."""
    x, out = np.linspace(-4, 4, 64, dtype=np.float32), np.empty(64, np.float16)

    def call():
        tc.cast(x, "f16", out=out)
        tc.cast(x, "f8e4m3fn", saturate=False)

    for _ in range(20_000):
        call()
    gc.collect()
    before = peak_kib()
    for _ in range(CALLS // 2):
        call()
    assert peak_kib() - before < BOUND_KIB


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tc.quantize(x, "mxfp8").dequantize(),
        lambda x: tc.cast_with_report(x, "bf16"),
        lambda x: tc.cast(tc.cast(x, "i4", layout="packed"), "f32", from_="i4", shape=x.shape),
        lambda x: tc.cast(x[:, ::2], "f64"),
        lambda x: tc.cast(x, "f16", spec="tosa"),
        lambda x: pytest.raises(tc.DTypeError, tc.cast, x, "no such type"),
        lambda x: pytest.raises(tc.InputError, tc.quantize, np.full((2, 32), np.nan, np.float32), "mxfp8"),
        lambda x: tc.tosa.rescale(x.astype(np.int8), "i8", multiplier=1 << 30, shift=31, scale32=True),
    ],
)
def test_calls_keep_no_references(call):
    x = np.linspace(-4, 4, 64 * 32, dtype=np.float32).reshape(64, 32)
    for _ in range(50):
        call(x)
    gc.collect()
    before, references, blocks = peak_kib(), sys.getrefcount(x), sys.getallocatedblocks()
    for _ in range(1_000):
        call(x)
    gc.collect()
    assert sys.getrefcount(x) == references
    # Calls that leave an object each would be seen.
    assert sys.getallocatedblocks() - blocks < 500 and peak_kib() - before < BOUND_KIB


def test_results_are_owned_by_nobody_else():
    x = np.zeros(1 << 16, np.float32)
    y = tc.cast(x, "f16")
    assert sys.getrefcount(y) == 2 and y.flags.owndata


EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 5)]


@pytest.mark.parametrize("shape", EMPTY)
@pytest.mark.parametrize("to", ["f16", "f8e4m3fn", "i4", "string", "bool", "f64", "bf16"])
def test_arrays_without_elements(shape, to):
    x = np.empty(shape, np.float32)
    y = tc.cast(x, to)
    assert y.shape == shape and tc.cast(y, "f32").shape == shape
    assert tc.cast_with_report(x, to)[1].elements == 0 if to != "string" else True


@pytest.mark.parametrize("shape", EMPTY)
def test_arrays_without_elements_in_other_forms(shape):
    x = np.empty(shape, np.float32)
    packed = tc.cast(x, "i4", layout="packed")
    assert packed.shape == (0,) and tc.cast(packed, "f32", from_="i4", shape=shape).shape == shape
    assert tc.cast(x[::-1], "f16", out=np.empty(shape, np.float16)).shape == shape
    assert tc.check(x, x.astype(ml_dtypes.bfloat16)).passes


def test_threads_with_arrays_of_their_own():
    """Plans are shared; each thread has other types, sizes and errors."""
    types = ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f64", "i8", "u8", "i32"]
    wrong = []

    def work(number):
        rng = np.random.default_rng(number)
        for turn in range(150):
            x = rng.integers(0, 100, rng.integers(0, 5_000)).astype(np.float32)
            to = types[(number + turn) % len(types)]
            y = tc.cast(x, to)
            if not np.array_equal(tc.cast(y, "f32"), x.astype(y.dtype).astype(np.float32)):
                wrong.append((number, to, len(x)))
            try:
                tc.cast(x, "f9")
            except tc.DTypeError:
                continue
            wrong.append((number, "f9"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong
