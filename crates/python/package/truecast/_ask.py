"""Queries to the command's own code: its JSON is the data, its text the display."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _table, _truecast

_SWITCHES = frozenset(_truecast.switches())


def options(values: Mapping[str, Any]) -> list[str]:
    """Arguments by name as options of the command; ``None`` and ``False`` switches are not given."""
    words: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        if name in _SWITCHES:
            words += [option] if value else []
        elif isinstance(value, (list, tuple)):
            words += [word for one in value for word in (option, str(one))]
        elif name == "saturate":
            words += [option, "true" if value in (True, "true") else "false" if value in (False, "false") else str(value)]
        else:
            words += [option, str(value)]
    return words


def text(words: Iterable[Any], columns: int | None = None) -> str:
    """Output of the command. Errors name Python's arguments."""
    return _truecast.answer([str(word) for word in words], columns)


def data(words: Iterable[Any], arguments: Iterable[Any] = ()) -> dict[str, Any]:
    """The command's JSON object, without the names of program and command."""
    found = json.loads(text([*words, "--json", *arguments]))
    return {name: value for name, value in found.items() if name not in ("truecast", "command")}


def columns() -> int:
    """Width of the display."""
    return max(shutil.get_terminal_size().columns, 40)


class Answer(Mapping[str, Any]):
    """An answer as a mapping, with readable text as its ``repr``.

    The fields are those of ``--json`` (docs/interfaces.md section 6).
    """

    def __init__(self, data: dict[str, Any], words: list[str] | None = None, shown: str | None = None):
        self._data, self._words, self._shown = data, words, shown

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a ``dict``, which JSON can hold."""
        return dict(self._data)

    def __repr__(self) -> str:
        return self._text(columns())

    def _text(self, columns: int | None) -> str:
        """The readable text, wrapped to a width or with complete lines."""
        shown = text(self._words, columns) if self._shown is None and self._words is not None else self._shown
        return (shown or "").rstrip("\n")

    def _repr_html_(self) -> str:
        return _table.pre(self._text(None))


def ask(*words: Any) -> Answer:
    """The answer of a command."""
    words_of_it = [str(word) for word in words]
    return Answer(data(words_of_it), words_of_it)


class Later(Answer):
    """An answer with large data, which the command gives at their first use."""

    def __init__(self, words: list[str]):
        self._words, self._shown = words, None
        text(words, columns())  # errors come from the call

    def __getattr__(self, name: str) -> Any:
        if name != "_data":
            raise AttributeError(name)
        self._data = data(self._words or [])
        return self._data
