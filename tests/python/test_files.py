"""Promises about files: nothing half-written, nothing overwritten by accident, exit codes.

Reference: docs/interfaces.md §3 and §5. Kills and signals at random moments are the business of
tests/acceptance/kill.py and faults.py; a short run of each is here.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import container
import faults
import kill
import numpy as np
import pytest
from dtypes import TYPES
from values import weights


@pytest.fixture
def source(tmp_path):
    return container.write_npy(tmp_path / "in.npy", weights(1000))


def test_existing_destination(truecast, source, tmp_path):
    out = tmp_path / "out.npy"
    out.write_bytes(b"precious")
    truecast("convert", source, out, "--to", "f16", code=2)
    assert out.read_bytes() == b"precious"
    truecast("convert", source, out, "--to", "f16", "--force")
    assert np.load(out).dtype == np.float16


def test_mode_of_a_replaced_file_is_kept(truecast, source, tmp_path):
    """docs/spec/checkpoints.md §2.8."""
    out = tmp_path / "out.npy"
    out.write_bytes(b"")
    out.chmod(0o640)
    truecast("convert", source, out, "--to", "f16", "--force")
    assert out.stat().st_mode & 0o777 == 0o640


def test_mode_of_a_new_file_follows_umask(truecast, source, tmp_path):
    out, before = tmp_path / "out.npy", os.umask(0o027)
    try:
        truecast("convert", source, out, "--to", "f16")
    finally:
        os.umask(before)
    assert out.stat().st_mode & 0o777 == 0o640


def test_source_is_not_the_destination(truecast, source, tmp_path):
    data = source.read_bytes()
    link = tmp_path / "link.npy"
    link.symlink_to(source)
    hard = tmp_path / "hard.npy"
    hard.hardlink_to(source)
    for destination in (source, link, hard):
        truecast("convert", source, destination, "--to", "f16", "--force", code=2)
        assert source.read_bytes() == data


def test_dry_run_writes_nothing(truecast, source, tmp_path):
    said = truecast.json("convert", source, tmp_path / "out.npy", "--to", "f16", "--dry-run")
    assert said["tensors"][0]["bytes_out"] == 2000
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("cut", [1, 8, 100, -1], ids=lambda n: f"first-{n}" if n > 0 else "all-but-one")
def test_truncated_sources(truecast, sample, tmp_path, cut):
    path = tmp_path / "in.safetensors"
    path.write_bytes(sample.read_bytes()[:cut])
    truecast("convert", path, tmp_path / "out.safetensors", "--to", "f16", code=3)
    assert list(tmp_path.iterdir()) == [path]


def test_error_policy_leaves_nothing(truecast, tmp_path):
    """Exit code 3 (docs/interfaces.md §5), also when the offending value is the last of many."""
    values = weights(500_000)
    values[-1] = 1e9
    path = container.write_npy(tmp_path / "in.npy", values)
    truecast("convert", path, tmp_path / "o.npy", "--to", "f16", "--spec", "ieee", "--overflow", "error", code=3)
    assert list(tmp_path.iterdir()) == [path]


def test_error_is_an_object_with_json(truecast, tmp_path):
    done = subprocess.run(
        [truecast.binary, "convert", tmp_path / "no.npy", tmp_path / "o.npy", "--to", "f16", "--json"],
        capture_output=True,
    )
    assert done.returncode == 4 and not done.stdout
    assert json.loads(done.stderr)["exit_code"] == 4


def test_verify_notices(truecast, tmp_path):
    """A missing tensor, an extra one, another shape, another type, other metadata: exit code 1 each."""
    x, f16, f32 = np.arange(6, dtype=np.float32), TYPES["f16"], TYPES["f32"]
    source = container.write_safetensors(tmp_path / "in.safetensors", {"a": (f32, x), "b": (f32, x)}, {"k": "v"})
    half = x.astype(np.float16)
    right = {"a": (f16, half), "b": (f16, half)}
    meta = {"format": "pt", "k": "v"}
    cases = {
        "right": (right, meta, 0),
        "missing": ({"a": right["a"]}, meta, 1),
        "extra": (right | {"c": right["a"]}, meta, 1),
        "shape": (right | {"b": (f16, half.reshape(2, 3))}, meta, 1),
        "type": (right | {"b": (TYPES["bf16"], x.astype(TYPES["bf16"].numpy))}, meta, 1),
        "metadata": (right, {"format": "pt", "k": "w"}, 1),
        "metadata-lost": (right, {"format": "pt"}, 1),
    }
    for name, (tensors, metadata, code) in cases.items():
        path = container.write_safetensors(tmp_path / f"{name}.safetensors", tensors, metadata)
        truecast("verify", source, path, "--to", "f16", code=code)


def test_verify_notices_added_metadata(truecast, tmp_path):
    """ "exit 1 on any difference" (docs/interfaces.md §3); convert itself adds nothing but `format`."""
    x = np.arange(6, dtype=np.float32)
    tensors = {"a": (TYPES["f32"], x)}
    source = container.write_safetensors(tmp_path / "in.safetensors", tensors, {"format": "pt"})
    path = container.write_safetensors(
        tmp_path / "o.safetensors", {"a": (TYPES["f16"], x.astype("f2"))}, {"format": "pt", "l": "w"}
    )
    truecast("verify", source, path, "--to", "f16", code=1)


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_killed_at_random_moments(truecast, tmp_path, signal):
    """Ten of each on 4 MiB; tests/acceptance/kill.py does it in earnest."""
    campaign = kill.Campaign(truecast.binary, tmp_path, megabytes=4, seed=7)
    outcome = campaign.run(signal, times=10)
    assert sum(outcome.values()) == 10, outcome


def test_faults_kills_and_others_at_work(truecast):
    """40 s of tests/acceptance/faults.py; without strace only signals and two processes."""
    seed = int(os.environ.get("TRUECAST_FAULTS_SEED", "1"))
    python = sys.executable if find_spec("truecast") else None
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        driver = faults.campaign(truecast.binary, Path(folder), 40, seed, python)
    assert not driver.findings, "\n".join(driver.findings)
    assert driver.runs["signals while results are placed"] > 0 and driver.runs["two processes"] > 0
