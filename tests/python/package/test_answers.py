"""Questions: values, types, promotions, checks. Expectations come from docs/spec and from ml_dtypes."""

import json

import ml_dtypes
import numpy as np
import pytest
import truecast as tc


def test_explain():
    found = tc.explain(465, to="f8e4m3fn")
    assert found["source"]["bits"] == tc.explain("465", to="f8e4m3fn")["source"]["bits"] == "0x43e88000"
    assert found["neighbors"]["below"] == {"bits": "0x7e", "value": "448"}
    onnx = [row for row in found["results"] if row["spec"] == "onnx"]
    assert [(row["attributes"], row["value"]) for row in onnx] == [("saturate=1", "448"), ("saturate=0", "NaN")]
    assert "midpoint" in repr(found) and "<pre" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


@pytest.mark.parametrize(
    "value, options, bits",
    [
        (np.float16(-1.1), {}, "0xbc66"),
        (np.float64(0.1), {}, "0x3fb999999999999a"),
        (np.int8(-1), {}, "0xff"),
        (ml_dtypes.bfloat16(3.0), {}, "0x4040"),
        (np.float16(1.5), {"from_": "f32"}, "0x3fc00000"),
        ("-0x1.8p-3", {}, "0xbe400000"),
        (-2, {}, "0xc0000000"),
        (2**63, {}, "0x5f000000"),
        (0.1, {}, "0x3dcccccd"),
        (-2, {"from_": "i64"}, "0xfffffffffffffffe"),
        ("-2", {}, "0xc0000000"),
        (465.0, {"from_": "f32"}, "0x43e88000"),
        (True, {}, "0x1"),
        (np.False_, {}, "0x0"),
    ],
)
def test_explained_values(value, options, bits):
    assert tc.explain(value, "f16" if not options else "bf16", **options)["source"]["bits"] == bits


@pytest.mark.parametrize("value", [465, 465.0, 16777217, 2**31 - 1, 1e-40, 0.1, float("nan"), float("-inf"), 1e300])
def test_numbers_are_what_the_command_takes_them_for(value):
    number, text = (tc.explain(given, "f16").to_dict() for given in (value, str(value)))
    assert number == text and number["from"] == "f32"


def test_notes_speak_python():
    assert 'from_="string" takes' in repr(tc.explain("1e-40", "f16")) and "--" not in repr(tc.explain("1e39", "f16"))


def test_explain_in_every_type():
    found = tc.explain(0.1)
    assert {row["dtype"]: row["bits"] for row in found["types"]}["bf16"] == "0x3dcd"
    assert tc.explain(np.float16(0.1))["from"] == "f16"
    assert "bf16" in repr(found) and "--" not in repr(found)


def test_explain_one_specification():
    found = tc.explain(2.5, "i8", spec="ieee", rounding="up")
    assert [row["value"] for row in found["results"]] == ["3"]
    with pytest.raises(tc.UsageError, match="saturate"):
        tc.explain(2.5, "i8", spec="ieee", saturate=False)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float6_e3m2fn", "float4_e2m1fn"])
def test_finfo(name):
    ours, theirs = tc.finfo(name), ml_dtypes.finfo(getattr(ml_dtypes, name))
    assert (ours.max, ours.min, ours.eps) == (float(theirs.max), float(theirs.min), float(theirs.eps))
    assert (ours.smallest_normal, ours.smallest_subnormal) == (
        float(theirs.smallest_normal),
        float(theirs.smallest_subnormal),
    )
    assert ours.bits == theirs.bits


def test_dtypes():
    assert [one.name for one in tc.dtypes()] == tc._truecast.type_names()
    assert tc.finfo("i4").min == -8 and tc.finfo("u6").max == 63 and tc.finfo("bool").max == 1


@pytest.mark.parametrize("a", [np.int8, np.uint8, np.int32, np.int64, np.float16, np.float32, np.bool_, ml_dtypes.bfloat16])
@pytest.mark.parametrize("b", [np.uint16, np.int64, np.float64, ml_dtypes.bfloat16])
def test_promotion_as_numpy_says(a, b):
    try:
        expected = np.promote_types(a, b)
    except TypeError:
        with pytest.raises(tc.InputError, match="TC-PRM"):
            tc.promote_types(a, b, system="numpy")
        return
    assert tc.promote_types(a, b, system="numpy") == tc._truecast.type_name(expected)


