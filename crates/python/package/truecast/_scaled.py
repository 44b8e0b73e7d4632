"""Tensors with scales: quantize an array, and dequantize it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _truecast
from ._errors import DTypeError
from ._names import Specification
from ._report import Counts
from .typing import MxScale, NonFinite, ScaleSearch, Settings, TypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PARTS = ("codes", "scales", "global_scale", "zeros")


@dataclass(frozen=True, eq=False, repr=False)
class Quantized:
    """A tensor as codes and scales, made by `quantize` or from other arrays.

    >>> import numpy as np, truecast as tc
    >>> q = tc.Quantized("fp8-block", (128, 256), codes=np.full((128, 256), 0x38, np.uint8), scales=np.float32([[2, 3]]))
    >>> q.dequantize("f32")[0, [0, 255]]
    array([2., 3.], dtype=float32)
    """

    scheme: str
    """Name of the scheme from docs/spec/checkpoints.md section 5.6, or a short one."""
    shape: tuple[int, ...]
    """The shape of the tensor."""
    codes: Any
    """The elements, or the bytes or words that several share (torch: pairs of ``float4_e2m1fn_x2``)."""
    scales: Any
    """One per block, in the scheme's type."""
    global_scale: Any = None
    """NVFP4: the global scale, f32."""
    zeros: Any = None
    """Asymmetric schemes: the zero points, in the scheme's form."""
    dtype: str = "f32"
    """Type of the original tensor."""

    def arrays(self) -> dict[str, Any]:
        """Its arrays, by name."""
        return {name: getattr(self, name) for name in _PARTS if getattr(self, name) is not None}

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(int(array.nbytes) for array in self.arrays().values())

    def dequantize(
        self, to: TypeLike | None = None, *, spec: Specification | None = None, **attributes: Unpack[Settings]
    ) -> Any:
        """`truecast.dequantize` of this tensor."""
        return dequantize(self, to, spec=spec, **attributes)

    def error(self, w: Any) -> Counts:
        """The differences between an array and this tensor's f32 values, as `compare` reports those between two files.

        Parameters
        ----------
        w
            The original: an array of numbers as in `cast`, of this tensor's shape.

        Returns
        -------
        Counts
            ``max_abs_error`` and ``rmse`` in units of ``w``, ``max_rel_error`` relative to its elements, ``sqnr_db`` in dB,
            ``cosine``; the counts of ``exact`` and ``inexact`` elements and others. All elements are measured.
            ``subnormal`` counts f32 values; ``saturated`` and ``wrapped`` are 0, because values do not show them.

        Raises
        ------
        UsageError
            ``w`` has another shape.
        DTypeError
            ``w`` is text.
        InputError
            Scales or codes without a value.

        Examples
        --------
        >>> import numpy as np, truecast as tc
        >>> w = np.float32([[448, 1, -3.1]])
        >>> found = tc.quantize(w, "fp8-tensor").error(w)
        >>> round(found.max_abs_error, 3), found.inexact
        (0.1, 1)
        """
        return Counts(_truecast.counted_between(w, self.dequantize("f32")))

    def __repr__(self) -> str:
        elements = 1
        for n in self.shape:
            elements *= n
        shown = [f"{name} {array.dtype} {tuple(array.shape)}" for name, array in self.arrays().items()]
        bits = f"{8 * self.nbytes / elements:.4g} bits an element: " if elements else ""
        return f"{self.scheme} of {self.shape}, {bits}{', '.join(shown)}"


def quantize(
    x: Any,
    scheme: str,
    *,
    mx_scale: MxScale | None = None,
    scale_search: ScaleSearch | None = None,
    nonfinite: NonFinite | None = None,
    from_: TypeLike | None = None,
    layout: Literal["values", "codes"] | None = None,
) -> Quantized:
    """Quantizes an array with scales, like `convert` for a checkpoint (docs/spec/checkpoints.md section 7).

    Parameters
    ----------
    x
        An array of f32, f16, bf16 or f64 as in `cast`, of two or more dimensions; the last two are the matrices.
    scheme
        ``"fp8"`` (also ``"fp8_scaled"``, ``"fp8_e4m3fn"``: one scale per row), ``"mxfp4"``, ``"mxfp6"``, ``"mxfp8"``,
        ``"nvfp4"``, ``"fp8-block"``, ``"fp8-tensor"``, ``"fp8-channel"``, ``"int4-group"``, ``"int4-channel"``, ``"int8-group"``, ``"int8-channel"``, ``"int8-tensor"``, or a name of
        docs/spec/checkpoints.md section 5.6. Parameters may follow: ``"fp8-block:64x64"``, ``"int4-group,group=32"``,
        ``"int4-group,symmetric=false"``.
    mx_scale
        The rule of power-of-two scales: ``"auto"`` (the default: ``"even"`` for elements of 4 and 6 bits, ``"rceil"`` for
        8), ``"floor"``, ``"rceil"``, ``"even"`` or ``"ct"``.
    scale_search
        ``"mse"`` tries scales near the formula's, and uses the one with the smallest squared error.
    nonfinite
        ``"error"`` (the default), or ``"saturate"``: infinities become the largest element, NaN zero.
    from_, layout
        As in `cast`: the type of ``x`` if the array does not have it; ``"codes"`` gives unsigned integers instead of types
        that a library may lack.

    Returns
    -------
    Quantized
        Arrays of ``x``'s library, for packages that support the scheme.

    Raises
    ------
    UsageError
        A scheme that is supported for reading only, a shape that it cannot hold.
    DTypeError
        Elements of another type.
    InputError
        An element that is not finite, with its index.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    >>> q = tc.quantize(x, "mxfp8")
    >>> q
    mxfp8 of (2, 32), 8.25 bits an element: codes float8_e4m3fn (2, 32), scales float8_e8m0fnu (2, 1)
    >>> float(abs(tc.dequantize(q) - x).max()) < 2**-4
    True
    """
    how = {"mx_scale": mx_scale, "scale_search": scale_search, "nonfinite": nonfinite}
    of, shape, dtype, parts = _truecast.quantize(x, scheme, from_, layout, how)
    return Quantized(of, shape, dtype=dtype, **parts)


def dequantize(
    q: Quantized, to: TypeLike | None = None, *, spec: Specification | None = None, **attributes: Unpack[Settings]
) -> Any:
    """The elements of a scaled tensor, rounded once from the f32 value of the scheme's arithmetic
    (docs/spec/checkpoints.md section 6).

    Parameters
    ----------
    q
        A result of `quantize`, or a `Quantized` of other arrays; their types and shapes are checked.
    to
        Type of the result; by default the original type.
    spec, attributes
        As in `cast`: the conversion of f32 values to ``to``.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> tc.dequantize(tc.quantize(np.float16([[448, 1, -3]]), "fp8-tensor"))
    array([[448.,   1.,  -3.]], dtype=float16)
    """
    if not isinstance(q, Quantized):
        raise DTypeError("dequantize takes what quantize gives, or a Quantized that is made of arrays")
    return _truecast.dequantize(q.scheme, q.shape, q.arrays(), q.dtype if to is None else to, spec, {**attributes})
