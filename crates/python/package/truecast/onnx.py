"""ONNX: Cast, CastLike, and a backend for ONNX's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _truecast

if TYPE_CHECKING:
    from ._onnx_backend import Backend as Backend

__all__ = ["cast", "cast_like"]


def __getattr__(name: str) -> Any:
    if name == "Backend":
        try:
            from ._onnx_backend import Backend
        except ModuleNotFoundError as error:
            raise AttributeError(f"{__name__}.{name} needs {error.name}, which is not installed") from error
        return Backend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _spec(opset: int | None) -> str:
    return "onnx" if opset is None else f"onnx@{opset}"


def cast(
    x: Any,
    to: Any,
    *,
    opset: int | None = None,
    saturate: bool | int | None = None,
    round_mode: str | None = None,
    **arguments: Any,
) -> Any:
    """ONNX Cast: ``to`` may be a number of ``TensorProto.DataType``; other arguments as of `truecast.cast`.

    >>> import numpy as np, truecast as tc
    >>> tc.onnx.cast(np.float32([465]), 17, saturate=0).astype(np.float32)
    array([nan], dtype=float32)
    """
    return _truecast.cast(x, to, spec=_spec(opset), saturate=saturate, round_mode=round_mode, **arguments)


def cast_like(
    x: Any,
    like: Any,
    *,
    opset: int | None = None,
    saturate: bool | int | None = None,
    round_mode: str | None = None,
    **arguments: Any,
) -> Any:
    """ONNX CastLike: the type is that of ``like``, an array or a type."""
    to = getattr(like, "dtype", like)
    named: dict[str, Any] = {"operator": "CastLike", "saturate": saturate, "round_mode": round_mode}
    return _truecast.cast(x, to, spec=_spec(opset), **named, **arguments)
