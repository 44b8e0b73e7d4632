"""Arrays of every shape and layout, on memory of every kind, and objects that say what is not so: what is accepted is
converted as NumPy does it, what is refused is a `TruecastError`, and no byte beside is read or written.

    python memory_fuzz.py --seconds 300 --seed 1 [--torch]

Memory lies against pages that nobody may touch. A case is a number, which is printed when it fails; `--only N` repeats it.
`--torch` has tensors whose storages are released and resized, too.
"""

import argparse
import array
import ctypes
import faulthandler
import mmap
import os
import sys
import time
import warnings

import ml_dtypes
import numpy as np
import truecast as tc

PAGE = mmap.PAGESIZE
NATIVE = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
OTHERS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float6_e2m3fn", "float4_e2m1fn", "int4", "uint2"]
# Bits, and the type of ml_dtypes that reads a code a byte.
NARROW = {"i4": (4, "int4"), "u4": (4, "uint4"), "i2": (2, "int2"), "f4e2m1": (4, "float4_e2m1fn"), "f6e3m2": (6, "float6_e3m2fn")}
REFUSED = tc.TruecastError
KEPT = []
"""Memory that is given up when a case is over."""


def guarded(size: int, at_end: bool) -> memoryview:
    """Memory between two pages that nobody may touch, and against one of them."""
    inner = -(-max(size, 1) // PAGE) * PAGE
    pages = mmap.mmap(-1, inner + 2 * PAGE)
    KEPT.append(pages)
    first = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for page in (first, first + PAGE + inner):
        assert protect(page, PAGE, 0) == 0
    start = PAGE + (inner - size if at_end else 0)
    return memoryview(pages)[start : start + size]


def memory(rng, size: int, bits: int = 8):
    """So many random bytes of some owner, of which so many bits are used."""
    data = rng.integers(0, 1 << bits, size, np.uint8).tobytes()
    kind = rng.integers(7)
    if kind < 3 and sys.platform == "linux":
        room = guarded(size, kind != 0)
        room[:] = data
        return room
    makers = (bytes, bytearray, lambda data: array.array("B", data), lambda data: np.frombuffer(data, np.uint8).copy())
    return makers[kind % 4](data)


def layout(rng, width: int, most: int = 6):
    """A shape, strides of any sign and the offset that keeps them within memory of a size; some elements share bytes."""
    shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, most, rng.integers(0, 5)))
    how = rng.integers(4)
    strides = [width]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    strides = strides[: len(shape)][::-1]
    if how == 1:  # another order of the axes
        order = rng.permutation(len(shape))
        shape, strides = tuple(shape[i] for i in order), [strides[i] for i in order]
    elif how == 2:  # gaps, steps back, none at all
        strides = [int(s) * int(rng.choice([-2, -1, 0, 1, 2, 3])) for s in strides]
    elif how == 3:  # anything
        strides = [int(s) for s in rng.integers(-40, 40, len(shape))]
    reach = [(n - 1) * s for n, s in zip(shape, strides)] if 0 not in shape else []
    low = sum(r for r in reach if r < 0)
    size = sum(r for r in reach if r > 0) - low + width if 0 not in shape else 0
    before, after = (int(n) for n in rng.integers(0, 9, 2) * (rng.random() < 0.5))
    return shape, strides, before - low, before + size + after


def dtype_of(rng) -> np.dtype:
    if rng.random() < 0.3:
        return np.dtype(getattr(ml_dtypes, str(rng.choice(OTHERS))))
    return np.dtype(str(rng.choice(["<", ">", "="])) + str(rng.choice(NATIVE)))


def view(rng, dtype=None):
    """An array of NumPy on memory of some owner."""
    dtype = dtype_of(rng) if dtype is None else np.dtype(dtype)
    large = 40 if rng.random() < 0.03 else 6
    shape, strides, offset, size = layout(rng, dtype.itemsize, large)
    flat = np.frombuffer(memory(rng, size, {"float4": 4, "float6": 6}.get(dtype.name[:6], 8)), np.uint8)
    return np.ndarray(shape, dtype, flat, offset, strides)


