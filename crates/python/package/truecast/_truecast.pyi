"""The extension, in Rust. Its public items are imported from ``truecast``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

from .typing import Layout, Path, Settings, TypeLike
from ._names import Specification

_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
_Scalar = TypeVar("_Scalar", bound=np.generic)

DEFAULTS: list[tuple[str, str]]

__version__: str

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
@overload
def cast(
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
) -> Any: ...
def cast_counted(
    x: Any,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    out: Any = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    **attributes: Unpack[Settings],
) -> tuple[Any, dict[str, Any]]: ...
def rescale(
    x: Any,
    to: Any,
    *,
    multiplier: int | Sequence[int],
    shift: int | Sequence[int],
    input_zp: int = 0,
    output_zp: int = 0,
    scale32: bool = False,
    rounding: Literal["single", "double", "inexact"] = "single",
    per_channel: bool = False,
    input_unsigned: bool = False,
    output_unsigned: bool = False,
    spec: Specification | None = None,
    out: Any = None,
    from_: Any = None,
) -> Any: ...
def rescale_factors(scale: float, scale32: bool = True) -> tuple[int, int]: ...
def convert(
    src: Path, dst: Path, keywords: Mapping[str, Any], progress: Callable[[int, int, str], Any] | None
) -> str: ...
def clear(src: Path, dst: Path, keywords: Mapping[str, Any]) -> None: ...
def verify(
    src: Path, dst: Path, keywords: Mapping[str, Any], progress: Callable[[int, int, str], Any] | None
) -> tuple[str, str]: ...
def load(path: Path, tensor: str, from_: TypeLike | None) -> tuple[bytes, str, list[int]]: ...
def compare(
    a: Path,
    b: Path,
    from_: Any,
    to: Any,
    lenient: bool,
    follow_links: bool,
    progress: Callable[[int, int, str], Any] | None,
) -> str: ...
def quantize(
    x: Any,
    scheme: str,
    from_: Any,
    layout: str | None,
    keywords: Mapping[str, Any],
) -> tuple[str, tuple[int, ...], str, dict[str, Any]]: ...
def dequantize(
    scheme: str,
    shape: Sequence[int],
    parts: dict[str, Any],
    to: Any,
    spec: str | None,
    attributes: dict[str, Any] | None,
) -> Any: ...
def scheme_names() -> list[tuple[str, str]]: ...
def spec_names() -> list[str]: ...
def attributes(spec: str) -> list[tuple[str, bool, list[str]]]: ...
def type_names() -> list[str]: ...
def type_name(object: Any) -> str: ...
def torch_dtype(object: Any) -> Any: ...
def set_num_threads(threads: int | None = None) -> None: ...
def get_num_threads() -> int: ...
def release_memory() -> int: ...
def arguments(command: str) -> list[tuple[str, str, str | None, bool, bool, str, str]]: ...
def switches() -> list[str]: ...
def answer(args: Sequence[str], columns: int | None = None) -> str: ...
def shown(text: str, is_sentence: bool = False) -> str: ...
def main(args: Sequence[str]) -> int: ...
