"""PyTorch: conversions as an operator that works under ``torch.compile`` and in FakeTensor mode, with gradients by choice.

Importing this module imports torch; ``truecast.cast`` takes tensors without it.
"""

from __future__ import annotations

import json
from typing import Any

import torch as _torch

from . import _truecast
from ._errors import UsageError

__all__ = ["cast", "round_trip"]


def _dtype(to: Any) -> _torch.dtype:
    """The type of tensors of an element type."""
    if isinstance(to, _torch.dtype):
        return to
    empty = _truecast.cast(_torch.empty((0,), dtype=_torch.float32), to, spec="ieee")
    return empty.dtype


@_torch.library.custom_op("truecast::cast", mutates_args=())
def _cast(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    return _truecast.cast(x, to, spec=spec, **json.loads(attributes))


@_cast.register_fake
def _(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    dtype = _dtype(to)
    shape = list(x.shape)
    if str(dtype) == "torch.float4_e2m1fn_x2":
        shape[-1] = shape[-1] // 2
    if str(x.dtype) == "torch.float4_e2m1fn_x2":
        shape[-1] = shape[-1] * 2
    return x.new_empty(shape, dtype=dtype)


@_torch.library.custom_op("truecast::round_trip", mutates_args=())
def _round_trip(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    # Codes, so that types which torch lacks are no matter.
    codes = _truecast.cast(x, to, spec=spec, layout="codes", **json.loads(attributes))
    return _truecast.cast(codes, x.dtype, spec="ieee", from_=to)


@_round_trip.register_fake
def _(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    return _torch.empty_like(x, memory_format=_torch.contiguous_format)


def _keep_type(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
    context.dtype = inputs[0].dtype


def _straight_through(context: Any, gradient: _torch.Tensor) -> tuple[Any, ...]:
    return gradient.to(context.dtype), None, None, None


for _operator in (_cast, _round_trip):
    _operator.register_autograd(_straight_through, setup_context=_keep_type)


def _call(operator: Any, x: _torch.Tensor, to: Any, spec: str | None, gradient: str, attributes: dict[str, Any]) -> Any:
    if gradient not in ("none", "straight-through"):
        raise UsageError(f"gradient {gradient!r} is neither 'none' nor 'straight-through'")
    given = {name: value for name, value in attributes.items() if value is not None}
    x = x if gradient == "straight-through" else x.detach()
    return operator(x, _truecast.type_name(to), spec or "onnx", json.dumps(given, sort_keys=True))


def cast(
    x: _torch.Tensor, to: Any, *, spec: str | None = None, gradient: str = "none", **attributes: Any
) -> _torch.Tensor:
    """`truecast.cast` as the operator ``truecast::cast``.

    ``gradient`` is ``"none"`` (the result is detached) or ``"straight-through"`` (the gradient passes as if nothing had
    been rounded; it has the narrow type on its way, as every gradient of a narrow tensor). Other arguments as of
    `truecast.cast`, but ``out``, ``from_``, ``shape`` and ``layout``.
    """
    return _call(_cast, x, to, spec, gradient, attributes)


def round_trip(
    x: _torch.Tensor, to: Any, *, spec: str | None = None, gradient: str = "straight-through", **attributes: Any
) -> _torch.Tensor:
    """The values that are left after a cast to ``to`` and back, in the type of ``x``: for training that knows what a
    type will do. The gradient passes in the type of ``x``. ``to`` may be any type, those that torch lacks too.
    """
    return _call(_round_trip, x, to, spec, gradient, attributes)
