"""Exact and fast tensor element-type conversion: every bit is the specification's answer, rounded once.

>>> import numpy as np
>>> import truecast as tc
>>> x = np.array([1, 465, np.inf], np.float32)
>>> tc.cast(x, "f8e4m3fn").astype(np.float32)  # ONNX Cast saturates
array([  1., 448., 448.], dtype=float32)
>>> tc.cast(x, "f8e4m3fn", spec="tosa").astype(np.float32)  # TOSA does not
array([ 1., nan, nan], dtype=float32)

Arrays of NumPy (with ml_dtypes), PyTorch and JAX are accepted and returned without copies; lists and buffers become arrays
of NumPy. No other library is imported, except ml_dtypes if a result needs one of its types.

| to | use |
|---|---|
| convert an array | `cast`; with counts `cast_with_report` |
| choose a specification | `truecast.onnx`, `truecast.tosa`, `truecast.openvino`, `truecast.tile`, or ``spec=`` |
| ask about a value, a type, two types | `explain`, `finfo`, `dtypes`, `promote_types`, `promotions` |
| ask where two specifications differ | `differ` |
| quantize with scales, and back | `quantize`, `dequantize`, `Quantized.error`, `schemes` |
| test results of other code | `check`, `vectors`, `truecast.testing.assert_allowed` |
| convert, verify, compare, inspect files | `convert`, `verify`, `compare`, `inspect`, one tensor `load`, `show` |
| train with a type, compile | `truecast.torch` |
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from ._arrays import cast, get_num_threads, release_memory, set_num_threads
from ._errors import (
    DestinationExistsError,
    DTypeError,
    FileError,
    InputError,
    MissingFileError,
    SpecError,
    TruecastError,
    UsageError,
)
from ._truecast import __version__

if TYPE_CHECKING:
    from . import onnx, openvino, testing, tile, tosa
    from . import torch as torch
    from . import typing as typing
    from ._check import Check, Vectors, check, vectors
    from ._files import compare, convert, inspect, load, show, verify
    from ._questions import Explanation, differ, explain, promote_types, promotions, schemes
    from ._report import Comparison, ConversionReport, Counts, Verification, cast_with_report
    from ._scaled import Quantized, dequantize, quantize
    from ._types import TypeInfo, dtypes, finfo

# Without ``torch`` and ``typing``: a star import and `help` import the listed modules.
__all__ = [
    "Check",
    "Comparison",
    "ConversionReport",
    "Counts",
    "DTypeError",
    "DestinationExistsError",
    "Explanation",
    "FileError",
    "InputError",
    "MissingFileError",
    "Quantized",
    "SpecError",
    "TruecastError",
    "TypeInfo",
    "UsageError",
    "Vectors",
    "Verification",
    "__version__",
    "cast",
    "cast_with_report",
    "check",
    "compare",
    "convert",
    "dequantize",
    "differ",
    "dtypes",
    "explain",
    "finfo",
    "get_num_threads",
    "inspect",
    "load",
    "onnx",
    "openvino",
    "promote_types",
    "promotions",
    "quantize",
    "release_memory",
    "schemes",
    "set_num_threads",
    "show",
    "testing",
    "tile",
    "tosa",
    "vectors",
    "verify",
]

# Slow imports happen at first use.
_HOMES = {
    "_check": ("Check", "Vectors", "check", "vectors"),
    "_files": ("compare", "convert", "inspect", "load", "show", "verify"),
    "_questions": ("Explanation", "differ", "explain", "promote_types", "promotions", "schemes"),
    "_report": ("Comparison", "ConversionReport", "Counts", "Verification", "cast_with_report"),
    "_scaled": ("Quantized", "dequantize", "quantize"),
    "_types": ("TypeInfo", "dtypes", "finfo"),
}
_MODULES = ("onnx", "openvino", "testing", "tile", "torch", "tosa", "typing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        try:
            return importlib.import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            raise AttributeError(f"{__name__}.{name} needs {error.name}, which is not installed") from error
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f".{home}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "torch"] if importlib.util.find_spec("torch") else __all__
