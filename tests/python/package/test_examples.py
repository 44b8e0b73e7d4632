"""The programs of examples/python run."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "python"
NEEDS = {"plot_error.py": "matplotlib", "train_with_fp8.py": "torch"}


@pytest.mark.parametrize("script", sorted(path.name for path in FOLDER.glob("*.py")))
def test_example(script, tmp_path):
    if script in NEEDS and importlib.util.find_spec(NEEDS[script]) is None:
        pytest.skip(f"needs {NEEDS[script]}")
    done = subprocess.run([sys.executable, FOLDER / script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_each_is_listed():
    listed = (FOLDER / "README.md").read_text()
    assert all(f"[{path.name}]({path.name})" in listed for path in FOLDER.glob("*.py"))
