"""Text by truecast, the onnx reference evaluator 1.23.2 (NumPy 2.4.6) and onnxruntime 1.31.1: docs/spec/onnx.md §6.7.

Where an engine differs, the row says with which witness and how; it is checked that the engine still does.
"""

import random
from decimal import Decimal

import numpy as np
import pytest
from engines import CANNOT, ERROR, OnnxRuntime, Reference, Truecast

INF, NAN = float("inf"), float("nan")


@pytest.fixture(scope="module")
def engines():
    return Reference(), OnnxRuntime(), Truecast()


def same(found, expected) -> bool:
    if isinstance(expected, str) or isinstance(found, str):
        return found == expected
    (value,) = found
    if value != value or expected != expected:
        return value != value and expected != expected
    return value == expected and np.signbit(np.float64(value)) == np.signbit(np.float64(expected))


def check(engines, src, dst, value, row, **attributes):
    for engine, expected in zip(engines, row, strict=True):
        if expected is None:
            continue
        found = engine(src, dst, [value], **attributes)
        assert same(found, expected), f"{engine.name}: {value!r} to {dst} is {found}, not {expected}"


# ---- text to floats: (text, reference, onnxruntime, truecast) ----

TO_DOUBLE = [
    *[(text, value, value, value) for text, value in [
        ("1e-5", 1e-5), ("1E8", 1e8), (".5", 0.5), ("5.", 5.0), ("1e+5", 1e5), ("010", 10.0), ("-0", -0.0),
        ("+INF", INF), ("INF", INF), ("-INF", -INF), ("inf", INF), ("NaN", NAN), ("nan", NAN), ("Infinity", INF), ("-nan", NAN),
        (" 1 ", 1.0), ("\t1", 1.0), ("1\n", 1.0), ("\x0b1\x0c", 1.0), ("\r1", 1.0), ("100.5", 100.5), ("2.718", 2.718),
        ("18446744073709551615", 1.8446744073709552e19),
    ]],
    *[(text, ERROR, ERROR, ERROR) for text in ["", "abc", "True", "--1", "."]],
    ("1.5abc", ERROR, 1.5, ERROR), ("1,5", ERROR, 1.0, ERROR), ("1.5f", ERROR, 1.5, ERROR), ("1e", ERROR, 1.0, ERROR),
    ("12abc", ERROR, 12.0, ERROR), ("1 1", ERROR, 1.0, ERROR), ("0x10", ERROR, 16.0, ERROR), ("0x1p3", ERROR, 8.0, ERROR),
    ("1_000", 1000.0, 1.0, ERROR), ("1e400", INF, ERROR, INF), ("-1e400", -INF, ERROR, -INF), ("1e-400", 0.0, ERROR, 0.0),
    ("nan(1)", ERROR, NAN, ERROR), ("\u0663", 3.0, ERROR, ERROR), ("\u00a01", 1.0, ERROR, ERROR),
]  # fmt: skip


@pytest.mark.parametrize("text, reference, runtime, truecast", TO_DOUBLE)
def test_text_to_double(engines, text, reference, runtime, truecast):
    row = (reference, runtime, truecast)
    check(engines, "STRING", "DOUBLE", text, row)


# 1 + 2^-24 is a tie of FLOAT; DOUBLE does not see what lies above it.
ABOVE_A_TIE = "1.000000059604644776257986737988403547205962240695953369140625"

NARROW = [
    ("1e39", "FLOAT", {}, INF, INF, INF),
    ("65520", "FLOAT16", {}, INF, INF, INF),
    ("1e6", "FLOAT16", {}, INF, INF, INF),
    ("1e6", "FLOAT8E4M3FN", {"saturate": 1}, CANNOT, 448.0, 448.0),
    ("1e6", "FLOAT8E4M3FN", {"saturate": 0}, CANNOT, NAN, NAN),
    # §5 row 24: the engines round to DOUBLE first.
    (ABOVE_A_TIE, "FLOAT", {}, 1.0, 1.0, 1 + 2.0**-23),
    ("65519.9999999999999999999", "FLOAT16", {}, INF, INF, 65504.0),
    ("1.00390625000000000000001", "BFLOAT16", {}, CANNOT, 1.0, 1.0078125),
    ("464.0000000000000000001", "FLOAT8E4M3FN", {"saturate": 0}, CANNOT, 448.0, NAN),
]


