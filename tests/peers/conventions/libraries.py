"""The packages as functions from arrays to arrays, and the codes that they are asked about.

Arrays are those of NumPy and ml_dtypes, also for torch, whose tensors hold the same codes. A conversion that a package
does not have is `None`. Not here: any expectation.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
import torch
from dtypes import TYPES as COMMON
from dtypes import Type, bounds, to_f64

torch.set_num_threads(1)
TYPES = COMMON | {name: Type(name, 1, np.dtype(getattr(ml_dtypes, of))) for name, of in [("i1", "int1"), ("u1", "uint1")]}
OF_NUMPY = {t.numpy: t for t in TYPES.values()}
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
NUMPY = ["bool", *INTEGERS, "f16", "f32", "f64"]
TORCH = {
    name: getattr(torch, str(TYPES[name].numpy))
    for name in [*NUMPY, "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"]
}
TORCH_CODES = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
TORCH_RELEASE = ".".join(torch.__version__.split(".")[:2])


def by_torch(x: np.ndarray, to: Type, gaps: bool = False) -> np.ndarray | None:
    codes = torch.from_numpy(np.repeat(x.view(OF_NUMPY[x.dtype].uint), 2 if gaps else 1))
    tensor = codes.view(TORCH[OF_NUMPY[x.dtype].name])[:: 2 if gaps else 1]
    result = tensor.to(TORCH[to.name]).contiguous()
    return result.view(TORCH_CODES[to.numpy.itemsize]).numpy().view(to.numpy)


def by_numpy(x: np.ndarray, to: Type, gaps: bool = False) -> np.ndarray | None:
    with np.errstate(all="ignore"):
        try:
            return (np.repeat(x, 2)[::2] if gaps else x).astype(to.numpy)
        except TypeError:
            return None


def every_code(t: Type) -> np.ndarray:
    codes = np.arange(2 if t.name == "bool" else 1 << t.bits)
    return t.from_codes(codes)


@cache
def random(t: Type, count: int = 1_000_000) -> np.ndarray:
    """Over all magnitudes of an integer, all exponents of f32; of f64 mostly over those near f32's, some with few bits."""
    draw = np.random.default_rng(t.bits)
    bits = draw.integers(0, 1 << 64, count, dtype=np.uint64)
    if not t.is_float:
        magnitude = (bits >> np.uint64(64 - t.bits)) >> draw.integers(0, t.bits, count, dtype=np.uint64)
        return t.from_codes(np.where(draw.integers(0, 3, count) == 0, ~magnitude, magnitude))
    if t.name == "f32":
        return t.from_codes(bits >> np.uint64(32))
    near = draw.integers(1023 - 160, 1023 + 140, count, dtype=np.uint64)
    exponent = np.where(draw.integers(0, 4, count) == 0, bits >> np.uint64(52) & np.uint64(0x7FF), near)
    kept = np.array([0, 12, 29, 42], np.uint64)[draw.integers(0, 4, count)]
    mantissa = (bits & np.uint64((1 << 52) - 1)) >> kept << kept
    return t.from_codes(bits & np.uint64(1 << 63) | exponent << np.uint64(52) | mantissa)


def near_midpoints(t: Type, to: Type) -> np.ndarray:
    """Midpoints of the destination, their neighbors, and values so near that one rounding in between hides the side."""
    if to.bits <= 16:
        values = to_f64(every_code(to))
    elif to.name == "f32":
        with np.errstate(invalid="ignore"):
            values = to_f64(np.concatenate([some := random(to, 100_000), np.nextafter(some, np.float32(np.inf))]))
    else:
        return np.empty(0, t.numpy)
    values = np.unique(values[np.isfinite(values)])
    half = (values[1:] - values[:-1]) / 2
    middles = np.concatenate([values[:-1] + half, [values[-1] + half[-1], values[0] - half[0]]])
    if t.is_float:
        middles = middles.astype(t.numpy)
        sides = [np.nextafter(middles, t.numpy.type(side)) for side in (-np.inf, np.inf)]
        hidden = [middles * t.numpy.type(1 + sign * 2.0**-power) for sign in (-1, 1) for power in (12, 30)]
        return np.concatenate([middles, *sides, *hidden])
    low, high = bounds(t)
    whole = middles[(middles == np.floor(middles)) & (middles > low) & (middles < high)].astype(t.numpy)
    return np.concatenate([whole, whole - t.numpy.type(1), whole + t.numpy.type(1)])


@cache
def vectors(spec: str, source: str, to: str) -> np.ndarray:
    """Truecast's own decisive inputs."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "truecast", "vectors", "cast", "--spec", spec, "--from", source, "--to", to]
        subprocess.run([*command, "--format", "npy", "--quiet", "-o", Path(folder) / "v"], check=True)
        return np.load(Path(folder) / "v.input.npy").view(TYPES[source].numpy)


def inputs(spec: str, source: Type, to: Type) -> np.ndarray:
    if source.bits <= 16:
        return every_code(source)
    ties = near_midpoints(source, to) if to.is_float else np.empty(0, source.numpy)
    return np.concatenate([vectors(spec, source.name, to.name), ties, random(source)])
