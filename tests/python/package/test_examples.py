"""The programs of examples/python run."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "python"
NEEDS = {"fold_casts.py": "onnxruntime", "plot_error.py": "matplotlib", "train_with_fp8.py": "torch"}


@pytest.mark.parametrize("script", sorted(path.name for path in FOLDER.glob("*.py")))
def test_example(script, tmp_path):
    if script in NEEDS and importlib.util.find_spec(NEEDS[script]) is None:
        pytest.skip(f"needs {NEEDS[script]}")
    done = subprocess.run([sys.executable, FOLDER / script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


_spec = importlib.util.spec_from_file_location("make_notebooks", FOLDER / "notebooks" / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.mark.parametrize("script", make.scripts(), ids=lambda path: path.stem)
def test_notebook(script, tmp_path, monkeypatch):
    """It is made of its script, and its cells run one after the other."""
    text = (FOLDER / "notebooks" / script.with_suffix(".ipynb").name).read_text()
    assert text == make.notebook(script.read_text()), "run examples/python/notebooks/make.py"
    if script.name in NEEDS and importlib.util.find_spec(NEEDS[script.name]) is None:
        pytest.skip(f"needs {NEEDS[script.name]}")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 2
    for cell in cells:
        exec(compile("".join(cell["source"]), script.stem, "exec"), names)


def test_each_is_listed():
    listed = (FOLDER / "README.md").read_text()
    assert all(f"[{path.name}]({path.name})" in listed for path in FOLDER.glob("*.py"))
