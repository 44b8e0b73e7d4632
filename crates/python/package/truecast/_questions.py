"""Questions about one value, and about two types."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Union

from . import _ask, _truecast
from ._names import Specification
from .typing import Promotion, PythonNumber, Settings, System, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

Operand = Union[TypeLike, PythonNumber]


class Explanation(_ask.Answer):
    """One value in every type, or its conversion under every specification.

    Fields of a value: ``types``, each with ``dtype, bits, value, error, exact``. Fields of a conversion: ``source``, ``neighbors``, ``answers`` (each distinct one with its names), ``results`` (each
    with ``spec, version, attributes, bits, value, undefined, clause``), ``absent``, ``known_differences``; see
    docs/interfaces.md section 6.
    """

    def _text(self, columns: int | None) -> str:
        return re.sub(r" --from(\s+)(\w+)", r'\1from_="\2"', super()._text(columns))


def explain(
    value: Any,
    to: TypeLike | None = None,
    *,
    from_: TypeLike | None = None,
    spec: Specification | None = None,
    **attributes: Unpack[Settings],
) -> Explanation:
    """Explains one value in every numeric type, or its conversion to one type.

    Parameters
    ----------
    value
        A number, a scalar of NumPy (with exactly its bits), or text as in the command: ``"1/3"``, ``"0x1.8p-3"``,
        ``"nan"``, ``"0x7fc00001"`` for bits.
    to
        The destination type; without it, the answer has the value in every numeric type.
    from_
        The source type, to which the number is rounded. The default is the type of a NumPy scalar, ``bool`` for a
        bool, and for any other number and for text, as in the command, ``f32`` (without ``to``: no rounding).
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
    words = ["explain", *(["--to", _truecast.type_name(to)] if to is not None else [])]
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


@_with_signature(Promotion)
def promote_types(a: Operand, b: Operand, *, system: System, **options: Unpack[Promotion]) -> str:
    """Canonical name of the common type of two types in a system, as ``truecast promote --system`` answers.

    Parameters
    ----------
    a, b
        Types, or ``"py:bool"``, ``"py:int"``, ``"py:float"`` for numbers of Python; the system's names
        come first.
    system
        ``"openvino"``, ``"numpy"``, ``"jax"``, ``"torch"`` or ``"tensorflow"``. There is no default, because they differ;
        `promotions` asks all of them.
    unsafe, strict, pytorch_scalar, u64_target
        Attributes and strictness of OpenVINO.
    lhs_rank, rhs_rank
        Ranks of the tensors: ``"0"``, ``"n"``, or with OpenVINO ``"unknown"``.
    jax_x64, tensorflow_mode
        Modes of JAX (the default is 64-bit types on) and TensorFlow (``"all"``).

    Raises
    ------
    InputError
        The system refuses the pair, or lacks a type; the message says why.
    UsageError
        An option that belongs to another system.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.promote_types("u8", "f16", system="jax"), tc.promote_types("u8", "py:float", system="torch")
    ('f16', 'f32')
    >>> tc.promote_types("i32", "f16", system="numpy"), tc.promote_types("i32", "f16", system="jax")
    ('f64', 'f16')
    """
    return _promoted(_operand(a), _operand(b), _promotion_options({"system": system, **options}))


@_with_signature(Promotion)
def promotions(a: Operand, b: Operand, **options: Unpack[Promotion]) -> _ask.Answer:
    """The common type in every system: ``["results"]`` has an object for each (docs/interfaces.md section 6). Arguments
    are those of `promote_types`, without ``system``.

    >>> import truecast as tc
    >>> [row["system"] for row in tc.promotions("i32", "f16")["results"] if row.get("dtype") == "f64"]
    ['numpy']
    """
    words = ["promote", _operand(a), _operand(b), "--system", "all", *_promotion_options({**options})]
    return _ask.ask(*words)


def differ(a: str | None = None, b: str | None = None, *, from_: TypeLike, to: TypeLike) -> _ask.Answer:
    """The inputs for which two specifications give different results, for a pair of types.

    Every code of a source of up to 20 bits is compared, and of up to 32 bits if both have fast loops (seconds); boundary
    values of others.

    Parameters
    ----------
    a, b
        Names of specifications, with version and attributes: ``"tosa"``, ``"torch@2.15"``, ``"onnx:saturate=false"``.
        Without them all are compared, and those that agree are listed together.
    from_, to
        Types of source and result.

    Returns
    -------
    Answer
        The object of ``truecast differ --json`` (docs/interfaces.md section 6): ``["pairs"][0]`` has ``inputs``,
        ``every_input``, ``different``, ``open`` and ``ranges`` of inputs in bits and values; without names ``classes``.

    Raises
    ------
    InputError
        A specification does not convert the pair; the message has its clause.
    UsageError
        An unknown name, version or attribute.

    Examples
    --------
    >>> import truecast as tc
    >>> (pair,) = tc.differ("onnx", "tosa", from_="f16", to="f8e4m3fn")["pairs"]
    >>> pair["inputs"], pair["different"], [(one["first_value"], one["last_value"]) for one in pair["ranges"]]
    (65536, 14720, [('-inf', '-464.25'), ('464.25', 'inf')])
    """
    names = [name for name in (a, b) if name is not None]
    return _ask.ask("differ", *names, "--from", _truecast.type_name(from_), "--to", _truecast.type_name(to))


def schemes(name: str | None = None) -> _ask.Answer:
    """The schemes of quantized checkpoints, or one of them: the object of ``truecast schemes --json``
    (docs/interfaces.md section 6). `quantize` and ``convert(scheme=)`` take the names.

    Parameters
    ----------
    name
        A scheme: a name of docs/spec/checkpoints.md section 5.6, or a short one.

    Returns
    -------
    Answer
        ``schemes``, each with ``name``, ``kind``, ``stored``, ``written``, ``used_by`` and ``parameters``, and
        ``short_names``; for one scheme its fields. Its ``repr`` has a scheme for each goal.

    Raises
    ------
    UsageError
        An unknown or ambiguous name.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.schemes()["short_names"]["mxfp4"]
    'ct:mxfp4-pack-quantized'
    >>> tc.schemes("fp8-block")["written"]
    'yes'
    """
    return _ask.ask("schemes", *([] if name is None else [name]))
