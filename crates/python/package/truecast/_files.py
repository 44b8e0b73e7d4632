"""Files and folders: convert, verify, compare, inspect."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from . import _ask, _truecast
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


def _asked(
    to: Any, from_: Any, rules: Rules, keep: Iterable[str], spec: str | None, attributes: dict[str, Any], **others: Any
) -> dict[str, Any]:
    pairs = list(rules.items()) if isinstance(rules, Mapping) else list(rules)
    kept: list[tuple[str, Any]] = [(glob, None) for glob in ([keep] if isinstance(keep, str) else keep)]
    defaults = {"min_elements": None, "max_memory": None, "lenient": False, "follow_links": False, "force": False}
    defaults |= {"resume": False, "part": None, "merge": False, "sidecars": True}
    for lists in ("keep_preset", "share_global"):
        given = others[lists]
        others[lists] = [given] if isinstance(given, str) else list(given)
    asked = {"to": to, "from_": from_, "rules": kept + pairs, "spec": spec, "attributes": attributes or None}
    return {**asked, **defaults, **others}


def _part(part: str | tuple[int, int] | None) -> str | None:
    return "/".join(map(str, part)) if isinstance(part, tuple) else part


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
    max_memory: int | None = None,
    min_elements: int | None = None,
    lenient: bool = False,
    follow_links: bool = False,
    from_scheme: str | None = None,
    trust_scales: bool = False,
    nibbles: str | None = None,
    reference: Path | None = None,
    scheme: str | None = None,
    scale_search: str | None = None,
    mx_scale: str | None = None,
    nonfinite: str | None = None,
    keep_preset: Iterable[str] = (),
    share_global: Iterable[str] = (),
    sidecars: bool = True,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    merge: bool = False,
    progress: Any = None,
    **attributes: Any,
) -> ConversionReport:
    """Converts a checkpoint, an array or a model in bounded memory. A file is never half-written.

    The folder of a checkpoint becomes a folder: shards of the same names, index and configuration as they then are, and
    the other files. Quantised tensors become dense ones (docs/interfaces.md section 4.2).

    Parameters
    ----------
    src, dst
        ``.safetensors``, ``.npy``, ``.npz``, ``.pb`` or ``.onnx`` files; the names say which. Or folders of
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
        Bytes that buffers may take; 256 MiB by default.
    min_elements
        Smaller tensors of a model are kept unless a rule names them; 1024 by default.
    from_scheme, trust_scales, nibbles, reference
        How the source is quantised, where it is not to be found out; global scales are taken as they are, however odd;
        ``"low"`` or ``"high"`` nibbles come first; a dense checkpoint with the same names.
    scheme, scale_search, mx_scale, nonfinite, keep_preset, share_global
        Of a folder: matrices are quantised, by the schemes and options of `quantize`. Presets (``"norms"``,
        ``"embeddings"``, ``"router"``, ``"lm_head"``, ``"ssm"``) name tensors that are not, and tensors of one module
        that match ``"GLOB,GLOB"`` have a second scale in common.
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
    others = dict(force=force, max_memory=max_memory, min_elements=min_elements, lenient=lenient, follow_links=follow_links)
    reading = dict(from_scheme=from_scheme, trust_scales=trust_scales, nibbles=nibbles, reference=reference)
    writing: dict[str, Any] = dict(scheme=scheme, scale_search=scale_search, mx_scale=mx_scale, nonfinite=nonfinite)
    writing |= dict(keep_preset=keep_preset, share_global=share_global)
    of_folder = dict(sidecars=sidecars, resume=resume, part=_part(part), merge=merge)
    asked = _asked(to, from_, rules, keep, spec, attributes, **others, **of_folder, **reading, **writing)
    found = json.loads(_truecast.convert(src, dst, asked, dry_run, _progress(progress)))
    return ConversionReport(found, reading)


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
    min_elements: int | None = None,
    lenient: bool = False,
    follow_links: bool = False,
    from_scheme: str | None = None,
    trust_scales: bool = False,
    nibbles: str | None = None,
    reference: Path | None = None,
    scheme: str | None = None,
    scale_search: str | None = None,
    mx_scale: str | None = None,
    nonfinite: str | None = None,
    keep_preset: Iterable[str] = (),
    share_global: Iterable[str] = (),
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
        What `convert` gave, or a file with it, instead of those: it has everything that was asked for.
    full, sample, seed
        Recompute all, or at least this part, drawn from a seed. By default all of up to 1 GiB, and of more a sample.

    Returns
    -------
    Verification
        True if the destination holds what it should.
    """
    reading = dict(from_scheme=from_scheme, trust_scales=trust_scales, nibbles=nibbles, reference=reference)
    writing: dict[str, Any] = dict(scheme=scheme, scale_search=scale_search, mx_scale=mx_scale, nonfinite=nonfinite)
    writing |= dict(keep_preset=keep_preset, share_global=share_global)
    if isinstance(report, ConversionReport):
        of = report.options
        to, from_, rules = of["to"], of["from"], [(rule["glob"], rule["to"]) for rule in of["rules"]]
        spec = of["spec"] + (f"@{of['version']}" if of["version"] else "")
        attributes, keep, min_elements = of["attributes"], (), of["min_elements"]
        lenient, follow_links = of["lenient"], of["follow_links"]
        reading = report.reading
        writing = {name: of[name] for name in writing} if "scheme" in of else dict(writing, scheme=None)
        report = None
    others: dict[str, Any] = dict(min_elements=min_elements, lenient=lenient, follow_links=follow_links)
    others |= {**reading, **writing}
    asked = _asked(to, from_, rules, keep, spec, attributes, **others)
    found, shown = _truecast.verify(src, dst, asked, report, sample, full, seed, _progress(progress))
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
    """How the values of two files or folders differ as numbers, across types and containers; quantised tensors are compared
    by the values that they stand for.

    ``from_`` and ``to`` are the element types of ``a`` and ``b`` where the header of an array does not say.
    """
    return Comparison(json.loads(_truecast.compare(a, b, from_, to, lenient, follow_links, _progress(progress))))


def inspect(path: Path, *, stats: bool = False, from_: Any = None, filter: str | None = None) -> _ask.Answer:
    """What a file or folder holds: ``["tensors"]``, of models also ``["model"]`` (docs/interfaces.md section 6).

    ``stats`` adds range, special values and magnitudes of each tensor; ``filter`` is a pattern of names.
    """
    words = ["inspect", os.fspath(path)]
    words += _ask.options({"stats": stats, "filter": filter})
    words += ["--from", _truecast.type_name(from_)] if from_ is not None else []
    return _ask.ask(*words)
