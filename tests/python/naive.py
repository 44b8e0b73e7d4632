"""The loss report, written from docs/spec/checkpoints.md §10 alone: slow, obvious, in f64.

Here: counts, maxima and the deterministic sums. Not here: results of conversions; both sides of each pair are given.
x = source values, y = values of the written elements, both as f64 (exact for every type but 64-bit integers).
"""

import math
from dataclasses import dataclass

import numpy as np
from dtypes import FINITE, TYPES, Type, bounds, to_f64

CHUNK = 65_536
LANES = 16

# Largest finite value and the magnitude from which rounding to nearest with unlimited exponent exceeds it
# (docs/spec/onnx.md §2.5; `strictly` where the threshold itself still rounds to the largest value). For the
# finite-only types, which that table lists as "always clamps", the threshold follows from §2.4: half-way between the
# largest value and the next power of two, a tie that goes up because the largest significand is odd.
OVERFLOW = {
    "f8e4m3fn": (448.0, 464.0, "strictly"),
    "f8e4m3fnuz": (240.0, 248.0, ""),
    "f8e5m2": (57344.0, 61440.0, ""),
    "f8e5m2fnuz": (57344.0, 61440.0, ""),
    "f4e2m1": (6.0, 7.0, ""),
    "f6e2m3": (7.5, 7.75, ""),
    "f6e3m2": (28.0, 30.0, ""),
    # E8M0 with `up`: whatever exceeds 2^127 (§4.7).
    "f8e8m0": (2.0**127, 2.0**127, "strictly"),
    "f16": (65504.0, 65520.0, ""),
    "bf16": (float.fromhex("0x1.fep127"), 2.0**128 - 2.0**119, ""),
    "f32": (float.fromhex("0x1.fffffep127"), 2.0**128 - 2.0**103, ""),
    "f64": (float.fromhex("0x1.fffffffffffffp1023"), math.inf, ""),
}

# Smallest normal magnitude (docs/spec/onnx.md §2.1). E8M0 has no subnormals.
MIN_NORMAL = {
    "f8e4m3fn": 2.0**-6,
    "f8e4m3fnuz": 2.0**-7,
    "f8e5m2": 2.0**-14,
    "f8e5m2fnuz": 2.0**-15,
    "f4e2m1": 1.0,
    "f6e2m3": 1.0,
    "f6e3m2": 0.25,
    "f16": 2.0**-14,
    "bf16": 2.0**-126,
    "f32": 2.0**-126,
    "f64": 2.0**-1022,
}


@dataclass
class Sums:
    """Sums over the pairs that are finite on both sides."""

    pairs: int = 0
    noise: float = 0.0
    signal: float = 0.0
    image: float = 0.0
    product: float = 0.0

    def add(self, other: "Sums") -> None:
        self.pairs += other.pairs
        self.noise += other.noise
        self.signal += other.signal
        self.image += other.image
        self.product += other.product

    def figures(self) -> dict[str, float]:
        rmse = math.sqrt(self.noise / self.pairs) if self.pairs else 0.0
        if self.noise == 0.0:
            sqnr = math.inf
        elif self.signal == 0.0:
            sqnr = -math.inf
        else:
            sqnr = 10.0 * math.log10(self.signal / self.noise)
        if self.signal == 0.0 and self.image == 0.0:
            cosine = 1.0
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                cosine = float(np.float64(self.product) / np.sqrt(np.float64(self.signal) * np.float64(self.image)))
        return {"rmse": rmse, "sqnr_db": sqnr, "cosine": cosine}


def lane_sum(terms: np.ndarray) -> float:
    """Chunks of 65536; in a chunk, lane l adds the elements with index = l mod 16 in order; the lanes are added as a
    balanced tree; the chunk sums are added in order."""
    total = 0.0
    for begin in range(0, len(terms), CHUNK):
        chunk = terms[begin : begin + CHUNK]
        rows = np.concatenate([chunk, np.zeros(-len(chunk) % LANES)]).reshape(-1, LANES)
        lanes = np.zeros(LANES)
        for row in rows:
            lanes = lanes + row
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = lanes[:half] + lanes[half:]
        total += float(lanes[0])
    return total


