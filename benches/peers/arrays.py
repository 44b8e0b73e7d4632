"""What is converted: the pairs and sizes of `truecast bench`, and values of every kind, the same in every run.

Slow conversions depend on values: zeros or one constant would flatter them. Here: data. Not here: time (race.py).
"""

from dataclasses import dataclass

import numpy as np
import own
import truecast as tc

# Elements after which the data repeat: more than a branch predictor remembers.
PERIOD = 1 << 20


@dataclass
class Arrays:
    """One pair's part of the two buffers: `len` packed elements on either side, as bytes."""

    src_type: str
    dst_type: str
    len: int
    src: np.ndarray
    dst: np.ndarray
    src_pool: np.ndarray
    dst_pool: np.ndarray

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.src.size + self.dst.size


def sizes(pairs: str | None, size: str) -> list[tuple[str, str, int]]:
    """The pairs, by default those of `truecast bench`, and the elements of their arrays of a size."""
    chosen = ["--pairs", pairs] if pairs else []
    measured = own.bench(*chosen, "--threads", "1", "--sizes", size, "--best-of", "1")
    return [(row["src"], row["dst"], row["elements"]) for row in measured["rows"]]


def packed_bytes(dtype: str, n: int) -> int:
    """Bytes of so many packed elements."""
    return (tc.finfo(dtype).storage_bits * n + 7) // 8


def fill(dtype: str, pool: np.ndarray) -> None:
    """Fills bytes with packed elements.

    Floats have both signs and exponents over 32 binades, as far as the type has them; one in eight is a short fraction (ties
    and exact values), one in 64 is NaN, an infinity, zero or tiny. Integers have both signs and every length in bits.
    """
    rng, info = np.random.default_rng(1), tc.finfo(dtype)
    if info.exponent_bits is not None:
        values = rng.uniform(1, 2, PERIOD)
        values = np.where(rng.random(PERIOD) < 1 / 8, np.round(values * 16) / 16, values)
        values = np.ldexp(values, rng.integers(-16, 16, PERIOD))
        if info.min < 0:
            values *= rng.choice([-1, 1], PERIOD)
        values = np.clip(values, info.min, info.max)
        special = rng.choice([np.nan, np.inf, 0, 2.0**-140], PERIOD)
        values = np.where(rng.random(PERIOD) < 1 / 64, special, values)
    else:
        lengths = rng.integers(0, 63, PERIOD, np.uint64)
        values = (rng.integers(0, 2**63, PERIOD, np.uint64) >> lengths).astype(np.int64) * rng.choice([-1, 1], PERIOD)
    period = tc.cast(values, dtype, spec="ieee", layout="packed")
    for begin in range(0, pool.size, period.size):
        pool[begin : begin + period.size] = period[: pool.size - begin]
