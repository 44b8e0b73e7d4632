"""Kills conversions at random moments and checks that no file is ever half-written.

    python tests/acceptance/kill.py [--kind safetensors|onnx] [--binary FILE] [--times 50] [--megabytes 96] [--seed N] [--folder DIR]

Linux, Python 3.11 or later, standard library only; outside CI, where a short run of `Campaign` is part of
tests/python/test_files.py. Promises tested: docs/interfaces.md §5 (its end) and docs/spec/checkpoints.md §2.8.

For each moment, drawn uniformly from the measured duration of the conversion, one of:

- SIGKILL: the destination is absent (with --force: still the old file), or complete, and then `truecast verify` says
  verified. A temporary file may be left; nothing can remove it. The source is unchanged. The next conversion into the
  same folder succeeds and gives the same bytes as an undisturbed, verified one.
- SIGINT, SIGTERM: exit code 4, the destination absent (or old) and no temporary left; or exit code 0 and a complete,
  verified destination.

A signal is sent only after the process has installed its handler (SigCgt in /proc): before that nothing has been
written, and the default action of the system ends the process, which no program can change.

Not here: checkpoint folders and --resume.
"""

import argparse
import hashlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Callable

from checkpoints import create_f32, create_model_f32
from processes import run

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
OLD = b"an older file, which --force may replace but nothing may damage\n"

Create = Callable[[list[tuple[str, int]]], BinaryIO]


