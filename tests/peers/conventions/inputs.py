"""The codes that a peer is asked about: all of a short type, decisive and random ones of a wider type."""

from functools import cache

import ml_dtypes
import numpy as np
from cli import vectors
from dtypes import TYPES as COMMON
from dtypes import Type, bounds, to_f64

TYPES = COMMON | {
    name: Type(name, 1, np.dtype(getattr(ml_dtypes, of))) for name, of in [("i1", "int1"), ("u1", "uint1")]
}
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def every_code(t: Type) -> np.ndarray:
    codes = np.arange(2 if t.name == "bool" else 1 << t.bits)
    return t.from_codes(codes)


@cache
def random(t: Type, count: int = 1_000_000) -> np.ndarray:
    """Over all magnitudes of an integer, all exponents of f32; of f64 mostly those near f32's, some with few bits."""
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


def inputs(spec: str, source: Type, to: Type, count: int = 1_000_000) -> np.ndarray:
    if source.bits <= 16:
        return every_code(source)
    ties = near_midpoints(source, to) if to.is_float else np.empty(0, source.numpy)
    return np.concatenate([vectors(spec, source, to), ties, random(source, count)])
