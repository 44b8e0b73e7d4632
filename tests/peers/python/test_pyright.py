"""The package, the examples and a program that uses it, as pyright reads them."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_types_check(tmp_path):
    package = ROOT / "crates" / "python" / "package"
    read = [package / "truecast", ROOT / "examples" / "python", ROOT / "tests" / "python" / "package" / "typed_program.py"]
    # Ray is no peer of these tests; operators of torch are made by decorators that have no types;
    # notebooks are made of the scripts.
    left_out = [package / "truecast" / name for name in ("ray.py", "torch.py")]
    left_out.append(ROOT / "examples" / "python" / "notebooks")
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