def test_promotion_options():
    assert tc.promote_types("u8", "i8", system="openvino", unsafe=True) == "i16"
    assert tc.promote_types("i64", "py:float", system="jax", jax_x64=False) == "f32"
    rows = tc.promotions("i32", "bf16")["results"]
    assert {row["system"] for row in rows} == {"openvino", "numpy", "jax", "torch", "tensorflow"}


def test_convert_promote_types():
    a, b = tc.openvino.convert_promote_types(np.int8([1]), np.float32([0.5]))
    assert a.dtype == b.dtype == np.float32 and a.tolist() == [1]
    with pytest.raises(tc.InputError, match="TC-PRM-02"):
        tc.openvino.convert_promote_types(np.int32([1]), np.float32([0.5]))


# ---- checks ----


def test_check_finds_two_roundings():
    """Through f32, 1.0625 + 2^-30 is a tie (docs/style.md section 15)."""
    x = np.array([1.0625 + 2.0**-30, 1.5])
    found = tc.check(x, x.astype(ml_dtypes.float8_e4m3fn), saturate=False)
    assert not found and found["wrong"] == 1 and found["violations"][0]["permitted"] == ["0x39"]
    # Through f16 or bf16 the second element would be right too; text names the first of them.
    group = found["groups"][0]
    assert "through-f32" in [group["convention"], *group["alike"]] and "rounded through" in repr(found)
    assert tc.check(x, tc.cast(x, "f8e4m3fn"))


