"""PyTorch: conversions as an operator that works under ``torch.compile`` and in FakeTensor mode, with gradients by choice.

Importing this module imports torch; ``truecast.cast`` takes tensors without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch as _torch

from . import _arrays, _truecast
from ._errors import UsageError
from ._names import Specification
from .typing import Gradient, Settings, TypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["cast", "round_trip"]

_any_cast: Any = _arrays.cast


def _given(attributes: str) -> dict[str, Any]:
    """Attributes from the text argument of an operator."""
    given: dict[str, Any] = {}
    for pair in filter(None, attributes.split(";")):
        name, _, value = pair.partition("=")
        given.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in given.items()}


@_torch.library.custom_op("truecast::cast", mutates_args=())
def _cast(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    return _any_cast(x.contiguous(), to, spec=spec, **_given(attributes))


@_cast.register_fake
def _(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    dtype = _truecast.torch_dtype(to)
    shape = list(x.shape)
    if str(dtype) == "torch.float4_e2m1fn_x2":
        shape[-1] = shape[-1] // 2
    if str(x.dtype) == "torch.float4_e2m1fn_x2":
        shape[-1] = shape[-1] * 2
    return x.new_empty(shape, dtype=dtype)


@_torch.library.custom_op("truecast::round_trip", mutates_args=())
def _round_trip(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    # Codes, so that types that torch lacks work too.
    codes = _any_cast(x.contiguous(), to, spec=spec, layout="codes", **_given(attributes))
    dense: Any = _any_cast(codes, x.dtype, spec="ieee", from_=to)
    return dense


@_round_trip.register_fake
def _(x: _torch.Tensor, to: str, spec: str, attributes: str) -> _torch.Tensor:
    return _torch.empty_like(x, memory_format=_torch.contiguous_format)


def _keep_type(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.dtype = inputs[0].dtype


def _straight_through(ctx: Any, gradient: _torch.Tensor) -> tuple[Any, ...]:
    return gradient.to(ctx.dtype), None, None, None


for _operator in (_cast, _round_trip):
    _operator.register_autograd(_straight_through, setup_context=_keep_type)


def _call(operator: Any, x: _torch.Tensor, to: Any, spec: str | None, gradient: str, attributes: dict[str, Any]) -> Any:
    if gradient not in ("none", "straight-through"):
        raise UsageError(f"gradient {gradient!r} is neither 'none' nor 'straight-through'")
    x = x if gradient == "straight-through" else x.detach()
    return operator(x, _name(to), spec or "onnx", _text(attributes))


def _name(to: Any) -> str:
    """A type as text. Compilers trace this function, but not the extension."""
    if isinstance(to, str):
        return to
    return "torch:" + str(to).removeprefix("torch.") if isinstance(to, _torch.dtype) else _truecast.type_name(to)


def _text(attributes: dict[str, Any]) -> str:
    pairs = []
    for name, value in attributes.items():
        values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        pairs += [f"{name}={str(one).lower() if isinstance(one, bool) else one}" for one in values]
    return ";".join(pairs)


def cast(
    x: _torch.Tensor,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    gradient: Gradient = "none",
    **attributes: Unpack[Settings],
) -> _torch.Tensor:
    """`truecast.cast` as the operator ``truecast::cast``.

    ``gradient`` is ``"none"`` (the result is detached) or ``"straight-through"`` (the gradient passes as if nothing had
    been rounded, in the narrow type, like every gradient of a narrow tensor). Other arguments as in `truecast.cast`, except
    ``out``, ``from_``, ``shape`` and ``layout``.
    """
    return _call(_cast, x, to, spec, gradient, {**attributes})


def round_trip(
    x: _torch.Tensor,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    gradient: Gradient = "straight-through",
    **attributes: Unpack[Settings],
) -> _torch.Tensor:
    """A cast to ``to`` and back to the type of ``x``: for quantization-aware training. The gradient passes in the type of
    ``x``. ``to`` may be any type, even one that torch lacks.
    """
    return _call(_round_trip, x, to, spec, gradient, {**attributes})
