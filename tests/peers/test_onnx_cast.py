"""Cast of every pair of numeric types that ONNX has, under every set of attributes, against the reference evaluator and
onnxruntime: equal codes (NaN as NaN), except for the rows of docs/spec/onnx.md §5, each cut out where it applies and
proved by its witness in `test_onnx_deviations.py`.

Inputs: every code of sources of 16 bits or fewer; of wider ones what `truecast vectors` lists, and random codes.
"""

import itertools

import codes as engines
import container
import numpy as np
import pytest
from dtypes import F8, FINITE, INTEGERS, TYPES, Type, to_f64

F = ["f64", "f32", "f16", "bf16"]
NUMERIC = [*F, *F8, "f8e8m0", *FINITE, *INTEGERS, "bool"]
FLOATS = {*F, *F8, "f8e8m0", *FINITE}
SMALL_INTEGERS = ["i2", "u2", "i4", "u4"]
WIDE_INTEGERS = ["i32", "u32", "i64", "u64"]
N_RANDOM = 4000


def attribute_sets(dst: str) -> list[dict]:
    saturate = [{"saturate": 1}, {"saturate": 0}]
    if dst == "f8e8m0":
        return [s | {"round_mode": m} for s, m in itertools.product(saturate, ["up", "down", "nearest"])]
    return saturate if dst in F8 else [{}]


def cannot_run_in_reference(src: str, dst: str) -> bool:
    """§7.8: the evaluator raises TypeError."""
    e8m0_lacks = {*FINITE, *SMALL_INTEGERS}
    copies = [("i2", "i4"), ("u2", "u4")]
    return (
        (src == "f8e8m0" and dst in e8m0_lacks)
        or (src in SMALL_INTEGERS and dst in SMALL_INTEGERS and src != dst and (src, dst) not in copies)
        or (src in ("i4", "u4") and dst == "f6e2m3")
        or (src == "f6e2m3" and dst in ("i4", "u4"))
    )


def cannot_run_in_onnxruntime(src: str, dst: str) -> bool:
    """§7.9: no kernels for float4; float6 comes with an opset that it does not load."""
    return src in FINITE or dst in FINITE


def goes_through_f32(engine: str, src: str, dst: str) -> bool:
    """Row 11."""
    if src == "f64":
        exact = {"f64", "f32", "bool", *INTEGERS} | ({"f16"} if engine == "reference" else set())
        return dst not in exact
    return src in WIDE_INTEGERS and dst in ("bf16", "f8e8m0")


class Files:
    """Conversions by the command under test."""

    def __init__(self, truecast, folder):
        self.truecast, self.folder = truecast, folder

    def source(self, src: Type, dst: Type) -> np.ndarray:
        """Codes to be converted."""
        if src.bits <= 16:
            return np.arange(2 if src.name == "bool" else 1 << src.bits)
        out = self.folder / "v.npy"
        self.truecast("vectors", "cast", "--from", src, "--to", dst, "--format", "npy", "-o", out, "--force")
        listed = container.read_npy(self.folder / "v.input.npy", src)[0]
        random = np.random.default_rng(1).integers(0, 1 << 64, N_RANDOM, dtype=np.uint64).astype(src.uint)
        return np.concatenate([src.codes(listed.reshape(-1)), random])

    def cast(self, src: Type, dst: Type, codes: np.ndarray, attributes: dict) -> np.ndarray:
        path, out = self.folder / "x.npy", self.folder / "y.npy"
        container.write_npy(path, src.from_codes(codes))
        convert = ["convert", path, out, "--from", src, "--to", dst, "--force", "--quiet"]
        options = [(f"--{k.replace('_', '-')}", OPTION[v]) for k, v in attributes.items()]
        self.truecast(*convert, *itertools.chain(*options))
        return dst.codes(container.read_npy(out, dst)[0].reshape(-1))


OPTION = {1: "true", 0: "false", "up": "up", "down": "down", "nearest": "nearest"}


def values(t: Type, codes: np.ndarray) -> np.ndarray:
    return to_f64(t.from_codes(codes)).reshape(-1)


