"""Small quantized checkpoints: tensors in a line each, folders with a configuration."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

NUMPY = {
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "F8_E4M3": "u1",
    "F8_E8M0": "u1",
    "U8": "u1",
    "I8": "i1",
    "I32": "<i4",
    "U32": "<u4",
}
ONES = {
    "F32": 1.0,
    "F16": 1.0,
    "BF16": 0x3F80,
    "F8_E4M3": 0x38,
    "F8_E8M0": 0x7F,
    "U8": 0x22,
    "I32": 0x22222222,
    "U32": 0x22222222,
}

#: Writes files into a folder.
Make = Callable[[Path], None]


def safetensors(path: Path, *lines: str, **data) -> None:
    """Tensors, a line each: name, type and shape; of ones, or what `data` has for the last component of the name."""
    header, parts, at = {}, [], 0
    for line in lines:
        name, dtype, *shape = line.split()
        sizes = [int(size) for size in shape[0].split("x")] if shape else []
        fill = data.get(name.rsplit(".")[-1], ONES.get(dtype, 1))
        raw = np.broadcast_to(np.asarray(fill), sizes).astype(NUMPY[dtype]).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": sizes,
            "data_offsets": [at, at + len(raw)],
        }
        at += len(raw)
        parts.append(raw)
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def model(*lines: str, config: dict | None = None, quantization: dict | None = None, **data) -> Make:
    """A folder `model`, with this configuration."""

    def make(folder: Path) -> None:
        safetensors(folder / "model/model.safetensors", *lines, **data)
        declared = {"quantization_config": quantization} if quantization else {}
        (folder / "model/config.json").write_text(json.dumps({**declared, **(config or {})}))

    return make


def single(*lines: str, **data) -> Make:
    """One file, `a.safetensors`."""
    return lambda folder: safetensors(folder / "a.safetensors", *lines, **data)


def gptq(zeros: int = 0x77777777, **more) -> Make:
    """4 bits, 128 inputs and 32 outputs in groups of 32; each word of `qzeros` is `zeros`."""
    lines = ["m.a.qweight I32 16x32", "m.a.qzeros I32 4x4", "m.a.scales F16 4x32"]
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32, **more}
    return model(*lines, quantization=config, qzeros=word(zeros))


def awq(zeros: int = 0x88888888, **more) -> Make:
    """The same of AWQ."""
    lines = ["m.a.qweight I32 128x4", "m.a.qzeros I32 4x4", "m.a.scales F16 4x32"]
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, **more}
    return model(*lines, quantization=config if more else None, qzeros=word(zeros))


def packed(zeros: int | None = None, group: dict | None = None, **weights) -> Make:
    """compressed-tensors, 4 bits, 32 rows and 128 columns in groups of 32; `group` is declared too."""
    lines = ["m.a.weight_packed I32 32x16", "m.a.weight_shape I32 2", "m.a.weight_scale F16 32x4"]
    lines += ["m.a.weight_zero_point I32 4x4"] if zeros is not None else []
    groups = {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32, **weights}}}
    groups |= {"h": group} if group else {}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}
    data = {"weight_zero_point": word(zeros or 0), "weight_shape": np.int32([32, 128])}
    return model(*lines, quantization=config, **data)


def mlx(bits: int, group: int, **own) -> Make:
    """8 rows of 32 words, with 4 scales each."""
    lines = [
        "m.a.weight U32 8x32",
        "m.a.scales F16 8x4",
        "m.a.biases F16 8x4",
        "m.norm.weight F16 8",
    ]
    return model(*lines, config={"quantization": {"bits": bits, "group_size": group, **own}})


def fp8(*lines: str, **more) -> Make:
    """FP8 in blocks of 128x128."""
    stored = [
        "m.layers.0.a.weight F8_E4M3 256x512",
        "m.layers.0.a.weight_scale_inv F32 2x4",
        *lines,
    ]
    data = {name: more.pop(name) for name in ("weight", "weight_scale_inv") if name in more}
    config = {"quant_method": "fp8", "weight_block_size": [128, 128], **more}
    return model(*stored, quantization=config, **data)


def word(number: int) -> np.ndarray:
    return np.uint32(number).astype("<i4")
