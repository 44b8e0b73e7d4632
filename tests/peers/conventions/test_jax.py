"""Where JAX on the CPU differs from ml_dtypes: docs/spec/ml_dtypes.md §4."""

import jax
import numpy as np
import pytest
import truecast as tc
from dtypes import FLOATS, assert_same
from inputs import INTEGERS, TYPES, every_code, inputs
from libraries import by_numpy

SMALL = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e3m4", "f8e4m3ieee", "f8e4m3b11fnuz"]
FLOATS = [name for name in FLOATS if not name.startswith("f6")]


def by_jax(x: np.ndarray, to: str) -> np.ndarray:
    return np.asarray(jax.lax.convert_element_type(jax.numpy.asarray(x), TYPES[to].numpy))


@pytest.mark.parametrize("source", [name for name in FLOATS if name != "f4e2m1"])
def test_to_integers_clamps(source):
    for to in [*INTEGERS, "i4", "u4", "i2", "u2"]:
        x = inputs("ieee", TYPES[source], TYPES[to])
        assert tc.check(x, by_jax(x, to), to, spec="ieee", int_overflow="saturate", nan_to_int="zero").passes


@pytest.mark.parametrize("to", INTEGERS)
def test_six_is_the_largest_integer(to):
    x = every_code(TYPES["f4e2m1"])
    limits = np.iinfo(TYPES[to].numpy)
    clamped = np.where(by_numpy(x, TYPES["f32"]) == -6, limits.min, limits.max)
    is_six = np.abs(by_numpy(x, TYPES["f32"])) == 6
    with np.errstate(all="ignore"):
        rest = np.maximum(by_numpy(x, TYPES["f32"]), limits.min).astype(TYPES[to].numpy)
    assert (by_jax(x, to) == np.where(is_six, clamped, rest).astype(TYPES[to].numpy)).all()


@pytest.mark.parametrize("to", SMALL)
def test_one_rounding_to_eight_bits(to):
    x = inputs("ieee", TYPES["f64"], TYPES[to])
    assert_same(by_jax(x, to), tc.cast(x, to, spec="ieee"), TYPES[to], x)


def test_two_roundings_to_f16():
    x = np.array([1 + 2.0**-11 + 2.0**-40])
    assert by_jax(x, "f16") == 1 and by_numpy(x, TYPES["f16"]) > 1


def test_subnormals():
    """Others are in faults.toml."""
    x = np.array([1e-40], np.float32)
    assert by_jax(x.astype(np.float64), "bf16") == 0 and by_jax(x, "bf16") != 0


def test_nan_to_four_bits():
    for source in ("f32", "bf16", "f8e4m3fn"):
        x = np.array([np.nan, -np.nan]).astype(TYPES[source].numpy)
        assert TYPES["f4e2m1"].codes(by_jax(x, "f4e2m1")).tolist() == [8, 8]
        assert TYPES["f4e2m1"].codes(by_numpy(x, TYPES["f4e2m1"])).tolist() == [8, 0]
