"""Named specifications of languages against programs that implement them: README.md."""

import itertools
import subprocess

import numpy as np
import pytest
import webassembly
from cli import check
from inputs import TYPES, inputs
from programs import C_TYPES, Conversion, Machine, compiles, installed, newest, run

FE_MODES = """\
static void set_mode(long mode) { fesetround((const int[]){FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}[mode]); }
"""
MODES = ["nearest-even", "up", "down", "toward-zero"]
C = tuple(Conversion(source, to, f"b = ({C_TYPES[to]})a;") for source, to in itertools.product(C_TYPES, repeat=2))
C_MODES = tuple(
    Conversion(c.source, c.to, c.body, ("--rounding", name), mode)
    for c in C
    for mode, name in enumerate(MODES)
    if TYPES[c.to].is_float and c.source != c.to and mode
)


def c_compiler(name: str, options: tuple[str, ...]) -> Machine:
    if name == "gcc":
        return Machine((installed("gcc"), *options), declarations=FE_MODES)
    # Debian's GCC 12 has no functions for bf16, which Clang calls; those of LLVM do.
    return Machine((newest("clang"), "--rtlib=compiler-rt", *options), declarations=FE_MODES)


def compare_c(machine: Machine, conversions, one: Conversion) -> dict:
    has_bf16 = compiles(machine, "__bf16 f(float x) { return x; } int main(void) { return 0; }")
    if not has_bf16 and "bf16" in (one.source, one.to):
        pytest.skip(f"{machine.compiler[0]} has no conversions of __bf16")
    if not has_bf16:
        conversions = tuple(c for c in conversions if "bf16" not in (c.source, c.to))
    x = inputs("c", TYPES[one.source], TYPES[one.to], 200_000)
    return check("c", TYPES[one.source], TYPES[one.to], x, run(machine, conversions, one, x), *one.options)


@pytest.mark.parametrize("one", C, ids=str)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c(compiler, level, one):
    report = compare_c(c_compiler(compiler, (level,)), C, one)
    assert not report["wrong"], report
    leaves_open = TYPES[one.source].is_float and not TYPES[one.to].is_float and one.to != "bool"
    assert leaves_open or not report["undefined"]


@pytest.mark.parametrize("one", C_MODES, ids=str)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_in_another_rounding_mode(compiler, one):
    report = compare_c(c_compiler(compiler, ("-O2", "-frounding-math")), C_MODES, one)
    assert not report["wrong"], report


@pytest.mark.parametrize("one", webassembly.INSTRUCTIONS, ids=str)
def test_wasm(one):
    source, to = TYPES[one.source], TYPES[one.to]
    x = inputs("wasm", source, to, 5_000 if one.name == "trunc" else 200_000)
    actual, traps = webassembly.run(one, x)
    report = check("wasm", source, to, x, actual, *one.options, show=x.size)
    refused = [v["index"] for v in report["violations"] if not v["permitted"]]
    assert refused == traps.tolist()
    assert report["wrong"] == traps.size and not report["undefined"], report
    assert bool(traps.size) == (one.name == "trunc")
