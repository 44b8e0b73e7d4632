"""`convert`, `verify`, `compare` and `inspect` of files and folders. Options have the names and defaults that the command
has."""

from __future__ import annotations

import difflib
import inspect as _inspect
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _ask, _truecast
from ._errors import UsageError
from ._report import Comparison, ConversionReport, Verification
from .typing import Converting, Layout, Path, Patterns, Progress, Settings, Specification, TypeLike, Verifying

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DEFAULTS = {**dict(_truecast.DEFAULTS), "min_elements": 1024, "sample_seed": 0, "sidecars": True}
_SYNONYMS = {"overwrite": "force", "exclude": "keep", "dtype": "to", "memory": "max_memory"}


def _keywords(of: Any) -> dict[str, str]:
    """The keyword arguments of a function, and their types as they are written."""
    return {name: getattr(kind, "__forward_arg__", kind) for name, kind in of.__annotations__.items()}


def _with_signature(of: Any) -> Callable[[_Function], _Function]:
    """Shows in `help` and in editors what ``**options`` may be, with the defaults."""
    of_kind: dict[str, Any] = {"bool": False, "Patterns": (), "Rules": (), "Preset | Iterable[Preset]": ()}

    def shown(function: _Function) -> _Function:
        *own, options = _inspect.signature(function).parameters.values()
        for name, kind in _keywords(of).items():
            default = _DEFAULTS.get(name, of_kind.get(kind))
            if name not in Settings.__annotations__:
                own.append(_inspect.Parameter(name, options.KEYWORD_ONLY, default=default, annotation=kind))
        own.append(options.replace(name="attributes", annotation="Unpack[Settings]"))
        signature = _inspect.signature(function).replace(parameters=own)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return shown


def _refuse_unknown(command: str, of: Any, given: Iterable[str]) -> None:
    """What is neither an argument nor an attribute of any specification was meant as an argument."""
    known = _keywords(of)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(_SYNONYMS.get(name, name), ["to", *known], 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{command} has no argument {name}, and no specification has such an attribute{meant}")


def _progress(progress: Progress | None) -> Any:
    """A bar as tqdm makes them, or a function of the bytes done, the bytes in all, and the tensor."""
    if progress is None or not hasattr(progress, "update"):
        return progress
    bar: Any = progress

    def update(done: int, total: int, tensor: str) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return update


@_with_signature(Converting)
def convert(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Converting]) -> ConversionReport:
    """Converts a checkpoint, an array or a model in bounded memory. A file is never half-written.

    The folder of a checkpoint becomes a folder: shards of the same names, index and configuration as they then are, and
    the other files. Quantized tensors become dense ones (docs/interfaces.md section 4.2).

    Parameters
    ----------
    src, dst
        ``.safetensors``, ``.gguf``, ``.npy``, ``.npz``, ``.pb`` or ``.onnx`` files; the names say which. Or folders of
        ``.safetensors``.
    to
        The type of every tensor that no rule names (in a checkpoint or model: of floating-point ones).
    keep
        Patterns of names whose tensors stay as they are; they go before ``rules``.
    rules
        Pairs of a pattern and a type (``None`` keeps), or a mapping; the first that matches decides.
    from_
        Reads the payload as this type.
    spec, seed, attributes
        As of `cast`.
    force
        Replaces an existing destination.
    dry_run
        Only says what would be done.
    max_memory
        Bytes that buffers may take, or text with a unit, such as ``"1GiB"``.
    measure
        Whose errors are measured: of a ``sample`` of each large tensor (if not given), of all elements (``full``), or of
        none (``off``).
    min_elements
        Of an ONNX model: smaller tensors are kept unless a rule names them.
    lenient, follow_links
        Of ONNX files: surplus bytes and unused bits of tensors are ignored; files may lie behind links that lead out of the
        folder.
    from_scheme, trust_scales, nibbles, reference
        How the source is quantized, where it is not to be found out; global scales are taken as they are, however odd;
        ``"low"`` or ``"high"`` nibbles come first; a dense checkpoint with the same names.
    keep_preset
        Presets (``"norms"``, ``"embeddings"``, ``"router"``, ``"lm_head"``, ``"ssm"``) of names whose tensors stay as
        they are. ``scheme`` leaves them alone anyway.
    quantize
        Patterns of names whose tensors ``scheme`` quantizes although it leaves such tensors alone.
    activation_ranges
        A JSON file with an object of layers and the largest magnitudes of their inputs, for schemes that store scales of
        activations.
    scheme, scale_search, mx_scale, nonfinite, share_global, relayout
        Weights of linear layers and of experts are quantized, by the schemes and options of `quantize`; tensors of one module that match
        ``"GLOB,GLOB"`` have a global scale in common. ``relayout="exact"`` carries codes and scales of a quantized
        checkpoint over as they are.
    sidecars
        Of a folder: whether other files, such as tokenizers, are copied.
    resume
        Of a folder: goes on where an earlier run ended; finished shards are read again and stay.
    part
        Of a folder: ``"2/4"`` or ``(2, 4)`` converts the second of four parts of the shards. Parts may run at the same
        time; the last one writes index and configuration.
    merge
        Of a folder: converts nothing, and ends the work of finished parts.
    progress
        A bar of tqdm, or a function that is called with the bytes done, the bytes in all and the tensor's name. What it
        raises is raised again, as Ctrl-C is. Until the last call the destination is then as it was; what the last
        call (all bytes done) raises may come when the destination is complete.

    Returns
    -------
    ConversionReport
        What happened to each tensor.

    Raises
    ------
    UsageError, SpecError, InputError, FileError
        What is wrong with the arguments, types, source, or files.
    """
    _refuse_unknown("convert", Converting, options)
    progress = _progress(options.pop("progress", None))
    return ConversionReport(json.loads(_truecast.convert(src, dst, {"to": to, **options}, progress)))