def sums(x: np.ndarray, y: np.ndarray) -> Sums:
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(over="ignore"):
        xf, yf = np.where(both, x, 0.0), np.where(both, y, 0.0)
        error = yf - xf
        return Sums(
            int(both.sum()),
            lane_sum(error * error),
            lane_sum(xf * xf),
            lane_sum(yf * yf),
            lane_sum(xf * yf),
        )


def errors(x: np.ndarray, y: np.ndarray) -> dict[str, float | int]:
    """Maxima over the finite pairs, and the first index that reaches the larger absolute error."""
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        absolute = np.where(both, np.abs(y - x), 0.0)
        relative = np.where(both & (x != 0), absolute / np.abs(x), 0.0)
    return {
        "max_abs_error": float(absolute.max(initial=0.0)),
        "index_max_abs": int(absolute.argmax()) if len(absolute) else 0,
        "max_rel_error": float(relative.max(initial=0.0)),
    }


def difference_counts(x: np.ndarray, y: np.ndarray, dst: Type) -> dict[str, int]:
    """The counts that depend on nothing but both values and the destination type."""
    nan_x, nan_y = np.isnan(x), np.isnan(y)
    exact = (x == y) | (nan_x & nan_y)
    zero_y = y == 0
    count = {
        "exact": exact,
        "inexact": ~exact,
        "to_inf": np.isfinite(x) & np.isinf(y),
        "to_nan": ~nan_x & nan_y,
        "nan_in": nan_x,
        "inf_in": np.isinf(x),
        "zero_in": x == 0,
        "nan_out": nan_y,
        "inf_out": np.isinf(y),
        # A NaN has no value that could differ from 0.
        "flushed_to_zero": zero_y & (x != 0) & ~nan_x,
        # For x = +-0 and x <> 0 alike: y is a zero of the other sign. The zero of an integer is +0.
        "sign_of_zero_lost": zero_y & ~nan_x & (np.signbit(x) != np.signbit(y)),
    }
    small = np.abs(y) < MIN_NORMAL[dst.name] if dst.name in MIN_NORMAL else np.zeros(len(y), dtype=bool)
    count["subnormal"] = (y != 0) & small
    return {name: int(mask.sum()) for name, mask in count.items()}


def out_of_integer_range(x: np.ndarray, dst: Type) -> np.ndarray:
    """Finite values whose truncation the integer type does not hold."""
    low, high = bounds(dst)
    t = np.trunc(x)
    # high + 1 and low are powers of two or 0, so these comparisons are exact in f64.
    return np.isfinite(x) & ((t >= float(high + 1)) | (t < float(low)))


def cast_counts(x: np.ndarray, y: np.ndarray, dst: Type) -> dict[str, int]:
    """The counts that depend on the cast: ONNX, newest version, default attributes; floating-point sources."""
    none = np.zeros(len(x), dtype=bool)
    saturated, wrapped, undefined = none, none, none
    if dst.name in OVERFLOW:
        largest, threshold, strictly = OVERFLOW[dst.name]
        beyond = np.abs(x) > threshold if strictly else np.abs(x) >= threshold
        saturated = beyond & (np.abs(y) == largest)
    else:
        wrapped = out_of_integer_range(x, dst) | np.isinf(x)  # §10: Inf becomes 0
        # docs/spec/onnx.md §4.11 U1 and U5.
        undefined = wrapped | ~np.isfinite(x)
        if dst.bits < 8:
            undefined = undefined | (np.trunc(x) != x)
    if dst.name in FINITE:
        undefined = np.isnan(x)  # U4
    if dst.name == "f8e8m0":
        undefined = (x < 0) | ((x == 0) & np.signbit(x))  # U2; U3 does not concern the default attributes
    masks = {"saturated": saturated, "wrapped": wrapped, "undefined": undefined}
    return {name: int(mask.sum()) for name, mask in masks.items()}


def report(source: np.ndarray, result: np.ndarray, dst: str) -> tuple[dict, Sums]:
    """One row of the report, without name and sizes, and the sums behind it."""
    x, y = to_f64(source).reshape(-1), to_f64(result).reshape(-1)
    t = TYPES[dst]
    total = sums(x, y)
    row = difference_counts(x, y, t) | cast_counts(x, y, t) | errors(x, y) | total.figures()
    row["elements"] = len(x)
    row["lossless"] = row["inexact"] == 0 and row["sign_of_zero_lost"] == 0
    return row, total
