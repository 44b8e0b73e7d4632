"""Reports of conversions, comparisons and checks; and conversion of an array with a report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _table
from ._names import Specification
from ._truecast import __version__, cast_counted, shown
from .typing import Layout, Settings, TypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

COUNTS = (
    "exact inexact saturated wrapped to_inf to_nan nan_in inf_in nan_out inf_out flushed_to_zero subnormal "
    "sign_of_zero_lost undefined left_out"
).split()
"""Counts, by their common names (docs/interfaces.md section 6)."""
MEASURES = "max_abs_error max_rel_error rmse sqnr_db cosine".split()
"""Error measures over the pairs that are finite on both sides."""
_LOSSES = "saturated wrapped to_inf to_nan flushed_to_zero sign_of_zero_lost undefined".split()


def _number(value: Any) -> Any:
    """JSON has no NaN and no infinities."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if name in MEASURES else value for name, value in row.items()}


class Counts(Mapping[str, Any]):
    """Counts of the conversion of an array, or of the differences between two: `COUNTS`, `MEASURES`, ``elements``, ``lossless`` and
    ``index_max_abs``, as a mapping and as attributes."""

    def __init__(self, row: dict[str, Any]):
        self._row = row

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_row"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._row]

    def to_dict(self) -> dict[str, Any]:
        """All of them, for a row of a data frame."""
        return dict(self._row)

    def __repr__(self) -> str:
        lost = [f"{name.replace('_', ' ')} {self._row[name]:_}" for name in _LOSSES if self._row[name]]
        how = ["lossless"] if self._row["lossless"] else [*lost, f"SQNR {self._row['sqnr_db']:.4g} dB"]
        return f"{self._row['elements']:_} elements: {', '.join(how)}"

    def _repr_html_(self) -> str:
        return _table.as_html([self._row], ["elements", *COUNTS, *MEASURES], repr(self))


def cast_with_report(
    x: Any,
    to: TypeLike,
    *,
    spec: Specification | None = None,
    out: Any = None,
    from_: TypeLike | None = None,
    shape: Sequence[int] | None = None,
    layout: Layout | None = None,
    **attributes: Unpack[Settings],
) -> tuple[Any, Counts]:
    """`truecast.cast` with counts of its losses, in the same pass and with the same arguments, except ``seed``.

    >>> import numpy as np, truecast as tc
    >>> y, counts = tc.cast_with_report(np.float32([1, 465, 1e-5]), "f8e4m3fn")
    >>> counts.saturated, counts.flushed_to_zero, counts.exact
    (1, 1, 1)
    >>> counts
    3 elements: saturated 1, flushed to zero 1, SQNR 28.74 dB
    """
    result, row = cast_counted(x, to, spec, out, from_, shape, layout, attributes)
    return result, Counts(row)


class _Report:
    """A report with a row for each tensor."""

    _columns: tuple[str, ...] = ()

    def __init__(self, data: dict[str, Any]):
        self._data = data
        self.tensors: list[dict[str, Any]] = [_row(row) for row in data.get("tensors", [])]
        """A row for each tensor: its name, shape, types, sizes, counts and measures."""
        self.warnings: list[str] = list(data.get("warnings", []))
        """Warnings about the result."""

    @property
    def total(self) -> dict[str, Any]:
        """The sums of all tensors, and of the groups ``converted``, ``kept`` and ``integers``."""
        return dict(self._data["total"])

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows as columns, for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        names = list(dict.fromkeys(name for row in self.tensors for name in row))
        return {name: [row.get(name) for row in self.tensors] for name in names}

    def to_json(self) -> dict[str, Any]:
        """The object of docs/interfaces.md section 6."""
        return dict(self._data)

    def _caption(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        table = _table.text(self.tensors, self._columns)
        return "\n".join([self._caption(), table, *(f"warning: {shown(warning, True)}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return _table.as_html(self.tensors, self._columns, self._caption())


class ConversionReport(_Report):
    """Report of `convert`, tensor by tensor."""

    _columns = ("name", "shape", "scheme", "from", "to", "to_scheme", *_LOSSES, "max_abs_error", "sqnr_db")

    @property
    def shards(self) -> list[dict[str, Any]]:
        """Files of tensors in a folder: ``name``, ``tensors``, ``bytes_in``, ``bytes_out`` and ``state``."""
        return list(self._data.get("shards", []))

    @property
    def complete(self) -> bool:
        """Whether everything is done: for a folder in parts, every part is finished."""
        return bool(self._data.get("complete", True))

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Written files: ``path``, ``bytes`` and ``sha256``. Empty for a dry run."""
        return list(self._data.get("outputs", []))

    @property
    def options(self) -> dict[str, Any]:
        """Options that decided the result: specification, attributes, types and rules."""
        return dict(self._data["options"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a file, for ``truecast verify --report`` and `verify`."""
        whole = {"truecast": __version__, "command": "convert", **self._data}
        Path(path).write_text(json.dumps(whole, indent=2) + "\n")

    def _caption(self) -> str:
        total = self._data["total"]
        spec = self._data["options"]
        by = spec["spec"] and f", by {spec['spec']}" + (f"@{spec['version']}" if spec["version"] else "")
        tensors = "1 tensor" if total["tensors"] == 1 else f"{total['tensors']} tensors"
        return f"{tensors}, {total['bytes_in']:_} to {total['bytes_out']:_} bytes{by or ''}"


class Comparison(_Report):
    """Differences between the values of two files, tensor by tensor."""

    _columns = ("name", "shape", "from", "to", "inexact", *_LOSSES, "max_abs_error", "sqnr_db")

    @property
    def equal(self) -> bool:
        """Whether both files have the same tensors with the same values."""
        return bool(self._data["equal"])

    @property
    def only_first(self) -> list[str]:
        """Tensors of the first file only."""
        return list(self._data["only_first"])

    @property
    def only_second(self) -> list[str]:
        """Tensors of the second file only."""
        return list(self._data["only_second"])

    @property
    def incomparable(self) -> list[dict[str, str]]:
        """Tensors with different shapes, or that are not numbers: ``name`` and ``why``."""
        return list(self._data["incomparable"])

    def _caption(self) -> str:
        first, second = shown(self._data["first"]), shown(self._data["second"])
        return f"{first} and {second}: {'equal' if self.equal else 'different'}"


class Verification:
    """Result of verifying a file; true if the file is correct."""

    def __init__(self, data: str, text: str):
        self._data, self._shown = json.loads(data), text

    @property
    def equal(self) -> bool:
        """Whether every recomputed element is right."""
        return bool(self._data["equal"])

    @property
    def coverage(self) -> float:
        """Fraction of recomputed elements, 1 for all."""
        return float(self._data["coverage"])

    @property
    def differences(self) -> list[dict[str, Any]]:
        """Differences, each with its ``kind``."""
        return list(self._data["differences"])

    def __bool__(self) -> bool:
        return self.equal

    def to_dict(self) -> dict[str, Any]:
        """The object of docs/interfaces.md section 6."""
        return dict(self._data)

    def __repr__(self) -> str:
        return self._shown.rstrip("\n")

    def _repr_html_(self) -> str:
        return _table.pre(repr(self))
