"""The element types of truecast as Python packages know them, and how codes are compared.

Here: names, storage, ml_dtypes classes. Not here: any conversion, any special value (see `values.py`).
"code" means the bits of one element in an unsigned integer, as in docs/style.md §9.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Type:
    """One element type. `numpy` holds one element per item, whatever the width."""

    name: str
    bits: int
    numpy: np.dtype
    safetensors: str | None = None
    """Name in a safetensors header (docs/spec/checkpoints.md §1.3)."""
    onnx: str | None = None
    """Name in TensorProto.DataType (docs/spec/onnx.md §1.7)."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.name.startswith(("f", "bf", "tf"))

    @property
    def is_signed_int(self) -> bool:
        return self.name.startswith("i")

    @property
    def uint(self) -> np.dtype:
        """The unsigned integer of the item's width."""
        return np.dtype(f"u{self.numpy.itemsize}")

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def codes(self, array: np.ndarray) -> np.ndarray:
        """Codes of an array of this type."""
        assert array.dtype == self.numpy, (array.dtype, self)
        return np.ascontiguousarray(array).reshape(-1).view(self.uint) & self.uint.type(self.mask)

    def from_codes(self, codes: np.ndarray) -> np.ndarray:
        """The array with these codes. Unused high bits of an item are zero, also for negative int4 and int2, as in
        every array that ml_dtypes makes."""
        return np.ascontiguousarray(np.asarray(codes).astype(self.uint)).view(self.numpy)


def _type(name: str, bits: int, numpy, safetensors=None, onnx=None) -> Type:
    return Type(name, bits, np.dtype(numpy), safetensors, onnx)


TYPES = {
    t.name: t
    for t in [
        _type("bool", 8, np.bool_, "BOOL", "BOOL"),
        _type("i2", 2, ml_dtypes.int2, None, "INT2"),
        _type("u2", 2, ml_dtypes.uint2, None, "UINT2"),
        _type("i4", 4, ml_dtypes.int4, None, "INT4"),
        _type("u4", 4, ml_dtypes.uint4, None, "UINT4"),
        _type("i8", 8, np.int8, "I8", "INT8"),
        _type("u8", 8, np.uint8, "U8", "UINT8"),
        _type("i16", 16, np.int16, "I16", "INT16"),
        _type("u16", 16, np.uint16, "U16", "UINT16"),
        _type("i32", 32, np.int32, "I32", "INT32"),
        _type("u32", 32, np.uint32, "U32", "UINT32"),
        _type("i64", 64, np.int64, "I64", "INT64"),
        _type("u64", 64, np.uint64, "U64", "UINT64"),
        _type("f4e2m1", 4, ml_dtypes.float4_e2m1fn, "F4", "FLOAT4E2M1"),
        _type("f6e2m3", 6, ml_dtypes.float6_e2m3fn, "F6_E2M3", "FLOAT6E2M3"),
        _type("f6e3m2", 6, ml_dtypes.float6_e3m2fn, "F6_E3M2", "FLOAT6E3M2"),
        _type("f8e4m3fn", 8, ml_dtypes.float8_e4m3fn, "F8_E4M3", "FLOAT8E4M3FN"),
        _type("f8e4m3fnuz", 8, ml_dtypes.float8_e4m3fnuz, "F8_E4M3FNUZ", "FLOAT8E4M3FNUZ"),
        _type("f8e5m2", 8, ml_dtypes.float8_e5m2, "F8_E5M2", "FLOAT8E5M2"),
        _type("f8e5m2fnuz", 8, ml_dtypes.float8_e5m2fnuz, "F8_E5M2FNUZ", "FLOAT8E5M2FNUZ"),
        _type("f8e8m0", 8, ml_dtypes.float8_e8m0fnu, "F8_E8M0", "FLOAT8E8M0"),
        _type("f8e3m4", 8, ml_dtypes.float8_e3m4),
        _type("f8e4m3ieee", 8, ml_dtypes.float8_e4m3),
        _type("f8e4m3b11fnuz", 8, ml_dtypes.float8_e4m3b11fnuz),
        _type("f16", 16, np.float16, "F16", "FLOAT16"),
        _type("bf16", 16, ml_dtypes.bfloat16, "BF16", "BFLOAT16"),
        _type("f32", 32, np.float32, "F32", "FLOAT"),
        _type("f64", 64, np.float64, "F64", "DOUBLE"),
    ]
}

F8 = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"]
FINITE = ["f4e2m1", "f6e2m3", "f6e3m2"]
"""Types without Inf and NaN."""
IEEE_ONLY = ["f8e3m4", "f8e4m3ieee", "f8e4m3b11fnuz"]
"""Types that ONNX does not have: converted with `--spec ieee`."""
INTEGERS = ["i2", "u2", "i4", "u4", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
FLOATS = [name for name, t in TYPES.items() if t.is_float]
IN_SAFETENSORS = [name for name, t in TYPES.items() if t.safetensors]

# One bit of sign at the top, and NaN of either sign.
SIGNED_NAN = {"f8e4m3fn", "f8e5m2", "f8e3m4", "f8e4m3ieee", "f16", "bf16", "f32", "f64"}


def bounds(t: Type) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed_int else (0, (1 << t.bits) - 1)


def to_f64(array: np.ndarray) -> np.ndarray:
    """Values as f64; exact for every type here but 64-bit integers beyond 2^53."""
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaN
        if array.dtype in (np.float64, np.float32, np.float16) or array.dtype.kind in "iub":
            return array.astype(np.float64)
        return array.astype(np.float32).astype(np.float64)


def assert_same(actual: np.ndarray, expected: np.ndarray, t: Type, source: np.ndarray | None = None) -> None:
    """Equal codes; NaN equal as NaN.

    No specification fixes the payload of a NaN, and the peers disagree: NumPy keeps f32 7F800001 as the signaling
    f16 7C01, truecast quiets it to 7E00 (docs/spec/onnx.md §4.9). So where both are NaN only the sign is compared, in
    the types that have one. Every other code is compared bit for bit.
    """
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    a, e = t.codes(actual), t.codes(expected)
    same = a == e
    if t.is_float and t.name not in FINITE:
        both_nan = np.isnan(to_f64(actual)).reshape(-1) & np.isnan(to_f64(expected)).reshape(-1)
        if t.name in SIGNED_NAN:
            both_nan &= (a >> (t.bits - 1)) == (e >> (t.bits - 1))
        same |= both_nan
    wrong = np.flatnonzero(~same)
    if wrong.size:
        lines = []
        for i in wrong[:10]:
            value = "" if source is None else f"source {source.reshape(-1)[i]!r} "
            lines.append(f"  [{i}] {value}got {int(a[i]):#x}, expected {int(e[i]):#x}")
        raise AssertionError(f"{wrong.size} of {a.size} elements of {t} differ\n" + "\n".join(lines))
