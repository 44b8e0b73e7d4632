"""Converts files of gigabytes and checks time, processor time, memory and start-up.

    python tests/acceptance/large.py [--binary FILE] [--work DIR] [--runs 3] [--only start,memory,race,scaling] [--mib-per-gib 1024]

Outside CI: it needs 11 GiB of disk, memory for a page cache of 12 GiB, a quiet machine, Linux (`/proc`), Python 3.11 or
later and NumPy. The sources are made here: f32 weights, normally distributed, in tensors from a few KiB to a quarter of
the file. Checked, with the counts of the report on, as they are by default:

- start: `truecast formats f4e2m1` takes at most 10 ms from start to exit, in the median of 20 runs;
- memory: 4 GiB to bf16 with --max-memory 32MiB; the peak resident set (VmHWM) minus that of `truecast formats` is at
  most 64 MiB;
- race: the same conversion takes at most 1.1 times as long as `cp` followed by `sync FILE` of the larger of source and
  result: best of 3 each, alternating, the source in the page cache, nothing else waiting to be written;
- scaling: processor time per GiB of source, user and system together, differs by at most 10 % among 1, 2 and 4 GiB to
  bf16, and between 1 and 8 GiB to f8e4m3fn: best of 3 each.

Prints tables; exit code 1 if a limit is missed. `--lock FILE` takes an exclusive flock of that file around each timed
run, for machines whose other work takes it too. `--mib-per-gib 64` makes every file 16 times smaller, to try the script.
Not here: results (minilm.py, tests/python), kills (kill.py).
"""

import argparse
import contextlib
import fcntl
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from processes import MIB, TARGET, Seconds, add_binary, idle_kib, peak_kib, print_table, seconds, warn_if_busy

MAX_MEMORY_MIB = 32
MEMORY_LIMIT_MIB = 64
RACE_LIMIT = 1.1
SCALING_LIMIT = 1.10
START_LIMIT_MS = 10
# What is converted at which size, in GiB.
SCALING = {"bf16": (1, 2, 4), "f8e4m3fn": (1, 8)}
RACE_GIB, RACE_TO = 4, "bf16"
# Memory that is got ready before each run: as much as the largest copy or result.
TAKEN_GIB = 4
# Shares of a file, in 4096ths: embeddings, projections, norms. The last tensor takes what is left.
SHARES = [1024, 512, 512, 256, 256, 256, 64, 64, 16, 1]
PARTS = ["start", "memory", "race", "scaling"]


