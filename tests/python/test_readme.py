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

import numpy as np
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


def write_qwen3(folder: Path):
    """A small model with a tokenizer of bytes."""
    folder.mkdir()
    config = {"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512, "vocab_size": 8}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    splits = [{"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": QWEN2}},
              {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]  # fmt: skip
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    tokenizer = {"model": model, "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    shapes = {"model.embed_tokens": (8, 256), "model.norm": (256,)}
    for layer in range(2):
        parts = {"self_attn.q_proj": (256, 256), "self_attn.k_proj": (128, 256), "self_attn.v_proj": (128, 256),
                 "self_attn.o_proj": (256, 256), "self_attn.q_norm": (64,), "self_attn.k_norm": (64,),
                 "mlp.gate_proj": (512, 256), "mlp.up_proj": (512, 256), "mlp.down_proj": (256, 512),
                 "input_layernorm": (256,), "post_attention_layernorm": (256,)}  # fmt: skip
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in parts.items()}
    random = np.random.default_rng(1)
    tensors = {f"{name}.weight": random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    header, data = {}, b""
    for name, values in tensors.items():
        at = [len(data), len(data) + values.nbytes]
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": at}
        data += values.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def test_a_folder_becomes_gguf_and_back(checkout):
    (commands,) = [lines for lines in LINES if lines[0].startswith("truecast quantize Qwen3-8B")]
    write_qwen3(checkout / "Qwen3-8B")
    write_qwen3(checkout / "Phi-4")
    # The file is that of another quantization.
    run("truecast quantize Phi-4 Phi-4-Q8_0.gguf q8_0", checkout)
    for line in commands:
        run(line, checkout)
    folder, again = (read_safetensors(checkout / name / "model.safetensors")[0] for name in ("Qwen3-8B", "Qwen3-8B-again"))
    assert folder.keys() == again.keys()
