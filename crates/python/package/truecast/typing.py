"""Types of arguments, for editors and type checkers: names of types and specifications (`DTypeName`, `TypeLike`,
`Specification`), words of options, and the keyword arguments of functions that take many.

A misspelled word or keyword is then found before the program runs. Names from elsewhere are strings:
declare them as `DTypeName`, or pass ``np.dtype(name)``.

>>> from truecast.typing import DTypeName
>>> wanted: list[DTypeName] = ["bf16", "f8e4m3fn"]
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Union

from ._names import DTypeName as DTypeName
from ._names import Rounding as Rounding
from ._names import Specification as Specification

if TYPE_CHECKING:
    import numpy as np

    from ._report import ConversionReport

_DType = TypeVar("_DType", covariant=True)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_OF_KIND: dict[str, Any] = {"bool": False, "Patterns": (), "Rules": (), "Preset | Iterable[Preset]": ()}

# For ONNX, and others that take integers for it.
Switch = Literal[True, False, 0, 1, "true", "false"]
Overflow = Literal["nonfinite", "saturate", "error"]
Nan = Literal["keep", "canonical", "error"]
Layout = Literal["values", "codes", "packed"]
MxScale = Literal["auto", "floor", "rceil", "even", "ct"]
ScaleSearch = Literal["mse"]
NonFinite = Literal["error", "saturate"]
Preset = Literal["norms", "embeddings", "router", "lm_head", "ssm", "unquantized"]
Gradient = Literal["none", "straight-through"]
Level = Literal["boundary", "exhaustive"]
System = Literal["openvino", "numpy", "jax", "torch", "tensorflow"]
PythonNumber = Literal["py:bool", "py:int", "py:float"]


class TorchDType(Protocol):
    """A `torch.dtype`."""

    @property
    def is_floating_point(self) -> bool: ...


class HasDType(Protocol[_DType]):
    """A type of JAX."""

    @property
    def dtype(self) -> _DType: ...


class Bar(Protocol):
    """A bar of tqdm."""

    def update(self, n: float = 1, /) -> Any: ...


Progress = Union[Bar, Callable[[int, int, str], Any]]
# mypy prints the name of a type that refers to itself, and the contents of other unions: five hundred names.
TypeLike: TypeAlias = Union[DTypeName, type[Any], "np.dtype[Any]", TorchDType, "HasDType[TypeLike]", int]
"""Any way to give an element type: a name of any ecosystem, a type of NumPy, ml_dtypes, torch or JAX, a number of ONNX."""
Path = Union[str, "os.PathLike[str]"]
Patterns = Union[str, Iterable[str]]
Rules = Union[Mapping[str, Union[TypeLike, None]], Iterable[tuple[str, Union[TypeLike, None]]]]


class Settings(TypedDict, total=False):
    """Attributes of specifications, see `cast`; ``None`` means not given."""

    saturate: Switch | None
    round_mode: Literal["up", "down", "nearest"] | None
    rounding: Rounding | None
    overflow: Overflow | None
    inf: Overflow | None
    int_overflow: Literal["wrap", "saturate", "indefinite", "saturate-to-f32", "error"] | None
    nan_to_int: Literal["zero", "saturate", "indefinite", "top-bit", "error"] | None
    subnormals: Literal["keep", "flush", "flushsource", "flushresult"] | None
    relu: Switch | None
    scale_exponent: int | None
    saturating: Switch | None
    profile: str | None
    tile_option: str | Sequence[str] | None
    nan: Nan | None
    string_style: Literal["reference", "plain"] | None


class Arrays(TypedDict, total=False):
    """Sources and destinations of elements."""

    out: Any
    from_: TypeLike | None
    shape: Sequence[int] | None
    layout: Layout | None


class OfArray(Arrays, total=False):
    """Arguments of operators on arrays."""

    nan: Nan | None


class OfOnnx(OfArray, total=False):
    """Arguments of ONNX operators."""

    string_style: Literal["reference", "plain"] | None


class OfTile(OfArray, total=False):
    """Arguments of Tile IR operators."""

    profile: str | None
    tile_option: str | Sequence[str] | None


class Checking(Settings, total=False):
    """Arguments of `check`."""

    exact_nan: bool
    show: int


class CheckingTosa(TypedDict, total=False):
    """Arguments of `tosa.check`."""

    exact_nan: bool
    nan: Nan | None
    input_scale: Path | None
    actual_scale: Path | None
    input_unsigned: bool


class CheckingRescale(TypedDict, total=False):
    """Arguments of `tosa.rescale` in `tosa.check_rescale`."""

    input_zp: int
    output_zp: int
    rounding: Literal["single", "double", "inexact"]
    per_channel: bool
    input_unsigned: bool
    output_unsigned: bool


class Promotion(TypedDict, total=False):
    """Options of a promotion."""

    unsafe: bool
    strict: bool
    pytorch_scalar: bool
    u64_target: DTypeName | None
    lhs_rank: Literal["0", "n", "unknown"] | None
    rhs_rank: Literal["0", "n", "unknown"] | None
    jax_x64: bool | Literal["on", "off"] | None
    tensorflow_mode: Literal["all", "safe"] | None


class Common(Settings, total=False):
    """Arguments of `convert` and `verify`."""

    keep: Patterns
    rules: Rules
    from_: TypeLike | None
    spec: Specification | None
    seed: int | None
    min_elements: int
    lenient: bool
    follow_links: bool
    from_scheme: str | None
    trust_scales: bool
    nibbles: Literal["high", "low"] | None
    reference: Path | None
    like: Path | None
    keep_names: bool
    scheme: str | None
    scale_search: ScaleSearch | None
    mx_scale: MxScale | None
    nonfinite: NonFinite | None
    keep_preset: Preset | Iterable[Preset]
    quantize: Patterns
    activation_ranges: Path | None
    imatrix: Path | None
    share_global: Patterns
    relayout: Literal["exact", "lossy"] | None
    progress: Progress | None


class Converting(Common, total=False):
    """Arguments of `convert` only."""

    force: bool
    dry_run: bool
    max_memory: int | str
    measure: Literal["sample", "full", "off"] | None
    magnitudes: bool
    sidecars: bool
    resume: bool
    part: str | tuple[int, int] | None
    merge: bool


class Verifying(Common, total=False):
    """Arguments of `verify` only."""

    report: Path | ConversionReport | None
    full: bool
    sample: float | None
    sample_seed: int


def _keywords(of: Any) -> dict[str, str]:
    """The keyword arguments of a function, with their written types."""
    return {name: getattr(kind, "__forward_arg__", kind) for name, kind in of.__annotations__.items()}


def _with_signature(of: Any, **defaults: Any) -> Callable[[_Function], _Function]:
    """Shows the possible ``**options`` and their defaults; attributes of specifications stay together."""

    def shown(function: _Function) -> _Function:
        *own, options = inspect.signature(function).parameters.values()
        settings = Settings.__annotations__.keys() & of.__annotations__.keys()
        together = settings if settings == Settings.__annotations__.keys() else frozenset()
        for name, kind in _keywords(of).items():
            default = defaults.get(name, _OF_KIND.get(kind))
            if name not in together:
                own.append(inspect.Parameter(name, options.KEYWORD_ONLY, default=default, annotation=kind))
        if together:
            own.append(options.replace(name="attributes", annotation="Unpack[Settings]"))
        signature = inspect.signature(function).replace(parameters=own)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return shown