@pytest.mark.parametrize("text, dst, attributes, reference, runtime, truecast", NARROW)
def test_text_to_narrow_floats(engines, text, dst, attributes, reference, runtime, truecast):
    row = (reference, runtime, truecast)
    check(engines, "STRING", dst, text, row, **attributes)


# ---- text to integers and bool ----

TO_INTEGER = [
    ("1e5", "INT32", ERROR, 1, 100_000), ("100.5", "INT32", ERROR, 100, 100), ("2.718", "INT32", ERROR, 2, 2),
    ("INF", "INT32", ERROR, ERROR, ERROR), ("nan", "INT32", ERROR, ERROR, ERROR), (" 1 ", "INT32", 1, 1, 1),
    ("2.7", "INT4", CANNOT, 3, 2), ("", "INT32", ERROR, ERROR, ERROR), ("True", "INT32", ERROR, ERROR, ERROR),
    ("12abc", "INT32", ERROR, 12, ERROR), ("1,5", "INT32", ERROR, 1, ERROR), ("0x10", "INT32", ERROR, 0, ERROR),
    ("010", "INT32", 10, 10, 10), ("1_000", "INT32", 1000, 1, ERROR), ("1e400", "INT32", ERROR, 1, 0),
    ("-1e400", "INT32", ERROR, -1, 0), ("1e-400", "INT32", ERROR, 1, 0), ("nan(1)", "INT32", ERROR, ERROR, ERROR),
    ("\u0663", "INT32", 3, ERROR, ERROR), ("18446744073709551615", "UINT64", 2**64 - 1, 2**64 - 1, 2**64 - 1),
    ("18446744073709551615", "UINT8", ERROR, 255, 255), ("18446744073709551615", "INT64", ERROR, ERROR, -1),
    ("18446744073709551615", "INT32", ERROR, ERROR, -1), ("18446744073709551616", "UINT64", ERROR, ERROR, 0),
    ("128", "INT8", ERROR, -128, -128), ("300", "UINT8", ERROR, 44, 44), ("2147483648", "INT32", ERROR, -(2**31), -(2**31)),
    ("-1", "UINT64", ERROR, 2**64 - 1, 2**64 - 1),
]  # fmt: skip


@pytest.mark.parametrize("text, dst, reference, runtime, truecast", TO_INTEGER)
def test_text_to_integers(engines, text, dst, reference, runtime, truecast):
    row = (reference, runtime, truecast)
    check(engines, "STRING", dst, text, row)


TO_BOOL = [
    ("0", True, False, False), ("False", True, ERROR, False), ("", False, ERROR, ERROR), ("0.0", True, False, False),
    ("0.5", True, False, True), ("1", True, True, True), ("2", True, True, True), ("-1", True, True, True),
    (" 1", True, True, True), ("True", True, ERROR, True), ("NaN", True, ERROR, True),
]  # fmt: skip


@pytest.mark.parametrize("text, reference, runtime, truecast", TO_BOOL)
def test_text_to_bool(engines, text, reference, runtime, truecast):
    row = (reference, runtime, truecast)
    check(engines, "STRING", "BOOL", text, row)


# ---- numbers to text ----

