"""ONNX: Cast, CastLike, and a backend for ONNX's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _arrays
from .typing import OfOnnx, Switch, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._onnx_backend import Backend as Backend

__all__ = ["cast", "cast_like"]

_cast_array: Any = _arrays.cast


def __getattr__(name: str) -> Any:
    if name == "Backend":
        try:
            from ._onnx_backend import Backend
        except ModuleNotFoundError as error:
            raise AttributeError(f"{__name__}.{name} needs {error.name}, which is not installed") from error
        return Backend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _spec(opset: int | None) -> Any:
    return "onnx" if opset is None else f"onnx@{opset}"


@_with_signature(OfOnnx)
def cast(
    x: Any,
    to: TypeLike,
    *,
    opset: int | None = None,
    saturate: Switch | None = None,
    round_mode: Literal["up", "down", "nearest"] | None = None,
    **arguments: Unpack[OfOnnx],
) -> Any:
    """ONNX Cast: ``to`` may be a number of ``TensorProto.DataType``; other arguments as in `truecast.cast`.

    >>> import numpy as np, truecast as tc
    >>> tc.onnx.cast(np.float32([465]), 17, saturate=0).astype(np.float32)
    array([nan], dtype=float32)
    """
    return _cast_array(x, to, spec=_spec(opset), saturate=saturate, round_mode=round_mode, **arguments)


@_with_signature(OfOnnx)
def cast_like(
    x: Any,
    like: Any,
    *,
    opset: int | None = None,
    saturate: Switch | None = None,
    round_mode: Literal["up", "down", "nearest"] | None = None,
    **arguments: Unpack[OfOnnx],
) -> Any:
    """ONNX CastLike: to the type of ``like``, an array or a type."""
    to = getattr(like, "dtype", like)
    named: dict[str, Any] = {"operator": "CastLike", "saturate": saturate, "round_mode": round_mode}
    return _cast_array(x, to, spec=_spec(opset), **named, **arguments)
