"""Contradictions in checkpoints (docs/spec/checkpoints.md §5.7): what `convert` refuses, warns of or leaves to `inspect --check`,
which lists all and exits with 1. Expected values are those of the formats: GPTQ's first format stores a zero point less 1 (§4.10)."""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from small_checkpoints import Make, awq, fp8, gptq, mlx, model, packed, safetensors
from command import ROOT

NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
NAN = np.float32("nan")


class Row(NamedTuple):
    make: Make
    #: The checks that find something.
    found: list[str]
    #: What the output says of them.
    said: str = ""
    #: The exit code of `convert`, and whether it warns.
    code: int = 0
    warns: bool = False


def refused(make: Make, check: str, said: str) -> Row:
    return Row(make, [check], said, code=3)


def nvfp4(gate: float, up: float, scales: int = 0x38) -> Make:
    """Two weights that vLLM holds in one layer."""

    def make(folder: Path) -> None:
        lines = []
        for name in ("gate_proj", "up_proj"):
            module = f"m.mlp.{name}"
            lines += [
                f"{module}.weight U8 32x32",
                f"{module}.weight_scale F8_E4M3 32x4",
                f"{module}.weight_scale_2 F32",
            ]
        model(
            *lines,
            quantization=NVFP4,
            weight_scale=scales,
            weight_scale_2=np.float32(gate),
        )(folder)
        path = folder / "model/model.safetensors"
        data = path.read_bytes()
        path.write_bytes(data[:-4] + np.float32(up).tobytes())

    return make


def mlx_block(bits: int, group: int, names=("up_proj", "down_proj")) -> Make:
    """128 to 256 and back, in 8 bits and groups of 32."""
    lines = []
    for name, rows, words in zip(names, (256, 128), (32, 64), strict=True):
        scales = f"F16 {rows}x{words // 8}"
        lines += [
            f"m.{name}.weight U32 {rows}x{words}",
            f"m.{name}.scales {scales}",
            f"m.{name}.biases {scales}",
        ]
    return model(*lines, config={"quantization": {"bits": bits, "group_size": group}})


def indexed(total: int, extra: bool = False, lacking: bool = False) -> Make:
    """Two shards of one tensor of 16 bytes each, and their index."""

    def make(folder: Path) -> None:
        names = {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
        }
        for name, file in names.items():
            safetensors(
                folder / "model" / file,
                f"{name} F32 4",
                *(["c F32 4"] if extra and name == "b" else []),
            )
        index = {
            "metadata": {"total_size": total},
            "weight_map": {**names, **({"d": names["a"]} if lacking else {})},
        }
        (folder / "model/model.safetensors.index.json").write_text(json.dumps(index))

    return make


SYM = {"sym": True}
V2 = {"sym": True, "checkpoint_format": "gptq_v2"}
NOT = "modules_to_not_convert"
GATE = "m.layers.0.gate.weight BF16 2x2"

