"""The site: its permalinks cover the clauses that the code cites, and each command of "The command for your checkpoint"
converts a small checkpoint of that kind. Links and navigation: test_the_site_is_built in package/test_docs.py."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, SAMPLE
from small_checkpoints import Make, awq, fp8, gptq, mlx, model, packed, safetensors


def test_cited_clauses_have_permalinks():
    cited = {}
    for source in (ROOT / "crates").rglob("*.rs"):
        for page, clause in re.findall(r"(docs/spec/[\w-]+\.md) §(\d+(?:\.\d+)*)", source.read_text()):
            cited.setdefault(page, set()).add(clause)
    assert len(cited) > 20
    for page, clauses in cited.items():
        numbers = set(re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", (ROOT / page).read_text(), re.MULTILINE))
        assert clauses <= numbers, (page, sorted(clauses - numbers))


W = "model.layers.0.mlp.up_proj.weight"
PLAIN = [f"{W} BF16 256x256", "model.layers.1.mlp.up_proj.weight BF16 256x256", "lm_head.weight BF16 256x256"]
QUANTIZED: dict[str, Make] = {
    "DeepSeek-V3": fp8(),
    "Qwen3-FP8": fp8(),
    "DeepSeek-V4": model(f"{W} I8 64x32", f"{W[:-6]}scale F8_E8M0 64x2", config={"expert_dtype": "fp4"},
                         quantization={"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}),
    "gpt-oss-20b": model("m.layers.0.mlp.experts.gate_up_proj_blocks U8 2x64x2x16",
                         "m.layers.0.mlp.experts.gate_up_proj_scales U8 2x64x2", quantization={"quant_method": "mxfp4"}),
    "MiniMax-MXFP8": model(f"{W} F8_E4M3 64x64", f"{W}_scale_inv U8 64x2",
                           quantization={"quant_method": "mxfp8", "weight_block_size": [1, 32]}),
    "Llama-FBGEMM": model(f"{W} F8_E4M3 64x64", f"{W}_scale F32 64x1", quantization={"quant_method": "fbgemm_fp8"}),
    "Llama-AWQ": awq(version="gemm"),
    "Llama-GPTQ": gptq(),
    "Llama-W4A16": packed(),
    "Llama-MLX": mlx(4, 64),
    "BitNet": model(f"{W} U8 16x64", f"{W}_scale BF16 1",
                    quantization={"quant_method": "bitnet", "linear_class": "autobitlinear"}),
}  # fmt: skip
#: Written by truecast first: the source of a source.
SCHEMES = {"Llama-ModelOpt": "modelopt:W4A16_NVFP4", "flux-fp8.safetensors": "fp8"}
#: In test_foreign_checkpoints.py, as these packages write them.
ELSEWHERE = {"Llama-torchao", "Llama-bnb"}
COMMANDS = re.findall(r"`(truecast \S+ \S+ \S+ ?[^`]*)` \|$", (ROOT / "site/commands.md").read_text(), re.MULTILINE)


def make(truecast, folder: Path, name: str) -> None:
    source = folder / name
    if name in QUANTIZED:
        QUANTIZED[name](folder)
        (folder / "model").rename(source)
    elif name in SCHEMES:
        make(truecast, folder, "plain" + source.suffix)
        truecast("quantize", folder / ("plain" + source.suffix), source, SCHEMES[name])
    elif name == "Mistral-FP8":
        lines = ["layers.0.a.weight F8_E4M3 64x64", "layers.0.a.qscale_weight F32", "layers.0.a.qscale_act F32"]
        safetensors(source / "consolidated.safetensors", *lines)
        (source / "params.json").write_text(json.dumps({"dim": 64, "quantization": {"qformat_weight": "fp8_e4m3"}}))
    elif name == "model.onnx":
        shutil.copy(ROOT / "examples/models/casts.onnx", source)
    elif source.suffix == ".gguf":
        truecast("convert", SAMPLE, source, "--to", "bf16")
    elif source.suffix == ".safetensors":
        safetensors(source, *PLAIN)
    else:
        model(*PLAIN, config={"model_type": "llama"})(folder)
        (folder / "model").rename(source)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_for_checkpoints(truecast, tmp_path, line):
    _, command, name, result, *options = shlex.split(line)
    if name in ELSEWHERE:
        pytest.skip("in test_foreign_checkpoints.py")
    make(truecast, tmp_path, name)
    truecast(command, tmp_path / name, tmp_path / result, *options)
    truecast("verify", tmp_path / name, tmp_path / result, *(options if result.endswith(".onnx") else []))


def test_there_is_a_command_for_every_family():
    assert len(COMMANDS) > 30 and ({*QUANTIZED, *SCHEMES, *ELSEWHERE} <= {shlex.split(line)[2] for line in COMMANDS})


def test_dead_links_are_found(tmp_path):
    (tmp_path / "index.html").write_text('<a href="a.html#there">1</a> <a href="a.html#gone">2</a> <a href="gone.html">3</a>')
    (tmp_path / "a.html").write_text('<p id="there"><a href="index.html">4</a> <a href="https://example.org/gone">5</a>')
    done = subprocess.run([sys.executable, ROOT / "site/check_links.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == ["index.html:1: a.html#gone", "index.html:1: gone.html"]
