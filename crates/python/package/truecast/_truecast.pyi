"""The extension, in Rust. What is public of it is imported from ``truecast``."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])

__version__: str

@overload
def cast(
    x: Any,
    to: Any,
    *,
    spec: str | None = None,
    out: _Array,
    from_: Any = None,
    shape: Sequence[int] | None = None,
    layout: str | None = None,
    **attributes: Any,
) -> _Array: ...
@overload
def cast(
    x: npt.NDArray[Any] | Sequence[Any] | float,
    to: Any,
    *,
    spec: str | None = None,
    out: None = None,
    from_: Any = None,
    shape: Sequence[int] | None = None,
    layout: str | None = None,
    **attributes: Any,
) -> npt.NDArray[Any]: ...
@overload
def cast(
    x: Any,
    to: Any,
    *,
    spec: str | None = None,
    out: Any = None,
    from_: Any = None,
    shape: Sequence[int] | None = None,
    layout: str | None = None,
    **attributes: Any,
) -> Any: ...
def cast_counted(
    x: Any,
    to: Any,
    *,
    spec: str | None = None,
    out: Any = None,
    from_: Any = None,
    shape: Sequence[int] | None = None,
    layout: str | None = None,
    **attributes: Any,
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
    rounding: str = "single",
    per_channel: bool = False,
    input_unsigned: bool = False,
    output_unsigned: bool = False,
    spec: str | None = None,
    out: Any = None,
    from_: Any = None,
) -> Any: ...
def rescale_factors(scale: float, scale32: bool = True) -> tuple[int, int]: ...
def convert(
    words: Sequence[str],
    decides: tuple[str | None, dict[str, Any]],
    dry_run: bool,
    progress: Callable[[int, int, str], None] | None,
) -> str: ...
def clear(words: Sequence[str], decides: tuple[str | None, dict[str, Any]]) -> None: ...
def verify(
    words: Sequence[str],
    decides: tuple[str | None, dict[str, Any]],
    progress: Callable[[int, int, str], None] | None,
) -> tuple[str, str]: ...
def compare(
    a: str | PathLike[str],
    b: str | PathLike[str],
    from_: Any,
    to: Any,
    lenient: bool,
    follow_links: bool,
    progress: Callable[[int, int, str], None] | None,
) -> str: ...
def quantize(
    x: Any,
    scheme: str,
    mx_scale: str | None,
    scale_search: str | None,
    nonfinite: str | None,
    from_: Any,
    layout: str | None,
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
def attributes(spec: str) -> list[tuple[str, bool, list[str]]]: ...
def type_names() -> list[str]: ...
def type_name(object: Any) -> str: ...
def torch_dtype(object: Any) -> Any: ...
def set_num_threads(threads: int | None = None) -> None: ...
def get_num_threads() -> int: ...
def release_memory() -> int: ...
def arguments(command: str) -> list[tuple[str, str | None, bool, bool, str, str]]: ...
def answer(args: Sequence[str], columns: int | None = None) -> str: ...
def shown(text: str, is_sentence: bool = False) -> str: ...
def main(args: Sequence[str]) -> int: ...
