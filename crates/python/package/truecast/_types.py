"""Properties of types: names, layout, range."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from . import _ask, _truecast
from .typing import TypeLike


@dataclass(frozen=True)
class Special:
    """A code with a name."""

    bits: int
    """The code."""
    value: float
    """Its value, to the nearest float."""
    text: str
    """Its value in the command's notation."""


@dataclass(frozen=True)
class TypeInfo:
    """An element type: its layout, range and names.

    Integers and truth values have neither exponent nor fraction; ``None`` marks a missing property.
    """

    name: str
    kind: str
    bits: int
    """Bits of a code."""
    storage_bits: int | None
    """Bits of an element in packed memory; ``None`` for text."""
    exponent_bits: int | None = None
    fraction_bits: int | None = None
    bias: int | None = None
    special: dict[str, Special] = field(default_factory=dict, repr=False)
    """Codes by name: ``zero``, ``largest_finite``, ``NaN``, .."""
    names: dict[str, list[str]] = field(default_factory=dict, repr=False)
    """Names in other ecosystems."""

    def _value(self, *names: str) -> float | None:
        found = [self.special[name].value for name in names if name in self.special]
        return found[0] if found else None

    @property
    def max(self) -> float | None:
        """The largest finite value."""
        return self._value("largest_finite", "largest", "true")

    @property
    def min(self) -> float | None:
        """The least finite value."""
        return self._value("most_negative", "smallest", "false", "zero")

    @property
    def smallest_normal(self) -> float | None:
        """The smallest positive normal value."""
        return self._value("smallest_normal")

    @property
    def smallest_subnormal(self) -> float | None:
        """The smallest positive subnormal value."""
        return self._value("smallest_subnormal")

    @property
    def eps(self) -> float | None:
        """The distance from 1 to the next larger value."""
        return None if self.fraction_bits is None else 2.0**-self.fraction_bits

    @property
    def has_nan(self) -> bool:
        """Whether it has a NaN."""
        return "NaN" in self.special

    @property
    def has_inf(self) -> bool:
        """Whether it has infinities."""
        return "infinity" in self.special


def _of(found: dict[str, Any]) -> TypeInfo:
    def special(one: dict[str, str]) -> Special:
        return Special(int(one["bits"], 16), float(one["value"]), one["value"])

    return TypeInfo(
        name=found["name"],
        kind=found["kind"],
        bits=found["code_bits"],
        storage_bits=found["storage_bits"],
        exponent_bits=found.get("exponent_bits"),
        fraction_bits=found.get("fraction_bits"),
        bias=found.get("bias"),
        special={name: special(one) for name, one in found["special"].items()},
        names=found["names"],
    )


@functools.lru_cache(maxsize=1)
def _all() -> dict[str, TypeInfo]:
    return {found["name"]: _of(found) for found in _ask.data(["formats"])["types"]}


def dtypes() -> list[TypeInfo]:
    """Every element type, in the order of docs/interfaces.md section 1.

    >>> import truecast as tc
    >>> [info.name for info in tc.dtypes() if info.bits == 4]
    ['i4', 'u4', 'f4e2m1', 'nf4']
    """
    return list(_all().values())


def finfo(dtype: TypeLike) -> TypeInfo:
    """Layout, range and names of a type, given in any form that `cast` accepts.

    >>> import truecast as tc
    >>> f8 = tc.finfo("f8e4m3fn")
    >>> f8.max, f8.smallest_subnormal, f8.has_inf
    (448.0, 0.001953125, False)
    """
    return _all()[_truecast.type_name(dtype)]
