"""Arrays of NumPy in and out: types, layouts, places for results. Expectations come from ml_dtypes and NumPy where
docs/style.md section 15 says that they are right, and from the tables of docs/spec otherwise."""

import gc
import sys

import ml_dtypes
import numpy as np
import pytest
import truecast as tc

ML_TYPES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
ML_INTEGERS = ["int1", "uint1", "int2", "uint2", "int4", "uint4"]
NATIVE = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def ml(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name))


def bits(name: str) -> int:
    return {"bfloat16": 16, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}.get(name, 8)


def every_code(name: str) -> np.ndarray:
    """Every code of a type of at most 16 bits, as ml_dtypes lays them out."""
    width = np.uint16 if bits(name) == 16 else np.uint8
    return np.arange(1 << bits(name), dtype=np.uint32).astype(width).view(ml(name))


def same(a: np.ndarray, b: np.ndarray) -> None:
    """Equal as values, NaN alike."""
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))


@pytest.mark.parametrize("name", ML_TYPES)
def test_every_code_widens_as_ml_dtypes_says(name):
    codes = every_code(name)
    wide = tc.cast(codes, "f32", spec="ieee")
    expected = codes.astype(np.float32)
    assert wide.dtype == np.float32
    # Every code but NaN has one value, and zero keeps its sign.
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(wide), ~finite)
    np.testing.assert_array_equal(wide[finite].view(np.uint32), expected[finite].view(np.uint32))


@pytest.mark.parametrize("name", ML_TYPES)
def test_every_f16_narrows_as_ml_dtypes_says(name):
    """Sources of 16 bits are rounded once by ml_dtypes (docs/style.md section 15). Types without infinities clamp there
    if they have no NaN either; e8m0 has neither sign nor zero and is not rounded so."""
    if name == "float8_e8m0fnu":
        pytest.skip("unsigned: ml_dtypes takes the magnitude of what has none")
    source = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    numbers = source[~np.isnan(source)]
    ours = tc.cast(numbers, ml(name), spec="ieee")
    theirs = numbers.astype(ml(name))
    same(ours, theirs)


@pytest.mark.parametrize("name", ML_INTEGERS)
def test_narrow_integers(name):
    dtype = ml(name)
    info = ml_dtypes.iinfo(dtype)
    values = np.arange(int(info.min), int(info.max) + 1, dtype=np.int8)
    narrow = tc.cast(values, dtype, spec="ieee")
    assert narrow.dtype == dtype
    np.testing.assert_array_equal(narrow.astype(np.int8), values)
    np.testing.assert_array_equal(tc.cast(values.astype(dtype), np.int8, spec="ieee"), values)


@pytest.mark.parametrize("name", NATIVE)
def test_native_types_come_back(name):
    x = np.array([0, 1], dtype=name)
    y = tc.cast(x, "f32")
    assert y.dtype == np.float32
    back = tc.cast(y, name)
    assert back.dtype == np.dtype(name)
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize(
    "to", ["f8e4m3fn", "FLOAT8E4M3FN", "float8_e4m3fn", "torch:float8_e4m3fn", 17, ml_dtypes.float8_e4m3fn]
)
def test_types_have_many_names(to):
    y = tc.cast(np.float32([465]), to)
    assert y.dtype == ml_dtypes.float8_e4m3fn and y.view(np.uint8)[0] == 0x7E


@pytest.mark.parametrize("to, expected", [(float, "float64"), (int, "int64"), (bool, "bool"), (np.dtype("f2"), "float16")])
def test_python_types(to, expected):
    assert tc.cast(np.float32([1]), to).dtype == np.dtype(expected)


def test_specifications_differ():
    """docs/spec/onnx.md section 2.5, docs/spec/tosa.md section 3."""
    x = np.float32([464.5])
    code = lambda **options: int(tc.cast(x, "f8e4m3fn", **options).view(np.uint8)[0])
    assert code() == 0x7E
    assert code(spec="onnx@28", saturate=False) == 0x7F
    assert code(saturate=0) == 0x7F
    assert code(spec="tosa") == 0x7F
    assert code(spec="ieee", overflow="saturate") == 0x7E
    assert code(spec="ieee", rounding="toward-zero") == 0x7E
    assert code(spec="tile", rounding="nearest_even") == 0x7E


