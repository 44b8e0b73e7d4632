"""`promote --system torch` against PyTorch: `promote_types`, and `result_type` for zero-dimensional tensors and Python
numbers."""

import itertools

import pytest
import torch
from promotions import NUMBERS, REFUSED, by_system, table

RANKS = {"0": (), "n": (2,)}
# `-` in docs/spec/openvino.md §12.5, a type by accident in PyTorch 2.15.0: floating beats bare unsigned before anything is
# asked about the float, so that `promote_types(float4_e2m1fn_x2, uint16)` is float4_e2m1fn_x2, while int16 in its place is
# refused. Every other pair with the type agrees.
F4 = "float4_e2m1fn_x2"
BARE = ["uint1", "uint2", "uint3", "uint4", "uint6", "uint16", "uint32", "uint64"]


def is_accident(a: str, b: str) -> bool:
    return (a == F4 and b in BARE) or (b == F4 and a in BARE)


def canonical(truecast) -> dict[torch.dtype, str]:
    same = table(truecast, "--system", "torch")
    return {getattr(torch, a): name for (a, b), name in same.items() if a == b}


def promoted(names, find) -> str:
    try:
        return names[find()]
    except RuntimeError:
        return REFUSED


def test_every_pair(truecast):
    ours, names = table(truecast, "--system", "torch"), canonical(truecast)
    assert len(names) == 27
    accidents = 0
    for (a, b), outcome in ours.items():
        expected = promoted(names, lambda: torch.promote_types(getattr(torch, a), getattr(torch, b)))
        if is_accident(a, b):
            assert (outcome, expected) == (REFUSED, "f4e2m1"), (a, b)
            accidents += 1
            continue
        assert outcome == expected, (a, b)
    assert accidents == 2 * len(BARE)


@pytest.mark.parametrize("lhs, rhs", list(itertools.product(RANKS, RANKS)))
def test_result_type(truecast, lhs, rhs):
    ours, names = table(truecast, "--system", "torch", "--lhs-rank", lhs, "--rhs-rank", rhs), canonical(truecast)
    accidents = 0
    for (a, b), outcome in ours.items():
        x, y = (torch.empty(RANKS[r], dtype=getattr(torch, t), device="meta") for r, t in [(lhs, a), (rhs, b)])
        expected = promoted(names, lambda: torch.result_type(x, y))
        # A dimensioned float beside a scalar is the result, whatever both are: `promote_types` is not asked.
        prevails = lhs != rhs and (lhs if a == F4 else rhs) == "n"
        if is_accident(a, b) and not prevails:
            assert (outcome, expected) == (REFUSED, "f4e2m1"), (a, b)
            accidents += 1
            continue
        assert outcome == expected, (a, b)
    assert accidents == len(BARE) * (2 if lhs == rhs else 1)


@pytest.mark.parametrize("rank", RANKS)
def test_python_numbers(truecast, rank):
    names = canonical(truecast)
    for number, value in NUMBERS.items():
        for t, name in names.items():
            x = torch.empty(RANKS[rank], dtype=t, device="meta")
            ours = by_system(truecast, name, number, "--lhs-rank", rank)["torch", ""]
            assert ours == promoted(names, lambda: torch.result_type(x, value)), (name, number)
        for other, other_value in NUMBERS.items():
            ours = by_system(truecast, number, other)["torch", ""]
            assert ours == promoted(names, lambda: torch.result_type(value, other_value)), (number, other)
