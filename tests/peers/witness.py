"""What released programs give for the faults of `faults.toml`, asked today.

`PROGRAMS` has a function for each program that can be asked here: from a fault to the code that the program gives. Not
here: what is right. A program that is not installed raises `Absent`.
"""

import importlib.metadata
import os
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
TABLE = tomllib.loads((HERE / "faults.toml").read_text())
FAULTS = TABLE["fault"]
os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
sys.path[:0] = [str(HERE), str(HERE / "conventions"), str(HERE / "promotion"), str(HERE.parent / "python")]


class Absent(Exception):
    """The program is not installed."""


def faults(*programs: str) -> list:
    """Those of the programs, as parameters of a test."""
    some = [fault for fault in FAULTS if fault["program"] in programs]
    return [pytest.param(f, id="-".join([f["program"], f["from"], f["to"], f["input"]])) for f in some]


def attributes(fault: dict) -> dict:
    """Of the rule: `{"saturate": 1, "round_mode": "up"}`."""
    _, _, settings = fault["rule"].partition(":")
    pairs = [setting.split("=") for setting in settings.split(",") if setting]
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def one(name: str, code: str) -> np.ndarray:
    from inputs import TYPES

    return TYPES[name].from_codes(np.array([int(code, 16)], np.uint64))


def _code(name: str, result: np.ndarray) -> int:
    from inputs import TYPES

    return int(TYPES[name].codes(result)[0])


def _clang(fault: dict) -> int:
    import programs
    from test_languages import MODES, c_compiler

    mode = MODES.index(attributes(fault).get("rounding", "nearest-even"))
    options = ("-O2", "-frounding-math") if "by" in fault else ("-O2",)
    body = f"b = ({programs.C_TYPES[fault['to']]})a;"
    conversion = programs.Conversion(fault["from"], fault["to"], body, (), mode)
    result = programs.run(c_compiler("clang", options), (conversion,), conversion, one(fault["from"], fault["input"]))
    return _code(fault["to"], result)


def _mlir(fault: dict) -> int:
    import arith
    from test_languages import by_mlir

    x = one(fault["from"], fault["input"])
    if fault["by"] == "folded":
        return _code(fault["to"], arith.folded(fault["from"], fault["to"], x)[1])
    conversions = getattr(arith, fault["by"])
    pair = (fault["from"], fault["to"])
    return _code(fault["to"], by_mlir(conversions, next(c for c in conversions if (c.source, c.to) == pair), x))


def _jax(fault: dict) -> int:
    import jax
    from inputs import TYPES

    x = jax.numpy.asarray(one(fault["from"], fault["input"]))
    return _code(fault["to"], np.asarray(jax.lax.convert_element_type(x, TYPES[fault["to"]].numpy)))


def _torch(fault: dict) -> int:
    from inputs import TYPES
    from libraries import by_torch

    return _code(fault["to"], by_torch(one(fault["from"], fault["input"]), TYPES[fault["to"]]))


def _ml_dtypes(fault: dict) -> int:
    from inputs import TYPES

    with np.errstate(all="ignore"):
        return _code(fault["to"], one(fault["from"], fault["input"]).astype(TYPES[fault["to"]].numpy))


def _onnx(fault: dict) -> int:
    import codes
    from dtypes import TYPES

    source = np.array([int(fault["input"], 16)], np.uint64)
    result = getattr(codes, fault["program"])(TYPES[fault["from"]], TYPES[fault["to"]], source, **attributes(fault))
    return int(result[0])


def _gfloat(fault: dict) -> int:
    import gfloat
    from gfloat.formats import format_info_ocp_e4m3

    x = float(one(fault["from"], fault["input"])[0])
    rounded = gfloat.round_float(format_info_ocp_e4m3, x, gfloat.RoundMode.TiesToAway, False)
    return int(gfloat.encode_float(format_info_ocp_e4m3, rounded))


def _hip(fault: dict) -> int:
    from test_amd import witness

    exponent = int(attributes(fault).get("scale_exponent", 0))
    return _code(fault["to"], witness(fault, one(fault["from"], fault["input"]), exponent))


def _hip_version() -> str:
    from test_amd import version

    return version()


def _openvino(known: dict) -> list[int]:
    """Of a difference that `truecast explain` knows; two results depend on the place in the tensor."""
    from test_values import code, cpu, reference

    value, given = code(known["witness"]["input"]), known["witness"]["given"]
    evaluate = reference if known["implementation"] == "reference evaluator" else cpu
    results = evaluate(known["from"], known["to"], [value] * (5 if len(given) == 2 else 1))
    return results if len(given) == 1 else [results[0], results[4]]


def _of_llvm(tool: str):
    def version() -> str:
        import subprocess

        import programs

        text = subprocess.run([programs.newest(tool), "--version"], capture_output=True, text=True, check=True).stdout
        return re.search(r"version (\S+?)[\s(-]", text + " ")[1]

    return version


def _of_package(name: str):
    return lambda: importlib.metadata.version(name).partition("+")[0]


# The version that is installed, and what it gives for a fault.
PROGRAMS = {
    "clang": (_of_llvm("clang"), _clang),
    "mlir": (_of_llvm("mlir-opt"), _mlir),
    "torch": (_of_package("torch"), _torch),
    "ml_dtypes": (_of_package("ml_dtypes"), _ml_dtypes),
    "onnxruntime": (_of_package("onnxruntime"), _onnx),
    "reference": (_of_package("onnx"), _onnx),
    "gfloat": (_of_package("gfloat"), _gfloat),
    "openvino": (_of_package("openvino"), _openvino),
    "jax": (_of_package("jax"), _jax),
    "hip": (_hip_version, _hip),
}


def version(program: str) -> str:
    """The version that is installed."""
    try:
        return PROGRAMS[program][0]()
    except (KeyError, importlib.metadata.PackageNotFoundError, pytest.skip.Exception) as error:
        raise Absent(program) from error


def expected(fault: dict) -> list[int]:
    """The codes that the table has."""
    codes = [fault["gives"]] if "gives" in fault else [one["bits"] for one in fault["witness"]["given"]]
    return [int(code, 16) for code in codes]


def given(fault: dict) -> list[int]:
    """The codes that the program gives."""
    version(fault["program"])
    try:
        codes = PROGRAMS[fault["program"]][1](fault)
        return codes if isinstance(codes, list) else [codes]
    except (ImportError, pytest.skip.Exception) as error:
        raise Absent(fault["program"]) from error
