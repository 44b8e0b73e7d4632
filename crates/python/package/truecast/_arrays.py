"""`cast`, and what the process keeps for it: threads and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _truecast
from ._truecast import cast as _cast

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Never, Unpack

    from ._names import Specification
    from .typing import Layout, Settings, TypeLike

    _Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
    _Scalar = TypeVar("_Scalar", bound=np.generic)


@overload
def cast(
    x: Any,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    out: _Array,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    seed: int | None = None,
    **attributes: Unpack[Settings],
) -> _Array: ...
@overload
def cast(
    x: npt.NDArray[Any] | Sequence[Any] | float,
    to: type[_Scalar] | np.dtype[_Scalar],
    *,
    spec: Specification | None = None,
    out: None = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Literal["values"] | None = None,
    seed: int | None = None,
    **attributes: Unpack[Settings],
) -> npt.NDArray[_Scalar]: ...
@overload
def cast(
    x: npt.NDArray[Any] | Sequence[Any] | float,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    out: None = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    seed: int | None = None,
    **attributes: Unpack[Settings],
) -> npt.NDArray[Any]: ...
# ``Sequence[Never]`` accepts no string, but a misspelled string resembles it for mypy: the error is a line about this
# overload, instead of a list of all overloads and all names.
@overload
def cast(
    x: Any,
    to: TypeLike | Sequence[Never],
    *,
    spec: Specification | Sequence[Never] | None = None,
    out: Any = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    seed: int | None = None,
    **attributes: Unpack[Settings],
) -> Any: ...
def cast(  # type: ignore[misc]
    x: Any,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    out: Any = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    seed: int | None = None,
    **attributes: Unpack[Settings],
) -> Any:
    """Converts an array to another element type: every result is the specification's answer, rounded once.

    Parameters
    ----------
    x
        An array of NumPy (with ml_dtypes), a tensor of torch or an array of JAX on the CPU, or anything that NumPy can
        make an array of. Any layout: contiguous arrays are read in place, others are copied first. It may have no
        masked or null elements, and must not require a gradient.
    to
        The element type: a name of any ecosystem (``"f8e4m3fn"``, ``"FLOAT8E4M3FN"``, ``"torch:float8_e4m3fn"``), a
        type of NumPy, ml_dtypes or torch, or a number of ONNX's enumeration.
    spec
        The specification: ``"onnx"`` (the default), ``"tosa"``, ``"openvino"``, ``"tile"``, ``"ieee"``, or a library,
        language or chip by name (``"ptx"``), with an optional ``@VERSION``: ``"onnx@19"``, ``"torch@2.11"``.
    out
        Array for the results, with the result's shape and type, or unsigned integers of its width for the codes. It may
        overlap with ``x``.
    from_
        Type of ``x``'s elements if the array does not have it: codes in unsigned integers of their width, or with
        ``shape`` the bytes of a tensor.
    shape
        ``x`` holds the bytes of a tensor of this shape, narrow elements packed, the first in the lowest bits.
    layout
        ``"values"`` (the default): the library's own type for them, one element per byte if they are narrow.
        ``"codes"``: unsigned integers of their width. ``"packed"``: contiguous bytes, in one dimension of ``uint8``.
    seed
        Rounds stochastically: up or down by 32 random bits per element, which depend only on this number and the index
        of the element. Exact values are unchanged; the mean of the results is the value.
    **attributes
        Attributes of the specification: ``saturate``, ``round_mode`` (onnx), ``rounding``, ``overflow``, ``inf``,
        ``int_overflow``, ``nan_to_int``, ``subnormals`` (ieee), ``rounding``, ``saturating``, ``profile``,
        ``tile_option`` (tile), ``profile`` (tosa), ``string_style`` (onnx, ieee), ``rounding``, ``overflow``,
        ``int_overflow``, ``subnormals``, ``relu``, ``scale_exponent`` (languages and chips), ``nan`` (all). ``None``
        means not given.

    Returns
    -------
    An array of ``x``'s library and shape (lists become arrays of NumPy, subclasses their base class), or ``out``. If
    ``x`` is contiguous, the order of its axes is kept.

    Raises
    ------
    SpecError
        The specification does not allow the pair of types or the attribute; the message has the clause.
    DTypeError
        An unknown type, a type without arrays in the library (use ``layout="codes"``), or a tensor without memory.
    UsageError
        An invalid argument.
    InputError
        A value refused by an ``error`` policy, a text that is not a number, or a byte that is not a code; with the
        index of the element.

    Notes
    -----
    The interpreter is released, and large arrays are divided among threads (`set_num_threads`). Neither threads nor the
    CPU affect the result. Concurrent writes to ``x`` may or may not be seen.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> x = np.array([1, 465, -np.inf], np.float32)
    >>> tc.cast(x, "f8e4m3fn", layout="codes")
    array([ 56, 126, 254], dtype=uint8)
    >>> tc.cast(x, "i8", spec="ieee", int_overflow="saturate")
    array([   1,  127, -128], dtype=int8)
    >>> tc.cast(x, "i4", spec="ieee", layout="packed")  # 465 wraps to 1, two elements a byte
    array([17,  0], dtype=uint8)
    >>> tc.cast(tc.cast(x, "string"), "f32")
    array([  1., 465., -inf], dtype=float32)
    """
    return _cast(x, to, spec, out, from_, shape, layout, seed, attributes)


def set_num_threads(threads: int | None = None) -> None:
    """Sets the number of threads for conversions, 1 to 512; ``None`` is one per core. Results do not depend on it.

    Raises `UsageError` for another number.

    >>> import truecast as tc
    >>> tc.set_num_threads(2)
    >>> tc.get_num_threads()
    2
    >>> tc.set_num_threads(None)
    """
    _truecast.set_num_threads(threads)


def get_num_threads() -> int:
    """Number of threads for conversions."""
    return _truecast.get_num_threads()


def release_memory() -> int:
    """Returns memory that is kept for later results to the system, and its number of bytes to the caller.

    Memory of results of 1 MiB or more is not unmapped when its last array is gone, but kept: the next result that fits
    need not wait until the system has cleared new pages. At most 16 results and 1 GiB are kept, on Linux only. The
    system may take the memory at any time, so calling this function is rarely necessary.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> y = tc.cast(np.zeros(1 << 20, np.float32), "f16")
    >>> del y
    >>> kept = tc.release_memory()  # 2 MiB or more on Linux
    >>> tc.release_memory()
    0
    """
    return _truecast.release_memory()
