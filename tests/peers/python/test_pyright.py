"""The package, the examples and a program that uses it, as pyright reads them."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_types_check(tmp_path):
    package = ROOT / "crates" / "python" / "package"
    read = [package / "truecast", ROOT / "examples" / "python", ROOT / "tests" / "python" / "package" / "typed_program.py"]
    left_out = [ROOT / "examples" / "python" / "notebooks"]  # made of the scripts
    settings = {
        "include": list(map(str, read)),
        "exclude": list(map(str, left_out)),
        "extraPaths": [str(package)],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.10",
        "reportMissingModuleSource": "none",
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    command = [Path(sys.executable).parent / "basedpyright", "--project", project, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
