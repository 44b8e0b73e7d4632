"""Checkpoints of several shards, written byte by byte and read back."""

import json
import os
import struct
import subprocess

import numpy as np
import torch

NAMES = {
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2", torch.float8_e8m0fnu: "F8_E8M0", torch.uint8: "U8", torch.int8: "I8",
    torch.int32: "I32", torch.int64: "I64", torch.uint32: "U32",
}
SIZES = {name: dtype.itemsize for dtype, name in NAMES.items()}


def raw(tensor):
    """The bytes of a tensor."""
    tensor = tensor.detach().contiguous()
    if tensor.numel() == 0:
        return b""
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def save(path, tensors, metadata=None):
    """One file: names to tensors."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    # Sorted by size, so that every tensor is aligned.
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        payload = raw(tensor)
        offsets = [len(data), len(data) + len(payload)]
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        data += payload
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def checkpoint(folder, shards, config=None, metadata=None, extra=None):
    """A folder of shards with an index, `config.json` and other JSON files."""
    folder.mkdir()
    places = {}
    for number, tensors in enumerate(shards):
        name = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        save(folder / name, tensors, metadata or {"format": "pt"})
        places.update({tensor: name for tensor in tensors})
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {"model_type": "test", "hidden_size": 64, **(config or {})}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for name, value in (extra or {}).items():
        (folder / name).write_text(json.dumps(value))
    return folder


def load(folder):
    """Names to dtype, shape and bytes of every tensor of a folder."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__", None)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            found[name] = (entry["dtype"], entry["shape"], data[8 + length + begin:8 + length + end])
    return found


def convert(source, result, *options, to="bf16"):
    """Runs the command without any option but the type, if there is one."""
    typed = ["--to", to] if to else []
    command = [os.environ["TRUECAST_BIN"], "convert", str(source), str(result), *typed, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def check(tmp_path, shards, expected, config=None, metadata=None, extra=None):
    """Converts the checkpoint and compares every tensor with what is expected."""
    source = checkpoint(tmp_path / "source", shards, config, metadata, extra)
    ran = convert(source, tmp_path / "result")
    assert ran.returncode == 0, ran.stderr
    found = load(tmp_path / "result")
    assert sorted(found) == sorted(expected)
    for name, tensor in expected.items():
        dtype, shape, data = found[name]
        assert (dtype, shape) == (NAMES[tensor.dtype], list(tensor.shape)), name
        if data != raw(tensor):
            size = tensor.dtype.itemsize
            ours = np.frombuffer(data, f"<u{size}")
            theirs = np.frombuffer(raw(tensor), f"<u{size}")
            at = int(np.flatnonzero(ours != theirs)[0])
            count = int((ours != theirs).sum())
            raise AssertionError(f"{name}: {count} of {ours.size} differ, first {at}: {ours[at]:#x}, not {theirs[at]:#x}")
    after = json.loads((tmp_path / "result" / "config.json").read_text())
    gone = ("quantization_config", "compression_config", "quantization", "expert_dtype", "moe_quant_algo")
    assert not [key for key in gone if key in after]
    assert (after["model_type"], after["hidden_size"]) == ("test", 64)
    assert not (tmp_path / "result" / "hf_quant_config.json").exists()
