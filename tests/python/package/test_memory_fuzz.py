"""`memory_fuzz` for a few seconds, in a process of its own: a crash is what it looks for."""

import os
import subprocess
import sys
from pathlib import Path


def test_memory_of_every_kind():
    seconds = os.environ.get("TRUECAST_FUZZ_SECONDS", "4")
    program = Path(__file__).with_name("memory_fuzz.py")
    command = [sys.executable, program, "--seconds", seconds, "--seed", os.environ.get("TRUECAST_FUZZ_SEED", "1")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    assert "cases of seed" in done.stdout
