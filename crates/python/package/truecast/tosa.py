"""TOSA: CAST, RESCALE, and checks of other implementations' results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _arrays, _check, _truecast
from .typing import CheckingRescale, CheckingTosa, OfArray, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

Numbers = Union[int, Sequence[int]]
_cast_array: Any = _arrays.cast


def _spec(version: str | None) -> Any:
    return "tosa" if version is None else f"tosa@{version}"


@_with_signature(OfArray)
def cast(
    x: Any, to: TypeLike, *, version: str | None = None, profile: str | None = None, **arguments: Unpack[OfArray]
) -> Any:
    """TOSA CAST; other arguments as in `truecast.cast`.

    >>> import numpy as np, truecast as tc
    >>> tc.tosa.cast(np.float32([0.5, 1.5, 300]), "i8")  # to the nearest even integer, saturated
    array([  0,   2, 127], dtype=int8)
    """
    return _cast_array(x, to, spec=_spec(version), profile=profile, **arguments)


def rescale(
    x: Any,
    to: TypeLike,
    *,
    multiplier: Numbers | None = None,
    shift: Numbers | None = None,
    scale: float | Sequence[float] | None = None,
    input_zp: int = 0,
    output_zp: int = 0,
    scale32: bool = False,
    rounding: Literal["single", "double", "inexact"] = "single",
    per_channel: bool = False,
    input_unsigned: bool = False,
    output_unsigned: bool = False,
    version: str | None = None,
    out: Any = None,
    from_: TypeLike | None = None,
) -> Any:
    """TOSA RESCALE: ``(x - input_zp) * multiplier * 2**-shift + output_zp``, rounded and saturated.

    Parameters
    ----------
    x
        Integers of 8, 16 or 32 bits, or of 64 holding i48. Unsigned types imply ``input_unsigned``.
    to
        ``i8``, ``u8``, ``i16``, ``u16`` or ``i32``.
    multiplier, shift
        Numbers, or with ``per_channel`` one for each index in the last dimension.
    scale
        Replaces both, by `factors`.
    scale32
        Multipliers have 32 bits, not 16.
    rounding
        ``"single"``, ``"double"`` or ``"inexact"``.

    Raises
    ------
    InputError
        The result is unpredictable; the message has the broken requirement and its place.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> tc.tosa.rescale(np.int32([3, -3, 1000]), "i8", multiplier=1 << 30, shift=31, scale32=True)
    array([  2,  -1, 127], dtype=int8)
    """
    multipliers, shifts = _factors_of("rescale", multiplier, shift, scale, scale32)
    return _truecast.rescale(
        x,
        to,
        multiplier=multipliers,
        shift=shifts,
        input_zp=int(input_zp),
        output_zp=int(output_zp),
        scale32=scale32,
        rounding=rounding,
        per_channel=per_channel,
        input_unsigned=input_unsigned,
        output_unsigned=output_unsigned,
        spec=_spec(version),
        out=out,
        from_=from_,
    )


def _factors_of(
    name: str, multiplier: Numbers | None, shift: Numbers | None, scale: Any, scale32: bool
) -> tuple[list[int], list[int]]:
    """Given multipliers and shifts, or those for scales."""
    if scale is not None:
        if multiplier is not None or shift is not None:
            raise TypeError(f"{name} takes multiplier and shift, or scale, not both")
        import numpy as np

        both = [factors(float(one), scale32) for one in np.atleast_1d(np.asarray(scale))]
        return [one[0] for one in both], [one[1] for one in both]
    if multiplier is None or shift is None:
        raise TypeError(f"{name} needs multiplier and shift, or scale")
    return _numbers(multiplier), _numbers(shift)


def _numbers(numbers: Any) -> list[int]:
    import numpy as np

    return [int(number) for number in np.atleast_1d(np.asarray(numbers))]


def factors(scale: float, scale32: bool = True) -> tuple[int, int]:
    """Multiplier and shift for a scale (docs/spec/tosa.md section 4.7).

    >>> import truecast as tc
    >>> tc.tosa.factors(0.0013)
    (1429365116, 40)
    """
    return _truecast.rescale_factors(scale, scale32)


@_with_signature(CheckingTosa)
def check(
    x: Any,
    actual: Any,
    to: TypeLike | None = None,
    *,
    from_: TypeLike | None = None,
    version: str | None = None,
    profile: str | None = None,
    show: int = 10,
    **options: Unpack[CheckingTosa],
) -> _check.Check:
    """Whether ``actual`` is a permitted result of TOSA CAST on ``x``, by the rules of ``profile``; as `truecast.check`."""
    return _check.ask("cast", x, actual, to, from_, {"spec": _spec(version), "profile": profile, "show": show, **options})


@_with_signature(CheckingRescale, input_zp=0, output_zp=0, rounding="single")
def check_rescale(
    x: Any,
    actual: Any,
    to: TypeLike | None = None,
    *,
    multiplier: Numbers | None = None,
    shift: Numbers | None = None,
    scale: float | Sequence[float] | None = None,
    scale32: bool = False,
    from_: TypeLike | None = None,
    version: str | None = None,
    profile: str | None = None,
    show: int = 10,
    **options: Unpack[CheckingRescale],
) -> _check.Check:
    """Whether ``actual`` is a permitted result of `rescale` on ``x``; ``options`` are those of `rescale`."""
    multipliers, shifts = _factors_of("check_rescale", multiplier, shift, scale, scale32)
    words = {"multiplier": ",".join(map(str, multipliers)), "shift": ",".join(map(str, shifts)), "scale32": scale32}
    asked = {"spec": _spec(version), "profile": profile, "show": show, **words, **options}
    return _check.ask("rescale", x, actual, to, from_, asked)
