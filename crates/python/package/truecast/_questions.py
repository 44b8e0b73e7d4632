"""Questions about one value, and about two types."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Union

from . import _ask, _truecast
from ._names import Specification
from .typing import Promotion, PythonNumber, Settings, System, TypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

Operand = Union[TypeLike, PythonNumber]


class Explanation(_ask.Answer):
    """One value under every specification: bits, neighbors, the rounding decision, the results.

    Fields: ``source``, ``neighbors``, ``answers`` (each distinct one with its names), ``results`` (each
    with ``spec, version, attributes, bits, value, undefined, clause``), ``absent``, ``known_differences``; see
    docs/interfaces.md section 6.
    """

    def _text(self, columns: int | None) -> str:
        return re.sub(r" --from(\s+)(\w+)", r'\1from_="\2"', super()._text(columns))


def explain(
    value: Any,
    to: TypeLike,
    *,
    from_: TypeLike | None = None,
    spec: Specification | None = None,
    **attributes: Unpack[Settings],
) -> Explanation:
    """Explains the conversion of one value.

    Parameters
    ----------
    value
        A number, a scalar of NumPy (with exactly its bits), or text as in the command: ``"1/3"``, ``"0x1.8p-3"``,
        ``"nan"``, ``"0x7fc00001"`` for bits.
    to
        The destination type.
    from_
        The source type, to which the number is rounded. The default is the type of a NumPy scalar, ``bool`` for a
        bool, and ``f32`` for any other number and for text, as in the command.
    spec
        One specification, with its ``attributes``; the default is all, with every set of attributes.

    Examples
    --------
    >>> import truecast as tc
    >>> found = tc.explain(465, to="f8e4m3fn")
    >>> found["neighbors"]["midpoint"], found["results"][0]["value"]
    ('464', '448')
    """
    import numpy as np

    if isinstance(value, np.generic) and not isinstance(value, (np.bool_, np.str_)):
        value, from_ = (hex(int.from_bytes(value.tobytes(), "little")), value.dtype) if from_ is None else (value.item(), from_)
    elif isinstance(value, (bool, np.bool_)):
        value, from_ = str(bool(value)).lower(), from_ or "bool"
    words = ["explain", "--to", _truecast.type_name(to)]
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    words += _ask.options({"spec": spec, **attributes})
    # A value may begin with a minus.
    return Explanation(_ask.data(words, ["--", str(value)]), [*words, "--", str(value)])


@functools.lru_cache(maxsize=4096)
def _promoted(lhs: str, rhs: str, options: tuple[str, ...]) -> str:
    return str(_ask.data(["promote", lhs, rhs, *options])["dtype"])


def _operand(operand: Operand) -> str:
    return operand if isinstance(operand, str) else _truecast.type_name(operand)


def _promotion_options(options: dict[str, Any]) -> tuple[str, ...]:
    if isinstance(options.get("jax_x64"), bool):
        options["jax_x64"] = "on" if options["jax_x64"] else "off"
    return tuple(_ask.options(options))


def promote_types(a: Operand, b: Operand, *, system: System = "openvino", **options: Unpack[Promotion]) -> str:
    """Canonical name of the common type of two types in a system.

    Parameters
    ----------
    a, b
        Types, or ``"py:bool"``, ``"py:int"``, ``"py:float"`` for numbers of Python; the system's names
        come first.
    system
        ``"openvino"``, ``"numpy"``, ``"jax"``, ``"torch"`` or ``"tensorflow"``.
    options
        ``unsafe``, ``strict``, ``pytorch_scalar``, ``u64_target``, ``lhs_rank``, ``rhs_rank`` (openvino), ``jax_x64``,
        ``tensorflow_mode``.

    Raises
    ------
    InputError
        The system refuses the pair; the message says why.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.promote_types("i64", "bf16", system="torch")
    'bf16'
    >>> tc.promote_types("i64", "bf16", system="jax")
    'bf16'
    """
    return _promoted(_operand(a), _operand(b), _promotion_options({"system": system, **options}))


def promotions(a: Operand, b: Operand, **options: Unpack[Promotion]) -> _ask.Answer:
    """The common type in every system: ``["results"]`` has an object for each (docs/interfaces.md section 6)."""
    words = ["promote", _operand(a), _operand(b), "--system", "all", *_promotion_options({**options})]
    return _ask.ask(*words)
