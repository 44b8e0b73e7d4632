"""Formats and projections of IEEE P3109 beside gfloat.

The codes are those of `truecast formats`. The environment variable P3109 names the built example `p3109` of the crate
`truecast`, which projects arrays.
"""

import json
import os
import subprocess
from functools import cache

import gfloat
import numpy as np
import pytest
from cli import TRUECAST
from gfloat import Domain, RoundMode, Signedness
from gfloat.formats import format_info_p3109

ROUNDINGS = {
    "NearestTiesToEven": RoundMode.TiesToEven,
    "NearestTiesToAway": RoundMode.TiesToAway,
    "TowardPositive": RoundMode.TowardPositive,
    "TowardNegative": RoundMode.TowardNegative,
    "TowardZero": RoundMode.TowardZero,
}
STOCHASTIC = {
    "StochasticA": RoundMode.StochasticFastest,
    "StochasticB": RoundMode.StochasticFast,
    "StochasticC": RoundMode.Stochastic,
}
FORMATS = [
    f"binary{k}p{p}{signedness}{domain}"
    for k in range(3, 9)
    for p in range(1, k + 1)
    for signedness in "su"[p == k :]
    for domain in "ef"
]


@cache
def of_gfloat(name: str) -> gfloat.FormatInfo:
    k, rest = name.removeprefix("binary").split("p")
    signedness = Signedness.Signed if rest[-2] == "s" else Signedness.Unsigned
    domain = Domain.Extended if rest[-1] == "e" else Domain.Finite
    return format_info_p3109(int(k), int(rest[:-2]), signedness, domain)


@cache
def values(name: str) -> np.ndarray:
    """The value of each code."""
    printed = subprocess.run([*TRUECAST, "formats", name, "--json"], check=True, capture_output=True).stdout
    return np.array([float(code["value"]) for code in json.loads(printed)["codes"]])


def projected(name: str, rounding: str, saturation: str, x: np.ndarray) -> np.ndarray:
    command = [os.environ["P3109"], name, rounding, saturation]
    codes = subprocess.run(command, input=x.astype("<f8").tobytes(), check=True, capture_output=True).stdout
    return values(name)[np.frombuffer(codes, np.uint8)]


def halves() -> np.ndarray:
    """Every value of f16."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)


def midpoints(name: str) -> np.ndarray:
    """What is halfway between values, and beyond the last one by half a step, one step and more."""
    finite = np.unique(values(name)[np.isfinite(values(name))])
    step = finite[-1] - finite[-2]
    finite = np.append(finite, finite[-1] + step * np.array([1, 2, 64]))
    x = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2])
    return np.concatenate([x, -x])


def neighbors(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])


def taken(name: str, x: np.ndarray) -> np.ndarray:
    """What gfloat projects: it makes nonsense of negative numbers in formats without a sign (`test_negative`)."""
    return x if of_gfloat(name).is_signed else x[~(x < 0)]


def assert_same(name: str, rounding: str, x: np.ndarray, mode: RoundMode, **options) -> None:
    for saturation in ("SatFinite", "SatNone"):
        if saturation == "SatNone" and of_gfloat(name).domain == Domain.Finite:
            continue  # `test_sat_none_of_a_finite_format`
        ours = projected(name, rounding, saturation, x)
        theirs = gfloat.round_ndarray(of_gfloat(name), x, mode, sat=saturation == "SatFinite", **options)
        different = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        rows = np.stack([x, ours, theirs], axis=1)[different]
        assert not rows.size, f"{name} {rounding} {saturation}: {len(rows)} differ: number, ours, theirs\n{rows[:5]}"


@pytest.mark.parametrize("name", FORMATS)
def test_codes(name: str) -> None:
    theirs = [gfloat.decode_float(of_gfloat(name), code).fval for code in range(1 << of_gfloat(name).k)]
    np.testing.assert_array_equal(values(name), theirs)


@pytest.mark.parametrize("name", FORMATS)
def test_roundings(name: str) -> None:
    x = taken(name, np.concatenate([halves(), neighbors(midpoints(name))]))
    for rounding, mode in ROUNDINGS.items():
        assert_same(name, rounding, x, mode)


@pytest.mark.parametrize("name", FORMATS)
def test_stochastic(name: str) -> None:
    for variant, mode in STOCHASTIC.items():
        # `test_stochastic_a_just_below`
        near = midpoints(name) if variant == "StochasticA" else neighbors(midpoints(name))
        x = taken(name, np.concatenate([halves(), near]))
        for bits in range(8):
            assert_same(name, f"{variant}:{bits}/3", x, mode, srbits=np.full(x.shape, bits), srnumbits=3)


def both(name: str, rounding: str, saturation: str, x: float, mode: RoundMode, **options) -> list[float]:
    theirs = gfloat.round_ndarray(of_gfloat(name), np.array([x]), mode, sat=saturation == "SatFinite", **options)
    return [projected(name, rounding, saturation, np.array([x]))[0], theirs[0]]


def test_stochastic_a_just_below() -> None:
    """gfloat 0.5.2 adds the fraction and the random bits in f64, which rounds their sum up to 1.

    Of half of the smallest number, less a little, the first three bits are 3, and 3 + 4 is less than 8.
    """
    options = {"srbits": np.array([4]), "srnumbits": 3}
    x = np.nextafter(2.0**-11, 0)
    given = both("binary8p4se", "StochasticA:4/3", "SatFinite", x, RoundMode.StochasticFastest, **options)
    assert given == [0, 2.0**-10]


@pytest.mark.parametrize("x", [250.0, np.inf])
def test_sat_none_of_a_finite_format(x: float) -> None:
    """gfloat 0.5.2 gives NaN; version 4.0 of the report the largest number (§4.7.5)."""
    ours, theirs = both("binary8p4sf", "NearestTiesToEven", "SatNone", x, RoundMode.TiesToEven)
    assert ours == 240
    assert np.isnan(theirs)


@pytest.mark.parametrize("saturation", ["SatFinite", "SatNone"])
def test_negative(saturation: str) -> None:
    """gfloat 0.5.2 keeps numbers below zero in formats without a sign; the report gives 0 or NaN (§4.7.5)."""
    ours, theirs = both("binary8p4ue", "NearestTiesToEven", saturation, -1.0, RoundMode.TiesToEven)
    assert (ours == 0) if saturation == "SatFinite" else np.isnan(ours)
    assert theirs == -1
