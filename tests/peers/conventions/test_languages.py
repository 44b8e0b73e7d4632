"""Named specifications of languages against programs that implement them: README.md."""

import itertools
from dataclasses import replace

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

CLANG_BF16 = [c for c in C if c.to == "bf16" and c.source in ("i32", "u32", "i64", "u64")]


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
    if compiler == "clang" and one in CLANG_BF16:
        pytest.skip("rounds twice: test_clang_rounds_integers_to_bf16_twice")
    report = compare_c(c_compiler(compiler, (level,)), C, one)
    assert not report["wrong"], report
    leaves_open = TYPES[one.source].is_float and not TYPES[one.to].is_float and one.to != "bool"
    assert leaves_open or not report["undefined"]


@pytest.mark.parametrize("one", CLANG_BF16, ids=str)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_clang_rounds_integers_to_bf16_twice(level, one):
    """By way of f32: docs/spec/c.md §4. Of Clang 19 and 22."""
    machine, source = c_compiler("clang", (level,)), TYPES[one.source]
    x = np.concatenate([np.array([33685505], source.numpy), inputs("c", source, TYPES["bf16"], 200_000)])
    actual = run(machine, C, one, x)
    assert (actual == x.astype(np.float32).astype(TYPES["bf16"].numpy)).all()
    assert actual[0] == 33554432
    assert check("c", source, TYPES["bf16"], x, actual)["wrong"] > 1000


@pytest.mark.parametrize("one", C_MODES, ids=str)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_in_another_rounding_mode(compiler, one):
    short = TYPES[one.to].bits == 16
    if compiler == "clang" and short and one.source not in ("f32", "f64"):
        pytest.skip("to f16 and bf16 Clang calls compiler-rt, which ignores the mode; tested from f32 and f64")
    machine = c_compiler(compiler, ("-O2", "-frounding-math"))
    report = compare_c(machine, C_MODES, one)
    if compiler == "clang" and short:  # docs/spec/c.md §1
        assert report["wrong"] > 1000
        report = compare_c(machine, C_MODES, replace(one, options=()))
    assert not report["wrong"], report


@pytest.mark.parametrize("one", webassembly.INSTRUCTIONS, ids=str)
def test_wasm(one):
    source, to = TYPES[one.source], TYPES[one.to]
    x = inputs("ieee", source, to, 5_000 if one.name == "trunc" else 200_000)
    actual, traps = webassembly.run(one, x)
    report = check("wasm", source, to, x, actual, *one.options, show=x.size)
    refused = [v["index"] for v in report["violations"] if not v["permitted"]]
    assert refused == traps.tolist()
    assert report["wrong"] == traps.size and not report["undefined"], report
    assert bool(traps.size) == (one.name == "trunc")
