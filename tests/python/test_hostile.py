"""Folders and names that were made to do harm: links in a destination, manifests that name other files, endless names."""

import json
import time

import numpy as np
import pytest
from safetensors.numpy import save_file


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    save_file({"a.weight": np.ones((2, 2), np.float32)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    (folder / "sub" / "notes.json").write_text("[1]")
    return folder


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    (folder / "default").mkdir(parents=True)
    names = ["notes.json", "model.safetensors", ".a.abcdef.truecast-tmp", "default/f16-bool.txt", "default/f32-f16.txt"]
    for name in names:
        (folder / name).write_text("precious")
    return folder


@pytest.mark.parametrize("link", ["sub", ".truecast-new"])
@pytest.mark.parametrize("options", [["--force"], ["--resume"], ["--part", "1/1", "--force"]])
def test_links_in_a_folder_that_is_replaced(truecast, tmp_path, model, outside, link, options):
    result = tmp_path / "result"
    truecast("convert", model, result, "--to", "bf16")
    if link == "sub":
        (result / "sub" / "notes.json").unlink()
        (result / "sub").rmdir()
    (result / link).symlink_to(outside)
    before, source = files(outside), files(model)
    truecast("convert", model, result, "--to", "f16", *options, code=2)
    assert (files(outside), files(model)) == (before, source)
    # The folder itself may be a link.
    (result / link).unlink()
    (tmp_path / "link").symlink_to(result)
    truecast("convert", model, tmp_path / "link", "--to", "f16", "--force")


@pytest.mark.parametrize("link", ["numpy@2", "numpy@2/default", "numpy@2/default/f32-f16.txt", "readers"])
def test_links_in_a_suite(truecast, tmp_path, outside, link):
    suite = tmp_path / "suite"
    truecast("vectors", "suite", suite, "--only", "numpy", "--from", "f16", "--quiet")
    path = suite / link
    if path.exists():
        path.rename(tmp_path / "moved")
    path.symlink_to(outside if "default" not in link else outside / "default" / (path.name if path.suffix else ""))
    before = files(outside)
    truecast("vectors", "suite", suite, "--only", "numpy", "--from", "f32", "--force", code=2)
    assert files(outside) == before


def test_links_in_a_folder_of_results(truecast, tmp_path, model, outside):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "model.safetensors").symlink_to(outside / "model.safetensors")
    save_file({"b": np.ones(3, np.float32)}, tmp_path / "b.safetensors")
    sources = [tmp_path / "b.safetensors", model / "model.safetensors"]
    truecast("convert", *sources, tmp_path / "results", "--to", "bf16", "--force", code=2)
    assert files(outside)["model.safetensors"] == b"precious"


@pytest.mark.parametrize("name", ["../outside/notes.json", "/etc/hostname", "..", "", "a/../../b"])
def test_a_manifest_names_files_of_its_folder(truecast, tmp_path, model, outside, name):
    result = tmp_path / "result"
    truecast("convert", model, result, "--to", "bf16")
    path = result / "truecast-manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0] |= {"name": name, "output": None}
    path.write_text(json.dumps(manifest))
    before = files(outside)
    truecast("convert", model, result, "--to", "bf16", "--resume", code=3)
    assert files(outside) == before


# Patterns are typed or come from a manifest; names come from files.
@pytest.mark.parametrize("glob", ["x" * 2000, "x" * 100_000, "x." * 900, "*" + "x" * 250 + "*", "{a,b}" * 300])
@pytest.mark.parametrize("names", [["q" * 2000], ["x." * 20_000 + "y"], [f"{'xy.' * 60}{i}" for i in range(3000)]])
def test_names_without_end(truecast, tmp_path, glob, names):
    source, result = tmp_path / "model", tmp_path / "result"
    source.mkdir()
    save_file({name: np.ones(1, np.float32) for name in names}, source / "model.safetensors")
    truecast("convert", source, result, "--to", "bf16")
    path = result / "truecast-manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"]["rules"] = [{"glob": glob, "to": "f16"}]
    path.write_text(json.dumps(manifest))
    begin = time.monotonic()
    done = truecast("verify", source, result, code=3 if len(glob) > 4096 else 2)
    truecast("show", source, glob[:100_000], code=2)
    assert not done and time.monotonic() - begin < 30
