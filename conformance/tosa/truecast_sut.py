"""Adapter of Arm's test runner (`tosa_verif_run_tests --sut-module truecast_sut`): truecast as the system under test.

The program is that of the environment variable TRUECAST_BIN, else `truecast` on the path. Reference: docs/spec/tosa.md §10.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from runner.tosa_test_runner import TosaTestRunner

TRUECAST = os.environ.get("TRUECAST_BIN", "truecast")
SCALE = "_scale"


class TosaSUTRunner(TosaTestRunner):
    """Runs one test: a graph, its inputs and outputs as `desc.json` names them."""

    def runTestGraph(self):
        result = TosaTestRunner.TosaGraphResult
        description, folder = self.testDesc, Path(self.testDir)
        inputs = zip(description["ifm_name"], description["ifm_file"])
        with tempfile.TemporaryDirectory() as outputs:
            command = [TRUECAST, "run", str(folder / description["tosa_file"]), "--json", "--output-dir", outputs]
            command += ["--threads", "1"]
            command += [arg for name, file in inputs for arg in ("--input", f"{name}={folder / file}")]
            run = subprocess.run(command, capture_output=True, text=True)
            report = json.loads(run.stdout) if run.stdout.strip() else {}
            if run.returncode == 0:
                deliver(report["outputs"], description, folder)
        if run.returncode == 0:
            return result.TOSA_VALID, run.stderr
        status = {"unpredictable": result.TOSA_UNPREDICTABLE, "error": result.TOSA_ERROR}
        return status.get(report.get("status"), result.OTHER_ERROR), run.stderr


def deliver(outputs, description, folder):
    """Moves each output to the name that the test expects; scales beside their elements."""
    files = dict(zip(description["ofm_name"], description["ofm_file"]))
    for output in outputs:
        source, target = Path(output["path"]), folder / files[output["name"]]
        if source.stem.endswith(SCALE) and output["dtype"] == "f8e8m0" and not is_output(source, outputs):
            target = target.with_name(target.stem + SCALE + target.suffix)
        target.write_bytes(source.read_bytes())


def is_output(source, outputs):
    """Whether a file that is called like scales is an output of its own."""
    return sum(output["path"] == str(source) for output in outputs) == 1 and not any(
        output["path"] == str(source.with_name(source.name.replace(SCALE, ""))) for output in outputs
    )