TO_TEXT = [
    ("FLOAT", 3.14, "3.14", "3.1400001", "3.14"), ("FLOAT", 1, "1.0", "1", "1.0"), ("FLOAT", 100, "100.0", "100", "100.0"),
    ("FLOAT", 0, "0.0", "0", "0.0"), ("FLOAT", -0.0, "-0.0", "-0", "-0.0"),
    ("FLOAT", 1e15, "1e+15", "9.9999999e+14", "1000000000000000.0"), ("FLOAT", 1e20, "1e+20", "1e+20", "1e+20"),
    ("FLOAT", 1234567, "1.234567e+06", "1234567", "1234567.0"), ("FLOAT", 123456789, "1.2345679e+08", "1.2345679e+08", "123456790.0"),
    ("FLOAT", 1e-4, "1e-04", "9.9999997e-05", "1e-04"), ("FLOAT", 1e-5, "1e-05", "9.9999997e-06", "1e-05"),
    ("FLOAT", 2.0**-149, "1e-45", "1.4012985e-45", "1e-45"), ("FLOAT", NAN, "nan", "NaN", "nan"), ("FLOAT", INF, "inf", "INF", "inf"),
    ("FLOAT", -INF, "-inf", "-INF", "-inf"), ("DOUBLE", 1 / 3, "0.3333333333333333", "0.33333333", "0.3333333333333333"),
    ("DOUBLE", 123456789, "123456789.0", "1.2345679e+08", "123456789.0"),
    ("DOUBLE", 2.0**53, "9007199254740992.0", "9.0071993e+15", "9007199254740992.0"),
    ("FLOAT16", 0.1, "0.1", "0.099975586", "0.1"), ("FLOAT16", 3.14, "3.14", "3.140625", "3.14"),
    ("FLOAT16", 65504, "6.55e+04", "65504", "65500.0"), ("BFLOAT16", 0.1, CANNOT, "0.10009766", "0.1"),
    ("FLOAT8E4M3FN", 1.375, CANNOT, "1.375", "1.375"), ("FLOAT8E8M0", 0.5, CANNOT, "0.5", "0.5"),
    ("INT4", -8, CANNOT, "-8", "-8"), ("UINT2", 3, CANNOT, "3", "3"), ("BOOL", True, "True", "1", "True"),
    ("BOOL", False, "False", "0", "False"), ("INT8", -128, "-128", "-128", "-128"),
    ("UINT64", 2**64 - 1, "18446744073709551615", "18446744073709551615", "18446744073709551615"),
    ("INT64", -(2**63), "-9223372036854775808", "-9223372036854775808", "-9223372036854775808"),
]  # fmt: skip


@pytest.mark.parametrize("src, value, reference, runtime, truecast", TO_TEXT)
def test_numbers_to_text(engines, src, value, reference, runtime, truecast):
    row = (reference, runtime, truecast)
    for engine, expected in zip(engines, row, strict=True):
        found = engine(src, "STRING", [value])
        assert found == (expected if expected == CANNOT else [expected]), engine.name


# ---- agreement on ordinary values ----


def test_doubles_print_alike(engines):
    bits = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    values = bits.view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], np.random.default_rng(2).standard_normal(20_000)])
    reference, _, truecast = engines
    assert truecast("DOUBLE", "STRING", values) == reference("DOUBLE", "STRING", values)


@pytest.mark.parametrize("src, bits", [("FLOAT", 32), ("FLOAT16", 16)])
def test_narrower_floats_have_the_same_digits(engines, src, bits):
    """The notation is NumPy 1's (§6.2), the digits are those of every NumPy."""
    codes = np.arange(65536) if bits == 16 else np.random.default_rng(3).integers(0, 2**32, 40_000)
    values = codes.astype(f"u{bits // 8}").view(f"f{bits // 8}")
    values = values[np.isfinite(values)]
    reference, _, truecast = engines
    pairs = zip(truecast(src, "STRING", values), reference(src, "STRING", values), strict=True)
    assert all(a == b or (Decimal(a) == Decimal(b) and a[0] == b[0]) for a, b in pairs)


@pytest.mark.parametrize("dst", ["DOUBLE", "FLOAT", "FLOAT16"])
def test_decimals_parse_alike(engines, dst):
    rng = random.Random(5)
    texts = [f"{rng.uniform(-1, 1) * 10 ** rng.randint(-6, 4):.{rng.randint(1, 17)}g}" for _ in range(5_000)]
    texts += [f"{rng.randint(-(10**15), 10**15)}e{rng.randint(-20, 5)}" for _ in range(2_000)]
    reference, runtime, truecast = (np.array(engine("STRING", dst, texts)) for engine in engines)
    np.testing.assert_array_equal(truecast, reference, strict=True)
    np.testing.assert_array_equal(truecast, runtime, strict=True)


@pytest.mark.parametrize("dst", ["INT8", "UINT8", "INT32", "INT64", "UINT64"])
def test_integers_parse_and_print_alike(engines, dst):
    limits = np.iinfo(np.dtype({"INT8": "i1", "UINT8": "u1", "INT32": "i4", "INT64": "i8", "UINT64": "u8"}[dst]))
    rng = random.Random(6)
    values = [limits.min, limits.max, 0] + [rng.randint(int(limits.min), int(limits.max)) for _ in range(500)]
    texts = [str(v) for v in values]
    for engine in engines:
        assert [int(v) for v in engine("STRING", dst, texts)] == values, engine.name
        assert engine(dst, "STRING", np.array(values, limits.dtype)) == texts, engine.name