def exact(x: np.ndarray):
    """A type that holds every value of the array, and the values as NumPy converts them."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        return x.dtype.newbyteorder("="), x.astype(x.dtype.newbyteorder("="))
    if x.dtype.kind == "b":  # a byte of 2 is true, and 2 where NumPy looks at the byte
        return np.dtype("f8"), (np.ascontiguousarray(x).view(np.uint8) != 0).astype(np.float64).reshape(x.shape)
    return np.dtype("f8"), x.astype(np.float64)


def same(found, expected) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype, (found.shape, found.dtype, expected.dtype)
    np.testing.assert_array_equal(found, expected)


def refused(call, *kinds) -> bool:
    try:
        call()
    except kinds or REFUSED:
        return True
    return False


def case_read(rng) -> None:
    x = view(rng)
    to, expected = exact(x)
    before = x.tobytes()
    same(tc.cast(x, to, spec="ieee"), expected)
    assert x.tobytes() == before
    if x.dtype.kind == "f" and x.dtype.itemsize in (4, 8):
        narrow = x.astype(np.float16)
        ours, number = tc.cast(x, "f16", spec="ieee"), ~np.isnan(narrow)
        assert np.array_equal(ours[number], narrow[number]) and np.isnan(ours[~number]).all()


def case_write(rng) -> None:
    """Beside the elements of `out` no byte changes."""
    x = view(rng)
    to, expected = exact(x)
    if rng.random() < 0.1:
        shape, strides, offset, size = layout(rng, to.itemsize)
    else:
        shape, steps = x.shape, rng.integers(-2, 4, x.ndim) * rng.permutation(x.ndim + 1)[1:]
        strides = [int(s) * to.itemsize for s in steps]
        if rng.random() < 0.5:
            strides = list(np.empty(shape, to, order=str(rng.choice(["C", "F"]))).strides)
        reach = [(n - 1) * s for n, s in zip(shape, strides) if n]
        offset, size = -sum(r for r in reach if r < 0), sum(map(abs, reach)) + to.itemsize
    flat = np.frombuffer(memory(rng, size + 8 * int(rng.integers(3))), np.uint8)
    if len(flat) < to.itemsize:
        return
    out = np.ndarray(shape, to if rng.random() < 0.9 else dtype_of(rng), flat, offset * (0 not in shape), strides)
    before = flat.copy()
    codes = np.dtype(f"u{to.itemsize}")
    if out.shape != x.shape or out.dtype not in (to, codes) or not out.dtype.isnative or not out.flags.writeable:
        if refused(lambda: tc.cast(x, to, spec="ieee", out=out)):
            assert np.array_equal(flat, before)
        else:
            assert out.size == 0 or out.dtype.itemsize == 1 or out.dtype == to, (out.dtype, to)
        return
    assert tc.cast(x, to, spec="ieee", out=out) is out
    is_beside = np.ones(len(flat), bool)
    np.ndarray(shape, f"V{to.itemsize}", is_beside.view(np.uint8), offset * (0 not in shape), strides)[...] = b""
    assert np.array_equal(flat[is_beside], before[is_beside])
    # Of elements that share bytes some one is left.
    if (~is_beside).sum() == out.size * to.itemsize:
        same(np.array(out).view(to) if out.ndim else np.array([out]).view(to)[0], expected)


def case_overlap(rng) -> None:
    owner = memory(rng, 4096)
    flat = np.frombuffer(owner, np.uint8)
    n, a, b = (int(v) for v in rng.integers(0, 400, 3))
    x = np.ndarray((n,), "f4", flat, a)[:: int(rng.choice([1, -1]))]
    out = np.ndarray((n,), "i4", flat, b)[:: int(rng.choice([1, -1]))]
    if not out.flags.writeable:
        assert n == 0 or refused(lambda: tc.cast(x, "i4", out=out))
        return
    codes = np.array(x).view(np.int32)
    tc.cast(x, "f32", spec="ieee", out=out.view(np.float32))
    # A signaling NaN may become a quiet one.
    number = ~np.isnan(codes.view(np.float32))
    assert np.array_equal(out[number], codes[number])


class Interface:
    def __init__(self, **said):
        self.__array_interface__ = {"version": 3, **said}


def case_interface(rng) -> None:
    """What lies beyond a buffer is not read, whatever the interface says."""
    dtype = np.dtype("<" + str(rng.choice(NATIVE[1:])))
    shape, strides, offset, size = layout(rng, dtype.itemsize)
    if rng.random() < 0.5:
        size = max(0, size + int(rng.integers(-20, 3)))
        offset += int(rng.integers(-3, 4))
    owner = memory(rng, size)
    said = {"shape": shape, "typestr": dtype.str, "data": owner, "strides": tuple(strides), "offset": offset}
    if rng.random() < 0.1:
        # Not an address: whoever gives one is believed.
        name = str(rng.choice(["shape", "typestr", "strides", "offset"]))
        said[name] = [None, "x", -1, (), (1 << 62, 1 << 62)][rng.integers(5)]
        refused(lambda: tc.cast(Interface(**said), "f64", spec="ieee"))
        return
    starts = [offset]
    for n, stride in zip(shape, strides):
        starts = [start + i * stride for start in starts for i in range(n)]
    inside = all(0 <= start and start + dtype.itemsize <= size for start in starts)
    give = lambda: tc.cast(Interface(**said), dtype, spec="ieee")
    if not inside:
        assert refused(give, tc.DTypeError), (said, size)
        return
    try:
        found = give()
    except tc.DTypeError:
        assert 0 in shape or size == 0, said
        return
    data = bytes(owner)
    expected = np.frombuffer(b"".join(data[s : s + dtype.itemsize] for s in starts), dtype).reshape(shape)
    number = ~np.isnan(expected) if dtype.kind == "f" else ...
    assert found.shape == shape and np.array_equal(found[number], expected[number])


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class Packed:
    """An array as a capsule of DLPack, on true memory; the rest may be anything."""

    def __init__(self, rng, owner):
        width = int(rng.choice([1, 2, 4, 8]))
        shape, strides, offset, size = layout(rng, 1)
        self.flat = np.frombuffer(owner(width * size), np.uint8)
        odd = rng.random() < 0.3
        self.tensor = DLTensor()
        self.tensor.data = None if odd and rng.random() < 0.3 else (self.flat.ctypes.data or None)
        self.device = (1, 0) if not odd else (int(rng.choice([1, 2, 3, 8, 14])), int(rng.integers(2)))
        self.tensor.device[:] = self.device
        self.tensor.ndim, self.tensor.lanes = len(shape), 1 if not odd else int(rng.choice([0, 1, 2]))
        self.tensor.code = int(rng.choice([0, 1, 2]) if not odd else rng.integers(0, 9))
        self.tensor.bits = 8 * width if not odd else int(rng.choice([0, 1, 4, 7, 8 * width]))
        self.numbers = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides)
        self.tensor.shape = ctypes.cast(self.numbers[0], ctypes.POINTER(ctypes.c_int64))
        self.tensor.strides = ctypes.cast(self.numbers[1], ctypes.POINTER(ctypes.c_int64))
        self.tensor.byte_offset = offset * width
        self.tensor.deleter = DLTensor._fields_[-1][1](lambda pointer: None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **how):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def case_dlpack(rng) -> None:
    x = Packed(rng, lambda size: memory(rng, size))
    KEPT.append(x)
    if not x.tensor.data:
        # NumPy makes memory without values for it, or reads it at its offset.
        refused(lambda: tc.cast(x, "f64", spec="ieee"))
        return
    try:
        theirs = np.from_dlpack(x)
        to, expected = exact(theirs)
    except Exception:  # noqa: BLE001 - of any kind: then it is no array
        assert refused(lambda: tc.cast(x, "f64", spec="ieee"))
        return
    try:
        same(tc.cast(x, to, spec="ieee"), expected)
    except (tc.DTypeError, tc.SpecError):
        assert theirs.dtype.kind in "cmMV" or not theirs.size, theirs.dtype


class Odd:
    """An object with one attribute that makes it look like an array."""

    def __init__(self, name, value):
        self.__dict__[name] = value


def case_odd(rng) -> None:
    def fails(*given, **named):
        raise rng.choice([ValueError, KeyError, RuntimeError, BufferError])("no")

    values = [None, 1, "x", b"", [], {}, (0, 0), fails, lambda *given, **named: None, lambda *given, **named: [1, 2], lambda *given, **named: "text"]
    names = ["__array__", "__dlpack__", "__array_interface__", "__array_struct__", "null_count", "dtype", "shape", "__buffer__", "data_ptr"]
    made = type("Odd", (), {str(name): values[rng.integers(len(values))] for name in rng.choice(names, 2)})()
    view_ = memoryview(bytearray(8))
    view_.release()
    for x in (made, view_, np.ma.masked_array([1.0, 2.0], [0, 1]), np.empty(3, "V0"), np.empty(3, "S0"), np.array([None, 1]), np.zeros(2, "f4,i2")):
        for call in (lambda: tc.cast(x, "f32"), lambda: tc.cast(x, "f32", from_="u8", shape=(8,)), lambda: tc.quantize(x, "mxfp8"), lambda: tc.cast(np.ones(2, np.float32), "f32", out=x)):
            refused(call)


def case_codes(rng) -> None:
    """Codes in bytes of their own, and packed."""
    name = str(rng.choice(list(NARROW)))
    bits, dtype = NARROW[name]
    dtype = np.dtype(getattr(ml_dtypes, dtype))
    codes = view(rng, np.uint8)
    if codes.flags.writeable and rng.random() < 0.8:
        codes &= (1 << bits) - 1
    expected = np.array(codes).view(dtype).astype(np.float64)
    if (codes >> bits).any():
        assert refused(lambda: tc.cast(codes, "f64", spec="ieee", from_=name), tc.InputError)
        # ml_dtypes ignores the high bits of integers.
        if dtype.name.startswith("float"):
            assert refused(lambda: tc.cast(np.array(codes).view(dtype), "f64", spec="ieee"), tc.InputError)
    else:
        same(tc.cast(codes, "f64", spec="ieee", from_=name), expected)
    low = np.array(codes) & ((1 << bits) - 1)
    each = np.unpackbits(low.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    packed = np.packbits(each.ravel(), bitorder="little")
    shape, wrong = codes.shape, rng.random() < 0.2
    if wrong:
        packed = packed[: rng.integers(0, len(packed) + 1)]
    call = lambda: tc.cast(packed, "f64", spec="ieee", from_=name, shape=shape)
    if len(packed) != -(-low.size * bits // 8):
        assert refused(call, tc.UsageError)
    else:
        same(call(), low.view(dtype).astype(np.float64))


def case_scaled(rng) -> None:
    rows, columns = int(rng.integers(1, 5)), 32 * int(rng.integers(1, 4))
    values = rng.standard_normal((2 * rows, 2 * columns)).astype(str(rng.choice(["<f4", ">f4", "f8", "f2"])))
    for x in (values[::2, :columns], values[rows::-1][:rows, columns:], np.asfortranarray(values[:rows, :columns])):
        q, dense = tc.quantize(x, "mxfp8"), tc.quantize(np.array(x, x.dtype.newbyteorder("="), order="C"), "mxfp8")
        assert q.codes.tobytes() == dense.codes.tobytes() and q.scales.tobytes() == dense.scales.tobytes()
        turned = tc.Quantized("mxfp8", x.shape, codes=np.asfortranarray(q.codes), scales=np.repeat(q.scales, 2, axis=0)[::2])
        assert np.array_equal(tc.dequantize(turned, "f32"), tc.dequantize(q, "f32"))
    q = tc.quantize(values[:rows, :columns], "mxfp8", layout="codes")
    parts = {"codes": q.codes, "scales": q.scales}
    name = str(rng.choice(list(parts)))
    parts[name] = [parts[name][:, 1:], parts[name].astype(np.int16), parts[name].astype(object), view(rng)][rng.integers(4)]
    long = lambda shape: [n for n in shape if n != 1]
    if long(parts[name].shape) != long(getattr(q, name).shape) or parts[name].dtype.itemsize != 1:
        assert refused(lambda: tc.Quantized("mxfp8", (rows, columns), **parts).dequantize()), parts[name].dtype


def case_rescale(rng) -> None:
    x = view(rng, str(rng.choice(["i1", "<i2", ">i2"])))
    scale = {"multiplier": 1 << 30, "shift": 31, "scale32": True}
    native = np.array(x, x.dtype.newbyteorder("="), order="C")
    if not x.size or x.ndim == 0:
        return
    out = np.zeros((2 * x.shape[0], *x.shape[1:]), np.int8)[::2]
    assert np.array_equal(tc.tosa.rescale(x, "i8", **scale), tc.tosa.rescale(native, "i8", **scale))
    assert np.array_equal(tc.tosa.rescale(x, "i8", out=out, **scale), tc.tosa.rescale(native, "i8", **scale))


def case_torch(rng) -> None:
    """A tensor is read and written if its elements lie within its storage, and refused if not."""
    import torch

    dtype = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.int64][rng.integers(6)]
    shape = [int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 6, rng.integers(0, 5))]
    strides = [int(s) for s in rng.integers(0, 7, len(shape))]
    if rng.random() < 0.5:
        strides = list(torch.empty(shape).permute(*[int(i) for i in rng.permutation(len(shape))]).stride()) if shape else []
        shape = shape if rng.random() < 0.3 else sorted(shape)
    offset = int(rng.integers(0, 9))
    end = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
    storage = torch.from_numpy(rng.integers(0, 100, max(end, 1)).astype(np.float32)).to(dtype).clone()
    x = storage.as_strided(shape, strides, offset)
    target = torch.int64 if dtype == torch.int64 else torch.float64
    expected = x.clone().to(target)
    if rng.random() < 0.1 and x.is_floating_point():
        x, expected = torch._neg_view(x), -expected
    left = None
    if rng.random() < 0.5:
        left = int(rng.choice([0, 1, end * x.element_size() - 1, end * x.element_size(), end * x.element_size() + 9]))
        storage.untyped_storage().resize_(max(left, 0))
    fits = not x.numel() or left is None or left >= end * x.element_size()
    if not fits:
        assert refused(lambda: tc.cast(x, target, spec="ieee"), tc.DTypeError)
        assert refused(lambda: tc.cast(torch.zeros(shape), x.dtype, spec="ieee", out=x), tc.DTypeError)
        assert refused(lambda: tc.quantize(x, "mxfp8"))
        return
    found = tc.cast(x, target, spec="ieee")
    assert torch.equal(found, expected) and found.shape == x.shape
    out = torch.empty(shape, dtype=target) if rng.random() < 0.5 else torch.empty_like(x, dtype=target)
    assert torch.equal(tc.cast(x, target, spec="ieee", out=out), expected)
    array_ = np.zeros(shape, np.int64 if target == torch.int64 else np.float64, order=str(rng.choice(["C", "F"])))
    assert np.array_equal(tc.cast(x, target, spec="ieee", out=array_), expected.numpy())


CASES = [case_read, case_read, case_write, case_write, case_overlap, case_interface, case_dlpack, case_odd, case_codes, case_scaled, case_rescale]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--torch", action="store_true")
    asked = parser.parse_args()
    cases = [*CASES, *[case_torch] * 5] if asked.torch else CASES
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    faulthandler.enable()
    done, number, end = {}, asked.only or 0, time.monotonic() + asked.seconds
    while time.monotonic() < end:
        case = cases[number % len(cases)]
        # What is left of it after a crash is the last line.
        os.write(1, b"\r%d " % number)
        try:
            case(np.random.default_rng([asked.seed, number]))
        except BaseException as error:
            print(f"\n{case.__name__}: --seed {asked.seed} --only {number}: {type(error).__name__}", flush=True)
            raise
        KEPT.clear()
        done[case.__name__] = done.get(case.__name__, 0) + 1
        number += 1
        if asked.only is not None:
            break
    print(f"\n{sum(done.values())} cases of seed {asked.seed}: {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