def write_weights(create: Create, megabytes: int, seed: int) -> None:
    """f32 tensors in a file that is begun with their names and bytes: random mantissas and signs, exponents near 1."""
    rng = random.Random(seed)
    block = bytearray(rng.randbytes(MIB))
    # The two top bytes of each element hold sign, exponent and 7 bits of mantissa; 0x3f80 is 1.0.
    block[3::4] = bytes(0x3E | (b & 0x81) for b in block[3::4])
    tensors = max(3, megabytes // 16)
    size = megabytes // tensors * MIB
    with create([(f"layer.{i}.weight", size) for i in range(tensors)]) as file:
        for _ in range(tensors * size // MIB):
            file.write(block)


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Campaign:
    """One source, one folder, any number of kills."""

    suffix = ".safetensors"

    def __init__(self, binary: Path, folder: Path, megabytes: int, seed: int, to: str = "bf16"):
        self.binary = Path(binary)
        self.folder = folder / "out"
        self.folder.mkdir()
        self.source = folder / f"source{self.suffix}"
        self.destination = self.folder / f"result{self.suffix}"
        self.options = ["--to", to]
        self.random = random.Random(seed)
        write_weights(self._create_source, megabytes, seed)
        self.source_hash = sha256(self.source)
        self.duration = statistics.median(self._timed() for _ in range(3))
        self._convert()
        self._verified()
        self.result_hash = sha256(self._data())
        self._clear()

    def _create_source(self, tensors: list[tuple[str, int]]) -> BinaryIO:
        return create_f32(self.source, tensors)

    def _data(self) -> Path:
        """The file that holds the result's data."""
        return self.destination

    def _put_old(self) -> None:
        self.destination.write_bytes(OLD)

    def _is_old(self) -> bool:
        return self.destination.read_bytes() == OLD

    def _clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()

    def _command(self, force: bool) -> list[str]:
        # Small buffers make for many reads and writes between which a signal can fall.
        limits = ["--max-memory", "4MiB", "--quiet"]
        command = [self.binary, "convert", self.source, self.destination, *self.options, *limits]
        return [str(c) for c in command] + (["--force"] if force else [])

    def _convert(self, force: bool = False) -> None:
        subprocess.run(self._command(force), check=True, capture_output=True)

    def _timed(self) -> float:
        begin = time.perf_counter()
        self._convert()
        elapsed = time.perf_counter() - begin
        self._clear()
        return elapsed

    def _verified(self) -> None:
        command = [str(self.binary), "verify", "--full", str(self.source), str(self.destination), *self.options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and "verified: " in done.stdout, done.stdout + done.stderr

    def _others(self) -> list[Path]:
        known = [self.destination, self._data()] if self.destination.exists() else []
        return [p for p in self.folder.iterdir() if p not in known]

    @staticmethod
    def _catches(pid: int, number: int) -> bool:
        """The process has a handler for this signal."""
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        for line in status.splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
        return False

    def _strike(self, number: int, force: bool) -> tuple[int, str]:
        """Starts a conversion, sends the signal at a random moment, returns exit code and standard error."""
        delay = self.random.uniform(0, 1.05 * self.duration)
        begin = time.perf_counter()
        with subprocess.Popen(self._command(force), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            while time.perf_counter() - begin < delay:
                time.sleep(0.0002)
            if number != signal.SIGKILL:
                while process.poll() is None and not self._catches(process.pid, number):
                    time.sleep(0.0002)
            process.send_signal(number)
            stderr = process.communicate(timeout=120)[1].decode()
        return process.returncode, stderr

    def _once(self, name: str, force: bool) -> str:
        if force:
            self._put_old()
        number = getattr(signal, name)
        code, stderr = self._strike(number, force)

        is_old = force and self.destination.exists() and self._is_old()
        complete = self.destination.exists() and not is_old
        if complete:
            self._verified()
            assert sha256(self._data()) == self.result_hash
        assert not force or self.destination.exists(), "--force lost the old file before the new one was complete"
        assert sha256(self.source) == self.source_hash, "the source changed"

        if name == "SIGKILL":
            assert code in (0, -signal.SIGKILL), (code, stderr)
            assert code != 0 or complete, "exit code 0 without a result"
            outcome = ("killed, " if code else "finished, ") + ("complete" if complete else "nothing written")
            if self._others():
                outcome += ", temporary left"
        else:
            assert code in (0, 4), (code, stderr)
            assert (code == 0) == complete, f"exit code {code}, destination complete: {complete}\n{stderr}"
            assert not self._others(), self._others()
            assert code == 0 or stderr.count("\n") == 1, stderr
            outcome = "interrupted, nothing written" if code else "finished, complete"

        # The next conversion succeeds in the folder as it was left.
        self._convert(force=True)
        self._verified()
        assert sha256(self._data()) == self.result_hash, "the next conversion gave another file"
        self._clear()
        return outcome

    def run(self, name: str, times: int) -> Counter:
        """Strikes `times` times, every other time over an existing destination; raises at the first broken promise."""
        outcomes = Counter()
        for i in range(times):
            outcomes[self._once(name, force=i % 2 == 1)] += 1
        return outcomes


class ModelCampaign(Campaign):
    """A model with external data: two files, which must fit together at every moment.

    What is replaced is a model of another type, whole with its own data. Data that no model refers to may be left by
    SIGKILL, as a temporary file may."""

    suffix = ".onnx"
    old = ["--to", "f16"]

    def _create_source(self, tensors: list[tuple[str, int]]) -> BinaryIO:
        return create_model_f32(self.source, tensors, "source.data")

    def _data(self) -> Path:
        return self.folder / re.search(rb"result\.onnx(\.\d+)?\.data", self.destination.read_bytes())[0].decode()

    def _put_old(self) -> None:
        run(self.binary, "convert", self.source, self.destination, *self.old)

    def _is_old(self) -> bool:
        command = [self.binary, "verify", "--full", self.source, self.destination, *self.old, "--quiet"]
        return subprocess.run([str(c) for c in command], capture_output=True).returncode == 0


CAMPAIGNS = {"safetensors": Campaign, "onnx": ModelCampaign}


def main() -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    default = Path(os.environ.get("TRUECAST_BIN", target / "release" / "truecast"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=default)
    parser.add_argument("--kind", choices=CAMPAIGNS, default="safetensors")
    parser.add_argument("--times", type=int, default=50, help="of each signal")
    parser.add_argument("--megabytes", type=int, default=96)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None, help="where to work; default a temporary folder")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        campaign = CAMPAIGNS[args.kind](args.binary.resolve(), Path(folder), args.megabytes, seed)
        print(f"{args.megabytes} MiB, one conversion takes {campaign.duration * 1e3:.0f} ms")
        for name in ("SIGKILL", "SIGINT", "SIGTERM"):
            for outcome, count in sorted(campaign.run(name, args.times).items()):
                print(f"{name:<8} {count:>4}  {outcome}")
    print("every destination was absent, old, or complete and verified; the source never changed")


if __name__ == "__main__":
    sys.exit(main())
