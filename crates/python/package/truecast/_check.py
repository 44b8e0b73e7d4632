"""Checks of other implementations' results, and test vectors for them."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from . import _arrays, _ask, _truecast
from ._errors import UsageError
from ._names import Specification
from .typing import Level, Settings, TypeLike

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack


class Check(_ask.Answer):
    """Findings of a check; true if everything is permitted.

    Fields: ``elements``, ``wrong``, ``undefined``, ``violations`` of ``index, input, actual, permitted, clause``, ``groups``
    of the violations by the convention that reproduces them, and others; see docs/interfaces.md section 6.
    """

    @property
    def passes(self) -> bool:
        """Everything is permitted."""
        return bool(self._data.get("passes", self._data.get("wrong", 0) == 0)) and self._data.get("status") != "error"

    def __bool__(self) -> bool:
        return self.passes


_cast: Any = _arrays.cast
_NATIVE = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"}


def _stored(array: Any, dtype: Any) -> tuple[Any, str]:
    """An array that any release of NumPy can write to a file, and its type's name."""
    import numpy as np

    if not hasattr(array, "dtype"):
        array = np.asarray(array)
    # The checked tensor keeps its gradient.
    array = array.detach() if hasattr(array, "detach") else array
    own = _truecast.type_name(array.dtype)
    name = own if dtype is None else _truecast.type_name(dtype)
    if name == "string":
        return np.asarray(array).astype("U"), name
    if name == own and name in _NATIVE:
        return np.asarray(array), name
    given = None if name == own else dtype
    codes = np.asarray(_cast(array, name, spec="ieee", layout="codes", from_=given))
    # A file declares one bit per byte; u8 would be another type.
    return codes.view("V1") if name == "i1" else codes, name


def ask(operation: str, x: Any, actual: Any, to: Any, from_: Any, options: dict[str, Any]) -> Check:
    """Runs a check of the command on arrays, which are written to files."""
    import numpy as np

    (source, src), (result, dst) = _stored(x, from_), _stored(actual, to)
    if source.shape != result.shape:
        raise UsageError(f"the input has shape {source.shape}, the results {result.shape}")
    with tempfile.TemporaryDirectory(prefix="truecast-") as folder:
        paths = [os.path.join(folder, name) for name in ("input.npy", "actual.npy")]
        for path, array in zip(paths, (source, result)):
            np.save(path, array)
        words = ["check", operation, "--from", src, "--to", dst, "--input", paths[0], "--actual", paths[1]]
        words += _ask.options(options)
        return Check(_ask.data(words), shown=_ask.text(words, _ask.columns()))


def check(
    x: Any,
    actual: Any,
    to: TypeLike | None = None,
    *,
    from_: TypeLike | None = None,
    spec: Specification | None = None,
    exact_nan: bool = False,
    show: int = 10,
    **attributes: Unpack[Settings],
) -> Check:
    """Whether ``actual`` is a permitted result of casting ``x``, element by element.

    Parameters
    ----------
    x, actual
        Arrays of the same shape. Types come from the arrays, or from ``from_`` and ``to`` if they hold codes.
    spec, attributes
        As in `cast`; with ``"tosa"`` also ``profile``, the rules.
    exact_nan
        NaN must have truecast's bits; otherwise any NaN is right for NaN.
    show
        Number of violations to keep.

    Examples
    --------
    >>> import numpy as np, ml_dtypes, truecast as tc
    >>> x = np.linspace(-4, 4, 1000, dtype=np.float64)
    >>> through_f32 = x.astype(np.float32).astype(ml_dtypes.bfloat16)
    >>> tc.check(x, through_f32).passes
    True
    >>> truncated = tc.cast(x, "bf16", spec="ieee", rounding="toward-zero")
    >>> tc.check(x, truncated)["groups"][0]["convention"]
    'rounded-toward-zero'
    """
    return ask("cast", x, actual, to, from_, {"spec": spec, "exact_nan": exact_nan, "show": show, **attributes})


@dataclass(frozen=True, eq=False)
class Vectors:
    """Inputs of a cast and their results, in arrays of NumPy of one length; inputs ascend by their codes."""

    spec: str
    """The specification with version, attributes and seed."""
    from_: str
    """Type of the inputs."""
    to: str
    """Type of the results."""
    clause: str = field(repr=False)
    """The clause that decides."""
    input: npt.NDArray[Any] = field(repr=False)
    """The inputs."""
    output: npt.NDArray[Any] = field(repr=False)
    """The results; the documented one where the specification leaves it open, the code 0 where it is refused."""
    undefined: npt.NDArray[np.bool_] = field(repr=False)
    """Where the specification leaves the result open."""
    refused: npt.NDArray[np.bool_] = field(repr=False)
    """Where an ``error`` policy refuses the input."""
    random: npt.NDArray[np.uint32] | None = field(repr=False)
    """With ``seed``, the random bits that round each input; otherwise ``None``."""
    open: dict[int, tuple[str, list[int] | None]] = field(repr=False)
    """For the index of each open result: the reason, and the codes that `check` accepts, ``None`` for any."""

    def __len__(self) -> int:
        return len(self.input)


def vectors(
    from_: TypeLike,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    level: Level = "boundary",
    seed: int | None = None,
    layout: Literal["values", "codes"] | None = None,
    **attributes: Unpack[Settings],
) -> Vectors:
    """Test vectors of a cast: the inputs at which implementations differ, with their results, as
    ``truecast vectors cast`` writes them (docs/interfaces.md section 4.1).

    Parameters
    ----------
    from_, to
        Numeric types of inputs and results.
    spec, attributes
        As in `cast`.
    level
        ``"boundary"``: special codes, and the codes around each value, midpoint and limit of the result's type; every
        code of a source of 8 bits or fewer. ``"exhaustive"``: every code of a source of 16 bits or fewer.
    seed
        Rounds stochastically, as in `cast`: ``random`` has the 32 bits of the element with the vector's index.
    layout
        As in `cast`: ``"codes"`` gives unsigned integers, for types that NumPy and ml_dtypes lack. Elements
        of i48 have 64 bits.

    Returns
    -------
    Vectors
        ``input`` and ``output``, ``undefined`` and ``refused``, arrays of one length.

    Raises
    ------
    SpecError
        The specification does not convert the pair, and the message has the clause; or ``seed`` for a type without a last
        place.
    DTypeError
        A type without arrays in NumPy and ml_dtypes; use ``layout="codes"``.
    UsageError
        Text, ``"exhaustive"`` for a source of more than 16 bits, ``seed`` with another rounding.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> found = tc.vectors("f32", "f8e4m3fn", spec="tosa")
    >>> found.output[found.input == np.inf], found.clause
    (array([nan], dtype='float8_e4m3fn'), 'TOSA CAST; docs/spec/tosa.md §3.5')
    >>> tc.check(found.input, tc.cast(found.input, "f8e4m3fn"), spec="tosa").passes  # ONNX saturates
    False
    """
    listed = _truecast.vectors(from_, to, level, seed, layout, spec, attributes)
    return Vectors(**{**listed, "open": {index: (reason, codes) for index, reason, codes in listed["open"]}})
