"""The codes that are converted: all of a type of 32 bits or fewer, in blocks; vectors and random ones of 64 bits."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from forms import BITS, INTEGERS
from kernels import storage

BLOCK = 1 << 22
RANDOM = 1 << 22
EXPONENT, FRACTION = np.uint64(11), np.uint64(52)


def codes_of(name: str) -> np.dtype:
    return np.dtype(f"u{storage(name)}")


def blocks(name: str) -> list[int]:
    """Where blocks begin."""
    count = len(wide(name)) if BITS[name] == 64 else 1 << BITS[name]
    return list(range(0, count, BLOCK))


def block(name: str, begin: int) -> np.ndarray:
    """Codes in pairs, so that both lanes of a packed instruction have each code where there are 16 bits or fewer."""
    if BITS[name] == 64:
        return wide(name)[begin : begin + BLOCK]
    count = min(BLOCK, 1 << BITS[name])
    codes = np.arange(begin, begin + count, dtype=codes_of(name))
    if BITS[name] > 16:
        return codes
    return np.concatenate([codes, codes ^ codes.dtype.type(1)])


@cache
def wide(name: str) -> np.ndarray:
    codes = np.concatenate(list(wide_integers() if name in INTEGERS else doubles()))
    return np.append(codes, codes[-1:]) if len(codes) % 2 else codes


def wide_integers() -> Iterator[np.ndarray]:
    """What is near powers of two and near ties of every float, and random magnitudes of either sign."""
    draw = np.random.default_rng(64)
    power = np.uint64(1) << np.arange(64, dtype=np.uint64)
    for near in range(-3, 4):
        yield power + np.uint64(near % (1 << 64))
        yield np.uint64(0) - power + np.uint64(near % (1 << 64))
    bits = draw.integers(0, 1 << 64, RANDOM, dtype=np.uint64)
    length = draw.integers(1, 65, RANDOM, dtype=np.uint64)
    magnitude = (bits | np.uint64(1 << 63)) >> (np.uint64(64) - length)
    # Of `kept` leading bits the rest is one half of the last, give or take one.
    kept = np.minimum(draw.choice(np.array([8, 11, 24, 53], np.uint64), RANDOM), length - np.uint64(1))
    cut = length - kept
    half = np.uint64(1) << (cut - np.uint64(1))
    tie = ((magnitude >> cut - np.uint64(1)) | np.uint64(1)) * half
    for one in (magnitude, tie, tie - np.uint64(1), tie + np.uint64(1)):
        yield one
        yield np.uint64(0) - one
    yield bits


def doubles() -> Iterator[np.ndarray]:
    """Every exponent with decisive fractions; values near ties of each shorter float and of integers; random codes."""
    draw = np.random.default_rng(65)
    sign = np.uint64(1 << 63)
    bit = np.uint64(1) << np.arange(52, dtype=np.uint64)
    mask = np.uint64((1 << 52) - 1)
    decisive = np.unique(np.concatenate([near & mask for one in (bit, ~bit + np.uint64(1)) for near in (
        one - np.uint64(1), one, one + np.uint64(1))]))  # fmt: skip
    exponents = np.arange(1 << 11, dtype=np.uint64) << FRACTION
    grid = (exponents[:, None] | decisive[None, :]).ravel()
    yield from (grid, grid | sign)
    # Exponents from below the subnormals of f32 to above integers of 64 bits and the largest f32.
    exponent = draw.integers(1023 - 160, 1023 + 135, RANDOM, dtype=np.uint64) << FRACTION
    fraction = draw.integers(0, 1 << 52, RANDOM, dtype=np.uint64)
    cut = draw.integers(1, 53, RANDOM, dtype=np.uint64)
    half = np.uint64(1) << (cut - np.uint64(1))
    tie = exponent | (fraction >> cut << cut) | half
    for one in (tie, tie - np.uint64(1), tie + np.uint64(1), exponent | fraction):
        yield from (one, one | sign)
    yield draw.integers(0, 1 << 64, RANDOM, dtype=np.uint64)
