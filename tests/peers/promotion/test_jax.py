"""`promote --system jax` against JAX, with and without 64-bit types."""

import warnings

import jax
import ml_dtypes
import numpy as np
import pytest
from promotions import NUMBERS, REFUSED, by_system, table


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.fixture(params=["on", "off"])
def x64(request):
    jax.config.update("jax_enable_x64", request.param == "on")
    return request.param


def promoted(canonical, *operands) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of 64-bit types that are cut
        try:
            result, weak = jax.dtypes.result_type(*operands, return_weak_type_flag=True)
        except jax.dtypes.TypePromotionError:
            return REFUSED
    return canonical[np.dtype(result)] + "*" * weak


def canonical(truecast) -> dict[np.dtype, str]:
    """JAX's dtypes by truecast's names: a type promotes to itself."""
    same = table(truecast, "--system", "jax")
    return {dtype(a): name for (a, b), name in same.items() if a == b}


def test_every_pair(truecast, x64):
    ours, names = table(truecast, "--system", "jax", "--jax-x64", x64), canonical(truecast)
    assert len(names) == 30
    for (a, b), outcome in ours.items():
        assert outcome == promoted(names, dtype(a), dtype(b)), (a, b)
        if x64 == "on":
            try:
                plain = names[np.dtype(jax.numpy.promote_types(dtype(a), dtype(b)))]
            except jax.dtypes.TypePromotionError:
                plain = REFUSED
            assert outcome.rstrip("*") == plain, (a, b)


def test_python_numbers(truecast, x64):
    names, mode = canonical(truecast), "x64" if x64 == "on" else "no x64"
    for number, value in NUMBERS.items():
        for t, name in names.items():
            assert by_system(truecast, name, number)["jax", mode] == promoted(names, t, value), (name, number)
        for other, other_value in NUMBERS.items():
            assert by_system(truecast, number, other)["jax", mode] == promoted(names, value, other_value)
