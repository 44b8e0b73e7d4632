"""`convert`, `verify`, `compare` and `inspect` for files and folders. Options have the command's names and defaults."""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _ask, _truecast
from ._arrays import cast
from ._errors import UsageError
from ._report import Comparison, ConversionReport, Verification
from .typing import (
    Converting,
    Layout,
    Path,
    Patterns,
    Progress,
    Settings,
    Specification,
    TypeLike,
    Verifying,
    _keywords,
    _with_signature,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

_DEFAULTS = {**dict(_truecast.DEFAULTS), "min_elements": 1024, "sample_seed": 0, "sidecars": True}
_SYNONYMS = {"overwrite": "force", "exclude": "keep", "dtype": "to", "memory": "max_memory"}


def _refuse_unknown(command: str, of: Any, given: Iterable[str]) -> None:
    """A name that is neither an argument nor an attribute was probably meant as an argument."""
    known = _keywords(of)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(_SYNONYMS.get(name, name), ["to", *known], 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{command} has no argument {name}, and no specification has such an attribute{meant}")


def _progress(progress: Progress | None) -> Any:
    """A bar of tqdm, or a function of the bytes done, the total bytes, and the tensor."""
    if progress is None or not hasattr(progress, "update"):
        return progress
    bar: Any = progress

    def update(done: int, total: int, tensor: str) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return update


@_with_signature(Converting, **_DEFAULTS)
def convert(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Converting]) -> ConversionReport:
    """Converts a checkpoint, an array or a model in bounded memory. A file is never half-written.

    The folder of a checkpoint becomes a folder: shards with the same names, an updated index and configuration, and the
    other files. Quantized tensors are dequantized (docs/interfaces.md section 4.2).

    Parameters
    ----------
    src, dst
        ``.safetensors``, ``.gguf``, ``.npy``, ``.npz``, ``.pb`` or ``.onnx`` files, by their names. Or folders of
        ``.safetensors``.
    to
        Type of every tensor without a rule (in a checkpoint or model: every floating-point one).
    keep
        Patterns of names of tensors to keep; they take precedence over ``rules``.
    rules
        Pairs of a pattern and a type (``None`` keeps), or a mapping; the first match decides.
    from_
        Reads the payload as this type.
    spec, seed, attributes
        As in `cast`.
    force
        Replaces an existing destination.
    dry_run
        Only reports what it would do.
    max_memory
        Limit for buffers in bytes, or text with a unit, such as ``"1GiB"``.
    measure
        Elements for error measures: a ``sample`` of each large tensor (the default), all (``full``), or none (``off``).
    magnitudes
        Also counts the values of each tensor by power of two, before and after (docs/interfaces.md section 6.1).
    min_elements
        For ONNX models: smaller tensors are kept unless a rule names them.
    lenient, follow_links
        For ONNX files: surplus bytes and unused bits of tensors are ignored; links may lead out of the folder.
    from_scheme, trust_scales, nibbles, reference
        Scheme of the source, if it is not to be detected; global scales are used even if implausible; whether ``"low"``
        or ``"high"`` nibbles come first; an unquantized checkpoint with the same names.
    like, keep_names
        For llama.cpp: a ``.gguf`` file of the same model, whose names and keys the result gets (for a result that is a
        folder, a folder of transformers); or the names of the source, which llama.cpp does not load.
    keep_preset
        Presets (``"norms"``, ``"embeddings"``, ``"router"``, ``"lm_head"``, ``"ssm"``) of tensors to
        keep. ``scheme`` never quantizes them by default. ``"unquantized"`` keeps the tensors that the source has unquantized.
    quantize
        Patterns of names of tensors that ``scheme`` quantizes although it would not by default.
    activation_ranges
        A JSON file with an object of layers and the largest magnitudes of their inputs, for schemes that store scales of
        activations.
    imatrix
        A file of ``llama-imatrix``, whose importance of columns the blocks of a ``.gguf`` file go by.
    scheme, scale_search, mx_scale, nonfinite, share_global, relayout
        Weights of linear layers and of experts are quantized, by the schemes and options of `quantize`;
        tensors of one module that match ``"GLOB,GLOB"`` share a global scale. ``relayout="exact"`` keeps the codes and
        scales of a quantized checkpoint.
    sidecars
        For folders: whether other files, such as tokenizers, are copied.
    resume
        For folders: continues where an earlier run ended; finished shards are checked and kept.
    part
        For folders: ``"2/4"`` or ``(2, 4)`` converts the second of four parts of the shards. Parts may run at the same
        time; the last one writes index and configuration.
    merge
        For folders: converts nothing, and completes the work of finished parts.
    progress
        A bar of tqdm, or a function called with the bytes done, the total bytes and the tensor's name. Its exceptions, and
        Ctrl-C, are raised again with the destination unchanged, except in the last call (all bytes done), when the
        destination may be complete.

    Returns
    -------
    ConversionReport
        Result for each tensor.

    Raises
    ------
    UsageError, SpecError, InputError, FileError
        Errors of the arguments, types, source, or files.
    """
    _refuse_unknown("convert", Converting, options)
    progress = _progress(options.pop("progress", None))
    return ConversionReport(json.loads(_truecast.convert(src, dst, {"to": to, **options}, progress)))


def clear(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Converting]) -> None:
    """Removes the files of an earlier result that would make an incomplete one look complete, so that parts can be written
    as into a new folder. Arguments are those of `convert`."""
    _refuse_unknown("convert", Converting, options)
    _truecast.clear(src, dst, {"to": to, **options, "force": True})


