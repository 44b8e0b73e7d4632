"""Exceptions. Each is a ``TruecastError`` and one of Python's own, so that either can be caught."""

from typing import Any, Optional, Union


class TruecastError(Exception):
    """Every error of truecast."""


class UsageError(TruecastError, ValueError):
    """The call makes no sense: an attribute that the specification lacks, a shape that does not fit."""


class DTypeError(TruecastError, TypeError):
    """An object is of a type that truecast does not understand, or a type has no array in a library."""


class SpecError(TruecastError, ValueError):
    """The specification does not allow what was asked for. The message has its clause."""


class InputError(TruecastError, ValueError):
    """The data are malformed, or a policy refused a value."""

    index: Optional[int] = None
    """Of an element that was refused: its index in the tensor, row by row."""
    value: Union[float, str, None] = None
    """What it is: a number, or a text, quoted and shortened."""
    tensor: Optional[str] = None
    """Of a tensor in a file: its name."""


class _OfFile(OSError):
    """An error of the system with a message of its own; `errno` and `filename` are set where they are known."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        known = {"errno": self.errno, "filename": self.filename, **self.__dict__}
        return type(self), self.args, known


class FileError(_OfFile, TruecastError):
    """The system failed: a file, memory. `errno` and `filename` say why and where, where that is known."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file or folder."""


class DestinationExistsError(_OfFile, UsageError, FileExistsError):
    """The destination exists, and replacing it was not asked for."""


def _name_as_public(*classes: type) -> None:
    """Shows the classes as what they are imported from."""
    for one in classes:
        one.__module__ = "truecast"


_name_as_public(TruecastError, UsageError, DTypeError, SpecError, InputError)
_name_as_public(FileError, MissingFileError, DestinationExistsError)
