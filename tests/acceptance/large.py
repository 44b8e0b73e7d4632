"""Converts files of gigabytes and checks time, processor time, memory and start-up.

    python tests/acceptance/large.py [--binary FILE] [--work DIR] [--runs 3] [--only PART,..] [--mib-per-gib 1024]

Outside CI: it needs 19 GiB of disk, memory for a page cache of 12 GiB, a quiet machine, Linux (`/proc`), Python 3.11 or
later and NumPy. The sources are made here: f32 weights, normally distributed, in tensors from a few KiB to a quarter of
the file. Checked, with the counts of the report on, as they are by default:

- start: `truecast formats f4e2m1` takes at most 10 ms from start to exit, in the median of 20 runs;
- memory: 4 GiB to bf16 with --max-memory 32MiB; the peak resident set (VmHWM) minus that of `truecast formats` is at
  most 64 MiB;
- race: the same conversion takes at most 1.1 times as long as `cp` followed by `sync FILE` of the larger of source and
  result: best of 3 each, alternating, the source in the page cache, nothing else waiting to be written;
- scaling: processor time per GiB of source, user and system together, differs by at most 10 % among 1, 2 and 4 GiB to
  bf16, and between 1 and 8 GiB to f8e4m3fn: best of 3 each. A small file is converted as often as makes the largest,
  so that what else happens on the machine falls on all sizes alike. Parts `scaling-bf16` and `scaling-f8e4m3fn`.

Prints tables; exit code 1 if a limit is missed. With `--keep` the sources stay in --work and are used again: the parts
can then be run one by one, each within a minute or two. `--mib-per-gib 64` makes every
file 16 times smaller, to try the script.
Not here: results (minilm.py, tests/python), kills (kill.py).
"""

import argparse
import contextlib
import functools
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

from checkpoints import create_f32
from processes import MIB, TARGET, Seconds, add_binary, idle_kib, peak_kib, print_table, seconds, warn_if_busy
from weights import Weights

MAX_MEMORY_MIB = 32
MEMORY_LIMIT_MIB = 64
RACE_LIMIT = 1.1
SCALING_LIMIT = 1.10
START_LIMIT_MS = 10
# What is converted at which size, in GiB.
SCALING = {"bf16": (1, 2, 4), "f8e4m3fn": (1, 8)}
RACE_GIB, RACE_TO = 4, "bf16"
# Shares of a file, in 4096ths: embeddings, projections, norms. The last tensor takes what is left.
SHARES = [1024, 512, 512, 256, 256, 256, 64, 64, 16, 1]
PARTS = ["start", "memory", "race"] + [f"scaling-{to}" for to in SCALING]