def clear(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Converting]) -> None:
    """Where an earlier result is to be replaced: removes what would make a half-written one look whole, so that parts may be
    written there as into a new folder. Arguments are those of `convert`."""
    _refuse_unknown("convert", Converting, options)
    _truecast.clear(src, dst, {"to": to, **options, "force": True})


@_with_signature(Verifying)
def verify(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Verifying]) -> Verification:
    """Recomputes a conversion independently and compares it bit for bit.

    Parameters
    ----------
    src, dst, to, keep, rules, from_, spec, attributes, min_elements, from_scheme, scheme, progress
        As of `convert`, and so are all that belong to these. A folder that was converted says itself what was asked for,
        if nothing is said here.
    report
        What `convert` gave, or a file with it, instead of those: it has everything that was asked for, and what is said
        beside it must not say otherwise. Lengths and digests of the files that it names are compared too.
    full, sample, sample_seed
        Recompute all, or at least this part, drawn from a seed. By default all of up to 1 GiB, and of more a sample.

    Returns
    -------
    Verification
        True if the destination holds what it should.
    """
    _refuse_unknown("verify", Verifying, options)
    progress, report = _progress(options.pop("progress", None)), options.get("report")
    if not isinstance(report, ConversionReport):
        return Verification(*_truecast.verify(src, dst, {"to": to, **options}, progress))
    with tempfile.TemporaryDirectory(prefix="truecast-") as folder:
        path = os.path.join(folder, "report.json")
        report.save(path)
        return Verification(*_truecast.verify(src, dst, {"to": to, **options, "report": path}, progress))


def compare(
    a: Path,
    b: Path,
    *,
    from_: TypeLike | None = None,
    to: TypeLike | None = None,
    lenient: bool = False,
    follow_links: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """How the values of two files or folders differ as numbers, across types and containers; quantized tensors are compared
    by the values that they stand for.

    ``from_`` and ``to`` are the element types of ``a`` and ``b`` where the header of an array does not say.
    """
    return Comparison(json.loads(_truecast.compare(a, b, from_, to, lenient, follow_links, _progress(progress))))


def load(
    path: Path,
    tensor: str = "data",
    to: TypeLike | None = None,
    *,
    spec: Specification | None = None,
    from_: TypeLike | None = None,
    layout: Layout | None = None,
    **attributes: Unpack[Settings],
) -> Any:
    """One tensor of a file or folder as an array of NumPy: as it is stored, or, if it is quantized, the f32 values of its
    codes and scales. ``to``, ``spec`` and its attributes convert it as `cast` does (to the type itself under ``"ieee"``).
    Nothing of the other tensors is read. The tensor of an array file is called ``"data"``; ``from_`` is its type where the
    header does not say it.

    Raises `UsageError` if there is no such tensor, and `InputError` for a file whose scales are not understood.

    >>> import numpy as np
    >>> np.save("weights.npy", np.float32([1, 465]))
    >>> load("weights.npy", to="f8e4m3fn").astype(np.float32)
    array([  1., 448.], dtype=float32)
    """
    data, dtype, shape = _truecast.load(path, tensor, from_)
    source: Any = dtype
    target: TypeLike = source if to is None else to
    spec = spec or "ieee" if to is None else spec
    return _truecast.cast(memoryview(data), target, spec=spec, from_=source, shape=shape, layout=layout, **attributes)


def inspect(
    path: Path,
    *,
    stats: bool = False,
    check: bool = False,
    from_: TypeLike | None = None,
    filter: Patterns = (),
    lenient: bool = False,
    follow_links: bool = False,
) -> _ask.Answer:
    """What a file or folder holds: ``["tensors"]``, of models also ``["model"]`` (docs/interfaces.md section 6).

    ``stats`` adds range, special values and magnitudes of each tensor; ``filter`` is a pattern of names, or several, of which
    one must match; ``from_`` is the type of an array whose header does not say it. ``check`` gives the contradictions in a
    checkpoint instead: ``["findings"]``.
    """
    words = ["inspect", os.fspath(path)]
    switches = {"stats": stats, "check": check, "lenient": lenient, "follow_links": follow_links}
    words += _ask.options({**switches, "filter": [filter] if isinstance(filter, str) else list(filter)})
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    return _ask.ask(*words)