def test_one_rounding_from_f64():
    """Through f32 it would be a tie: ml_dtypes gives 0x38 (docs/style.md section 15)."""
    assert tc.cast(np.float64([1.0625 + 2.0**-30]), "f8e4m3fn").view(np.uint8)[0] == 0x39


def layouts(shape=(6, 10)):
    n = int(np.prod(shape))
    base = np.linspace(-500, 500, 4 * n, dtype=np.float32)
    yield "contiguous", base[:n].reshape(shape)
    yield "Fortran", np.asfortranarray(base[:n].reshape(shape))
    yield "transposed", base[:n].reshape(shape[::-1]).T
    yield "strided", base.reshape(2 * shape[0], 2 * shape[1])[::2, ::2]
    yield "reversed", base[:n].reshape(shape)[::-1, ::-1]
    yield "broadcast", np.broadcast_to(base[: shape[1]], shape)
    yield "big-endian", base[:n].reshape(shape).astype(">f4")
    yield "three axes", base[:n].reshape(2, 3, -1).transpose(2, 0, 1)
    yield "read-only", np.frombuffer(base[:n].tobytes(), np.float32).reshape(shape)
    unaligned = np.zeros(4 * n + 1, np.uint8)[1:].view(np.float32)
    unaligned[:] = base[:n]
    yield "unaligned", unaligned.reshape(shape)


@pytest.mark.parametrize("name, x", list(layouts()), ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("to", ["bf16", "f8e4m3fn", "i4", "f64", "string"])
def test_layouts(name, x, to):
    y = tc.cast(x, to)
    assert y.shape == x.shape
    flat = tc.cast(np.ascontiguousarray(x.astype(np.float32)).ravel(), to)
    assert y.ravel().tolist() == flat.tolist()


@pytest.mark.parametrize("rows", [3, 300_000])
def test_the_order_of_axes_stays(rows):
    """As NumPy's own conversion keeps it."""
    x = (np.arange(4 * rows) % 100).astype(np.float32).reshape(rows, 2, 2)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
        turned, out = x.transpose(axes), np.empty((2, 2, rows), np.float16).transpose(1, 2, 0)
        y = tc.cast(turned, "f16")
        assert y.strides == turned.astype(np.float16).strides and np.array_equal(y, turned)
        if out.shape == turned.shape:
            assert tc.cast(turned, "f16", out=out) is out and np.array_equal(out, turned)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0, 2), (1,)])
@pytest.mark.parametrize("to", ["bf16", "i4", "string", "f32"])
def test_sizes(shape, to):
    y = tc.cast(np.zeros(shape, np.float32), to)
    assert y.shape == shape
    assert tc.cast(y, "f32").shape == shape


def test_lists_and_buffers():
    assert tc.cast([1.0, 2.5], "i8").tolist() == [1, 2]
    assert tc.cast(2.5, "f16") == 2.5
    assert tc.cast(memoryview(b"\x01\x02"), "f32").tolist() == [1, 2]
    assert tc.cast(np.ma.masked_array([1.5], mask=[0]), "f16").tolist() == [1.5]


def test_what_would_be_lost_is_refused():
    with pytest.raises(tc.InputError, match="masks"):
        tc.cast(np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "f16")
    with pytest.raises(tc.InputError, match="masks"):
        tc.cast(np.float64([1, 2]), "f64", out=np.ma.masked_array([1.0, 2.0], mask=[0, 1]))

    class Series:
        """As polars and pyarrow count elements that are missing, which NumPy takes for NaN."""

        def __init__(self, nulls):
            self.null_count = nulls

        def __array__(self, dtype=None, copy=None):
            return np.float64([1, np.nan])

    for nulls in (1, lambda: 1, lambda: np.array([[0, 1]])):
        with pytest.raises(tc.InputError, match="1 elements are null"):
            tc.cast(Series(nulls), "i8")
    for unreadable in (None, "x", -1, 0.5, lambda: None):
        with pytest.raises(tc.DTypeError, match="cannot read Series as an array"):
            tc.cast(Series(unreadable), "f16")
    assert tc.cast(Series(lambda: 0), "f16")[0] == 1


