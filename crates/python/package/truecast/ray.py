"""Folders of checkpoints on a cluster of Ray: every shard is a task, on any free node.

``python -m truecast.ray SRC DST --to TYPE`` or `convert`. All nodes see both folders by the same paths (a file system that
they share) and have this package. The bytes are those of a single machine: a task lost with its node is repeated by another
one (docs/interfaces.md section 4.2, ``--part``).

Importing this module imports ray (``pip install truecast[ray]``).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray as _ray  # pyright: ignore[reportMissingImports]

from . import _files, _truecast
from ._errors import FileError, TruecastError, UsageError
from ._report import ConversionReport
from .typing import Path, TypeLike

__all__ = ["Conversion", "convert", "main"]


# Options of `truecast.convert` that a cluster lacks, since it divides the work itself.
_OF_ONE_PROCESS = ("dry_run", "part", "merge")


@dataclass(frozen=True)
class Conversion:
    """Report of all tasks."""

    parts: list[ConversionReport]
    """One report per shard, in order."""
    nodes: list[str]
    """Nodes that finished them."""

    @property
    def complete(self) -> bool:
        """Whether index and configuration are written too."""
        return any(part.complete for part in self.parts)

    @property
    def bytes_in(self) -> int:
        """Bytes of tensors that were read."""
        return sum(part.total["bytes_in"] for part in self.parts)

    @property
    def bytes_out(self) -> int:
        """Bytes of tensors that were written."""
        return sum(part.total["bytes_out"] for part in self.parts)


def _task(src: str, dst: str, part: tuple[int, int], cpus: int, asked: dict[str, Any]) -> tuple[ConversionReport, str]:
    _truecast.set_num_threads(cpus)
    # The work of an earlier attempt is kept; without one there is nothing to resume, which is not an error for a part.
    report = _files.convert(src, dst, part=part, resume=True, **asked)
    return report, str(_ray.get_runtime_context().get_node_id())


def _begun(dst: Path) -> int | None:
    """Number of parts of an earlier unfinished run."""
    names = os.listdir(dst) if os.path.isdir(dst) else []
    found = (re.fullmatch(r"truecast-manifest\.\d+-of-(\d+)\.json", name) for name in names)
    return next((int(of[1]) for of in found if of), None)


def convert(
    src: Path,
    dst: Path,
    to: TypeLike | None = None,
    *,
    cpus: int = 1,
    retries: int = 3,
    resume: bool = False,
    force: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Any,
) -> Conversion:
    """Converts the folder of a checkpoint on the cluster that this process is connected to (``ray.init``).

    Parameters
    ----------
    src, dst, to, options
        As in `truecast.convert`, except ``dry_run``, ``part`` and ``merge``. Memory is per task.
    cpus
        CPUs and threads of a task.
    retries
        Number of retries of a task whose node was lost, or that could not read or write.
    resume
        Continues where an earlier run ended; without it and ``force`` the destination must be empty or absent.
    force
        Replaces the files of an earlier result, which is incomplete until all is done.
    progress
        Called with the bytes of finished shards, the total bytes, and the name of a shard.
    """
    if forbidden := {*_OF_ONE_PROCESS} & options.keys():
        raise UsageError(f"{', '.join(sorted(forbidden))}: a cluster converts all shards, each in a part of its own")
    if resume and force:
        raise UsageError("resume goes on with what is there, and force replaces it; choose one")
    asked = {"to": to, **options}
    # Check here, so that an error occurs once, in this process.
    begun = _begun(dst) if resume else None
    part = (1, begun) if begun else None
    plan = _files.convert(src, dst, dry_run=True, resume=resume, force=force, part=part, **asked)
    if not plan.shards:
        raise UsageError(f"{src}: is no folder of a checkpoint; truecast.convert converts files")
    if force:
        _files.clear(src, dst, **asked)
    count = len(plan.shards)
    remote = _ray.remote(num_cpus=cpus, max_retries=retries, retry_exceptions=[FileError])(_task)
    tasks = [remote.remote(str(src), str(dst), (i + 1, count), cpus, asked) for i in range(count)]
    numbers = {task: i for i, task in enumerate(tasks)}
    results: list[Any] = [None] * count
    total, done = sum(shard["bytes_in"] for shard in plan.shards), 0
    try:
        while numbers:
            finished, _ = _ray.wait(list(numbers), num_returns=1)
            for task in finished:
                at = numbers.pop(task)
                results[at] = _ray.get(task)
                done += plan.shards[at]["bytes_in"]
                if progress is not None:
                    progress(done, total, plan.shards[at]["name"])
    except BaseException as error:
        for task in numbers:
            _ray.cancel(task)
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, TruecastError) else error
    conversion = Conversion([report for report, _ in results], [node for _, node in results])
    if not conversion.complete:
        # The last task was lost before it wrote index and configuration.
        conversion.parts.append(_files.convert(src, dst, merge=True, **asked))
    return conversion


class _Rule(argparse.Action):
    """``--keep`` and ``--rule`` form one list, in the given order."""

    def __call__(self, parser: Any, namespace: Any, value: Any, option: str | None = None) -> None:
        glob, _, to = (value, "", None) if option == "--keep" else value.rpartition("=")
        namespace.rules = [*namespace.rules, (glob, to)]


# Options of the command for a single process, for single files, or for its output.
_NOT_HERE = {*_OF_ONE_PROCESS, *"min_elements lenient report fail_on sort worst summary threads keep rules".split()}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m truecast.ray", description="Converts the folder of a checkpoint on a cluster of Ray."
    )
    parser.add_argument("src", help="the folder, by a path that every node has")
    parser.add_argument("dst", help="a folder that does not exist, or is empty")
    parser.add_argument("--keep", action=_Rule, dest="rules", metavar="GLOB", help="these tensors stay as they are")
    parser.add_argument("--rule", action=_Rule, dest="rules", metavar="GLOB=TYPE", help="the type of these tensors")
    for name, keyword, default, is_switch, is_list, value, help in _truecast.arguments("convert"):
        if keyword not in _NOT_HERE:
            kind: dict[str, Any] = {"metavar": value, "default": default, "type": str}
            kind = {"action": "store_true"} if is_switch else {**kind, "action": "append", "default": []} if is_list else kind
            parser.add_argument(f"--{name}", dest=keyword, **kind, help=help.replace("%", "%%"))
    parser.add_argument("--cpus", type=int, default=1, metavar="N", help="CPUs of each task (default 1)")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="further attempts of each task (default 3)")
    parser.add_argument("--address", default="auto", help="the cluster (default: the one that runs here)")
    parser.add_argument("--local", type=int, metavar="CPUS", help="starts one on this machine instead")
    parser.add_argument("--quiet", action="store_true", help="prints errors only")
    parser.set_defaults(rules=[])
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command. Exit codes are those of ``truecast``: 2 for the request, 3 for the input, 4 for the system."""
    given = _arguments().parse_args(arguments)
    asked = dict(vars(given))
    asked["sidecars"] = not asked["sidecars"]
    asked["keep_preset"] = [name for names in asked["keep_preset"] for name in names.split(",")]
    src, dst, address, local, quiet = (asked.pop(name) for name in ("src", "dst", "address", "local", "quiet"))
    where = {"num_cpus": local} if local else {"address": address}
    try:
        _ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        print(f"error: no cluster of Ray at {address}: {error}; --local CPUS starts one", file=sys.stderr)
        return 4

    def progress(done: int, total: int, shard: str) -> None:
        if not quiet:
            print(f"{_truecast.shown(shard)}: {done:_} of {total:_} bytes", flush=True)

    try:
        # Leave out options that are not given: not every specification has every attribute.
        said = {n: value for n, value in asked.items() if value not in (None, []) and (value is not False or n == "sidecars")}
        done = convert(src, dst, progress=progress, **said)
    except TruecastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 4 if isinstance(error, FileError) else 3
    finally:
        _ray.shutdown()
    if not quiet:
        nodes = len(set(done.nodes))
        print(f"{len(done.nodes)} shards on {nodes} nodes, {done.bytes_in:_} to {done.bytes_out:_} bytes: {dst}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
