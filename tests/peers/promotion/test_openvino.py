"""`promote --system openvino` against the openvino package: every pair of its element types, every rank combination,
both flags, six targets; results and error classes (docs/spec/openvino.md §3.5)."""

import itertools
import re

import numpy as np
import openvino as ov
import pytest
from openvino import opset14
from promotions import table

VERSION = "2026.4.1"
RANKS = {"0": ov.PartialShape([]), "n": ov.PartialShape([2]), "dynamic": ov.PartialShape.dynamic()}
TARGETS = ["f32", "f64", "f16", "i64", "u64", "boolean"]
# The line of convert_promote_types.cpp that raises (§2.5).
CODES = {80: "TC-PRM-01", 103: "TC-PRM-02", 128: "TC-PRM-03", 148: "TC-PRM-04", 169: "TC-PRM-05"}
CANONICAL = {"boolean": "bool", "f8e4m3": "f8e4m3fn"}


def test_version():
    assert ov.get_version().startswith(VERSION)


def theirs(a, b, unsafe: bool, torch: bool, target: str) -> str:
    try:
        node = opset14.convert_promote_types(a, b, unsafe, torch, target)
    except RuntimeError as refused:
        line = re.search(r"convert_promote_types\.cpp:(\d+)", str(refused))
        return CODES[int(line[1])]
    names = {node.get_output_element_type(i).to_string() for i in range(2)}
    assert len(names) == 1
    name = names.pop()
    return CANONICAL.get(name, name)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("torch", [False, True], ids=["", "torch"])
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_every_pair(truecast, unsafe, torch, target):
    flags = ["--unsafe"] * unsafe + ["--pytorch-scalar"] * torch
    for lhs, rhs in itertools.product(RANKS, RANKS):
        ours = table(truecast, *flags, "--u64-target", target, "--lhs-rank", lhs, "--rhs-rank", rhs)
        names = sorted({name for name, _ in ours})
        assert len(names) == 26 and len(ours) == 676
        left = {name: opset14.parameter(RANKS[lhs], getattr(ov.Type, name)) for name in names}
        right = {name: opset14.parameter(RANKS[rhs], getattr(ov.Type, name)) for name in names}
        expected = {(a, b): theirs(left[a], right[b], unsafe, torch, target) for a in names for b in names}
        assert ours == expected, (lhs, rhs)


def test_element_types_are_all_there(truecast):
    """The 26 are every type that the package has."""
    names = {name for name in dir(ov.Type) if isinstance(getattr(ov.Type, name), ov.Type)} - {"undefined"}
    assert names == {name for name, _ in table(truecast)}