@pytest.mark.parametrize("to", ["bf16", "f8e5m2", "i4", "u8", "f4e2m1", "bool", "f64", "string"])
@pytest.mark.parametrize("from_", [np.float32, np.float16, np.int32, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_own_results_are_permitted(from_, to):
    x = np.array([0, 1, 2, -3, 5], np.float32).astype(from_)
    assert tc.check(x, tc.cast(x, to)).passes


def test_check_reads_codes():
    assert tc.check(np.float32([1, 465]), np.uint8([0x38, 0x7E]), to="f8e4m3fn")
    assert tc.check(np.uint8([0x38, 0x7E]), np.float32([1, 448]), from_="f8e4m3fn")
    with pytest.raises(tc.UsageError, match="shape"):
        tc.check(np.zeros(2, np.float32), np.zeros(3, np.float16))


def test_assert_allowed():
    x = np.float32([0.1, 0.2])
    tc.testing.assert_allowed(x.astype(np.float16), x, spec="tosa")
    wrong = tc.cast(x, "f16", spec="ieee", rounding="up")
    with pytest.raises(AssertionError, match="rounded up"):
        tc.testing.assert_allowed(wrong, x)


def test_tosa():
    x = np.float32([0.5, 1.5, 300])
    assert tc.tosa.cast(x, "i8").tolist() == [0, 2, 127]
    assert tc.tosa.check(x, np.int8([0, 2, 127]))
    assert not tc.tosa.check(x, np.int8([1, 2, 127]))


def reference_rescale(x, multiplier, shift, input_zp, output_zp, low, high):
    """SINGLE_ROUND of docs/spec/tosa.md section 4, in Python's integers."""
    value = (int(x) - input_zp) * multiplier
    return min(max((value + (1 << (shift - 1)) >> shift) + output_zp, low), high)


@pytest.mark.parametrize("shape", [(1000,), (50, 20)])
def test_rescale(shape):
    x = np.random.default_rng(4).integers(-(1 << 20), 1 << 20, shape, np.int32)
    y = tc.tosa.rescale(x, "i8", multiplier=1_500_000_000, shift=43, output_zp=3, scale32=True)
    expected = [reference_rescale(v, 1_500_000_000, 43, 0, 3, -128, 127) for v in x.ravel()]
    assert y.dtype == np.int8 and y.shape == shape and y.ravel().tolist() == expected
    assert tc.tosa.check_rescale(x, y, multiplier=1_500_000_000, shift=43, output_zp=3, scale32=True)
    out = np.zeros(shape, np.int8)
    assert tc.tosa.rescale(x, "i8", multiplier=1_500_000_000, shift=43, output_zp=3, scale32=True, out=out) is out
    np.testing.assert_array_equal(out, y)


def test_rescale_per_channel():
    x = np.array([[100, 100], [-100, 50]], np.int8)
    y = tc.tosa.rescale(x, "i8", multiplier=[1 << 14, 1 << 13], shift=[15, 15], per_channel=True)
    assert y.tolist() == [[50, 25], [-50, 13]]
    unsigned = tc.tosa.rescale(np.uint8([0, 128, 255]), "i8", multiplier=1 << 14, shift=14, input_zp=128)
    assert unsigned.tolist() == [-128, 0, 127]
    with pytest.raises(tc.UsageError, match="per_channel"):
        tc.tosa.rescale(x, "i8", multiplier=[1, 2], shift=[2, 2])
    with pytest.raises(tc.InputError, match="unpredictable"):
        tc.tosa.rescale(np.int32([1 << 30]), "i32", multiplier=1 << 30, shift=2, scale32=True)
    with pytest.raises(TypeError, match="multiplier"):
        tc.tosa.rescale(x, "i8")


def test_rescale_by_scale():
    """A scale stands for multiplier and shift wherever these are taken."""
    x = np.int32([0, 100, -1000])
    y = tc.tosa.rescale(x, "i8", scale=0.1)
    assert y.tolist() == [0, 10, -100]
    assert tc.tosa.check_rescale(x, y, scale=np.float32(0.1))
    assert not tc.tosa.check_rescale(x, y + np.int8(1), scale=0.1)
    for call in (tc.tosa.rescale, tc.tosa.check_rescale):
        with pytest.raises(TypeError, match="not both"):
            call(x, "i8" if call is tc.tosa.rescale else y, scale=0.1, multiplier=2, shift=3)
        with pytest.raises(TypeError, match="needs multiplier and shift, or scale"):
            call(x, "i8" if call is tc.tosa.rescale else y)


def test_advice_is_of_python():
    """No option of the command, where there is no command line."""
    shown = tc.promotions("i32", "f32")._text(60)
    assert "hidden at 60 columns: version; to_dict() has all" in shown.replace("\n  ", " ") and "--wide" not in shown


def test_tile():
    """docs/spec/tile-ir.md section 6."""
    assert tc.tile.ftof(np.float32([np.inf]), "f8e5m2").view(np.uint8).tolist() == [0x7B]
    assert tc.tile.ftoi(np.float32([-1.5, 2.5]), "i8").tolist() == [-1, 2]
    assert tc.tile.itof(np.uint8([255]), "f16").tolist() == [255]
    assert tc.tile.exti(np.int8([-1]), "i32").tolist() == [-1]
    assert tc.tile.exti(np.uint8([255]), "i32").tolist() == [255]
    assert tc.tile.trunci(np.int32([300, -1]), "i8").tolist() == [44, -1]
    assert tc.tile.bitcast(np.float32([1, -0.0]), "i32").tolist() == [0x3F800000, -(1 << 31)]
    assert tc.tile.ptr_to_int(tc.tile.int_to_ptr(np.int64([-1]))).tolist() == [-1]
    for wrong in (
        lambda: tc.tile.exti(np.int32([1]), "i8"),
        lambda: tc.tile.ftof(np.int32([1]), "f16"),
        lambda: tc.tile.bitcast(np.int32([1]), "i8"),
    ):
        with pytest.raises(tc.SpecError):
            wrong()


def test_onnx():
    like = np.zeros(1, ml_dtypes.float8_e4m3fn)
    assert tc.onnx.cast_like(np.float32([465]), like, saturate=0).view(np.uint8).tolist() == [0x7F]
    assert tc.onnx.cast(np.float32([1]), 16).dtype == ml_dtypes.bfloat16
    with pytest.raises(tc.SpecError, match="opset"):
        tc.onnx.cast(np.float32([1]), "f8e4m3fn", opset=13)


def test_counts():
    y, counts = tc.cast_with_report(np.float32([1, 465, 1e-5, np.nan, np.inf]), "f8e4m3fn", saturate=False)
    assert y.dtype == ml_dtypes.float8_e4m3fn
    assert (counts.elements, counts.to_nan, counts.nan_in, counts.flushed_to_zero) == (5, 2, 1, 1)
    assert counts["exact"] == 2 and not counts.lossless and "SQNR" in repr(counts)
    same, kept = tc.cast_with_report(np.float16([1, 2]), "f32")
    assert kept.lossless and repr(kept) == "2 elements: lossless"
