"""`promote --system numpy` against NumPy with ml_dtypes: every pair of types, and Python numbers."""

import ml_dtypes
import numpy as np
import pytest
from dtypes import TYPES
from promotions import NUMBERS, REFUSED, by_system, table


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


CANONICAL = {t.numpy: t.name for t in TYPES.values()} | {dtype("int1"): "i1", dtype("uint1"): "u1"}


def promoted(find) -> str:
    try:
        return CANONICAL[find()]
    except np.exceptions.DTypePromotionError:
        return REFUSED


def test_every_pair(truecast):
    ours = table(truecast, "--system", "numpy")
    names = {lhs for lhs, _ in ours}
    assert {dtype(name) for name in names} == set(CANONICAL), "the types of both"
    assert len(ours) == len(names) ** 2
    theirs = {(a, b): promoted(lambda: np.promote_types(dtype(a), dtype(b))) for a in names for b in names}
    assert ours == theirs


BUILTIN = ["bool", "f16", "f32", "f64", *(f"{s}{bits}" for s in "ui" for bits in (8, 16, 32, 64))]


@pytest.mark.parametrize("number", NUMBERS)
def test_python_numbers(truecast, number):
    """With types of ml_dtypes NumPy's answers disagree with each other; truecast refuses them
    (docs/spec/openvino.md §12.2)."""
    value = NUMBERS[number]
    for name, t in TYPES.items():
        array = np.zeros(1, t.numpy)
        expected = promoted(lambda: np.result_type(array, value)) if name in BUILTIN else REFUSED
        assert by_system(truecast, name, number)["numpy", ""] == expected, name
    for other, other_value in NUMBERS.items():
        expected = promoted(lambda: np.result_type(value, other_value))
        assert by_system(truecast, number, other)["numpy", ""] == expected, other