def test_subclasses_become_arrays():
    x = np.ones(2, np.float32).view(type("Mine", (np.ndarray,), {}))
    assert type(tc.cast(x, "f16")) is np.ndarray


class Interface:
    def __init__(self, **said):
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "data": bytes(8), **said}


@pytest.mark.parametrize(
    "said",
    [
        {"shape": (1000,)},
        {"shape": (2,), "strides": (4000,)},
        {"shape": (2,), "strides": (-4,)},
        {"shape": (2,), "offset": 4},
        {"shape": (2,), "offset": -4},
        {"shape": (), "data": b""},
        {"shape": (5,), "strides": (4,), "data": b""},
        {"shape": (2, 2, 2), "strides": (1 << 62, 1 << 62, 0)},
        {"shape": (1 << 62,)},
        {"shape": (-2,)},
        {"shape": (1,), "typestr": "|O"},
    ],
)
def test_interfaces_that_name_more_than_their_buffer(said):
    """NumPy reads what lies behind."""
    with pytest.raises(tc.DTypeError, match="cannot read Interface as an array"):
        tc.cast(Interface(**said), "f64")
    assert tc.cast(Interface(shape=(2,), strides=(-4,), offset=4, data=np.float32([1, 2]).tobytes()), "f64").tolist() == [2, 1]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_arrays(threads):
    """More than a piece of work, on any number of threads."""
    x = np.random.default_rng(1).standard_normal(3_000_001).astype(np.float32)
    tc.set_num_threads(threads)
    try:
        assert tc.get_num_threads() == threads
        y = tc.cast(x, "bf16")
    finally:
        tc.set_num_threads(None)
    np.testing.assert_array_equal(y.view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))


# ---- codes and packed bytes ----


def test_codes():
    x = np.float32([1, -2, 3])
    y = tc.cast(x, "nf4", spec="openvino", layout="codes")
    assert y.dtype == np.uint8 and y.shape == (3,)
    back = tc.cast(y, "f32", spec="openvino", from_="nf4")
    assert back.tolist() == [1, -1, 1]
    assert tc.cast(x, "f16", layout="codes").dtype == np.uint16
    with pytest.raises(tc.DTypeError, match="nf4.*layout"):
        tc.cast(x, "nf4", spec="openvino")


