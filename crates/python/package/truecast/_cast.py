"""Conversion with counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _truecast
from ._report import Counts
from .typing import OfCast, TypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack


def cast_with_report(x: Any, to: TypeLike, **arguments: Unpack[OfCast]) -> tuple[Any, Counts]:
    """`truecast.cast`, and what was lost: counted on the way, in the same pass. Arguments are the same.

    >>> import numpy as np, truecast as tc
    >>> y, counts = tc.cast_with_report(np.float32([1, 465, 1e-5]), "f8e4m3fn")
    >>> counts.saturated, counts.flushed_to_zero, counts.exact
    (1, 1, 1)
    >>> counts
    3 elements: saturated 1, flushed to zero 1, SQNR 28.74 dB
    """
    result, row = _truecast.cast_counted(x, to, **arguments)
    return result, Counts(row)
