"""Every pair of TensorFlow Lite (LiteRT) against its specification, and what docs/spec/tflite.md says of open results."""

import platform

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType
from comparison import compare, pairs
from inputs import TYPES
from litert import NAMES, RELEASE, by_litert, run

INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
REFERENCE, PLAIN = OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
BEYOND = [5e9, -5e9, np.inf, -np.inf, np.nan]


def leaves_open(source: str, to: str) -> bool:
    """docs/spec/tflite.md §2.1"""
    return RELEASE == "2.1" and source in FLOATS and to in INTEGERS and (source, to) != ("f32", "i32")


@pytest.mark.parametrize(("source", "to"), pairs(NAMES))
def test_tflite(source, to):
    def library(x, to, second=False):
        return by_litert(x, to, PLAIN if second else OpResolverType.AUTO)

    verdict = compare(f"tflite@{RELEASE}", library, source, to)
    assert leaves_open(source, to) or not verdict["undefined"]


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_reference_kernels_agree(source, to):
    with np.errstate(over="ignore"):
        x = np.array([*BEYOND, 1.5, -0.9, 300, -300]).astype(TYPES[source].numpy)
    results = [by_litert(x, TYPES[to], resolver) for resolver in (OpResolverType.AUTO, PLAIN, REFERENCE)]
    assert results[0].tolist() == results[1].tolist() == results[2].tolist()


@pytest.mark.skipif(RELEASE != "2.1", reason="open results of 2.1")
def test_own_code_for_f32():
    """docs/spec/tflite.md §2.1: NaN alone is open from float32 to int16 and uint8; int32 gives the largest value."""
    x = np.array(BEYOND, np.float32)
    assert by_litert(x, TYPES["i32"]).tolist() == [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2**31 - 1]
    assert by_litert(x, TYPES["i16"]).tolist()[:4] == [32767, -32768, 32767, -32768]
    assert by_litert(x, TYPES["u8"]).tolist()[:4] == [255, 0, 255, 0]


@pytest.mark.skipif(RELEASE != "2.1" or platform.machine() not in ("x86_64", "AMD64"), reason="open results of x86")
@pytest.mark.parametrize(("source", "to"), [p for p in pairs(FLOATS, ["i32", "i64"]) if p.values != ("f32", "i32")])
def test_beyond_i32_and_i64(source, to):
    """docs/spec/tflite.md §2.1"""
    with np.errstate(over="ignore"):
        x = np.array([1e20, -1e20, np.inf, -np.inf, np.nan]).astype(TYPES[source].numpy)
    assert set(by_litert(x, TYPES[to]).tolist()) == {np.iinfo(TYPES[to].numpy).min}


def test_quantize_is_not_a_cast():
    """docs/spec/tflite.md §4"""
    x = np.array([0.5, 1.5, 2.5, 1e10, np.inf, np.nan, 7, 8], np.float32)
    for to, beyond in {"i8": 127, "u8": 255, "i16": -32768}.items():
        least = int(np.iinfo(TYPES[to].numpy).min)
        assert run("QUANTIZE", x, to, quantized=True).tolist() == [0, 2, 2, beyond, beyond, beyond, 7, 8]
        assert run("QUANTIZE", x, to, REFERENCE, quantized=True).tolist() == [1, 2, 3, least, least, least, 7, 8]
    assert run("QUANTIZE", x[:3], "i16", quantized=True).tolist() == [1, 2, 3]


def test_dequantize_of_f16_is_a_cast():
    """docs/spec/tflite.md §4"""
    x = TYPES["f16"].from_codes(np.arange(1 << 16))
    assert run("DEQUANTIZE", x, "f32").tobytes() == by_litert(x, TYPES["f32"]).tobytes()