@_with_signature(Verifying, **_DEFAULTS)
def verify(src: Path, dst: Path, to: TypeLike | None = None, **options: Unpack[Verifying]) -> Verification:
    """Recomputes a conversion independently and compares it bit for bit.

    Parameters
    ----------
    src, dst, to, keep, rules, from_, spec, attributes, min_elements, from_scheme, scheme, progress
        As in `convert`, with all related options. A converted folder contains its options, which are used if none are
        given here.
    report
        A report of `convert`, or a file with it, instead of those: it has all options, and options given in addition must
        agree with it. Lengths and digests of its files are compared too.
    full, sample, sample_seed
        Recompute all elements, or at least this part, drawn from a seed. By default all up to 1 GiB, beyond that a sample.

    Returns
    -------
    Verification
        True if the destination is correct.
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
    magnitudes: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compares the values of two files or folders as numbers, across types and containers; quantized tensors are compared
    by their dequantized values.

    ``from_`` and ``to`` are the element types of ``a`` and ``b`` if the header of an array does not state them.
    ``magnitudes`` also counts the values of each tensor by power of two.
    """
    return Comparison(json.loads(_truecast.compare(a, b, from_, to, lenient, follow_links, magnitudes, _progress(progress))))


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
    """One tensor of a file or folder as an array of NumPy: as stored, or, if quantized, as f32 values. ``to``, ``spec`` and
    its attributes convert it like `cast` (to the same type under ``"ieee"``). Other tensors are not read. The tensor of an
    array file is called ``"data"``; ``from_`` is its type if the header does not state it.

    Raises `UsageError` if there is no such tensor, and `InputError` for a file with invalid scales.

    >>> import numpy as np
    >>> np.save("weights.npy", np.float32([1, 465]))
    >>> load("weights.npy", to="f8e4m3fn").astype(np.float32)
    array([  1., 448.], dtype=float32)
    """
    data, dtype, shape = _truecast.load(path, tensor, from_)
    source: Any = dtype
    target: TypeLike = source if to is None else to
    spec = spec or "ieee" if to is None else spec
    return cast(memoryview(data), target, spec=spec, from_=source, shape=shape, layout=layout, **attributes)


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
    """Contents of a file or folder: ``["tensors"]``, for models also ``["model"]`` (docs/interfaces.md section 6).

    ``stats`` adds range, special values and magnitudes of each tensor; ``filter`` is one or more
    patterns of names; ``from_`` is the type of an array whose header does not state it. ``check`` returns the
    contradictions in a checkpoint instead: ``["findings"]``.
    """
    words = ["inspect", os.fspath(path)]
    switches = {"stats": stats, "check": check, "lenient": lenient, "follow_links": follow_links}
    words += _ask.options({**switches, "filter": [filter] if isinstance(filter, str) else list(filter)})
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    return _ask.ask(*words)


def show(
    path: Path,
    tensor: str = "",
    *,
    from_: TypeLike | None = None,
    lenient: bool = False,
    follow_links: bool = False,
) -> _ask.Later:
    """The values of one tensor, to look at; `load` gives an array.

    Parameters
    ----------
    path
        A file or folder that `inspect` reads.
    tensor
        Name of the tensor, with an optional slice: ``"w[0:3, :8, -1]"``. A file of one array needs no name.
    from_
        Type of an array whose header does not state it.
    lenient, follow_links
        As in `convert`.

    Returns
    -------
    Answer
        Its ``repr`` omits the middle of more than 100 elements. The fields are those of ``truecast show --json``
        (docs/interfaces.md section 6): ``dtype`` and ``shape`` of the tensor, ``shown``, the shape of the slice, and
        ``values``, all of them in nested lists; quantized tensors are dequantized.

    Raises
    ------
    UsageError
        No such tensor, an index outside of it.
    InputError, FileError
        A file that cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> np.save("weights.npy", np.float32([[1, 465], [0.5, -2]]))
    >>> show("weights.npy")
    data f32 [2, 2]
    [[  1 465]
     [0.5  -2]]
    >>> show("weights.npy", "[:, 1]")["values"]
    [465.0, -2.0]
    """
    words = ["show", os.fspath(path), *([tensor] if tensor else [])]
    words += _ask.options({"lenient": lenient, "follow_links": follow_links})
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    return _ask.Later(words)