ROWS = {
    "GPTQ stores the midpoint less 1": Row(gptq(0x77777777, **SYM), []),
    "GPTQ stores the midpoint": refused(
        gptq(0x88888888, **SYM),
        "zero-points",
        'sym is true, so every zero point is 8, but "m.a.qzeros" holds 9 as gptq reads it',
    ),
    "GPTQ v2 stores the midpoint": Row(gptq(0x88888888, **V2), []),
    "GPTQ v2 stores the midpoint less 1": refused(gptq(0x77777777, **V2), "zero-points", "holds 7 as gptq_v2 reads it"),
    "GPTQ, one zero point": refused(gptq(0x77777776, **SYM), "zero-points", "holds 7, 8 as gptq reads it"),
    "GPTQ, asymmetric": Row(gptq(0x88888888, sym=False), []),
    "AWQ": Row(awq(sym=True), []),
    "AWQ, sym": refused(awq(0x98888888, sym=True), "zero-points", "sym is true"),
    "AWQ, zero_point": refused(awq(0x98888888, zero_point=False), "zero-points", "zero_point is false"),
    "AWQ, asymmetric": Row(awq(0x98888888, zero_point=True), []),
    "CT": Row(packed(0x88888888, symmetric=True), []),
    "CT, symmetric": refused(
        packed(0x88888887, symmetric=True),
        "zero-points",
        "holds 7, 8 as ct:pack-quantized",
    ),
    "CT, asymmetric": Row(packed(0x88888887, symmetric=False), []),
    "MLX, settings of modules": Row(
        mlx(
            8,
            32,
            **{"m.a": {"bits": 4, "group_size": 64}, "m.norm": {"bits": 4}, "x": False},
        ),
        [],
    ),
    "MLX, a module that is not there": refused(
        mlx(8, 32, **{"model.m.a": {"bits": 4, "group_size": 64}}),
        "settings",
        'names "model.m.a", but no tensor',
    ),
    "MLX, the end of a module's name": refused(mlx(8, 32, a={"bits": 4, "group_size": 64}), "settings", 'names "a"'),
    "MLX, the right width": Row(mlx_block(8, 32), []),
    "MLX, another width": refused(
        mlx_block(4, 64),
        "shapes",
        'make 256 columns, but "m.down_proj" has 128 rows, as codes of 8 bits would make',
    ),
    "MLX, layers of which nothing is known": Row(mlx_block(4, 64, ("q", "k")), []),
    "an exception is quantized": Row(
        fp8(**{NOT: ["m.layers.0"]}),
        ["exclusions"],
        'excludes "m.layers.0.a", but it is stored as fp8-block',
        warns=True,
    ),
    "usual exceptions": Row(
        fp8(
            GATE,
            **{
                NOT: [
                    "lm_head",
                    "model.lm_head",
                    "LlamaRMSNorm",
                    "gate",
                    "model.layers.0.gate",
                    "m.layers.0.gate.weight",
                ]
            },
        ),
        [],
    ),
    "exceptions that are not there": Row(
        fp8(GATE, **{NOT: ["m.layers.7.gate", "router", "gate"]}),
        ["exceptions"],
        'names "m.layers.7.gate" and 1 other, but',
    ),
    "targets that are not there": Row(
        packed(group={"targets": ["re:.*visual.*"], "weights": {"num_bits": 8}}),
        ["entries"],
        "is for some modules, but none is stored so",
        warns=True,
    ),
    "scales of 0": Row(
        fp8(weight=np.arange(512) % 64, weight_scale_inv=0),
        ["scales"],
        "8 of 8 are 0, but its codes",
        warns=True,
    ),
    "a tensor of zeros": Row(fp8(weight=0, weight_scale_inv=0), [], warns=True),
    "some scales of 0": Row(fp8(weight_scale_inv=np.float32([1, 0, 1, 1])), []),
    "scales that are NaN": Row(fp8(weight_scale_inv=NAN), ["scales"], "8 of 8 are NaN", warns=True),
    "scales that are Inf": Row(
        fp8(weight_scale_inv=np.float32([1, np.inf, 1, 1])),
        ["scales"],
        "2 of 8 are Inf",
        warns=True,
    ),
    "large scales": Row(fp8(weight_scale_inv=np.float32(2.0**40)), ["scales"], "some are 2^40 or more"),
    "negative scales of FP8": Row(fp8(weight_scale_inv=np.float32(-1)), []),
    "negative scales of NVFP4": Row(nvfp4(0.01, 0.01, 0xB8), ["scales"], "some are negative"),
    "one global scale": Row(nvfp4(0.01, 0.01), []),
    "two global scales": Row(
        nvfp4(0.01, 0.02), ["global-scales"], 'differs from "m.mlp.gate_proj.weight" in its global scale'
    ),
    "an index": Row(indexed(32), []),
    "total_size": Row(indexed(31), ["index"], "total_size is 31, but the tensors have 32 bytes", warns=True),
    "a tensor that is not in the index": Row(
        indexed(48, extra=True), ["index"], '"c" of "model-00002-of-00002', warns=True
    ),
    "a tensor that is in the index alone": refused(indexed(32, lacking=True), "reading", '"d"'),
    "a block that does not fit": refused(fp8(weight_block_size=[64, 64]), "reading", "--from-scheme fp8-block:128x128"),
}


@pytest.mark.parametrize("name", ROWS)
def test_contradictions(truecast, tmp_path, name):
    row = ROWS[name]
    row.make(tmp_path)
    source = tmp_path / "model"
    code = int(bool(row.found))
    text, found = (
        truecast("inspect", source, "--check", code=code),
        truecast.json("inspect", source, "--check", code=code),
    )
    assert [finding["check"] for finding in found["findings"]] == row.found, text
    assert row.said in text and len(text.splitlines()) == len(row.found) + 1, text
    assert all(finding["refused"] == (row.code == 3) for finding in found["findings"])
    command = [truecast.binary, "convert", source, tmp_path / "out", "--to", "f32"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    warned = "warning" in ran.stderr
    assert (ran.returncode, warned) == (row.code, row.warns), ran.stderr
    assert row.code == 0 or (row.said in ran.stderr and not (tmp_path / "out").exists()), ran.stderr


def test_several_sources(truecast, tmp_path):
    fp8()(tmp_path)
    found = truecast.json("inspect", tmp_path / "model", tmp_path / "nothing", "--check", code=4)
    assert [sorted(one) for one in found["files"]] == [
        ["findings", "path"],
        ["code", "error", "path"],
    ]
    truecast("inspect", tmp_path / "model", "--check", "--stats", code=2)


def test_the_page_has_every_check():
    section = (ROOT / "docs/spec/checkpoints.md").read_text().split("### 5.7 ")[1].split("\n---")[0]
    assert {check for row in ROWS.values() for check in row.found} == set(
        re.findall(r"^\| `([a-z-]+)` \| ", section, re.M)
    )
