"""The extension, in Rust. Its public items are imported from ``truecast``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from .typing import Path, TypeLike
from ._names import Specification

DEFAULTS: list[tuple[str, str]]

__version__: str

def cast(
    x: Any,
    to: Any,
    spec: Any,
    out: Any,
    from_: Any,
    shape: Sequence[int] | None,
    layout: str | None,
    seed: int | None,
    attributes: Mapping[str, Any] | None,
) -> Any: ...
def cast_counted(
    x: Any,
    to: Any,
    spec: Any,
    out: Any,
    from_: Any,
    shape: Sequence[int] | None,
    layout: str | None,
    attributes: Mapping[str, Any] | None,
) -> tuple[Any, dict[str, Any]]: ...
def counted_between(x: Any, y: Any) -> dict[str, Any]: ...
def vectors(
    from_: Any,
    to: Any,
    level: str,
    seed: int | None,
    layout: str | None,
    spec: str | None,
    attributes: Mapping[str, Any] | None,
) -> dict[str, Any]: ...
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
    magnitudes: bool,
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
