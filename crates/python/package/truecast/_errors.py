"""Exceptions. Each is a ``TruecastError`` and one of Python's own, so that either can be caught."""

from typing import Any, Optional, Union


class TruecastError(Exception):
    """Every error of truecast."""

    code: Optional[str] = None
    """Stable code of the error, as the command's ``--json`` has it; ``None`` for errors of the package alone."""


class UsageError(TruecastError, ValueError):
    """An invalid call: an attribute that the specification lacks, a shape that does not fit."""


class DTypeError(TruecastError, TypeError):
    """An object of an unknown type, or a type without arrays in a library."""


class SpecError(TruecastError, ValueError):
    """The specification does not allow the request. The message has its clause."""


class InputError(TruecastError, ValueError):
    """The data are malformed, or a policy refused a value."""

    index: Optional[int] = None
    """Row-major index of the refused element."""
    value: Union[float, str, None] = None
    """The refused value: a number, or a text, quoted and shortened."""
    tensor: Optional[str] = None
    """Name of the tensor in a file."""


class _OfFile(OSError):
    """A system error with its own message; `errno` and `filename` are set if known."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        known = {"errno": self.errno, "filename": self.filename, **self.__dict__}
        return type(self), self.args, known


class FileError(_OfFile, TruecastError):
    """A failure of the system: a file, memory. `errno` and `filename` are set if known."""


class MissingFileError(FileError, FileNotFoundError):
    """The file or folder does not exist."""


class DestinationExistsError(_OfFile, UsageError, FileExistsError):
    """The destination exists and must not be replaced."""


def _name_as_public(*classes: type) -> None:
    """Shows the classes with their public module."""
    for one in classes:
        one.__module__ = "truecast"


_name_as_public(TruecastError, UsageError, DTypeError, SpecError, InputError)
_name_as_public(FileError, MissingFileError, DestinationExistsError)
