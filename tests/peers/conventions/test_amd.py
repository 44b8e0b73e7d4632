"""Scaled conversions of CDNA4 (`amd@cdna4`) against AMD's emulation for hosts, the header amd_hip_ocp_host.hpp of HIP.

Its faults are in `faults.toml`. The tests expect what they give for every code, and no other difference.
"""

import itertools
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cli import TRUECAST, assert_right, check
from dtypes import Type, assert_same, to_f64
from inputs import TYPES, every_code, inputs, near_midpoints
from programs import C_TYPES, Conversion, Machine, newest, run

HIP = Path(os.environ.get("HIP_INCLUDE", Path(__file__).resolve().parent / ".venv/hip/usr/include"))
# Without the rest of ROCm. The headers refuse GCC 13 and older.
HOST = ("-x", "hip", "-std=c++20", "-O2", "--offload-host-only", "-nogpuinc", "-nogpulib", "-no-hip-rt")
DECLARATIONS = """
#include <hip/hip_runtime.h>
#include <hip/hip_ext_ocp.h>
static __amd_scale_t scale;
static void set_mode(long mode) { scale = mode; }
"""
# The names that the header has for them, of FP8 those with a scale.
SMALL = {"f8e4m3fn": "E4M3Mx", "f8e5m2": "E5M2Mx", "f6e2m3": "E2M3", "f6e3m2": "E3M2", "f4e2m1": "E2M1"}
WIDE = {"f32": "float", "f16": "_Float16", "bf16": "__bf16"}
# Of -127 to 127, which an instruction can have.
SCALES = (-127, -126, -20, -1, 0, 1, 9, 126, 127)


TO_SMALL, FROM_SMALL = [], []
for small, wide in itertools.product(SMALL, WIDE):
    # FP16_OVFL = 0 and 1, which only FP8 has.
    for overflow, saturates in [("nonfinite", "false"), ("saturate", "true")][small[:2] != "f8" :]:
        call = f"_float<{WIDE[wide]}, fcbx::Encoding::{SMALL[small]}, {saturates}>(a, scale);"
        TO_SMALL.append(Conversion(wide, small, f"b = fcbx::from{call}", (overflow,)))
        FROM_SMALL.append(Conversion(small, wide, f"b = fcbx::to{call}", (overflow,)))
# Functions of the header amd_hip_ocp_fp.hpp that call these; only their faults are of interest.
FUNCTIONS = [
    Conversion(source, to, f"b = __amd_cvt_{call}, scale);")
    for source, to, call in [
        ("f32", "f8e4m3fn", "floatx2_to_fp8x2_scale(__amd_floatx2_storage_t{a, a}, __AMD_OCP_E4M3"),
        ("f8e5m2", "f16", "fp8_to_fp16_scale(a, __AMD_OCP_E5M2"),
    ]
]
EVERY = (*TO_SMALL, *FROM_SMALL, *FUNCTIONS)


def version() -> str:
    if not (HIP / "hip/hip_ext_ocp.h").exists():
        pytest.skip("the headers of HIP 7 are not installed (README.md)")
    text = (HIP / "hip/hip_version.h").read_text()
    return ".".join(re.search(rf"HIP_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def emulate(one: Conversion, x: np.ndarray, exponent: int, unset: str = "zero") -> np.ndarray:
    """Of values times 2^exponent. `unset` is what variables have that the header reads without having set them."""
    version()
    machine = Machine(
        (newest("clang"), "--rtlib=compiler-rt", *HOST, f"-ftrivial-auto-var-init={unset}", "-I", str(HIP)),
        declarations=DECLARATIONS,
        types=tuple((C_TYPES | WIDE | dict.fromkeys(SMALL, "uint8_t")).items()),
    )
    return run(machine, EVERY, replace(one, mode=-exponent if one.to in SMALL else exponent), x)


def witness(fault: dict, x: np.ndarray, exponent: int) -> np.ndarray:
    """What is given for a fault of `faults.toml`. Of FP8 it is one with saturation: AMD's functions have no other."""
    some = FUNCTIONS if fault.get("by") == "function" else [c for c in EVERY if c.options == ("saturate",)]
    one = next(c for c in some if (c.source, c.to) == (fault["from"], fault["to"]))
    return emulate(one, x, exponent, "pattern" if fault.get("by") == "pattern" else "zero")


def cast(source: Type, to: Type, x: np.ndarray, *options: str) -> np.ndarray:
    with TemporaryDirectory() as folder:
        files = [Path(folder) / "x.npy", Path(folder) / "y.npy"]
        np.save(files[0], source.codes(x))
        command = [*TRUECAST, "convert", *files, "--spec", "amd@cdna4", "--from", source.name, "--to", to.name]
        subprocess.run([*command, *options, "--quiet"], check=True)
        return np.load(files[1]).view(to.numpy)


@pytest.mark.parametrize("exponent", SCALES)
@pytest.mark.parametrize("one", TO_SMALL, ids=str)
def test_to_small(one, exponent):
    source, to, (overflow,) = TYPES[one.source], TYPES[one.to], one.options
    x = inputs("ieee", source, to)
    if source.bits == 32:  # what is near the midpoints after scaling
        with np.errstate(over="ignore", under="ignore"):
            ties = np.ldexp(near_midpoints(source, to), -exponent)
        x = np.concatenate([x, ties, *(np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf))])
    options = ["--scale-exponent", str(exponent)]
    actual = emulate(one, x, exponent)
    if one.to == "f8e4m3fn" and overflow == "saturate":  # a fault: NaN for the largest value
        assert check("amd@cdna4", source, to, x, actual, *options, "--overflow", overflow)["wrong"]
        overflow = "nonfinite"
    report = check("amd@cdna4", source, to, x, actual, *options, *(["--overflow", overflow] if to.bits == 8 else []))
    assert_right(report)
    assert not report["undefined"] or to.bits < 8  # NaN, which the text leaves open


@pytest.mark.parametrize("exponent", SCALES)
@pytest.mark.parametrize("one", FROM_SMALL, ids=str)
def test_from_small(one, exponent):
    source, to = TYPES[one.source], TYPES[one.to]
    x = every_code(source)
    right = cast(source, to, x, "--scale-exponent", str(exponent))
    value = np.ldexp(to_f64(x), exponent)
    if one.source == "f8e5m2" and one.options == ("saturate",):  # faults: Inf for 57344, and 65536 for Inf
        largest, infinite = np.abs(to_f64(x)) == 57344, np.isinf(to_f64(x))
        value[infinite] = np.copysign(2.0 ** (16 + exponent), value[infinite])
        value[largest] = np.copysign(np.inf, value[largest])
        with np.errstate(over="ignore"):
            right[largest | infinite] = value[largest | infinite].astype(to.numpy)
    if to.bits == 16:  # a fault: the code as a number for NaN, Inf and -0, unless -0 is a tie below the subnormals
        codes = np.where(np.isnan(value), to.codes(right) & 0x8000 | 0x7FFF, to.codes(right))
        tie = np.abs(value) == {"f16": 2.0**-25, "bf16": 2.0**-134}[one.to]
        fault = ~np.isfinite(to_f64(right)) | (codes == 0x8000) & ~tie
        with np.errstate(over="ignore"):
            right[fault] = codes[fault].astype(np.float32).astype(to.numpy)
    assert_same(emulate(one, x, exponent), right, to, x)
