"""Assertions for tests of other implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _check
from ._names import Specification
from .typing import Checking, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack


@_with_signature(Checking, show=10)
def assert_allowed(
    actual: Any,
    x: Any,
    *,
    to: TypeLike | None = None,
    from_: TypeLike | None = None,
    spec: Specification | None = None,
    **attributes: Unpack[Checking],
) -> None:
    """Raises ``AssertionError`` unless ``actual`` is a permitted result of casting ``x``; arguments as in `truecast.check`.

    The message lists the first violations, with the permitted results and the known convention (rounded twice,
    truncated, ..) that reproduces them.

    >>> import numpy as np, truecast as tc
    >>> tc.testing.assert_allowed(np.float16([1.5]), np.float32([1.5]))
    """
    found = _check.check(x, actual, to, from_=from_, spec=spec, **attributes)
    if not found:
        raise AssertionError("\n" + repr(found))
