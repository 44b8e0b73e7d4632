"""Running the command. `TRUECAST_BIN` names it; the default is the release build of this repository."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from container import payload_start

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "testdata" / "minilm" / "model.safetensors"


def binary() -> Path:
    named = os.environ.get("TRUECAST_BIN")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = Path(named) if named else target / "release" / "truecast"
    if not path.is_file():
        raise pytest.UsageError(f"{path} does not exist; cargo build --release, or set TRUECAST_BIN")
    return path.resolve()


class Truecast:
    """The command, with the checks that every use of it shares."""

    def __init__(self, binary: Path):
        self.binary = binary
        self._random = random.Random(1)

    def __call__(self, *args, code: int = 0) -> str:
        """Runs one command, expects an exit code (docs/interfaces.md §5), returns standard output."""
        done = self.run(*args)
        where = f"truecast {' '.join(map(str, args))}\n{done.stdout.decode()}{done.stderr.decode()}"
        assert done.returncode == code, f"exit code {done.returncode}, expected {code}\n{where}"
        if code >= 2:
            assert done.stderr.count(b"\n") >= 1 and b"panicked" not in done.stderr, where
        return done.stdout.decode()

    def run(self, *args) -> subprocess.CompletedProcess:
        """Runs one command; no panic."""
        done = subprocess.run([self.binary, *map(str, args)], capture_output=True, timeout=120)
        assert b"panicked" not in done.stderr, done.stderr
        return done

    def json(self, *args, code: int = 0) -> dict:
        return json.loads(self(*args, "--json", code=code))

    def convert(self, src: Path, dst: Path, *options) -> dict:
        """Converts and returns the report. `verify` must then say verified and, in .safetensors and .npy,
        notice one damaged byte."""
        report = self.json("convert", src, dst, *options)
        options = [option for option in options if option != "--force"]
        said = self("verify", src, dst, *options)
        assert said.splitlines()[-1].startswith("verified: "), said
        if dst.suffix in (".safetensors", ".npy"):
            self.damage(src, dst, *options)
        return report

    def damage(self, src: Path, dst: Path, *options) -> None:
        """Flips one bit of the payload, expects `verify` to say so with exit code 1, and restores the file."""
        good = dst.read_bytes()
        start = payload_start(dst)
        if start == len(good):
            return
        at, bit = self._random.randrange(start, len(good)), self._random.randrange(self._bits(dst))
        try:
            dst.write_bytes(good[:at] + bytes([good[at] ^ (1 << bit)]) + good[at + 1 :])
            said = self("verify", src, dst, *options, code=1)
            assert said.splitlines()[-1].startswith("DIFFERENT: "), (at, bit, said)
        finally:
            dst.write_bytes(good)

    @staticmethod
    def _bits(dst: Path) -> int:
        """Low bits of a byte that belong to an element for certain: in a .npy, bool uses one, 2-bit types use two."""
        if dst.suffix != ".npy":
            return 8
        header = dst.read_bytes()[: payload_start(dst)]
        return 1 if b"|b1" in header else 2 if b"<V1" in header else 8