def write_source(path: Path, data_bytes: int) -> None:
    """A safetensors file of exactly this much tensor data."""
    rng = np.random.default_rng(7)
    pool = rng.standard_normal(32 * MIB // 4, dtype=np.float32)
    sizes = [data_bytes * share // 4096 // 4 * 4 for share in SHARES]
    # Many small ones, as the norms and biases of a model are.
    sizes += [4 * 4096] * 64
    sizes.append(data_bytes - sum(sizes))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for i, size in enumerate(sizes):
        header[f"layers.{i}.weight"] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for size in sizes:
            scale = np.float32(rng.uniform(0.01, 0.1))
            while size > 0:
                # Never the same stretch twice: another beginning, another scale.
                piece = pool[rng.integers(pool.size // 2) :][: size // 4] * scale
                file.write(piece.data)
                size -= piece.nbytes
        file.flush()
        os.fsync(file.fileno())


def read_through(path: Path) -> None:
    """Into the page cache."""
    buffer = bytearray(8 * MIB)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def take_memory(size: int) -> None:
    """Has the system hold this much free memory of its own: a virtual machine may have given it back to its host, and
    asking for it again would count as the next command's time."""
    np.ones(size // 8)


class Bench:
    """The program, a folder, and what was missed so far."""

    def __init__(self, binary: Path, folder: Path, runs: int, mib_per_gib: int, lock: Path | None):
        self.binary, self.folder, self.runs, self.mib_per_gib, self.lock = binary, folder, runs, mib_per_gib, lock
        self.missed = False

    @contextlib.contextmanager
    def source(self, gib: int) -> Iterator[Path]:
        path = self.folder / f"{gib}gib.safetensors"
        write_source(path, gib * self.mib_per_gib * MIB)
        try:
            yield path
        finally:
            path.unlink()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.lock:
                fcntl.flock(stack.enter_context(open(self.lock, "a")), fcntl.LOCK_EX)
            yield

    def timed(self, source: Path, result: Path, *commands) -> list[Seconds]:
        """Each of the commands, which make the result from the source; the result is removed."""
        with self.alone():
            read_through(source)
            os.sync()
            take_memory(min(source.stat().st_size, TAKEN_GIB << 30))
            taken = [seconds(command) for command in commands]
        result.unlink()
        return taken

    def conversion(self, source: Path, to: str) -> tuple[list, Path]:
        result = self.folder / f"{to}.safetensors"
        limited = ["--max-memory", f"{MAX_MEMORY_MIB}MiB", "--quiet"]
        return [self.binary, "convert", source, result, "--to", to, *limited], result

    def convert(self, source: Path, to: str) -> Seconds:
        command, result = self.conversion(source, to)
        return self.timed(source, result, command)[0]

    def verdict(self, good: bool) -> str:
        self.missed |= not good
        return "ok" if good else "MISSED"

    def start(self) -> None:
        with self.alone():
            times = [seconds([self.binary, "formats", "f4e2m1"]).wall * 1e3 for _ in range(20)]
        median = statistics.median(times)
        print(f"start: {median:.1f} ms, limit {START_LIMIT_MS} ms: {self.verdict(median <= START_LIMIT_MS)}")

    def memory(self, source: Path) -> None:
        command, result = self.conversion(source, RACE_TO)
        memory = (peak_kib(*command) - idle_kib(self.binary)) / 1024
        result.unlink()
        verdict = self.verdict(memory <= MEMORY_LIMIT_MIB)
        print(f"memory: {memory:.1f} MiB with --max-memory {MAX_MEMORY_MIB}MiB, limit {MEMORY_LIMIT_MIB} MiB: {verdict}")

    def race(self, source: Path) -> None:
        copy = self.folder / "copy.bin"
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

    def scaling(self, costs: dict[tuple[str, int], Seconds]) -> None:
        rows = []
        for (to, gib), cost in costs.items():
            data_gib = gib * self.mib_per_gib / 1024
            per_gib = {"cpu s/GiB": f"{cost.processor / data_gib:.3f}"}
            rows.append({"scaling": f"f32 -> {to}", "GiB": f"{data_gib:g}"} | columns(cost) | per_gib)
        print_table(rows, {"scaling"})
        for to in SCALING:
            each = [cost.processor / gib for (type_name, gib), cost in costs.items() if type_name == to]
            spread = max(each) / min(each)
            verdict = self.verdict(spread <= SCALING_LIMIT)
            print(f"scaling: to {to} {spread:.2f} between sizes, limit {SCALING_LIMIT:.2f}: {verdict}")


def columns(spent: Seconds) -> dict[str, str]:
    return {"wall s": f"{spent.wall:.2f}", "user s": f"{spent.user:.2f}", "system s": f"{spent.system:.2f}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=TARGET, help="disk to write to; default the target folder")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, help="parts, separated by commas")
    parser.add_argument("--mib-per-gib", type=int, default=1024, help="less than 1024 makes every file smaller")
    parser.add_argument("--lock", type=Path, default=None, help="file to flock during each timed run")
    args = parser.parse_args()

    warn_if_busy()
    parts, costs = set(args.only), {}
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        bench = Bench(args.binary, Path(folder), args.runs, args.mib_per_gib, args.lock)
        if "start" in parts:
            bench.start()
        sizes = {gib for each in SCALING.values() for gib in each} if "scaling" in parts else set()
        # One source at a time: disk and page cache are for this one.
        for gib in sorted(sizes | ({RACE_GIB} if parts & {"memory", "race"} else set())):
            with bench.source(gib) as source:
                if gib == RACE_GIB and "memory" in parts:
                    bench.memory(source)
                if gib == RACE_GIB and "race" in parts:
                    bench.race(source)
                for to in SCALING if gib in sizes else ():
                    if gib in SCALING[to]:
                        runs = [bench.convert(source, to) for _ in range(args.runs)]
                        costs[to, gib] = min(runs, key=lambda run: run.processor)
        if costs:
            bench.scaling(costs)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