def excluded(engine: str, src: Type, dst: Type, codes: np.ndarray, attributes: dict) -> np.ndarray:
    """Where the engine deviates, by row of docs/spec/onnx.md §5 and §4.5. `codes` are those that the engine rounds."""
    x = values(src, codes)
    a = np.abs(x)
    wrong = np.zeros(len(codes), dtype=bool)
    if dst.name in INTEGERS and src.name in FLOATS:
        # §4.5: out of range from 2^31 on, NaN and Inf depend on the position in the array.
        low, high = (-(2.0 ** (dst.bits - 1)), 2.0 ** (dst.bits - 1)) if dst.is_signed_int else (0.0, 2.0**dst.bits)
        with np.errstate(invalid="ignore"):
            t = np.trunc(x)
            wrong |= ~np.isfinite(x) | ((a >= 2.0**31) & ~((t >= low) & (t < high)))
            if engine == "onnxruntime" and dst.name in SMALL_INTEGERS:
                wrong |= t != x  # row 6
            if engine == "reference" and dst.name in SMALL_INTEGERS:
                wrong |= a > 2.0**31 - 1  # of f64 only; 2147483647.5 gives 0
    saturate, mode = attributes.get("saturate"), attributes.get("round_mode")
    if engine == "onnxruntime":
        if dst.name == "f8e4m3fn" and saturate == 0:
            wrong |= (a >= 480) & (a < 496)  # row 2
        if dst.name == "f8e5m2" and saturate == 0:
            wrong |= (a >= 61440) & (a < 65536)  # row 3
        if (src.name, dst.name) == ("f8e5m2", "f8e5m2") and saturate == 1:
            wrong |= np.isinf(x)  # row 12
        if dst.name == "bool" and src.name in ("f8e4m3fn", "f8e5m2"):
            wrong |= codes == 0x80  # row 13
        if dst.name == "bool" and src.name == "f8e8m0":
            wrong |= codes == 0  # row 14
    if engine == "reference" and dst.name == "f8e8m0":
        low, high = 2.0**-127, 2.0**127
        negative_zero = (x == 0) & np.signbit(x)
        wrong |= (x < 0) | negative_zero  # row 20
        wrong |= np.isposinf(x) & (saturate == 1)  # row 9
        wrong |= (x == 0) & (saturate == 0)  # row 9
        wrong |= (x > 0) & (x < low) & ((saturate == 0) | (mode == "up"))  # row 9
        wrong |= (x == low) & (mode == "up")  # row 10
        wrong |= (x > low) & (x < 1.5 * low) & (mode == "nearest")  # row 10
        beyond = (x > high) & np.isfinite(x) & ((x < 1.5 * high) | (mode == "down"))
        wrong |= beyond & (saturate == 0) & (mode != "up")  # row 19
    return wrong


def both_nan(t: Type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not t.is_float or t.name in FINITE:
        return np.zeros(len(a), dtype=bool)
    return np.isnan(values(t, a)) & np.isnan(values(t, b))


@pytest.mark.parametrize("dst", NUMERIC)
@pytest.mark.parametrize("src", NUMERIC)
@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
def test_pair(truecast, tmp_path, engine, src, dst):
    s, d, files = TYPES[src], TYPES[dst], Files(truecast, tmp_path)
    codes = files.source(s, d)
    run = getattr(engines, engine)
    cannot = {"reference": cannot_run_in_reference, "onnxruntime": cannot_run_in_onnxruntime}[engine](src, dst)
    if cannot and engine == "onnxruntime" and any(name.startswith("f6") for name in (src, dst)):
        return  # the model cannot even be loaded
    for attributes in attribute_sets(dst):
        actual = run(s, d, codes, **attributes)
        # §7.8: E8M0 to the four float8 fails with saturate=0.
        fails = cannot or ((engine, src) == ("reference", "f8e8m0") and attributes == {"saturate": 0})
        assert (actual is None) == fails, f"{engine} and {src} to {dst}, {attributes}"
        if actual is None:
            continue
        if goes_through_f32(engine, src, dst):
            f32 = TYPES["f32"]
            rounded = files.cast(s, f32, codes, {})
            expected, wrong = files.cast(f32, d, rounded, attributes), excluded(engine, f32, d, rounded, attributes)
        else:
            expected, wrong = files.cast(s, d, codes, attributes), excluded(engine, s, d, codes, attributes)
        differ = (actual != expected) & ~wrong & ~both_nan(d, actual, expected)
        first = [
            f"{int(codes[i]):#x}: {engine} {int(actual[i]):#x}, truecast {int(expected[i]):#x}"
            for i in np.flatnonzero(differ)[:8]
        ]
        assert not first, f"{src} to {dst}, {attributes}: {differ.sum()} of {len(codes)}\n" + "\n".join(first)
