"""`convert`, `verify`, `compare` and `inspect` of files and folders.

Options have the names and defaults of the command's, which reads them: here they become its arguments.
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from . import _ask, _truecast
from ._errors import UsageError
from ._report import Comparison, ConversionReport, Verification

Path = Union[str, "os.PathLike[str]"]
Rules = Union[Mapping[str, Any], Iterable[tuple[str, Any]]]


def _progress(progress: Any) -> Callable[[int, int, str], None] | None:
    """A bar as tqdm makes them, or a function of the bytes done, the bytes in all, and the tensor."""
    if progress is None or not hasattr(progress, "update"):
        return progress  # type: ignore[no-any-return]

    def update(done: int, total: int, tensor: str) -> None:
        progress.total = total
        progress.update(done - progress.n)

    return update


@functools.lru_cache(maxsize=None)
def _defaults(command: str) -> dict[str, str | None]:
    """What holds for the options of a command that are not given."""
    return {name: default for name, default, *_ in _truecast.arguments(command)}


_SPECS = ("onnx", "tosa", "openvino", "tile", "ieee")
_SYNONYMS = {"overwrite": "force", "exclude": "keep", "dtype": "to", "memory": "max_memory"}


def _several(names: Iterable[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _refuse_unknown(command: str, attributes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """What is neither an argument nor an attribute of any specification was meant as an argument."""
    known = {attribute for spec in _SPECS for attribute, *_ in _truecast.attributes(spec)}
    for name in attributes:
        if name not in known:
            near = difflib.get_close_matches(_SYNONYMS.get(name, name), given, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{command} has no argument {name}, and no specification has such an attribute{meant}")


def _words(command: str, given: dict[str, Any]) -> tuple[list[str], tuple[str | None, dict[str, Any]]]:
    """The arguments of a function as those of the command, and what decides: the specification and its attributes. What is
    not given, or is the default, is left out."""
    defaults = _defaults(command)
    rules, paths = given.pop("rules"), [os.fspath(given.pop("src")), os.fspath(given.pop("dst"))]
    pairs: list[tuple[str, Any]] = [(glob, None) for glob in _several(given.pop("keep"))]
    pairs += rules.items() if isinstance(rules, Mapping) else rules
    words = [f"--keep={glob}" if to is None else f"--rule={glob}={_truecast.type_name(to)}" for glob, to in pairs]
    decides = given.pop("spec"), given.pop("attributes")
    _refuse_unknown(command, decides[1], given)
    for name, value in given.items():
        if name in ("to", "from_") and value is not None:
            value = _truecast.type_name(value)
        elif name == "part" and isinstance(value, tuple):
            value = "/".join(map(str, value))
        elif name == "sidecars":
            name, value = "no_sidecars", not value
        elif name in ("keep_preset", "quantize", "share_global"):
            value = _several(value)
        option = name.rstrip("_").replace("_", "-")
        if isinstance(value, bool):
            words += [f"--{option}"] if value else []
        elif isinstance(value, list):
            words += [f"--{option}={one}" for one in value]
        elif value is not None and str(value) != defaults[option]:
            words.append(f"--{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return [*words, "--", *paths], decides


def convert(
    src: Path,
    dst: Path,
    to: Any = None,
    *,
    keep: Iterable[str] = (),
    rules: Rules = (),
    from_: Any = None,
    spec: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    max_memory: int | str = "256MiB",
    min_elements: int = 1024,
    lenient: bool = False,
    follow_links: bool = False,
    from_scheme: str | None = None,
    trust_scales: bool = False,
    nibbles: str | None = None,
    reference: Path | None = None,
    scheme: str | None = None,
    scale_search: str | None = None,
    mx_scale: str = "rceil",
    nonfinite: str = "error",
    keep_preset: Iterable[str] = (),
    quantize: Iterable[str] = (),
    activation_ranges: Path | None = None,
    share_global: Iterable[str] = (),
    relayout: str | None = None,
    sidecars: bool = True,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    merge: bool = False,
    delete_source: bool = False,
    progress: Any = None,
    **attributes: Any,
) -> ConversionReport:
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
    spec, attributes
        As of `cast`.
    force
        Replaces an existing destination.
    dry_run
        Only says what would be done.
    max_memory
        Bytes that buffers may take, or text with a unit, such as ``"1GiB"``.
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
        ``"GLOB,GLOB"`` have a second scale in common. ``relayout="exact"`` carries codes and scales of a quantized
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
    delete_source
        Of a folder: deletes each shard of the source once all that is made of it is written, was read again and is right.
        This cannot be undone.
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
    given = dict(locals())
    progress, dry_run = _progress(given.pop("progress")), given.pop("dry_run")
    return ConversionReport(json.loads(_truecast.convert(*_words("convert", given), dry_run, progress)))


def clear(src: Path, dst: Path, to: Any = None, **options: Any) -> None:
    """Where an earlier result is to be replaced: removes what would make a half-written one look whole, so that parts may be
    written there as into a new folder. Arguments are those of `convert`."""
    given = {"src": src, "dst": dst, "to": to, "attributes": {}, **(convert.__kwdefaults__ or {}), "force": True}
    for name, value in options.items():
        (given if name in given else given["attributes"])[name] = value
    del given["progress"], given["dry_run"]
    _truecast.clear(*_words("convert", given))


def verify(
    src: Path,
    dst: Path,
    to: Any = None,
    *,
    keep: Iterable[str] = (),
    rules: Rules = (),
    from_: Any = None,
    spec: str | None = None,
    report: Path | ConversionReport | None = None,
    full: bool = False,
    sample: float | None = None,
    seed: int = 0,
    min_elements: int = 1024,
    lenient: bool = False,
    follow_links: bool = False,
    from_scheme: str | None = None,
    trust_scales: bool = False,
    nibbles: str | None = None,
    reference: Path | None = None,
    scheme: str | None = None,
    scale_search: str | None = None,
    mx_scale: str = "rceil",
    nonfinite: str = "error",
    keep_preset: Iterable[str] = (),
    quantize: Iterable[str] = (),
    activation_ranges: Path | None = None,
    share_global: Iterable[str] = (),
    relayout: str | None = None,
    progress: Any = None,
    **attributes: Any,
) -> Verification:
    """Recomputes a conversion independently and compares it bit for bit.

    Parameters
    ----------
    src, dst, to, keep, rules, from_, spec, attributes, min_elements, from_scheme, scheme, progress
        As of `convert`, and so are all that belong to these. A folder that was converted says itself what was asked for,
        if nothing is said here.
    report
        What `convert` gave, or a file with it, instead of those: it has everything that was asked for, and what is said
        beside it must not say otherwise. Lengths and digests of the files that it names are compared too.
    full, sample, seed
        Recompute all, or at least this part, drawn from a seed. By default all of up to 1 GiB, and of more a sample.

    Returns
    -------
    Verification
        True if the destination holds what it should.
    """
    given = dict(locals())
    progress = _progress(given.pop("progress"))
    if not isinstance(report, ConversionReport):
        found, shown = _truecast.verify(*_words("verify", given), progress)
    else:
        with tempfile.TemporaryDirectory(prefix="truecast-") as folder:
            given["report"] = os.path.join(folder, "report.json")
            report.save(given["report"])
            found, shown = _truecast.verify(*_words("verify", given), progress)
    return Verification(json.loads(found), shown)


def compare(
    a: Path,
    b: Path,
    *,
    from_: Any = None,
    to: Any = None,
    lenient: bool = False,
    follow_links: bool = False,
    progress: Any = None,
) -> Comparison:
    """How the values of two files or folders differ as numbers, across types and containers; quantized tensors are compared
    by the values that they stand for.

    ``from_`` and ``to`` are the element types of ``a`` and ``b`` where the header of an array does not say.
    """
    return Comparison(json.loads(_truecast.compare(a, b, from_, to, lenient, follow_links, _progress(progress))))


def inspect(
    path: Path,
    *,
    stats: bool = False,
    from_: Any = None,
    filter: str | Iterable[str] = (),
    lenient: bool = False,
    follow_links: bool = False,
) -> _ask.Answer:
    """What a file or folder holds: ``["tensors"]``, of models also ``["model"]`` (docs/interfaces.md section 6).

    ``stats`` adds range, special values and magnitudes of each tensor; ``filter`` is a pattern of names, or several, of which
    one must match; ``from_`` is the type of an array whose header does not say it.
    """
    words = ["inspect", os.fspath(path)]
    switches = {"stats": stats, "lenient": lenient, "follow_links": follow_links}
    words += _ask.options({**switches, "filter": _several(filter)})
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    return _ask.ask(*words)
