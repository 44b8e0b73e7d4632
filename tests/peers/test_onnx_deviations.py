"""Where the peers deviate from the rules: one witness for each row of docs/spec/onnx.md §5 (and §4.5) that
`test_onnx_cast.py` cuts out. A witness that no longer holds means that a peer has changed, and its row should go.

Columns: row, peer, source, destination, attributes, the source's code, what the peer gives, what is right by the page.
"""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from codes import onnxruntime as run_onnxruntime
from codes import reference as run_reference
from dtypes import TYPES
from test_onnx_cast import Files

ENGINES = {"REF": run_reference, "ORT": run_onnxruntime}


def f32(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def f64(x: float) -> int:
    return int(np.float64(x).view(np.uint64))


KEEP, SATURATE = {"saturate": 0}, {"saturate": 1}


def e8m0(saturate: int, mode: str) -> dict:
    return {"saturate": saturate, "round_mode": mode}


P = 2.0**-127
WITNESSES = [
    ("row 2", "ORT", "f32", "f8e4m3fn", KEEP, f32(480), 0x7E, 0x7F),
    ("row 2", "ORT", "i16", "f8e4m3fn", KEEP, 481, 0x7E, 0x7F),
    ("row 3", "ORT", "f32", "f8e5m2", KEEP, f32(61440), 0x7F, 0x7C),
    ("row 4", "ORT", "f32", "f8e5m2", SATURATE, 0x7FC00000, 0x7F, 0x7E),
    ("row 5", "ORT", "bf16", "f8e4m3fn", KEEP, 0xFFC0, 0x7F, 0xFF),
    ("row 6", "ORT", "f32", "i4", {}, f32(2.5), 0x3, 0x2),
    ("row 6", "ORT", "f32", "i4", {}, f32(-2.5), 0xD, 0xE),
    ("row 9", "REF", "f32", "f8e8m0", e8m0(1, "up"), 0x7F800000, 0xFF, 0xFE),
    ("row 9", "REF", "f32", "f8e8m0", e8m0(0, "nearest"), 0, 0x00, 0xFF),
    ("row 9", "REF", "f32", "f8e8m0", e8m0(0, "nearest"), f32(0.75 * P), 0x00, 0xFF),
    ("row 10", "REF", "f32", "f8e8m0", e8m0(1, "up"), f32(P), 0x01, 0x00),
    ("row 10", "REF", "f32", "f8e8m0", e8m0(1, "nearest"), f32(1.25 * P), 0x01, 0x00),
    ("row 10", "REF", "f8e8m0", "f8e8m0", e8m0(1, "up"), 0x00, 0x01, 0x00),
    ("row 11", "REF", "f64", "f8e4m3fn", SATURATE, f64(0.0009765625000000002), 0x00, 0x01),
    ("row 11", "ORT", "f64", "f8e4m3fn", SATURATE, f64(0.0009765625000000002), 0x00, 0x01),
    ("row 11", "REF", "f64", "f8e4m3fn", KEEP, f64(464.00000000000006), 0x7E, 0x7F),
    ("row 11", "ORT", "f64", "f8e4m3fn", KEEP, f64(464.00000000000006), 0x7E, 0x7F),
    ("row 11", "REF", "i32", "bf16", {}, 16842753, 0x4B80, 0x4B81),
    ("row 11", "ORT", "i32", "bf16", {}, 16842753, 0x4B80, 0x4B81),
    ("row 11", "ORT", "f64", "f16", {}, f64(65519.99999999999), 0x7C00, 0x7BFF),
    ("row 12", "ORT", "f8e5m2", "f8e5m2", SATURATE, 0x7C, 0x7C, 0x7B),
    ("row 13", "ORT", "f8e4m3fn", "bool", {}, 0x80, 1, 0),
    ("row 13", "ORT", "f8e5m2", "bool", {}, 0x80, 1, 0),
    ("row 14", "ORT", "f8e8m0", "bool", {}, 0x00, 0, 1),
    ("row 19", "REF", "f32", "f8e8m0", e8m0(0, "down"), f32(1.25 / P), 0xFE, 0xFF),
    ("row 20", "REF", "f32", "f8e8m0", e8m0(1, "up"), f32(-1), 0x7F, 0x00),
    ("§4.5", "REF", "f32", "i32", {}, f32(3e9), 0x80000000, 0xB2D05E00),
    ("§4.5", "ORT", "f32", "i32", {}, f32(3e9), 0x80000000, 0xB2D05E00),
    ("§4.5", "REF", "f64", "i4", {}, f64(2147483647.5), 0x0, 0xF),
]


def test_versions():
    assert (onnx.__version__, ml_dtypes.__version__, np.__version__) == ("1.23.2", "0.6.0", "2.4.6")
    assert onnxruntime.__version__ == "1.31.1"


@pytest.mark.parametrize("witness", WITNESSES, ids=lambda w: f"{w[0]}-{w[1]}-{w[2]}-{w[3]}-{w[5]:x}")
def test_witness(truecast, tmp_path, witness):
    _, engine, src, dst, attributes, code, deviating, right = witness
    s, d, codes = TYPES[src], TYPES[dst], np.array([code], dtype=np.uint64)
    (ours,) = Files(truecast, tmp_path).cast(s, d, codes, attributes)
    (theirs,) = ENGINES[engine](s, d, codes, **attributes)
    assert (int(theirs), int(ours)) == (deviating, right)
