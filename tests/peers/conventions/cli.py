"""The command `truecast`: the one that the environment variable TRUECAST names, or the package's."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from dtypes import Type

TRUECAST = [os.environ["TRUECAST"]] if "TRUECAST" in os.environ else [sys.executable, "-m", "truecast"]


@cache
def vectors(spec: str, source: Type, to: Type) -> np.ndarray:
    """Truecast's own decisive inputs."""
    with TemporaryDirectory() as folder:
        command = [*TRUECAST, "vectors", "cast", "--spec", spec, "--from", source.name, "--to", to.name]
        subprocess.run([*command, "--format", "npy", "--quiet", "-o", Path(folder) / "v"], check=True)
        return np.load(Path(folder) / "v.input.npy").view(source.numpy)


def check(spec: str, source: Type, to: Type, x: np.ndarray, actual: np.ndarray, *options: str, show: int = 5) -> dict:
    """The report of `truecast check cast`."""
    with TemporaryDirectory() as folder:
        files = [Path(folder) / "x.npy", Path(folder) / "actual.npy"]
        for file, array in zip(files, (x, actual), strict=True):
            np.save(file, array.view(np.dtype(f"u{array.itemsize}")) if array.dtype.kind == "V" else array)
        command = [*TRUECAST, "check", "cast", "--spec", spec, "--from", source.name, "--to", to.name, *options]
        command += ["--input", files[0], "--actual", files[1], "--show", str(show), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return json.loads(done.stdout)


def assert_right(report: dict) -> None:
    some = "\n".join(f"{v['input']}: {v['actual']}, permitted {v['permitted']}" for v in report["violations"][:5])
    assert not report["wrong"], f"{report['wrong']} of {report['elements']} are wrong\n{some}"
