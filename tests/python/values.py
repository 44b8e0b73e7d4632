"""Inputs: every special value and every boundary of a destination type, made from the formats alone.

Not here: expected results. Seeds are fixed; a failure names the value, so it can be tried with `truecast explain`.
"""

import numpy as np
from dtypes import TYPES, Type, to_f64

SEED = 20_240_601

# NaN patterns of f32: smallest and largest payloads, quiet and signaling, both signs, and one whose payload lies
# only in bits that no narrower type keeps.
F32_NAN = np.array(
    [0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC00001, 0x7FFFFFFF, 0x7FC12345, 0x7FA00000, 0x7F801000, 0x7FE00000],
    dtype=np.uint32,
)
F64_NAN = np.array(
    [0x7FF0000000000001, 0x7FF7FFFFFFFFFFFF, 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0x7FF80000DEADBEEF],
    dtype=np.uint64,
)


def all_codes(t: Type) -> np.ndarray:
    """Every code of a type of 16 bits or fewer; for bool, both."""
    assert t.bits <= 16
    return t.from_codes(np.arange(2 if t.name == "bool" else 1 << t.bits))


def _both_signs(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, -values])


def _with_neighbors(values: np.ndarray) -> np.ndarray:
    """Each value, the one below and the one above, in the values' own type."""
    with np.errstate(over="ignore"):
        below = np.nextafter(values, values.dtype.type(-np.inf))
        above = np.nextafter(values, values.dtype.type(np.inf))
    return np.concatenate([values, below, above])


def specials(source: Type) -> np.ndarray:
    """Special values of f32 or f64: NaN payloads, Inf, zeros, subnormals, extremes, powers of two, small integers."""
    info = np.finfo(source.numpy)
    nan = {"f32": F32_NAN, "f64": F64_NAN}[source.name]
    nan = np.concatenate([nan, nan | nan.dtype.type(1 << (source.bits - 1))]).view(source.numpy)
    low, high = {"f32": (-149, 128), "f64": (-1074, 1024)}[source.name]
    powers = np.ldexp(1.0, np.arange(low, high)).astype(source.numpy)
    plain = np.array([0.0, info.max, info.tiny, np.inf], dtype=source.numpy)
    integers = np.arange(0, 600).astype(source.numpy)
    halves = integers + source.numpy.type(0.5)
    finite = _with_neighbors(np.concatenate([powers, powers * source.numpy.type(1.5), plain[:3], integers, halves]))
    return np.concatenate([nan, _both_signs(plain), _both_signs(finite)])


def boundaries(source: Type, destination: Type) -> np.ndarray:
    """Every finite value of `destination` (16 bits or fewer), every midpoint of two neighbors, the overflow threshold,
    each with its two neighbors in `source` (f32 or f64), in both signs."""
    values = np.unique(np.abs(to_f64(all_codes(destination))))
    values = values[np.isfinite(values)]
    step = values[-1] - values[-2]
    midpoints = (values[1:] + values[:-1]) / 2
    beyond = values[-1] + step * np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
    exact = np.concatenate([values, midpoints, beyond])
    with np.errstate(over="ignore"):
        return _both_signs(_with_neighbors(exact.astype(source.numpy)))


def random_bits(source: Type, n: int, seed: int = SEED) -> np.ndarray:
    """Patterns that are uniform over the codes, hence log-uniform over the values."""
    raw = np.random.default_rng(seed).bytes(n * source.numpy.itemsize)
    return np.frombuffer(raw, dtype=source.uint).view(source.numpy).copy()


def weights(n: int, seed: int = SEED) -> np.ndarray:
    """f32 values like those of a trained layer."""
    return (np.random.default_rng(seed).standard_normal(n) * 0.05).astype(np.float32)


def inputs(source: str, destination: str, n_random: int = 20_000) -> np.ndarray:
    """The test input of a pair, padded to a multiple of 4 so that 6-bit results fill whole bytes in safetensors."""
    src, dst = TYPES[source], TYPES[destination]
    if src.bits <= 16:
        values = all_codes(src)
    else:
        parts = [specials(src), random_bits(src, n_random), weights(n_random).astype(src.numpy) * src.numpy.type(16)]
        if dst.is_float and dst.bits <= 16:
            parts.append(boundaries(src, dst))
        values = np.concatenate(parts)
    pad = -len(values) % 4
    return np.concatenate([values, np.zeros(pad, dtype=values.dtype)])
