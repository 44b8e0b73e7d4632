"""A package against the specification of its name, pair by pair."""

import itertools

import numpy as np
import pytest
import truecast as tc
from inputs import TYPES, every_code, inputs


def pairs(first, second=None):
    return [pytest.param(*pair, id="-".join(pair)) for pair in itertools.product(first, second or first)]


def compare(spec: str, library, source: str, to: str) -> dict:
    """The verdict on the last array. `library` gives `None` for a pair that it does not convert."""
    source, to = TYPES[source], TYPES[to]
    some = every_code(source) if source.bits <= 16 else np.ones(1, source.numpy)
    if library(some, to) is None:
        with pytest.raises((tc.SpecError, tc.DTypeError)):
            tc.cast(some, to.name, spec=spec)
        return {"undefined": 0}
    x = inputs(spec, source, to)
    for gaps in (False, True):
        verdict = tc.check(x, library(x, to, gaps), to.name, spec=spec)
        assert verdict.passes, verdict
    return verdict
