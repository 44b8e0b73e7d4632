"""Exceptions. Each is a ``TruecastError`` and one of Python's own, so that either can be caught."""


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


class FileError(TruecastError, OSError):
    """The system failed: a file, memory."""


for _class in (TruecastError, UsageError, DTypeError, SpecError, InputError, FileError):
    _class.__module__ = "truecast"
del _class
