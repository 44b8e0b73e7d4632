"""Every pair of JAX on the CPU against its specification, and what docs/spec/jax.md says of open results."""

import jax
import numpy as np
import pytest
import truecast as tc
from comparison import compare, pairs
from dtypes import SIGNED_NAN, Type
from inputs import INTEGERS, TYPES

JAX = [name for name in TYPES if name not in ("i1", "u1", "f6e2m3", "f6e3m2")]
NORMAL = 2.0**-126
"""The smallest normal value of f32."""


def by_jax(x: np.ndarray, to: Type, gaps: bool = False) -> np.ndarray:
    x = jax.numpy.asarray(x)
    x = jax.numpy.repeat(x, 2)[::2] if gaps else x
    return np.asarray(jax.lax.convert_element_type(x, to.numpy))


def codes(x, to: str, source: str = "f64") -> list[int]:
    return TYPES[to].codes(by_jax(np.asarray(x, np.float64).astype(TYPES[source].numpy), TYPES[to])).tolist()


@pytest.mark.parametrize(("source", "to"), pairs(JAX))
def test_jax(source, to):
    verdict = compare("jax@0.10", by_jax, source, to)
    # What is left open is no more than the page says.
    nan_to_f4 = source.startswith(("f", "bf")) and source != to == "f4e2m1"
    six = source == "f4e2m1" and to[0] in "iu"
    small = source in ("bf16", "f32", "f64") and to == "f8e8m0"
    assert nan_to_f4 or six or small or (source, to) in [("f64", "f32"), ("f64", "bf16")] or not verdict["undefined"]


@pytest.mark.parametrize("refused", ["i1", "u1", "f6e2m3", "f6e3m2"])
def test_types_that_jax_refuses(refused):
    """docs/spec/jax.md §5. To int1 it gives an array of bool."""
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
        by_jax(np.zeros(2, TYPES[refused].numpy), TYPES["f32"])
    if refused == "i1":
        assert by_jax(np.zeros(2, np.float32), TYPES[refused]).dtype == np.bool_
    else:
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
            by_jax(np.zeros(2, np.float32), TYPES[refused])
    for pair in [(refused, "f32"), ("f32", refused)]:
        with pytest.raises(tc.SpecError):
            tc.cast(np.zeros(2, TYPES[pair[0]].numpy), pair[1], spec="jax")


@pytest.mark.parametrize("to", INTEGERS)
def test_six_is_the_largest_integer(to):
    """docs/spec/jax.md §3."""
    limits = np.iinfo(TYPES[to].numpy)
    x = np.array([6, -6, 4, -4]).astype(TYPES["f4e2m1"].numpy)
    result = by_jax(x, TYPES[to])
    assert result.tolist() == [limits.max, limits.min, 4, max(-4, limits.min)]
    verdict = tc.check(x, result, to, spec="jax")
    assert verdict.passes and verdict["undefined"] == 2


@pytest.mark.parametrize("source", [name for name in JAX if TYPES[name].is_float and name != "f4e2m1"])
def test_nan_to_four_bits(source):
    """docs/spec/jax.md §1."""
    nan = np.array([np.nan, -np.nan]).astype(TYPES[source].numpy)
    assert TYPES["f4e2m1"].codes(by_jax(nan, TYPES["f4e2m1"])).tolist() == [8, 8]


@pytest.mark.parametrize("source", ["f32", "f64", "f16", "bf16", "f8e4m3fn"])
def test_sign_of_nan(source):
    """docs/spec/jax.md §4."""
    nan = np.array([np.nan, -np.nan]).astype(TYPES[source].numpy)
    kept = source in ("f32", "f64")
    for name in SIGNED_NAN - {source}:
        to = TYPES[name]
        signs = (to.codes(by_jax(nan, to)) >> to.uint.type(to.bits - 1)).tolist()
        assert signs == [0, 1] if kept or name != "f8e5m2" else signs[0] == signs[1], name


def test_nearly_normal_results():
    """docs/spec/jax.md §1.2: the processor asks whether a result is subnormal with exponents of any size."""
    first, end = NORMAL - 2.0**-150, NORMAL - 2.0**-151
    x = np.array([first, np.nextafter(end, 0), end])
    x = np.concatenate([x, -x])
    assert codes(x, "f32") == [0, 0, 0x800000, 1 << 31, 1 << 31, 0x80800000]
    assert codes(x, "bf16") == [0, 0, 0x80, 0x8000, 0x8000, 0x8080]
    for to in ("f32", "bf16"):
        verdict = tc.check(x, by_jax(x, TYPES[to]), to, spec="jax")
        assert verdict.passes and verdict["undefined"] == 4
    just_below = np.array([np.nextafter(first, 0)])
    assert not tc.check(just_below, np.array([NORMAL], np.float32), "f32", spec="jax").passes


@pytest.mark.parametrize("source", ["f32", "bf16", "f64"])
def test_small_values_to_e8m0(source):
    """docs/spec/jax.md §2."""
    below, above = [NORMAL / 8, NORMAL / 4, NORMAL * 0.4375], [NORMAL * 0.53125, NORMAL * 0.625, NORMAL * 0.71875]
    assert codes(below, "f8e8m0", source) == ([255] * 3 if source == "f64" else [0] * 3)
    assert codes(above, "f8e8m0", source) == [1] * 3
    x = np.array(below + above).astype(TYPES[source].numpy)
    verdict = tc.check(x, by_jax(x, TYPES["f8e8m0"]), "f8e8m0", spec="jax")
    assert verdict.passes and verdict["undefined"] == 6
    assert codes([NORMAL / 2, NORMAL * 0.75, 0, -1], "f8e8m0", source) == [0, 1, 255, 255]
