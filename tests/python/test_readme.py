"""The commands of the README and of the site's guides: each runs as it is written, and prints the outputs shown."""

import contextlib
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, SAMPLE, binary
from container import read_safetensors

if sys.platform == "linux":
    import fcntl
    import pty
    import termios

README = (ROOT / "README.md").read_text()
GUIDES = [ROOT / "site/index.md", ROOT / "site/commands.md", *sorted((ROOT / "site/guides").glob("*.md"))]


def listings(text: str) -> list[list[str]]:
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.MULTILINE)
    return [[line[4:] for line in block.splitlines() if line.strip()] for block in blocks]


LINES = listings(README)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLE.parent, tmp_path / "testdata" / "minilm")
    return tmp_path


def run(line: str, folder: Path) -> str:
    words = shlex.split(line)
    assert words[0] == "truecast"
    done = subprocess.run([binary(), *words[1:]], cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, f"{line}\n{done.stdout.decode()}{done.stderr.decode()}"
    return done.stdout.decode()


def on_terminal(line: str, folder: Path) -> list[str]:
    """The lines that a terminal of 80 columns shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)
    words = [binary(), *shlex.split(line)[1:]]
    process = subprocess.Popen(words, cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    printed = b""
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while part := os.read(ours, 65536):
            printed += part
    os.close(ours)
    assert process.wait() == 0, line
    return [shown.rstrip() for shown in printed.decode().splitlines() if shown.strip()]


def shown(text: str) -> list[list[str]]:
    return [lines for lines in listings(text) if lines[0].startswith("$ truecast ")]


#: What runs in one folder: a listing of the README; all listings of a guide, without repetitions.
SHOWN = [*shown(README), *([line for lines in shown(page.read_text()) for line in lines] for page in GUIDES)]
SHOWN = [lines for lines in SHOWN if lines]


@pytest.mark.skipif(sys.platform != "linux", reason="a terminal of 80 columns is made by calls of Linux")
@pytest.mark.parametrize("lines", SHOWN, ids=[lines[0][2:] for lines in SHOWN])
def test_outputs_are_those_shown(lines, checkout):
    """One after the other in one folder; `..` stands for any lines, and the others come in their order."""
    actual = iter(())
    for line in lines:
        if line.startswith("$ "):
            actual = iter(on_terminal(line[2:], checkout))
        elif line.strip() != "..":
            assert line.rstrip() in actual, f"{line}\nis not printed, or not at its place"


def test_a_file_is_converted_and_verified(checkout):
    (commands,) = [lines for lines in LINES if "--keep" in lines[0]]
    outputs = [run(line, checkout) for line in commands]
    assert any("embeddings.LayerNorm.weight" in row and "f32 kept" in row for row in outputs[0].splitlines()), outputs[0]
    assert outputs[-1].splitlines()[-1].startswith("verified: ")


def test_a_quantized_folder_becomes_dense(tmp_path):
    """Codes 1.0 and -1.5 with a scale of 0.25, as DeepSeek stores them."""
    folder = tmp_path / "DeepSeek-V3"
    folder.mkdir()
    declared = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", "quantization_config": declared}))
    header = json.dumps({
        "a.weight": {"dtype": "F8_E4M3", "shape": [1, 2], "data_offsets": [0, 2]},
        "a.weight_scale_inv": {"dtype": "F32", "shape": [1, 1], "data_offsets": [2, 6]},
    }).encode()
    data = bytes([0x38, 0xBC]) + struct.pack("<f", 0.25)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    (commands,) = [lines for lines in LINES if lines[0].startswith("truecast dequantize DeepSeek-V3")]
    (prove,) = re.findall(r"`(truecast verify DeepSeek-V3 [^`]*)`", README)
    for line in [*commands, prove]:
        run(line, tmp_path)
    dense = tmp_path / "DeepSeek-V3-BF16"
    assert json.loads((dense / "config.json").read_text()) == {"torch_dtype": "bfloat16"}
    assert (dense / "model.safetensors").read_bytes()[-4:] == struct.pack("<HH", 0x3E80, 0xBEC0)


def test_a_folder_becomes_quantized(checkout):
    """Of the matrix each 128x128 has one scale: what is read again is within half an ulp at its largest magnitude."""
    folder = checkout / "MiniLM"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes((checkout / "testdata/minilm/model.safetensors").read_bytes())
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (commands,) = [lines for lines in LINES if lines[0].startswith("truecast quantize MiniLM")]
    for line in [*commands, "truecast verify MiniLM MiniLM-FP8 --full", "truecast convert MiniLM-FP8 dense --to f32"]:
        run(line, checkout)
    config = json.loads((checkout / "MiniLM-FP8/config.json").read_text())
    assert config["quantization_config"]["quant_method"] == "fp8"
    tensors = lambda of: read_safetensors(checkout / of / "model.safetensors")[0]
    before, written, after = tensors("MiniLM"), tensors("MiniLM-FP8"), tensors("dense")
    name = "encoder.layer.0.attention.self.query.weight"
    assert written[f"{name}_scale_inv"].shape == (1, 3)
    for kept in before.keys() - {name}:
        assert before[kept].tobytes() == after[kept].tobytes()
    for at in range(0, 384, 128):
        x, y = before[name][:, at : at + 128], after[name][:, at : at + 128]
        assert 0 < abs(x - y).max() <= abs(x).max() / 448 * 16


def test_gguf_becomes_dense_and_other_gguf(checkout):
    (commands,) = [lines for lines in LINES if lines[0].startswith("truecast convert model.gguf")]
    run("truecast convert testdata/minilm/model.safetensors model.gguf --to f32", checkout)
    for line in commands:
        run(line, checkout)
    assert (checkout / "smaller.gguf").stat().st_size < (checkout / "model.safetensors").stat().st_size