@pytest.mark.parametrize("to, width", [("i4", 4), ("f4e2m1", 4), ("u2", 2), ("f6e2m3", 6), ("i8", 8)])
def test_packed(to, width):
    """The first element lies in the low bits (docs/interfaces.md section 1)."""
    x = np.float32([[1, 0, 2], [1, 3, 2]])
    loose = tc.cast(x, to, spec="ieee", layout="codes").ravel()
    packed = tc.cast(x, to, spec="ieee", layout="packed")
    mask = (1 << width) - 1
    number = sum((int(code) & mask) << (width * i) for i, code in enumerate(loose))
    assert packed.dtype == np.uint8
    assert packed.tobytes() == number.to_bytes((6 * width + 7) // 8, "little")
    again = tc.cast(packed, "f32", spec="ieee", from_=to, shape=(2, 3))
    np.testing.assert_array_equal(again, x)
    from_fortran = tc.cast(np.asfortranarray(x), to, spec="ieee", layout="packed")
    np.testing.assert_array_equal(from_fortran, packed)


@pytest.mark.parametrize("name", ["i4", "f4e2m1", "u2", "f6e2m3", "nf4", "u3"])
def test_codes_have_no_high_bits(name):
    """Packed bytes without shape= would lose half of the elements."""
    bits = {"u2": 2, "u3": 3, "f6e2m3": 6}.get(name, 4)
    codes = np.arange(1 << bits, dtype=np.uint8)
    spec = "openvino" if name in ("nf4", "u3") else "ieee"
    assert tc.cast(codes, "f32", from_=name, spec=spec).shape == codes.shape
    codes[-2] |= 1 << bits
    with pytest.raises(tc.InputError, match=f"{codes[-2]:#04x} at byte {len(codes) - 2} is not a code of {name}.*shape="):
        tc.cast(codes, "f32", from_=name, spec=spec)


def test_objects_are_no_codes():
    """Their addresses would be read."""
    for dtype in (object, np.dtypes.StringDType()):
        x = np.array(["1", "2"], dtype)
        with pytest.raises(tc.DTypeError, match="objects"):
            tc.cast(x, "f32", from_="u8", shape=(x.nbytes,))


def test_packed_bytes_in_the_order_of_fortran():
    x = np.uint8([[0x21, 0x43], [0x65, 0x07]])
    assert tc.cast(np.asfortranarray(x), "f32", from_="i4", shape=(8,)).tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_tf32_is_float32():
    y = tc.cast(np.float32([1 + 2.0**-11 + 2.0**-20]), "tf32", spec="tile")
    assert y.dtype == np.float32 and y[0] == 1 + 2.0**-10


def test_packed_bytes_must_fit():
    with pytest.raises(tc.UsageError, match="3 bytes, the array has 2"):
        tc.cast(np.zeros(2, np.uint8), "f32", from_="i4", shape=(5,))
    with pytest.raises(tc.UsageError, match="from_"):
        tc.cast(np.zeros(2, np.uint8), "f32", shape=(4,))
    with pytest.raises(tc.DTypeError, match="cannot hold codes of bf16"):
        tc.cast(np.zeros(2, np.float32), "f32", from_="bf16")


# ---- out ----


@pytest.mark.parametrize("order", ["C", "F"])
def test_out(order):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((3, 4), np.float16, order=order)
    assert tc.cast(x, "f16", out=out) is out
    np.testing.assert_array_equal(out, x.astype(np.float16))


def test_out_with_gaps():
    out = np.zeros((3, 8), np.float16)
    tc.cast(np.ones((3, 4), np.float32), "f16", out=out[:, ::2])
    assert out.tolist() == [[1, 0] * 4] * 3


def test_out_takes_codes():
    out = np.zeros(2, np.uint8)
    assert tc.cast(np.float32([1, 465]), "f8e4m3fn", out=out) is out
    assert out.tolist() == [0x38, 0x7E]


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_out_may_overlap(shift):
    memory = np.arange(100, dtype=np.float32)
    x, out = memory[10:90], memory.view(np.int32)[10 + shift : 90 + shift]
    expected = x.astype(np.int32)
    tc.cast(x, "i32", out=out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "out", [np.zeros(2, np.float16), np.zeros(3, np.float32), np.zeros((3, 1), np.float16)], ids=["shape", "type", "rank"]
)
def test_out_must_fit(out):
    with pytest.raises(tc.UsageError, match="out has type"):
        tc.cast(np.zeros(3, np.float32), "f16", out=out)


def test_out_must_be_writable():
    out = np.zeros(3, np.float16)
    out.flags.writeable = False
    with pytest.raises(tc.UsageError, match="read-only"):
        tc.cast(np.zeros(3, np.float32), "f16", out=out)


@pytest.mark.parametrize("out", [[0.0, 0.0], (0.0, 0.0)])
def test_out_must_have_memory(out):
    with pytest.raises(tc.DTypeError, match="out is a (list|tuple)"):
        tc.cast(np.float32([1, 2]), "f64", out=out)
    room = bytearray(2)
    assert tc.cast(np.float32([1, 2]), "u8", out=room) == b"\1\2"


# ---- text ----


@pytest.mark.parametrize("make", [object, "U", np.dtypes.StringDType()], ids=["object", "U", "StringDType"])
def test_text_is_read(make):
    texts = np.array([["0.1", "1e6"], ["-inf", "65519.9999999999999999999"]], dtype=make)
    y = tc.cast(texts, "f16")
    assert y.view(np.uint16).tolist() == [[0x2E66, 0x7C00], [0xFC00, 0x7BFF]]
    assert tc.cast(texts, "f4e2m1").dtype == ml_dtypes.float4_e2m1fn


def test_text_is_written():
    y = tc.cast(np.float32([[0.1, 1e-05], [np.nan, -0.0]]), "string")
    assert y.dtype == object and y.tolist() == [["0.1", "1e-05"], ["nan", "-0.0"]]
    assert tc.cast(np.float32([1e-05]), "string", string_style="plain").tolist() == ["0.00001"]
    assert tc.cast(np.array([1, 2], ml_dtypes.int4), "string").tolist() == ["1", "2"]


def test_text_that_is_none():
    with pytest.raises(tc.InputError, match="element 1"):
        tc.cast(np.array(["1", "one"]), "f32")
    with pytest.raises(tc.DTypeError, match="element 1 is int"):
        tc.cast(np.array(["1", 2], dtype=object), "f32")


# ---- errors ----


@pytest.mark.parametrize(
    "call, kinds, words",
    [
        (lambda x: tc.cast(x, "f17"), (tc.DTypeError, TypeError), "did you mean f16"),
        (lambda x: tc.cast(x, "f8e4m3"), (tc.DTypeError, TypeError), "ambiguous"),
        (lambda x: tc.cast(x, object()), (tc.DTypeError, TypeError), "not an element type"),
        (lambda x: tc.cast(object(), "f16"), (tc.DTypeError, TypeError), "object"),
        (lambda x: tc.cast(np.zeros(2, "M8[s]"), "f16"), (tc.DTypeError, TypeError), "datetime64"),
        (lambda x: tc.cast(x, "c64"), (tc.SpecError, ValueError), "complex"),
        (lambda x: tc.cast(x, "f8e3m4"), (tc.SpecError, ValueError), "f8e3m4"),
        (lambda x: tc.cast(x, "f16", spec="onxx"), (tc.UsageError, ValueError), "onnx, tosa"),
        (lambda x: tc.cast(x, "f16", spec="onnx@99"), (tc.SpecError, ValueError), "99"),
        (lambda x: tc.cast(x, "f16", rounding="up"), (tc.UsageError, ValueError), "saturate"),
        (lambda x: tc.cast(x, "f16", spec="ieee", rounding="sideways"), (tc.UsageError, ValueError), "toward-zero"),
        (lambda x: tc.cast(x, "f16", saturate="maybe"), (tc.UsageError, ValueError), "true, false"),
        (lambda x: tc.cast(x, "f16", saturate=2), (tc.UsageError, ValueError), "True or False"),
        (lambda x: tc.cast(x, "f16", layout="tight"), (tc.UsageError, ValueError), "packed"),
        (lambda x: tc.cast(x, "f16", spec="ieee", overflow="error"), (tc.InputError, ValueError), "element 1"),
    ],
)
def test_errors(call, kinds, words):
    x = np.float32([1, 1e6])
    for kind in (tc.TruecastError, *kinds):
        with pytest.raises(kind, match=words):
            call(x)


def test_references_are_given_back():
    x = np.ones((4, 4), np.float32)
    to, out = np.dtype("f2"), np.zeros((4, 4), np.float16)
    for _ in range(3):
        tc.cast(x, to, out=out)
        tc.cast(x.T[::2], "string")
    gc.collect()
    before = [sys.getrefcount(o) for o in (x, to, out)]
    for _ in range(1000):
        tc.cast(x, to)
        tc.cast(x, to, out=out)
        tc.cast(x[::2, ::3], to)
        with pytest.raises(tc.SpecError):
            tc.cast(x, "f8e3m4")
    gc.collect()
    assert [sys.getrefcount(o) for o in (x, to, out)] == before


def test_large_new_results_are_those_of_out():
    """What is written past the caches, and what is not, on memory that is new or used."""
    x = np.random.default_rng(7).integers(0, 256, 40 << 20, np.uint8)
    out = np.empty(x.shape, np.float32)
    tc.cast(x, "f32", from_="f8e4m3fn", out=out)
    assert np.array_equal(tc.cast(x, "f32", from_="f8e4m3fn").view(np.uint32), out.view(np.uint32))


def test_arguments_that_do_not_exist():
    x = np.float32([1])
    with pytest.raises(tc.UsageError, match='onnx has no attribute "foo"; known attributes are saturate'):
        tc.cast(x, "f16", foo=1)
    with pytest.raises(tc.DTypeError, match="element 0 is object: an array of objects must hold strings"):
        tc.cast(object(), "f16")