def write_source(path: Path, data_bytes: int) -> None:
    """A safetensors file of exactly this much tensor data."""
    weights = Weights()
    sizes = [data_bytes * share // 4096 // 4 * 4 for share in SHARES]
    # Many small ones, as the norms and biases of a model are.
    sizes += [4 * 4096] * 64
    sizes.append(data_bytes - sum(sizes))
    with create_f32(path, [(f"layers.{i}.weight", size) for i, size in enumerate(sizes)]) as file:
        for size in sizes:
            weights.write(file, size)
        file.flush()
        os.fsync(file.fileno())


def read_through(path: Path) -> None:
    """Into the page cache."""
    buffer = bytearray(8 * MIB)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


class Bench:
    """The program, a folder, and what was missed so far."""

    def __init__(self, binary: Path, folder: Path, runs: int, mib_per_gib: int):
        self.binary, self.folder, self.runs, self.mib_per_gib = binary, folder, runs, mib_per_gib
        self.missed = False

    @contextlib.contextmanager
    def sources(self, sizes: set[int], keep: bool) -> Iterator[None]:
        """Makes the files that are missing."""
        for gib in sizes:
            if not self.source(gib).exists():
                unfinished = self.source(gib).with_suffix(".unfinished")
                write_source(unfinished, gib * self.mib_per_gib * MIB)
                unfinished.rename(self.source(gib))
        try:
            yield
        finally:
            for gib in () if keep else sizes:
                self.source(gib).unlink()

    def source(self, gib: int) -> Path:
        return self.folder / f"large-{gib * self.mib_per_gib}mib.safetensors"

    def timed(self, source: Path, result: Path, *commands) -> list[Seconds]:
        """Each of the commands, which make the result from the source; the result is removed."""
        read_through(source)
        os.sync()
        taken = [seconds(command) for command in commands]
        result.unlink()
        return taken

    def conversion(self, source: Path, to: str) -> tuple[list, Path]:
        result = self.folder / f"large-{to}.safetensors"
        limited = ["--max-memory", f"{MAX_MEMORY_MIB}MiB", "--quiet"]
        return [self.binary, "convert", source, result, "--to", to, *limited], result

    def convert(self, source: Path, to: str) -> Seconds:
        command, result = self.conversion(source, to)
        return self.timed(source, result, command)[0]

    def verdict(self, good: bool) -> str:
        self.missed |= not good
        return "ok" if good else "MISSED"

    def start(self) -> None:
        times = [seconds([self.binary, "formats", "f4e2m1"]).wall * 1e3 for _ in range(20)]
        median = statistics.median(times)
        print(f"start: {median:.1f} ms, limit {START_LIMIT_MS} ms: {self.verdict(median <= START_LIMIT_MS)}")

    def memory(self) -> None:
        command, result = self.conversion(self.source(RACE_GIB), RACE_TO)
        memory = (peak_kib(*command) - idle_kib(self.binary)) / 1024
        result.unlink()
        verdict = self.verdict(memory <= MEMORY_LIMIT_MIB)
        print(f"memory: {memory:.1f} MiB with --max-memory {MAX_MEMORY_MIB}MiB, limit {MEMORY_LIMIT_MIB}: {verdict}")

    def race(self) -> None:
        source, copy = self.source(RACE_GIB), self.folder / "large-copy.bin"
        copies, conversions = [], []
        for _ in range(self.runs):
            copies.append(self.timed(source, copy, ["cp", source, copy], ["sync", copy]))
            conversions.append(self.convert(source, RACE_TO))
        cp, sync = min(copies, key=lambda pair: pair[0].wall + pair[1].wall)
        ours, theirs = min(conversions), cp.wall + sync.wall
        rows = [{"race": name} | columns(spent) for name, spent in [("convert", ours), ("cp", cp), ("sync", sync)]]
        print_table(rows, {"race"})
        verdict = self.verdict(ours.wall <= RACE_LIMIT * theirs)
        print(f"race: {ours.wall / theirs:.2f} times cp and sync, limit {RACE_LIMIT}: {verdict}")

    def scaling(self, to: str) -> None:
        runs = {gib: [] for gib in SCALING[to]}
        for _ in range(self.runs):
            for gib, each in runs.items():
                times = max(runs) // gib
                spent = [self.convert(self.source(gib), to) for _ in range(times)]
                each.append(Seconds(*(sum(part) / times for part in zip(*map(astuple, spent), strict=True))))
        rows, per_gib = [], []
        for gib, each in runs.items():
            cost, data_gib = min(each, key=lambda run: run.processor), gib * self.mib_per_gib / 1024
            per_gib.append(cost.processor / data_gib)
            size = {"scaling": f"f32 -> {to}", "GiB": f"{data_gib:g}"}
            rows.append(size | columns(cost) | {"cpu s/GiB": f"{per_gib[-1]:.3f}"})
        print_table(rows, {"scaling"})
        spread = max(per_gib) / min(per_gib)
        verdict = self.verdict(spread <= SCALING_LIMIT)
        print(f"scaling: {spread:.2f} between sizes, limit {SCALING_LIMIT:.2f}: {verdict}")


def columns(spent: Seconds) -> dict[str, str]:
    return {"wall s": f"{spent.wall:.2f}", "user s": f"{spent.user:.2f}", "system s": f"{spent.system:.2f}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=TARGET, help="disk to write to; default the target folder")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, help=",".join(PARTS))
    parser.add_argument("--mib-per-gib", type=int, default=1024, help="less than 1024 makes every file smaller")
    parser.add_argument("--keep", action="store_true", help="keep the sources for the next run")
    args = parser.parse_args()

    # What each part does and the sizes of its sources.
    bench = Bench(args.binary, args.work, args.runs, args.mib_per_gib)
    parts = {"start": (bench.start, ()), "memory": (bench.memory, (RACE_GIB,)), "race": (bench.race, (RACE_GIB,))}
    parts |= {f"scaling-{to}": (functools.partial(bench.scaling, to), sizes) for to, sizes in SCALING.items()}
    chosen = [parts[name] for name in args.only]
    with bench.sources({gib for _, sizes in chosen for gib in sizes}, args.keep):
        warn_if_busy()
        for measure, _ in chosen:
            measure()
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
