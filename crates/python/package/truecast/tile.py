"""CUDA Tile IR: the nine conversions. Signedness comes from the arrays: ``u8`` is Tile's i8 read as unsigned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays
from ._errors import SpecError
from ._names import Rounding
from ._types import finfo
from .typing import OfTile, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FLOATS = ("float", "fixed point", "code book")
_cast_array: Any = _arrays.cast


def _cast(
    x: Any, to: TypeLike, operation: str, is_float: tuple[bool, bool], release: str | None, arguments: dict[str, Any]
) -> Any:
    from_ = arguments.get("from_")
    src = finfo(from_ if from_ is not None else x.dtype)
    dst = finfo(to)
    found = tuple(one.kind in _FLOATS for one in (src, dst))
    if found != is_float:
        raise SpecError(f"{operation} does not convert {src.name} to {dst.name}")
    if not any(is_float) and (src.bits < dst.bits) != (operation == "exti"):
        raise SpecError(f"{operation} does not convert {src.name} to {dst.name}: {dst.bits} bits after {src.bits}")
    return _cast_array(x, to, spec="tile" if release is None else f"tile@{release}", **arguments)


@_with_signature(OfTile)
def ftof(
    x: Any, to: TypeLike, *, rounding: Rounding | None = None, release: str | None = None, **arguments: Unpack[OfTile]
) -> Any:
    """Float to float; other arguments as in `truecast.cast` (``profile``, ``tile_option``, ``out``, ..).

    >>> import numpy as np, truecast as tc
    >>> tc.tile.ftof(np.float32([np.inf]), "f8e5m2").astype(np.float32)  # saturates
    array([57344.], dtype=float32)
    """
    return _cast(x, to, "ftof", (True, True), release, {"rounding": rounding, **arguments})


@_with_signature(OfTile)
def ftoi(
    x: Any,
    to: TypeLike,
    *,
    rounding: Rounding | None = None,
    saturating: bool = False,
    release: str | None = None,
    **arguments: Unpack[OfTile],
) -> Any:
    """Float to integer."""
    attributes = {"rounding": rounding, "saturating": saturating or None}
    return _cast(x, to, "ftoi", (True, False), release, {**attributes, **arguments})


@_with_signature(OfTile)
def itof(
    x: Any, to: TypeLike, *, rounding: Rounding | None = None, release: str | None = None, **arguments: Unpack[OfTile]
) -> Any:
    """Integer to float."""
    return _cast(x, to, "itof", (False, True), release, {"rounding": rounding, **arguments})


@_with_signature(OfTile)
def exti(x: Any, to: TypeLike, *, release: str | None = None, **arguments: Unpack[OfTile]) -> Any:
    """Integer to a wider one: with its sign if ``x`` is signed, with zeros otherwise."""
    return _cast(x, to, "exti", (False, False), release, {**arguments})


@_with_signature(OfTile)
def trunci(x: Any, to: TypeLike, *, release: str | None = None, **arguments: Unpack[OfTile]) -> Any:
    """Integer to a narrower one: the low bits stay."""
    return _cast(x, to, "trunci", (False, False), release, {**arguments})


def bitcast(x: Any, to: TypeLike) -> Any:
    """The same bits as elements of another type of the same width.

    >>> import numpy as np, truecast as tc
    >>> tc.tile.bitcast(np.float32([1]), "u32")
    array([1065353216], dtype=uint32)
    """
    src, dst = finfo(x.dtype), finfo(to)
    if src.bits != dst.bits:
        raise SpecError(f"bitcast does not change widths: {src.name} has {src.bits} bits, {dst.name} {dst.bits}")
    codes = _cast_array(x, src.name, spec="ieee", layout="codes")
    return _cast_array(codes, to, spec="ieee", from_=to)


def int_to_ptr(x: Any) -> Any:
    """Integers of 64 bits as addresses, which are ``u64`` in arrays."""
    return bitcast(x, "u64")


def ptr_to_int(x: Any) -> Any:
    """Addresses as integers of 64 bits."""
    return bitcast(x, "i64")


def ptr_to_ptr(x: Any) -> Any:
    """Addresses of another type: the bits stay."""
    return bitcast(x, "u64")
