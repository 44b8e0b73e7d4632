"""OpenVINO: Convert and ConvertPromoteTypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _arrays, _questions, _truecast
from ._names import DTypeName
from .typing import OfArray, TypeLike, _with_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack


@_with_signature(OfArray)
def convert(x: Any, to: TypeLike | Literal["f8e4m3"], **arguments: Unpack[OfArray]) -> Any:
    """OpenVINO Convert; arguments as in `truecast.cast`. OpenVINO's names of types come first: ``"f8e4m3"`` is f8e4m3fn."""
    named: Any = to if not isinstance(to, str) or ":" in to else f"ov:{to}"
    return _arrays.cast(x, named, spec="openvino", **arguments)


def convert_promote_types(
    a: Any,
    b: Any,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: DTypeName | None = None,
    strict: bool = False,
) -> tuple[Any, Any]:
    """OpenVINO ConvertPromoteTypes-14: both arrays, converted to their common type.

    Raises
    ------
    InputError
        The promotion is refused; the message has the reason and alternatives.

    Examples
    --------
    >>> import numpy as np, truecast as tc
    >>> a, b = tc.openvino.convert_promote_types(np.int8([1]), np.float32([0.5]))
    >>> a.dtype, b.dtype
    (dtype('float32'), dtype('float32'))
    """
    import numpy as np

    arrays = [one if hasattr(one, "dtype") else np.asarray(one) for one in (a, b)]
    types: list[Any] = [_truecast.type_name(one.dtype) for one in arrays]
    ranks = ["0" if one.ndim == 0 else "n" for one in arrays]
    options: Any = {
        "unsafe": promote_unsafe,
        "strict": strict,
        "pytorch_scalar": pytorch_scalar_promotion,
        "u64_target": u64_integer_promotion_target,
        "lhs_rank": ranks[0],
        "rhs_rank": ranks[1],
    }
    common: Any = _questions.promote_types(*types, system="openvino", **options)
    first, second = (_arrays.cast(one, common, spec="openvino") for one in arrays)
    return first, second
